// The package @mockgateway/wasm, installed from its tarball: the gateway in this process.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const version = "0.0.0-snapshot-0123456789ab";
const limit = { timeout: 60_000 };
const folder = join(process.env.WORK, "wasm");
const installed = join(folder, "node_modules/@mockgateway/wasm");
const manual = { clock: "manual", start: "2027-01-04T12:00:00Z", seed: 1 };

const charge = (reference, more) => ({
  external_ref: reference, amount: 1990, method: "pix", products: [{ name: "Book", price: 1990 }],
  buyer: { name: "Ana", email: "ana@example.com", document: { type: "CPF", number: "52998224725" } }, ...more,
});

let createGateway;
before(async () => {
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), "{}");
  const tarball = join(process.env.PACKAGES, `mockgateway-wasm-${version}.tgz`);
  await run("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", tarball], { cwd: folder });
  ({ createGateway } = await import(pathToFileURL(join(installed, "index.js"))));
});

// open starts a gateway that is closed at the end of the test.
async function open(t, options) {
  const gateway = await createGateway(options);
  t.after(() => gateway.close());
  return gateway;
}

const delivered = (gateway) => gateway.call("POST", "/__mock/deliveries/wait", {});

test("a payment", limit, async (t) => {
  const gateway = await open(t, manual);
  const { id } = await gateway.call("POST", "/v2/transactions", charge("order-1"));
  const duplicate = await gateway.call("POST", "/v2/transactions", charge("order-1")).catch((error) => error);
  assert.deepEqual([duplicate.status, duplicate.body.code], [409, "DUPLICATE_EXTERNAL_REF"]);
  assert.equal((await gateway.pay(id)).status, "paid");
  assert.equal((await gateway.call("GET", `/v2/transactions/${id}`)).paid_amount, 1990);
  assert.equal((await gateway.advance("40d")).now, "2027-02-13T12:00:00.000Z");
  assert.equal((await gateway.advance(new Date("2028-01-01"))).now, "2028-01-01T00:00:00.000Z");
});

test("fetch takes what the global function takes", limit, async (t) => {
  const { fetch, apiKey } = await open(t, manual);
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const request = new Request("https://api.gateway.example/v2/transactions", { method: "POST", headers, body: JSON.stringify(charge("order-1")) });
  const created = await fetch(request);
  assert.equal(created.status, 201);
  assert.equal(created.url, "https://api.gateway.example/v2/transactions");
  assert.match(created.headers.get("content-type"), /^application\/json/);
  const { data } = await created.clone().json();
  assert.equal((await created.json()).data.external_ref, "order-1");

  assert.equal((await fetch(new URL(`http://localhost/v2/transactions/${data.id}`), { headers })).status, 200);
  const head = await fetch(`/v2/transactions/${data.id}`, { method: "HEAD", headers });
  assert.deepEqual([head.status, await head.text()], [200, ""]);
  const page = await fetch(`/__mock/console/find?q=${data.id}`, { headers: { accept: "text/html" } });
  assert.deepEqual([page.status, page.redirected, new URL(page.url).pathname], [200, true, `/__mock/console/transactions/${data.id}`]);
  const redirect = await fetch(`/__mock/console/find?q=${data.id}`, { headers: { accept: "text/html" }, redirect: "manual" });
  assert.equal(redirect.status, 303);
  assert.equal((await fetch("/__mock/events")).status, 501);
  assert.equal((await fetch("/v2/transactions")).status, 401);
});

test("faults are errors, as of fetch", limit, async (t) => {
  const gateway = await open(t, manual);
  await gateway.fault({ fault: "lose-response", on: "transactions.create", times: 1 });
  await assert.rejects(gateway.call("POST", "/v2/transactions", charge("order-1")), { name: "TypeError", message: "fetch failed" });
  await assert.rejects(gateway.call("POST", "/v2/transactions", charge("order-1")), { status: 409 });

  await gateway.fault({ fault: "truncate", on: "transactions.list", times: 1 });
  const headers = { authorization: `Bearer ${gateway.apiKey}` };
  const cut = await gateway.fetch("/v2/transactions", { headers });
  assert.equal(cut.status, 200);
  await assert.rejects(cut.json(), TypeError);

  await gateway.fault({ fault: "status=503; retry-after=2", on: "transactions.list", times: 1 });
  const busy = await gateway.fetch("/v2/transactions", { headers });
  assert.deepEqual([busy.status, busy.headers.get("retry-after")], [503, "2"]);

  const abort = new AbortController();
  const hangs = gateway.fetch("/v2/transactions", { headers: { ...headers, "x-mock-fault": "hang-until-timeout" }, signal: abort.signal });
  abort.abort();
  await assert.rejects(hangs, { name: "AbortError" });
  await gateway.call("GET", "/v2/transactions");
});

test("the response to a webhook decides the retry", limit, async (t) => {
  const gateway = await open(t, { ...manual, webhookSecret: "whsec_of_the_shop" });
  const got = [];
  const responses = [new Response("down", { status: 500 }), undefined, Response.error(), () => { throw new Error("a defect"); }];
  gateway.onWebhook(async (request) => {
    const body = await request.text();
    const timestamp = request.headers.get("x-gateway-timestamp");
    const mac = createHmac("sha256", gateway.webhookSecret).update(`${timestamp}.${body}`).digest("hex");
    const signature = request.headers.get("x-gateway-signature");
    got.push([JSON.parse(body).data.event_type, request.url, signature === null ? null : signature === `sha256=${mac}`]);
    const response = responses.shift() ?? new Response(null, { status: 200 });
    return typeof response === "function" ? response() : response;
  });
  const hook = (kind) => [`transaction.${kind}`, "http://localhost/webhooks", true];

  const { id } = await gateway.call("POST", "/v2/transactions", charge("order-1"));
  await delivered(gateway);
  assert.deepEqual(got, [hook("created"), hook("pending")]); // 500 and 204
  await gateway.advance("5s");
  assert.deepEqual(got.splice(0), [hook("created"), hook("pending"), hook("created")]); // a broken connection
  await gateway.advance("1h");
  assert.deepEqual(got.splice(0), [hook("created"), hook("created")]); // an exception, then 200
  const [first] = await gateway.call("GET", `/__mock/deliveries?resource_id=${id}`);
  assert.equal(first.status, "delivered");

  await gateway.pay(id);
  await delivered(gateway);
  assert.deepEqual(got.splice(0), [hook("paid")]);

  await gateway.call("POST", "/v2/transactions", charge("order-2", { notify_url: "https://shop.example/notified" }));
  await delivered(gateway);
  assert.deepEqual(got.filter(([, url]) => url === "https://shop.example/notified").map(([kind, , signed]) => [kind, signed]),
    [["transaction.created", null], ["transaction.pending", null]]);

  got.splice(0);
  gateway.onWebhook(null);
  await gateway.call("POST", "/v2/transactions", charge("order-3"));
  await delivered(gateway);
  assert.deepEqual(got, []);
});

test("a snapshot moves to another gateway", limit, async (t) => {
  const [first, second] = [await open(t, manual), await open(t, manual)];
  const { id } = await first.call("POST", "/v2/transactions", charge("order-1"));
  const snapshot = await first.snapshot();
  await first.pay(id);
  const kinds = [];
  second.onWebhook(async (request) => void kinds.push((await request.json()).data.event_type));
  await second.restore(snapshot);
  assert.equal((await second.call("GET", `/v2/transactions/${id}`)).status, "pending");
  await second.pay(id);
  await delivered(second);
  assert.deepEqual(kinds, ["transaction.paid"]);
  await first.restore(snapshot);
  assert.equal((await first.call("GET", `/v2/transactions/${id}`)).status, "pending");
  await assert.rejects(first.restore("{}"), /snapshot/);
});

test("the clock can run", limit, async (t) => {
  const gateway = await open(t, { speed: 10_000, autoPay: "10m" });
  const paid = new Promise((resolve) => {
    gateway.onWebhook(async (request) => {
      const { data } = await request.json();
      if (data.event_type === "transaction.paid") resolve(data.status);
    });
  });
  await gateway.call("POST", "/v2/transactions", charge("order-1"));
  assert.equal(await paid, "paid");
});

test("wrong options and a closed gateway", limit, async (t) => {
  await assert.rejects(createGateway({ colck: "manual" }), /there is no option "colck"/);
  await assert.rejects(createGateway({ settledPercent: 90 }), /live dialect/);
  const live = await open(t, { ...manual, dialect: "live" });
  await assert.rejects(live.call("POST", "/v2/transactions", { ...charge("order-1"), buyer: { name: "Ana", email: "ana@example.com" } }), { status: 422 });

  const gateway = await createGateway(manual);
  const hangs = gateway.fetch("/v2/transactions", { headers: { authorization: `Bearer ${gateway.apiKey}`, "x-mock-fault": "hang-until-timeout" } });
  const ended = assert.rejects(hangs, TypeError);
  await gateway.fetch("/__mock/health");
  await gateway.close();
  await ended;
  await gateway.close();
  await assert.rejects(gateway.fetch("/v2/transactions"), /closed/);
  await live.call("GET", "/v2/transactions"); // gateways are independent
});

test("the program is loaded from where the options say", limit, async () => {
  const script = join(folder, "own.mjs");
  writeFileSync(script, `
    import assert from "node:assert/strict";
    import { readFile } from "node:fs/promises";
    const before = Object.keys(globalThis);
    const { createGateway } = await import("@mockgateway/wasm");
    await assert.rejects(createGateway({ wasm: new URL("missing.wasm", import.meta.url) }), { code: "ENOENT" });
    const file = await readFile(new URL(import.meta.resolve("@mockgateway/wasm/mockgateway.wasm")));
    const module = await WebAssembly.compile(file);
    const gateway = await createGateway({ wasm: module });
    assert.equal((await gateway.fetch("/__mock/health")).status, 200);
    await gateway.call("POST", "/v2/transactions", ${JSON.stringify(charge("order-1"))}); // has a timer
    await gateway.fetch("/v2/transactions", { headers: { "x-mock-fault": "latency=20ms" } }); // waits in a timer
    const closed = await createGateway();
    closed.onWebhook(() => {});
    await closed.close();
    assert.ok(process.versions.node);
    assert.deepEqual(Object.keys(globalThis).filter((name) => !before.includes(name)), ["fs", "Go"]);
    console.log("ended");`);
  const { stdout } = await run(process.execPath, [script], { cwd: folder }); // one gateway isn't closed, and the process ends
  assert.equal(stdout.trim(), "ended");
});

test("the program names its version", limit, async (t) => {
  assert.match((await open(t, manual)).version, /^mockgateway-wasm \S+.* go1\.\d+\S* js\/wasm$/);
});

test("the types describe the functions", limit, async (t) => {
  const types = await readFile(join(installed, "index.d.ts"), "utf8");
  const gateway = await open(t, manual);
  const declared = [...types.split("interface Gateway {")[1].split("\n}")[0].matchAll(/^ {2}(?:readonly )?(\w+)[(:]/gm)].map(([, name]) => name);
  for (const name of declared) assert.ok(name in gateway, name);
  assert.equal(declared.length, 13);
});
