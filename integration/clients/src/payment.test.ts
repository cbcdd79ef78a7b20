// A complete payment with the client generated from docs/openapi.json: the compiler
// checks every request and response below against the document.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import createClient from "openapi-fetch";

import type { paths as Control } from "../generated/control.js";
import type { paths as Gateway, webhooks } from "../generated/gateway.js";

/** The body of any webhook. */
type Event = {
  [Kind in keyof webhooks]: webhooks[Kind]["post"]["requestBody"]["content"]["application/json"];
}[keyof webhooks];

/** Returns the order to ship: the type of data follows from the kind. */
function toShip(event: Event): string | null {
  return "event" in event && event.data.event_type === "transaction.paid" ? event.data.correlation_id : null;
}

const secret = "whsec_payment";
let mock: ChildProcess, dir: string, baseUrl: string;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "gateway-"));
  const file = join(dir, "addr");
  const binary = process.env["MOCKGATEWAY"] ?? "mockgateway";
  mock = spawn(binary, ["-addr", "127.0.0.1:0", "-port-file", file, "-clock", "manual", "-log", "off"], {
    stdio: ["ignore", "ignore", "inherit"], // if it can't start, it says why
  });
  await once(mock, "spawn"); // fails if there is no such binary
  for (let address = ""; !address; await sleep(20)) {
    assert.equal(mock.exitCode, null, "mockgateway has exited");
    address = (await readFile(file, "utf8").catch(() => "")).trim();
    baseUrl = `http://${address}`;
  }
});

after(async () => {
  mock.kill();
  await once(mock, "exit");
  await rm(dir, { recursive: true });
});

/** Returns clients for the account of a key: each test has its own. */
function clients(key: string) {
  const options = { baseUrl, headers: { Authorization: `Bearer ${key}` } };
  return { gateway: createClient<Gateway>(options), control: createClient<Control>(options) };
}

test("metadata of any shape is accepted and echoed", async () => {
  const { gateway } = clients("sk_test_metadata");
  const customer = await gateway.POST("/v2/customers", { body: { name: "Ana", email: "ana@example.com" } });
  const metadata = { member: "m-1", plan: { name: "club" } };
  const created = await gateway.POST("/v2/subscriptions", {
    body: { customer_id: customer.data?.data.id ?? "", amount: 4990, interval: "month", token: "pgct_ok_1", metadata },
  });
  assert.deepEqual(created.data?.data.metadata, metadata);
});

/** Returns the event of a delivery, which must be signed and recent. */
function verified(headers: NodeJS.Dict<string | string[]>, body: Buffer): Event | undefined {
  const timestamp = String(headers["x-gateway-timestamp"]);
  const mac = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
  const want = Buffer.from(`sha256=${mac}`);
  const got = Buffer.from(String(headers["x-gateway-signature"]));
  if (got.length !== want.length || !timingSafeEqual(got, want)) return undefined;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) return undefined;
  return JSON.parse(body.toString());
}

test("the signature of the documented vector is verified", () => {
  const body = '{"id":"evt_1","event":"transaction","data":{"id":"tx_1","event_type":"transaction.paid"}}';
  const mac = createHmac("sha256", "test_security_token").update(`1700000000.${body}`).digest("hex");
  assert.equal(mac, "2383a820c0197edf7e137a8aa980bae35abdfe9973055bdc7fdd40a54a18cf19");
});

test("a Pix payment, from its creation to its refund", async (t) => {
  const { gateway, control } = clients("sk_test_generated");

  const events: Event[] = [];
  let forged = 0;
  const receiver = createServer(async (request, response) => {
    const event = verified(request.headers, Buffer.concat(await request.toArray()));
    if (event) events.push(event);
    else forged++;
    response.writeHead(event ? 200 : 401).end('{"received":true}');
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  t.after(() => receiver.close());
  const { port } = receiver.address() as AddressInfo;
  const endpoint = await control.POST("/__mock/endpoints", {
    body: { url: `http://127.0.0.1:${port}/`, secret, events: ["transaction.paid"] },
  });
  assert.equal(endpoint.data?.data.signed, true);

  const created = await gateway.POST("/v2/transactions", {
    body: {
      external_ref: "order-1001",
      amount: 4990,
      currency: "BRL",
      method: "pix",
      buyer: { name: "Ana", email: "ana@example.com" },
      products: [{ name: "T-shirt", price: 4990 }],
    },
  });
  assert.ok(created.data, JSON.stringify(created.error));
  const { id, pix } = created.data.data;
  assert.match(pix?.qr_code ?? "", /br\.gov\.bcb\.pix/);

  // Errors are typed too: the document lists the codes of each status.
  const twice = await gateway.POST("/v2/transactions", {
    body: {
      external_ref: "order-1001",
      amount: 4990,
      method: "pix",
      buyer: { name: "Ana", email: "ana@example.com" },
      products: [{ name: "T-shirt", price: 4990 }],
    },
  });
  assert.equal(twice.response.status, 409);
  assert.equal(twice.error?.code, "DUPLICATE_EXTERNAL_REF");

  await control.POST("/__mock/transactions/{id}/pay", { params: { path: { id } } });
  await control.POST("/__mock/deliveries/wait");
  assert.equal(forged, 0);
  assert.deepEqual(events.map(toShip), ["order-1001"]);

  const refund = await gateway.PUT("/v2/transactions/{id}/refund", { params: { path: { id } }, body: { amount: 990 } });
  assert.equal(refund.data?.data.remaining_balance, 4000);
  const read = await gateway.GET("/v2/transactions/{id}", { params: { path: { id } } });
  assert.equal(read.data?.data.status, "partially_refunded");

  // With a different signing secret every delivery is rejected as forged.
  await control.POST("/__mock/endpoints/{id}/rotate", {
    params: { path: { id: endpoint.data?.data.id ?? "" } },
    body: { secret: "whsec_other" },
  });
  const [delivery] = (await control.GET("/__mock/deliveries", { params: { query: { kind: "transaction.paid" } } })).data?.data ?? [];
  await control.POST("/__mock/deliveries/{id}/redeliver", { params: { path: { id: delivery?.id ?? "" } } });
  assert.equal(forged, 1);
});
