// The webhook in Next.js: POST /webhooks/gateway.
import { receive, secretsFrom } from '../../../gateway-webhook.js'
import { store } from '../../../shop.js'

export const runtime = 'nodejs' // the database driver needs sockets, which the edge runtime lacks
export const dynamic = 'force-dynamic'

export async function POST(request: Request): Promise<Response> {
  const { status, headers, body } = await receive({
    timestamp: request.headers.get('X-Gateway-Timestamp'),
    signature: request.headers.get('X-Gateway-Signature'),
    stream: request.body, // not request.json(): the signature covers the bytes as they arrived
  }, secretsFrom(process.env), store)
  return new Response(body, { status, headers })
}
