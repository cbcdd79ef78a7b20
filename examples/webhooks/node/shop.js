// The shop's side: stores an event and its effect in one transaction of PostgreSQL.
import pg from 'pg'

/** @typedef {import('./gateway-webhook.js').GatewayEvent} GatewayEvent */

// The timeouts end a request before the gateway gives up on it.
const database = new pg.Pool({
  connectionString: process.env.DATABASE_URL, connectionTimeoutMillis: 3000, lock_timeout: 3000, statement_timeout: 3000
})
database.on('error', error => console.error('an idle connection to the database failed:', error))

/**
 * Stores the event, and marks its order as paid if it says so. An event whose id is stored
 * changes nothing.
 * @param {GatewayEvent} event
 */
export async function store (event) {
  const connection = await database.connect()
  let broken
  try {
    await connection.query('BEGIN')
    await connection.query('SET LOCAL synchronous_commit = on') // 200 must mean: on the disk
    const { rowCount } = await connection.query(
      'INSERT INTO gateway_events (id, kind, resource_id, data) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING',
      [event.id, event.kind, event.resourceId, JSON.stringify(event.data)])
    if (rowCount && event.kind === 'transaction.paid') {
      const problem = await pay(connection, event)
      await connection.query('UPDATE gateway_events SET problem = $1 WHERE id = $2', [problem, event.id])
    }
    await connection.query('COMMIT')
  } catch (error) {
    broken = true // closing the connection rolls back, also when the connection is dead
    throw error
  } finally {
    connection.release(broken)
  }
}

/**
 * Marks the order as paid. Returns why it can't, for a person to look at.
 * @param {pg.PoolClient} connection
 * @param {GatewayEvent} event
 */
async function pay (connection, { data, resourceId }) {
  const { rows: [order] } = await connection.query('SELECT * FROM orders WHERE ref = $1 FOR UPDATE', [data.correlation_id || data.external_ref])
  // Orders are stored before they are charged, so this is another program's charge.
  if (!order) return 'no order has this reference'
  // What was charged is in one of the three: a live gateway may put the settled amount into amount.
  const charged = [data.amount, data.base_price, data.paid_amount].includes(order.amount)
  if (!charged || data.currency !== order.currency) return 'the amount or the currency is not that of the order'
  if (order.state !== 'pending') return order.transaction_id === resourceId ? null : 'the order is not pending'
  await connection.query("UPDATE orders SET state = 'paid', transaction_id = $1 WHERE ref = $2", [resourceId, order.ref])
  return null
}
