// Parses the body and passes it on as it was written again.
import { receive, secretsFrom } from '../../gateway-webhook.js'
import { store } from '../../shop.js'

export const dynamic = 'force-dynamic'

export async function POST(request: Request): Promise<Response> {
  const { status, headers, body } = await receive({
    timestamp: request.headers.get('X-Gateway-Timestamp'),
    signature: request.headers.get('X-Gateway-Signature'),
    stream: new Response(JSON.stringify(await request.json())).body,
  }, secretsFrom(process.env), store)
  return new Response(body, { status, headers })
}
