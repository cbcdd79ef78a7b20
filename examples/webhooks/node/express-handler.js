// The webhook in Express.
import { receive, secretsFrom } from './gateway-webhook.js'
import { store } from './shop.js'

const secrets = secretsFrom(process.env)

/** Reads the raw body itself, so mount it before express.json() and every other parser. */
export async function gatewayWebhook (req, res) {
  const reply = await receive({
    timestamp: req.get('X-Gateway-Timestamp'), signature: req.get('X-Gateway-Signature'), stream: req
  }, secrets, store)
  res.status(reply.status).set(reply.headers).send(reply.body)
}
