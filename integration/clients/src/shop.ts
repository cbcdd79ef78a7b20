// A small shop in TypeScript that sits the exam of docs/exam.md:
//
//   mockgateway exam -- node dist/src/shop.js
//
// An order is stored before it is charged, with a reference that comes from its id. No
// response means "unknown". A webhook is a hint to read the transaction, and book() never
// sets an order back.
import { createHmac, timingSafeEqual } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

type Order = {
  id: string;
  create: { external_ref: string; amount: number; method: string };
  sent: boolean; // an attempt may have been executed
  tx?: string;
  status: "unknown" | "review" | "pending" | "failed" | "paid" | "partially_refunded" | "refunded" | "charged_back";
  paid: number;
  refunded: number;
  chargedBack: number;
  shipped: number;
};

const env = (name: string): string => process.env[name] || fail(`${name} is not set`);

function fail(message: string): never {
  console.error(`shop: ${message}`);
  process.exit(2);
}

// The store: all orders in one file, which is replaced as a whole.

const file = join(env("EXAM_DATA_DIR"), "orders.json");
const orders = new Map<string, Order>(existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : []);

function save(order: Order): Order {
  orders.set(order.id, order);
  const next = openSync(`${file}.new`, "w");
  writeSync(next, JSON.stringify([...orders]));
  fsyncSync(next);
  closeSync(next);
  renameSync(`${file}.new`, file);
  return order;
}

// The gateway.

/** No one knows whether the request was executed. */
class Unknown extends Error {}

async function call(method: string, path: string, body?: object): Promise<{ status: number; json: any }> {
  const request = new Request(env("GATEWAY_BASE_URL") + path, {
    method,
    headers: { Authorization: `Bearer ${env("GATEWAY_API_KEY")}`, "Content-Type": "application/json" },
    signal: AbortSignal.timeout(1500),
    ...(body && { body: JSON.stringify(body) }),
  });
  let response: Response, json: any;
  try {
    response = await fetch(request);
    json = await response.json(); // fails for half a body, and for the page of a proxy
  } catch (error) {
    throw new Unknown(`${method} ${path}`, { cause: error });
  }
  if (response.status === 429) {
    await sleep(1000 * Number(response.headers.get("Retry-After") ?? 1));
    throw new Unknown(`${method} ${path}: 429`);
  }
  if (response.status >= 500 || (response.ok && typeof json?.data !== "object")) {
    throw new Unknown(`${method} ${path}: ${response.status}`);
  }
  return { status: response.status, json };
}

async function read(id: string): Promise<any> {
  const { status, json } = await call("GET", `/v2/transactions/${encodeURIComponent(id)}`);
  if (status !== 200) {
    throw new Unknown(`read: ${status}`);
  }
  return json.data;
}

/** Searches the newest transactions: the interface has no filter for references. */
async function find(ref: string): Promise<any> {
  const { json } = await call("GET", "/v2/transactions?limit=100");
  const page = Array.isArray(json.data) ? json.data : json.data.data; // one of two shapes
  const found = page.find((t: any) => t.external_ref === ref || t.payment?.external_ref === ref);
  return found && read(found.id);
}

// Orders.

const rank = { unknown: 0, review: 0, pending: 0, failed: 1, paid: 2, partially_refunded: 3, refunded: 4, charged_back: 5 };

function statusOf(tx: any): Order["status"] {
  switch (tx.status) {
    case "paid":
    case "captured":
      return "paid";
    case "partially_refunded":
    case "refunded":
      return tx.status;
    case "chargedback":
      return "charged_back";
    case "refused":
    case "expired":
    case "canceled":
      return "failed";
  }
  return "pending";
}

/** Books what the gateway has. Reads arrive in any order, so nothing is set back. */
function book(order: Order, tx: any): void {
  const amount = tx.base_price || tx.paid_amount || tx.amount;
  if (!order.tx && (amount !== order.create.amount || tx.currency !== "BRL" || tx.method !== order.create.method)) {
    save({ ...order, status: "review" }); // another system has used the reference
    return;
  }
  const status = statusOf(tx), refunded = tx.refunded_amount ?? 0;
  if ((order.tx && order.tx !== tx.id) || rank[status] < rank[order.status] || refunded < order.refunded) {
    return;
  }
  const paid = rank[status] >= rank.paid ? amount : 0;
  const chargedBack = status === "charged_back" ? paid - refunded : 0;
  const shipped = order.shipped || (status === "paid" || status === "partially_refunded" ? 1 : 0); // here the parcel leaves
  save({ ...order, tx: tx.id, status, paid, refunded, chargedBack, shipped });
}

/** What the checkout page calls; again, if the buyer clicks twice. Returns the HTTP status. */
async function checkout(o: any): Promise<number> {
  if (!orders.has(o.id)) {
    const create = {
      external_ref: `order-${o.id}`, amount: o.amount, currency: o.currency, method: o.method, buyer: o.buyer,
      products: [{ name: `Order ${o.id}`, price: o.amount }], ...(o.card_token && { token: o.card_token }),
    };
    save({ id: o.id, create, sent: false, status: "unknown", paid: 0, refunded: 0, chargedBack: 0, shipped: 0 });
  }
  const current = () => orders.get(o.id)!;
  for (let attempt = 0; attempt < 3 && current().status === "unknown"; attempt++) {
    await charge(current()).catch((error) => {
      if (!(error instanceof Unknown)) throw error;
    });
  }
  return current().status === "failed" ? 402 : current().tx ? 201 : 202;
}

/** Creates the charge, or finds it: every attempt has the same reference. */
async function charge(order: Order): Promise<void> {
  const doubt = order.sent;
  save({ ...order, sent: true });
  const { status, json } = await call("POST", "/v2/transactions", order.create);
  const current = orders.get(order.id)!; // as it is now: a webhook may have come first
  if (status < 300) {
    return book(current, json.data);
  }
  const duplicate = status === 409 && [json.code, json.error].includes("DUPLICATE_EXTERNAL_REF");
  const tx = duplicate || doubt ? await find(order.create.external_ref) : undefined;
  if (tx) {
    book(orders.get(order.id)!, tx);
  } else if (!duplicate && !doubt) {
    save({ ...current, status: "failed" });
  }
}

// Webhooks.

function signed(headers: IncomingHttpHeaders, body: Buffer): boolean {
  const timestamp = String(headers["x-gateway-timestamp"]);
  const mac = createHmac("sha256", env("GATEWAY_WEBHOOK_SECRET")).update(`${timestamp}.`).update(body).digest("hex");
  const want = Buffer.from(`sha256=${mac}`);
  const got = Buffer.from(String(headers["x-gateway-signature"]));
  return got.length === want.length && timingSafeEqual(got, want) && Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300;
}

async function webhook(headers: IncomingHttpHeaders, body: Buffer): Promise<number> {
  if (!signed(headers, body)) {
    return 401;
  }
  const event = JSON.parse(body.toString());
  const order = () => [...orders.values()].find((o) => o.tx === event.data?.id || o.create.external_ref === event.data?.correlation_id);
  if (event.event !== "transaction" || !order()) {
    return 200; // an order is stored before it is charged, so this charge belongs to another system
  }
  const tx = await read(event.data.id);
  const must = { "transaction.paid": rank.paid, "transaction.refunded": rank.partially_refunded, "transaction.chargedback": rank.charged_back };
  if (rank[statusOf(tx)] < (must[event.data.event_type as keyof typeof must] ?? 0)) {
    return 503; // the read is older than the event
  }
  book(order()!, tx);
  return 200;
}

// The exam.

/** What the hooks use of Express. */
interface Express {
  get(path: string, handler: Handler): void;
  post(path: string, handler: Handler): void;
}
type Handler = (req: { params: { id: string }; body: any }, res: Reply) => void | Promise<void>;
type Reply = { status(code: number): Reply; json(body: object): void };

function mountExam(app: Express): void {
  app.post("/exam/orders", async (req, res) => {
    const status = await checkout(req.body); // what the checkout page calls
    res.status(status).json({});
  });

  app.get("/exam/orders/:id", (req, res) => {
    const order = orders.get(req.params.id);
    if (!order) {
      res.status(404).json({});
      return;
    }
    const { id, status, paid, refunded, chargedBack, shipped } = order;
    res.json({ id, status, paid, refunded, charged_back: chargedBack, shipped });
  });
}

// The server: Node's own, with routes in the manner of Express.

const routes: { method: string; path: RegExp; handler: Handler }[] = [];
const route = (method: string) => (path: string, handler: Handler) =>
  void routes.push({ method, path: new RegExp(`^${path.replace(":id", "(?<id>[^/]+)")}$`), handler });
if (process.env["EXAM"] === "1") {
  mountExam({ get: route("GET"), post: route("POST") });
}

const server = createServer(async (request, response) => {
  const reply = (code: number, body: object = {}): Reply => ({
    status: (other) => reply(other, body),
    json: (json) => void response.writeHead(code, { "Content-Type": "application/json" }).end(JSON.stringify(json)),
  });
  try {
    const body = Buffer.concat(await request.toArray()), { method, url } = request;
    if (method === "POST" && url === "/webhooks") {
      return reply(await webhook(request.headers, body)).json({});
    }
    for (const r of routes) {
      const match = r.method === method && r.path.exec(String(url));
      if (match) {
        const params = { id: decodeURIComponent(match.groups?.["id"] ?? "") };
        return await r.handler({ params, body: body.length ? JSON.parse(body.toString()) : {} }, reply(200));
      }
    }
    reply(404).json({});
  } catch (error) { // the gateway delivers a webhook again, and the buyer clicks again
    if (!(error instanceof Unknown)) console.error(error);
    reply(503).json({});
  }
});
server.listen(Number(env("PORT")), "127.0.0.1");
