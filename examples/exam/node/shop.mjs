#!/usr/bin/env node
// A small merchant that sits the exam: orders, refunds and webhooks, with Node's own modules.
//
//   mockgateway exam -- node shop.mjs
//   mockgateway exam -- node shop.mjs --mistake no_dedup
//
// What makes it correct, in the order of the code:
//
// - An order is stored before it is charged, and charged with a reference that is
//   derived from its id, so every repeat finds the first charge.
// - No response, a 5xx or an unreadable body means "unknown", never "failed".
// - book() is the only writer of an order's state. It takes a transaction that was
//   read from the gateway, never sets the state back, and ships in the same commit.
// - A webhook is only a hint to read the transaction. It gets 5xx until it is booked.
// - A refund whose outcome is unknown is not repeated, but looked for, minutes later.
//
// EXAM_MISTAKE or --mistake turns one of these rules off; see README.md.
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const MISTAKES = `no_dedup memory_dedup new_ref unsigned swallow_errors no_amount_check late_overwrites
timeout_is_failure refund_repeated any_refund_is_full acks_unknown_order check_then_act
chargeback_ignored float_cents double_click`.split(/\s+/)

const RANK = { unknown: 0, review: 0, pending: 0, failed: 1, paid: 2, partially_refunded: 3, refunded: 4, charged_back: 5 }
// What a transaction must at least have reached when its event is sent.
const EVENT_RANK = { 'transaction.cancelled': 1, 'transaction.paid': 2, 'transaction.refunded': 3, 'transaction.chargedback': 5 }
const OPENING = ['transaction.created', 'transaction.pending', 'transaction.three_ds_required']

const TIMEOUT = 1500 // milliseconds for a request to the gateway
const ATTEMPTS = 3
const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const SETTLE = 5 * MINUTE // a request that was sent so long ago is not executed any more

// settings reads the flags and the environment.
function settings () {
  const args = process.argv.slice(2)
  let mistake = process.env.EXAM_MISTAKE ?? ''
  if (args.length === 2 && args[0] === '--mistake') mistake = args[1]
  else if (args.length > 0) exit('usage: shop.mjs [--mistake NAME]')
  if (mistake && !MISTAKES.includes(mistake)) exit(`unknown mistake "${mistake}"; there are: ${MISTAKES.join(' ')}`)
  for (const name of ['PORT', 'GATEWAY_BASE_URL', 'GATEWAY_API_KEY', 'GATEWAY_WEBHOOK_SECRET', 'EXAM_DATA_DIR']) {
    if (!process.env[name]) exit(`${name} is not set`)
  }
  if (!/^\d+$/.test(process.env.PORT)) exit(`PORT is "${process.env.PORT}", which is not a number`)
  return { ...process.env, mistake, hooks: process.env.EXAM === '1' }
}

function exit (message) {
  console.error('shop.mjs: ' + message)
  process.exit(2)
}

const env = settings()
const makes = (...mistakes) => mistakes.includes(env.mistake)

// The store: a file of JSON lines. A commit is one line, so it is durable as a whole
// or not at all; a line that a crash cut off was never acknowledged.

const orders = new Map()
const events = new Set()
let file

function open (folder) {
  const name = path.join(folder, 'shop.jsonl')
  file = fs.openSync(name, 'a+', 0o600)
  const text = fs.readFileSync(name, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  fs.ftruncateSync(file, Buffer.byteLength(whole))
  for (const line of whole.split('\n')) if (line) apply(JSON.parse(line))
}

function apply ({ order, event }) {
  if (order) orders.set(order.id, order)
  if (event) events.add(event)
}

function commit (record) {
  const line = Buffer.from(JSON.stringify(record) + '\n')
  const size = fs.fstatSync(file).size
  try {
    if (fs.writeSync(file, line) !== line.length) throw new Error('the disk is full')
    fs.fsyncSync(file)
  } catch (e) {
    fs.ftruncateSync(file, size)
    throw e
  }
  apply(record)
}

// update changes an order in one commit. It never waits, so nothing comes in between.
function update (id, change, event) {
  const order = structuredClone(orders.get(id))
  change(order)
  commit({ order, event })
  return order
}

// The gateway.

class Unknown extends Error {} // no one knows whether the request was executed
class Busy extends Error {} // 429: nothing was executed
class Rejected extends Error { // nothing was executed, and will not be
  constructor (status, body) {
    super(`${status} ${JSON.stringify(body)}`)
    this.body = body
    this.duplicate = status === 409 // of a create: its reference is taken
  }
}

const failures = [Unknown, Busy, Rejected]
const isFailure = e => failures.some(kind => e instanceof kind)

// ignore drops a failure of the gateway: someone else will find out.
const ignore = e => { if (!isFailure(e)) throw e }

function send (method, target, body, headers) {
  const url = new URL(env.GATEWAY_BASE_URL.replace(/\/$/, '') + target)
  return new Promise((resolve, reject) => {
    const req = (url.protocol === 'https:' ? https : http).request(url, {
      method, agent: false, signal: AbortSignal.timeout(TIMEOUT), headers: { Authorization: 'Bearer ' + env.GATEWAY_API_KEY, ...headers }
    }, res => {
      const chunks = []
      res.on('data', chunk => chunks.push(chunk))
      res.on('end', () => res.complete ? resolve({ res, text: Buffer.concat(chunks).toString() }) : reject(new Error('half a body')))
      res.on('error', reject)
    })
    req.on('error', reject)
    req.end(body)
  })
}

async function call (method, target, body, headers = {}) {
  if (body) headers = { ...headers, 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
  let res, text, answer
  try {
    ({ res, text } = await send(method, target, body, headers))
  } catch (e) {
    throw new Unknown(`${method} ${target}: ${e.message}`)
  }
  const status = res.statusCode
  if (status === 429) throw Object.assign(new Busy('429'), { wait: retryAfter(res.headers['retry-after']) })
  try {
    answer = JSON.parse(text)
  } catch { /* half a body, or the page of a proxy */ }
  if (typeof answer !== 'object' || answer === null) throw new Unknown(`${method} ${target}: ${status} without JSON`)
  if (status === 409 && `${answer.code} ${answer.error}`.includes('IDEMPOTENCY')) throw new Unknown('the first request with the key has not ended')
  // A rejection without the gateway's own status is that of a proxy.
  if ([400, 401, 403, 404, 409, 410, 422].includes(status) && answer.status === status) throw new Rejected(status, answer)
  if (status < 200 || status > 299 || answer.success === false) throw new Unknown(`${method} ${target}: ${status}`)
  return answer
}

// retryAfter reads the header: seconds or a date. The result is in milliseconds.
function retryAfter (value) {
  const ms = /^\d+(\.\d+)?$/.test(value) ? value * 1000 : Date.parse(value) - Date.now()
  return Number.isNaN(ms) ? 1000 : Math.max(0, ms)
}

async function transaction (id) {
  const tx = (await call('GET', '/v2/transactions/' + encodeURIComponent(id))).data
  if (tx?.id !== id) throw new Unknown('a transaction without its id')
  return tx
}

// find reads the list from its newest page: the interface has no filter for references.
async function find (ref) {
  let cursor = ''
  for (let i = 0; i < 10; i++) {
    let page = await call('GET', '/v2/transactions?limit=100' + (cursor && '&cursor=' + encodeURIComponent(cursor)))
    if (!Array.isArray(page.data)) page = page.data // one of two shapes
    for (const item of page.data) if (ref === (item.external_ref ?? item.payment?.external_ref)) return transaction(item.id)
    cursor = page.next_cursor
    if (!cursor) return undefined
  }
  throw new Unknown('not on the newest pages')
}

// What the buyer was asked to pay, or has paid; `amount` may be what the gateway settles.
const charged = tx => Number(tx.paid_amount || tx.base_price || tx.amount)

// state returns what a transaction means for its order.
function state (tx) {
  let { status, refunded_amount: refunded = 0 } = tx
  if (['refused', 'expired', 'canceled'].includes(status)) return { status: 'failed', paid: 0, refunded: 0, charged_back: 0 }
  if (status === 'chargedback' && makes('chargeback_ignored')) status = 'paid'
  // A disputed payment is paid until the dispute is lost.
  if (!['paid', 'captured', 'partially_refunded', 'refunded', 'chargedback', 'med', 'in_protest', 'pre_chargedback'].includes(status)) {
    return { status: 'pending', paid: 0, refunded: 0, charged_back: 0 }
  }
  const paid = charged(tx)
  if (status === 'chargedback') return { status: 'charged_back', paid, refunded, charged_back: paid - refunded }
  if (refunded && makes('any_refund_is_full')) refunded = paid
  return { status: refunded >= paid ? 'refunded' : refunded ? 'partially_refunded' : 'paid', paid, refunded, charged_back: 0 }
}

// isOurs: someone else may have used the reference. Then it is another amount, or has not our metadata.
function isOurs (order, tx) {
  if (makes('no_amount_check')) return true
  return tx.external_ref === order.ref && charged(tx) === order.amount && tx.currency === order.currency && tx.method === order.method &&
    (tx.metadata === metadata(order.id) || tx.metadata?.order === order.id)
}

const metadata = id => String(new URLSearchParams({ order: id }))

// The shop.

// inTurn admits one charge or refund of an order at a time. Webhooks don't wait for it:
// they arrive while a charge is made.
const turns = new Map()

async function inTurn (id, act) {
  const turn = (turns.get(id) ?? Promise.resolve()).then(act)
  const done = turn.catch(() => {})
  turns.set(id, done)
  try {
    return await turn
  } finally {
    if (turns.get(id) === done) turns.delete(id)
  }
}

// book books what the gateway has. Reads and events may be older than what is booked, so
// nothing is set back. What to ship is decided here, in the commit, unless a mistake does.
function book (id, tx, { event, ship, late } = {}) {
  return update(id, order => {
    if (order.tx && order.tx !== tx.id) return
    if (!isOurs(order, tx)) {
      if (!order.tx) order.status = 'review'
      return
    }
    order.tx = tx.id
    order.created = tx.created_at ?? order.created
    const now = state(tx)
    if (now.paid && makes('no_amount_check')) now.paid = order.amount
    if (late || RANK[now.status] > RANK[order.status] || (RANK[now.status] === RANK[order.status] && now.refunded >= order.refunded)) {
      Object.assign(order, now)
    }
    if (['paid', 'partially_refunded'].includes(order.status) && (ship ?? order.shipped === 0)) order.shipped++ // here the parcel leaves
    for (const r of order.refunds) if (r.state === 'sent' && order.refunded === r.before + r.amount) r.state = 'done'
  }, event)
}

const read = async order => book(order.id, await transaction(order.tx))

async function place (req) {
  if (typeof req.id !== 'string' || !req.id || !Number.isInteger(req.amount) || req.amount <= 0 || !['pix', 'voucher', 'credit_card'].includes(req.method)) {
    return [422, { error: 'id, amount in cents and method (pix, voucher, credit_card) are required' }]
  }
  return makes('double_click') ? placeNow(req) : inTurn(req.id, () => placeNow(req))
}

async function placeNow (req) {
  let order = orders.get(req.id)
  if (order && (order.amount !== req.amount || order.method !== req.method)) return [409, { error: 'another order has this id' }]
  if (!order || makes('double_click')) {
    order = newOrder(req)
    if (makes('acks_unknown_order')) {
      const { data } = await call('POST', '/v2/transactions', order.body)
      commit({ order })
      book(order.id, data)
    } else {
      commit({ order })
    }
  }
  order = orders.get(req.id)
  if (order.status === 'unknown' && !order.tx) await charge(order)
  order = orders.get(req.id)
  return [{ failed: 402, unknown: 202, review: 202 }[order.status] ?? 201, report(order)]
}

function newOrder (req) {
  let ref = 'shop-' + req.id
  if (makes('double_click')) ref += '-' + randomUUID()
  let amount = req.amount
  if (makes('float_cents')) {
    const price = amount / 100
    amount = Math.trunc(price * 100)
  }
  const currency = req.currency ?? 'BRL'
  const body = JSON.stringify({
    external_ref: ref, amount, currency, method: req.method, buyer: req.buyer, token: req.card_token || undefined,
    products: [{ name: 'Order ' + req.id, price: amount }], metadata: metadata(req.id)
  })
  return {
    id: req.id, amount: req.amount, currency, method: req.method, ref, body, sent: false, tx: null, created: null,
    status: 'unknown', paid: 0, refunded: 0, charged_back: 0, shipped: 0, refunds: []
  }
}

// charge creates the charge, or finds it. Every attempt has the same bytes, so there is
// never a second charge. settled: an earlier request is not executed any more.
async function charge (order, { attempts = ATTEMPTS, settled = false } = {}) {
  let doubt = order.sent // an earlier request may have been executed
  update(order.id, o => { o.sent = true })
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt) await sleep(200 * attempt)
    if (makes('new_ref')) {
      const ref = 'shop-' + order.id + '-' + randomUUID()
      order = update(order.id, o => Object.assign(o, { ref, body: JSON.stringify({ ...JSON.parse(o.body), external_ref: ref }) }))
    }
    try {
      const { data } = await call('POST', '/v2/transactions', order.body)
      if (!data?.id) throw new Unknown('a charge without its id')
      return book(order.id, data)
    } catch (e) {
      if (e instanceof Rejected) return rejected(order, e, doubt, settled).catch(ignore)
      if (e instanceof Unknown) {
        doubt = true
        if (makes('timeout_is_failure')) return fail(order)
      } else if (e instanceof Busy && e.wait <= 5000) await sleep(e.wait)
      else if (e instanceof Busy) return undefined
      else throw e
    }
  }
}

async function rejected (order, e, doubt, settled) {
  let tx
  if (e.duplicate && e.body.instance?.startsWith('/v2/transactions/')) tx = await transaction(e.body.instance.split('/').pop())
  else if (e.duplicate || doubt) tx = await find(order.ref) // the rejection may be the effect of our own first request
  if (tx) book(order.id, tx)
  else if (!e.duplicate && (settled || !doubt)) fail(order)
}

const fail = order => update(order.id, o => { if (!o.tx || makes('timeout_is_failure')) o.status = 'failed' })

function report (o) {
  return {
    id: o.id, status: o.refunds.some(r => r.state === 'review') ? 'review' : o.status, paid: o.paid, refunded: o.refunded,
    charged_back: o.charged_back, shipped: o.shipped, charges: o.tx ? [o.tx] : []
  }
}

// Refunds.

const refundOf = (order, id) => order.refunds.find(r => r.id === id)

async function refund (id, req) {
  if (typeof req.id !== 'string' || !req.id || !Number.isInteger(req.amount) || req.amount <= 0) {
    return [422, { error: 'id and amount in cents are required' }]
  }
  return inTurn(id, async () => {
    let order = orders.get(id)
    if (!order) return [404, { error: 'no such order' }]
    const known = refundOf(order, req.id)
    if (known && known.amount !== req.amount) return [409, { error: 'another refund has this id' }]
    if (known) {
      await read(order).catch(ignore)
      return refunded(id, req.id)
    }
    if (order.refunds.some(r => ['sent', 'review'].includes(r.state))) return [409, { error: 'the outcome of another refund is not known yet' }]
    if (!order.tx) return [409, { error: 'the order is not paid' }]
    order = await read(order)
    if (!['paid', 'partially_refunded'].includes(order.status) || req.amount > order.paid - order.refunded) {
      return [409, { error: 'there is not so much to refund' }]
    }
    order = update(id, o => o.refunds.push({ id: req.id, amount: req.amount, state: 'sent', before: o.refunded, since: null }))
    await sendRefund(order, req.id)
    return refunded(id, req.id)
  })
}

function refunded (id, refundId) {
  const { state } = refundOf(orders.get(id), refundId)
  return [{ done: 200, rejected: 409 }[state] ?? 202, { id: refundId, state }]
}

// sendRefund sends a refund once. Not every gateway honors the key, so an unknown outcome
// is left to settleRefund.
async function sendRefund (order, id) {
  const { amount } = refundOf(order, id)
  const headers = makes('refund_repeated') ? {} : { 'Idempotency-Key': `refund-${order.ref}-${id}` }
  const decide = state => update(order.id, o => { const r = refundOf(o, id); if (r.state === 'sent') r.state = state })
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      const { data } = await call('PUT', `/v2/transactions/${encodeURIComponent(order.tx)}/refund`, JSON.stringify({ amount }), headers)
      if (data?.amount_refunded !== amount) return
      decide('done')
      await read(order).catch(ignore)
      return
    } catch (e) {
      if (e instanceof Rejected) decide('rejected')
      if (e instanceof Busy && e.wait <= 5000) await sleep(e.wait)
      else if (!(e instanceof Unknown && makes('refund_repeated'))) return ignore(e)
    }
  }
}

// settleRefund finds out whether a refund was made: by what the transaction had before and has now.
async function settleRefund (order, id, now) {
  await read(order)
  let again = false
  order = update(order.id, o => {
    const r = refundOf(o, id)
    if (r.state !== 'sent') return
    if (!r.since) r.since = now
    else if (now - r.since < SETTLE) return
    else if (o.refunded !== r.before) r.state = 'review' // someone else refunded, too: a person must look
    else if (o.status === 'charged_back') r.state = 'rejected' // the money is gone
    else [r.since, again] = [null, true]
  })
  if (again) await sendRefund(order, id)
}

// Webhooks.

function verify (headers, body) {
  if (makes('unsigned')) return true
  const stamp = (headers['x-gateway-timestamp'] ?? '').trim()
  if (!/^\d{1,12}$/.test(stamp) || Math.abs(Date.now() / 1000 - stamp) > 300) return false
  const want = Buffer.from('sha256=' + createHmac('sha256', env.GATEWAY_WEBHOOK_SECRET).update(stamp + '.').update(body).digest('hex'))
  const given = (headers['x-gateway-signature'] ?? '').split(/[\s,]+/) // two during a rotation
  return given.some(s => Buffer.byteLength(s) === want.length && timingSafeEqual(Buffer.from(s), want))
}

const seen = new Set() // only for memory_dedup

async function webhook (headers, body) {
  const received = [200, { received: true }]
  if (!verify(headers, body)) return [401, { error: 'invalid signature' }]
  const event = parse(body)
  if (!['string', 'number'].includes(typeof event?.id)) return [400, { error: 'not an event' }]
  if (event.event !== 'transaction' || typeof event.data?.id !== 'string') return received
  if (events.has(event.id) && !makes('no_dedup', 'memory_dedup')) return received
  const { data, data: { event_type: kind } } = event
  const order = [...orders.values()].find(o => o.tx === data.id || o.ref === data.correlation_id)
  if (!order) return received // an order is stored before it is charged, so this charge is not ours
  if ((makes('late_overwrites') && [...OPENING, 'transaction.paid'].includes(kind)) || (makes('unsigned') && kind === 'transaction.paid')) {
    book(order.id, { ...data, external_ref: order.ref, metadata: metadata(order.id) }, { event: event.id, late: makes('late_overwrites') })
    return received
  }
  if ((OPENING.includes(kind) && order.tx) || (kind === 'transaction.chargedback' && makes('chargeback_ignored'))) return received // nothing new
  let tx
  try {
    tx = await transaction(data.id)
  } catch (e) {
    ignore(e)
    return makes('swallow_errors') ? received : [503, { error: e.message }]
  }
  if (RANK[state(tx).status] < (EVENT_RANK[kind] ?? 0)) return [503, { error: "the gateway's read is older than the event" }]
  let ship
  if (makes('no_dedup')) ship = kind === 'transaction.paid'
  if (makes('memory_dedup')) {
    ship = kind === 'transaction.paid' && !seen.has(event.id)
    seen.add(event.id)
  }
  if (makes('check_then_act')) ship = order.shipped === 0 // as it was before the transaction was read
  book(order.id, tx, { event: event.id, ship })
  return received
}

function parse (body) {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

// Jobs and the success page.

// tick finds out what no webhook said. A shop runs this every few minutes.
async function tick (now) {
  for (const id of [...orders.keys()]) {
    await inTurn(id, () => lookAgain(orders.get(id), now)).catch(e => {
      ignore(e)
      console.error(`order ${id}: ${e.message}`)
    })
  }
}

async function lookAgain (order, now) {
  if (order.status === 'unknown' && !order.tx) return charge(order, { attempts: 1, settled: true })
  for (const r of order.refunds) if (r.state === 'sent') await settleRefund(order, r.id, now)
  // Reconciliation would hide these, so shops that make them have none.
  if (!order.tx || makes('late_overwrites', 'swallow_errors', 'acks_unknown_order')) return undefined
  const age = now - Date.parse(order.created)
  if (order.status === 'pending' ||
      (order.status === 'failed' && order.method === 'voucher' && age < 30 * DAY) || // may be paid late
      (['paid', 'partially_refunded'].includes(order.status) && age < DAY)) await read(order)
}

// What the buyer's browser says is not looked at: anyone can open the success page.
async function backFromPayment (id) {
  const order = orders.get(id)
  if (!order) return [404, { error: 'no such order' }]
  if (order.tx) await read(order).catch(ignore)
  return [200, report(orders.get(id))]
}

// HTTP.

async function route (req, body) {
  const [top, kind, id, action] = new URL(req.url, 'http://shop').pathname.split('/').slice(1).map(decodeURIComponent)
  if (req.method === 'POST' && top === 'webhooks' && !kind) return webhook(req.headers, body)
  if (!env.hooks || top !== 'exam') return [404, { error: 'not found' }]
  if (req.method === 'GET' && kind === 'orders' && id && !action) return orders.has(id) ? [200, report(orders.get(id))] : [404, { error: 'no such order' }]
  if (req.method !== 'POST') return [404, { error: 'not found' }]
  const json = parse(body)
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return [400, { error: 'the body must be a JSON object' }]
  if (kind === 'orders' && !id) return place(json)
  if (kind === 'orders' && action === 'refunds') return refund(id, json)
  if (kind === 'orders' && action === 'return') return backFromPayment(id)
  if (kind !== 'tick' || id) return [404, { error: 'not found' }]
  const now = Date.parse(json.now)
  if (Number.isNaN(now)) return [422, { error: 'now must be a timestamp' }]
  await tick(now)
  return [200, {}]
}

const server = http.createServer(async (req, res) => {
  let answer
  try {
    const chunks = []
    for await (const chunk of req) chunks.push(chunk)
    answer = await route(req, Buffer.concat(chunks))
  } catch (e) { // a webhook is redelivered, a click repeated
    if (!isFailure(e)) console.error(e)
    answer = [503, { error: e.message }]
  }
  const text = JSON.stringify(answer[1])
  res.writeHead(answer[0], { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }).end(text)
})

try {
  open(env.EXAM_DATA_DIR)
} catch (e) {
  exit(e.message)
}
if (!env.hooks) setInterval(() => tick(Date.now()).catch(console.error), 5 * MINUTE) // in an exam, the hook runs the jobs
server.on('error', e => exit(e.message)).listen(Number(env.PORT), '127.0.0.1')
