import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const version = "0.0.0-snapshot-0123456789ab";
const platform = `${process.platform}-${process.arch}`;
const launcher = join(process.env.PACKAGES, `mockgateway-${version}.tgz`);
const own = tarball(platform);
const limit = { timeout: 60_000 };

function tarball(name) {
  return join(process.env.PACKAGES, `mockgateway-${name}-${version}.tgz`);
}

// install installs tarballs into an empty folder, which it returns.
async function install(name, ...args) {
  const folder = join(process.env.WORK, name);
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), "{}");
  await run("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", ...args], { cwd: folder });
  return folder;
}

// gone waits until nothing listens at an address.
async function gone(url) {
  for (;;) {
    try {
      await (await fetch(`${url}/__mock/health`)).text();
    } catch {
      return;
    }
  }
}

const charge = {
  external_ref: "order-1", amount: 1990, method: "pix", products: [{ name: "Book", price: 1990 }],
  buyer: { name: "Ana", email: "ana@example.com", document: { type: "CPF", number: "52998224725" } },
};

let folder;
before(async () => { folder = await install("shop", launcher, own); });

test("the command is the binary", limit, async () => {
  const { stdout } = await run(join(folder, "node_modules/.bin/mockgateway"), ["-version"]);
  assert.match(stdout, /^mockgateway \S+.* go1\./);
  const { stdout: viaNpx } = await run("npx", ["--no-install", "mockgateway", "-version"], { cwd: folder });
  assert.equal(viaNpx, stdout);
  await assert.rejects(run(join(folder, "node_modules/.bin/mockgateway"), ["pay"]), { code: 2 });
});

test("a payment through the API", limit, async () => {
  const { start } = await import(pathToFileURL(join(folder, "node_modules/mockgateway/index.mjs")));
  const gateway = await start({ clock: "manual", start: "2027-01-04T12:00:00Z" });
  const response = await fetch(`${gateway.url}/v2/transactions`, {
    method: "POST", headers: { authorization: `Bearer ${gateway.apiKey}`, "content-type": "application/json" }, body: JSON.stringify(charge),
  });
  assert.equal(response.status, 201);
  const { data } = await response.json();
  assert.equal((await gateway.pay(data.id)).status, "paid");
  assert.equal((await gateway.call("GET", `/v2/transactions/${data.id}`)).paid_amount, 1990);
  await assert.rejects(gateway.call("POST", "/v2/transactions", charge), { status: 409 });
  assert.equal((await gateway.advance("40d")).now, "2027-02-13T12:00:00.000Z");
  assert.equal((await gateway.advance(new Date("2028-01-01"))).now, "2028-01-01T00:00:00.000Z");
  await gateway.fault({ fault: "lose-response", on: "transactions.create", times: 1 });
  await assert.rejects(gateway.call("POST", "/v2/transactions", { ...charge, external_ref: "order-2" }), TypeError);
  await gateway.close();
  await gone(gateway.url);
  await assert.rejects(start({ clock: "x" }), /-clock must be realtime or manual/);
});

test("the gateway ends with its program, even if that is killed", limit, async () => {
  const file = join(folder, "killed.mjs");
  writeFileSync(file, 'import { start } from "mockgateway"; console.log((await start()).url); setInterval(() => {}, 1000);');
  const program = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "inherit"] });
  const [url] = await once(createInterface(program.stdout), "line");
  program.kill("SIGKILL");
  await gone(url);

  writeFileSync(file, 'import { start } from "mockgateway"; console.log((await start()).url);');
  const { stdout } = await run(process.execPath, [file]);
  await gone(stdout.trim());
});

// A machine so busy that the gateway is ready before its launcher does anything more.
const busy = `import child_process from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
const spawn = child_process.spawn;
child_process.spawn = (...args) => {
  const child = spawn(...args);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
  return child;
};
syncBuiltinESMExports();`;

for (const signal of ["SIGTERM", "SIGINT"]) {
  test(`${signal} to the command stops the gateway`, limit, async (t) => {
    const command = spawn(join(folder, "node_modules/.bin/mockgateway"), ["-addr", "127.0.0.1:0", "-log", "json", "-stop-with-stdin"], {
      stdio: ["pipe", "pipe", "ignore"], env: { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(busy)}` },
    });
    t.after(() => command.stdin.destroy()); // a gateway that is left behind ends
    const ended = once(command, "exit");
    const [line] = await once(createInterface(command.stdout), "line");
    command.kill(signal);
    assert.deepEqual(await ended, [0, null]);
    await gone(JSON.parse(line).base_url);
  });
}

test("without the binary's package there is one clear sentence", limit, async () => {
  const bare = await install("bare", "--omit=optional", launcher);
  await assert.rejects(run(join(bare, "node_modules/.bin/mockgateway"), ["-version"]), (error) => {
    assert.equal(error.code, 1);
    assert.equal(error.stderr, `mockgateway: the package @mockgateway/${platform} is missing: install mockgateway with its optional dependencies, on the platform on which it runs\n`);
    return true;
  });
  const { binary } = await import(pathToFileURL(join(bare, "node_modules/mockgateway/binary.mjs")));
  assert.throws(() => binary("sunos", "x64"), /no binary for sunos-x64/);
});

test("npm refuses the package of another platform", limit, async () => {
  await assert.rejects(install("other", tarball(platform === "win32-x64" ? "linux-x64" : "win32-x64")), /EBADPLATFORM/);
});
