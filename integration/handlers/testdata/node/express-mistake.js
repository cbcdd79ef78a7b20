// Mounts the webhook after a JSON parser, which reads the body.
import express from 'express'

import { gatewayWebhook } from './express-handler.js'

const app = express()
app.use(express.json())
app.post('/webhooks/gateway', gatewayWebhook)
app.listen(Number(process.env.PORT), '127.0.0.1')
