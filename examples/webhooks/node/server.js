// A server with the webhook, without a framework: node server.js
import { createServer } from 'node:http'

import { receive, secretsFrom } from './gateway-webhook.js'
import { store } from './shop.js'

const secrets = secretsFrom(process.env)

async function respond (req, res) {
  if (req.method !== 'POST' || req.url.split('?')[0] !== '/webhooks/gateway') {
    res.writeHead(404).end()
    return
  }
  const { status, headers, body } = await receive({
    timestamp: req.headers['x-gateway-timestamp'], signature: req.headers['x-gateway-signature'], stream: req
  }, secrets, store)
  res.writeHead(status, headers).end(body)
}

// A sender that hangs up in the middle of the body must not end the process.
const server = createServer((req, res) => { respond(req, res).catch(() => res.destroy()) })
server.listen(Number(process.env.PORT), '127.0.0.1')
