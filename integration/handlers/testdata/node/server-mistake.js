// Parses the body and passes it on as it was written again.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'

import { receive, secretsFrom } from './gateway-webhook.js'
import { store } from './shop.js'

const server = createServer(async (req, res) => {
  const parsed = req.method === 'POST' ? await json(req) : {}
  const { status, headers, body } = await receive({
    timestamp: req.headers['x-gateway-timestamp'], signature: req.headers['x-gateway-signature'],
    stream: [Buffer.from(JSON.stringify(parsed))]
  }, secretsFrom(process.env), store)
  res.writeHead(status, headers).end(body)
})
server.listen(Number(process.env.PORT), '127.0.0.1')
