import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

const secret = "whsec_test_1";
let gateway: ChildProcess, dir: string, url: string;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "gateway-"));
  const file = join(dir, "addr");
  const binary = process.env["MOCKGATEWAY"] ?? "mockgateway";
  gateway = spawn(binary, ["-addr", "127.0.0.1:0", "-port-file", file, "-clock", "manual", "-log", "off"], {
    stdio: ["ignore", "ignore", "inherit"], // if it can't start, it says why
  });
  await once(gateway, "spawn"); // fails if there is no such binary
  for (let address = ""; !address; await sleep(20)) {
    assert.equal(gateway.exitCode, null, "mockgateway has exited");
    address = (await readFile(file, "utf8").catch(() => "")).trim();
    url = `http://${address}`;
  }
});

after(async () => {
  gateway.kill();
  await once(gateway, "exit");
  await rm(dir, { recursive: true });
});

async function call(method: string, path: string, body?: object): Promise<any> {
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: "Bearer sk_test_typescript", "Content-Type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
  return ((await response.json()) as { data: any }).data;
}

function verify(request: IncomingMessage, body: Buffer): boolean {
  const timestamp = String(request.headers["x-gateway-timestamp"]);
  const mac = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
  const want = Buffer.from(`sha256=${mac}`);
  const got = Buffer.from(String(request.headers["x-gateway-signature"]));
  const age = Math.abs(Date.now() / 1000 - Number(timestamp));
  return got.length === want.length && timingSafeEqual(got, want) && age <= 300;
}

test("a paid order is shipped", async (t) => {
  const shipped: string[] = [];
  const shop = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    if (!verify(request, body)) {
      return void response.writeHead(401).end();
    }
    const event = JSON.parse(body.toString());
    if (event.data.event_type === "transaction.paid") {
      shipped.push(event.data.correlation_id);
    }
    response.end('{"received":true}');
  }).listen(0, "127.0.0.1");
  await once(shop, "listening");
  t.after(() => shop.close());
  const { port } = shop.address() as AddressInfo;
  await call("POST", "/__mock/endpoints", { url: `http://127.0.0.1:${port}/`, secret });

  const transaction = await call("POST", "/v2/transactions", {
    external_ref: "order-1001",
    amount: 4990,
    method: "pix",
    buyer: { name: "Ana", email: "ana@example.com", document: { type: "CPF", number: "52998224725" } },
    products: [{ name: "T-shirt", price: 4990 }],
  });
  assert.equal(transaction.status, "pending");
  await call("POST", `/__mock/transactions/${transaction.id}/pay`); // what the buyer's bank does
  await call("POST", "/__mock/deliveries/wait"); // until the webhooks are delivered
  assert.deepEqual(shipped, ["order-1001"]);
});
