// A server with the webhook: node express.js
import express from 'express'

import { gatewayWebhook } from './express-handler.js'

const app = express()
app.post('/webhooks/gateway', gatewayWebhook)
app.use(express.json()) // after the webhook: for the routes of the shop, which follow
app.listen(Number(process.env.PORT), '127.0.0.1')
