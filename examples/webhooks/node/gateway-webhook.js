// Verifies the gateway's webhooks and decides the response. It needs only Node.js 18 or later,
// and knows no framework: copy it.
import { createHmac, timingSafeEqual } from 'node:crypto'

const MAX_BODY = 1 << 20 // bytes
const TOLERANCE = 300 // seconds between the signature's timestamp and our clock, in either direction
const MAX_SIGNATURES = 8 // two during a rotation; each one costs a comparison

/**
 * @typedef {{ key: string, notAfter?: Date }} Secret notAfter is the last time at which the key is accepted
 * @typedef {{ id: string, kind: string, resourceId: string, data: Record<string, any> }} GatewayEvent
 *   kind and resourceId are empty if the event has none
 * @typedef {{ status: number, headers: Record<string, string>, body: string }} Reply
 */

/**
 * Reads the signing secrets from the environment: GATEWAY_WEBHOOK_SECRET, and during a rotation
 * also GATEWAY_WEBHOOK_OLD_SECRET, which is accepted until GATEWAY_WEBHOOK_OLD_SECRET_UNTIL.
 * @param {Record<string, string | undefined>} env
 * @returns {Secret[]}
 */
export function secretsFrom (env) {
  const { GATEWAY_WEBHOOK_SECRET: key = '', GATEWAY_WEBHOOK_OLD_SECRET: old, GATEWAY_WEBHOOK_OLD_SECRET_UNTIL: until } = env
  /** @type {Secret[]} */
  const secrets = [{ key }]
  if (old) {
    const notAfter = new Date(until ?? '')
    if (Number.isNaN(notAfter.getTime()) || !/(Z|[+-]\d\d:\d\d)$/.test(until ?? '')) {
      throw new Error('GATEWAY_WEBHOOK_OLD_SECRET_UNTIL must be a time such as 2026-01-31T12:00:00Z')
    }
    secrets.push({ key: old, notAfter })
  }
  if (secrets.some(s => Buffer.byteLength(s.key) < 8)) { // with an empty key anyone could sign
    throw new Error('GATEWAY_WEBHOOK_SECRET or GATEWAY_WEBHOOK_OLD_SECRET is empty or shorter than 8 bytes: ' +
      'set it to the signing secret of the endpoint')
  }
  return secrets
}

/**
 * Receives one delivery. Call it with the request's stream before anything has read it: the
 * signature covers the bytes as they arrived.
 *
 * @param {object} delivery
 * @param {string | null | undefined} delivery.timestamp the header X-Gateway-Timestamp
 * @param {string | null | undefined} delivery.signature the header X-Gateway-Signature
 * @param {AsyncIterable<Uint8Array> | ReadableStream<Uint8Array> | null} delivery.stream the body
 * @param {Secret[]} secrets
 * @param {(event: GatewayEvent) => Promise<void>} store Must return only when the event is
 *   committed, and must ignore an event whose id is stored. If it throws, the gateway delivers
 *   the event again.
 * @returns {Promise<Reply>}
 */
export async function receive ({ timestamp, signature, stream }, secrets, store) {
  const body = await read(stream)
  if (body === undefined) return refuse(413, 'body_too_large')
  if (body.length === 0) {
    console.error('gateway webhook: the body is empty; does a body parser run before this handler?')
    return refuse(400, 'body_not_received')
  }
  const reason = verify(timestamp ?? '', signature ?? '', body, secrets)
  if (reason) {
    console.warn(`gateway webhook: rejected: ${reason}`) // no more: anyone can send anything
    return refuse(401, reason)
  }
  const event = parse(body)
  if (!event) return refuse(400, 'invalid_event')
  try {
    await store(event)
  } catch (error) {
    console.error(`gateway webhook: event ${event.id} is not stored:`, error)
    return refuse(503, 'unavailable', { 'Retry-After': '30' })
  }
  return reply(200, { received: true })
}

/** @returns {Promise<Buffer | undefined>} undefined if the body is too large */
async function read (/** @type {any} TypeScript doesn't know that a ReadableStream is iterable */ stream) {
  const chunks = []
  let size = 0
  for await (const chunk of stream ?? []) {
    size += chunk.length
    if (size > MAX_BODY) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/**
 * Returns why the delivery is not authentic, or undefined.
 * @param {string} timestamp
 * @param {string} signature
 * @param {Uint8Array} body
 * @param {Secret[]} secrets
 * @param {number} now milliseconds since 1970
 */
export function verify (timestamp, signature, body, secrets, now = Date.now()) {
  // Frameworks join repeated headers with a comma. Proxies make equal copies; two different
  // timestamps are an attempt to mix two deliveries.
  const [stamp, ...others] = new Set(timestamp.split(',').map(s => s.trim()).filter(Boolean))
  const given = [...new Set(signature.split(/[\s,]+/).filter(Boolean))].map(s => Buffer.from(s))
  if (stamp === undefined || given.length === 0) return 'missing_signature'
  if (others.length || !/^\d{1,12}$/.test(stamp) || given.length > MAX_SIGNATURES) return 'invalid_signature'
  const valid = secrets.filter(s => s.key && !(s.notAfter && now > s.notAfter.getTime())).some(({ key }) => {
    const want = Buffer.from('sha256=' + createHmac('sha256', key).update(stamp + '.').update(body).digest('hex'))
    return given.some(s => s.length === want.length && timingSafeEqual(s, want))
  })
  if (!valid) return 'invalid_signature'
  return Math.abs(Math.floor(now / 1000) - Number(stamp)) > TOLERANCE ? 'stale_timestamp' : undefined
}

/** @returns {GatewayEvent | undefined} undefined if the body is not an event */
function parse (/** @type {Buffer} */ body) {
  let event
  try {
    event = JSON.parse(new TextDecoder().decode(body)) // which skips a byte order mark
  } catch {
    return undefined
  }
  let data = event?.data ?? {}
  // The kind of a transfer's event is in type, and its data may be under object.
  const kind = text(data.event_type ?? data.eventType ?? event?.type)
  if (!['transaction', 'subscription'].includes(event?.event)) data = data.object ?? data
  const [id, resourceId] = [text(event?.id), text(data.id)]
  return id ? { id, kind, resourceId, data } : undefined
}

/** Returns a value that any database can have as a key, or an empty string. */
function text (/** @type {unknown} */ value) {
  const s = Number.isSafeInteger(value) ? String(value) : value
  return typeof s === 'string' && s.length <= 255 && !/[\p{Cc}\p{Cs}\ufffd]/u.test(s) ? s : ''
}

/** @returns {Reply} */
function reply (/** @type {number} */ status, /** @type {object} */ body, headers = {}) {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) }
}

const refuse = (/** @type {number} */ status, /** @type {string} */ error, headers = {}) => reply(status, { error }, headers)
