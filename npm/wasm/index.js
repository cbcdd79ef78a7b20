// The mock gateway in this page, worker or Node.js process: a WebAssembly module that
// contains no server and opens no connection.
import "./wasm_exec.js";

// Go's support code defines these for its program. Libraries take a process for Node.js,
// so they are visible only while the program starts.
const own = {};
if (globalThis.process?.pid === -1) own.process = globalThis.process;
if (globalThis.path && Object.keys(globalThis.path).join() === "resolve") own.path = globalThis.path;
for (const name of Object.keys(own)) delete globalThis[name];

let program; // a promise: all gateways share the program

// createGateway starts a gateway.
export async function createGateway({ wasm, ...options } = {}) {
  program ??= load(wasm);
  let loaded;
  try {
    loaded = await program;
  } catch (error) {
    program = undefined; // the next call tries again
    throw error;
  }
  return new Gateway(loaded, options);
}

async function load(from) {
  const module = from instanceof WebAssembly.Module ? from : await compile(await read(from));
  const go = unreferenced(new globalThis.Go());
  const instance = await WebAssembly.instantiate(module, go.importObject);
  return new Promise((resolve, reject) => {
    globalThis.mockgatewayReady = (version, open) => resolve({ version, open });
    Object.assign(globalThis, own);
    const ended = () => {
      program = undefined; // the next gateway starts another one
      reject(new Error("the gateway's program has ended"));
    };
    go.run(instance).then(ended, reject);
    for (const name of ["mockgatewayReady", ...Object.keys(own)]) delete globalThis[name];
  });
}

// unreferenced lets Node.js end although the program has timers, some of which remain after
// their gateway is closed.
function unreferenced(go) {
  const { gojs } = go.importObject;
  const schedule = gojs["runtime.scheduleTimeoutEvent"];
  gojs["runtime.scheduleTimeoutEvent"] = (sp) => {
    schedule(sp);
    go._scheduledTimeouts.get(go._nextCallbackTimeoutID - 1)?.unref?.();
  };
  return go;
}

// keep keeps Node.js running while a request waits for its response, or a receiver for
// webhooks: n is 1 at the beginning and -1 at the end.
function keep(n) {
  const before = kept;
  kept += n;
  if (kept === 0) {
    clearInterval(handle);
  } else if (before === 0) {
    handle = setInterval(() => {}, 2 ** 30);
  }
}

let kept = 0;
let handle;

// read returns the file as a Response or as bytes.
async function read(from = new URL("./mockgateway.wasm", import.meta.url)) {
  if (from instanceof Response || from instanceof ArrayBuffer || ArrayBuffer.isView(from)) return from;
  const url = new URL(from, import.meta.url);
  if (url.protocol !== "file:") {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
    return response;
  }
  const { readFile } = await import("node:fs/promises");
  return readFile(url);
}

async function compile(file) {
  if (!(file instanceof Response)) return WebAssembly.compile(file);
  // Not every server knows the type, without which the file can't be compiled as it arrives.
  return WebAssembly.compileStreaming(new Response(file.body, { headers: { "content-type": "application/wasm" } }));
}

class Gateway {
  url = "http://localhost";
  #exports;
  #receiver = null;
  #sinks = new Map(); // the requests without a response, by their ids
  #last = 0;

  constructor({ open, version }, options) {
    this.version = version;
    const exported = open(JSON.stringify(options), (...delivery) => void this.#deliver(...delivery));
    if (typeof exported === "string") throw new TypeError(`mockgateway: ${exported}`);
    this.#exports = exported;
    this.apiKey = exported.apiKey;
    this.webhookSecret = exported.secret;
    this.fetch = this.fetch.bind(this); // to pass it on as a function
  }

  get #open() {
    if (!this.#exports) throw new TypeError("the gateway is closed");
    return this.#exports;
  }

  async fetch(input, init) {
    const request = new Request(typeof input === "string" ? new URL(input, this.url) : input, init);
    const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer());
    request.signal.throwIfAborted();
    const { fetch, cancel } = this.#open;
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      const abort = () => {
        settle(reject, request.signal.reason); // before the gateway reports it
        cancel(id);
      };
      const settle = (how, value) => {
        if (!this.#sinks.delete(id)) return;
        keep(-1);
        request.signal.removeEventListener("abort", abort);
        how(value);
      };
      const failed = (cause) => settle(reject, new TypeError("fetch failed", { cause: new Error(cause) }));
      this.#sinks.set(id, failed);
      keep(1);
      request.signal.addEventListener("abort", abort);
      const refused = fetch(id, request.method, request.url, [...request.headers].flat(), body, request.redirect === "follow", {
        fail: failed,
        respond: (...parts) => {
          try {
            settle(resolve, response(...parts));
          } catch (error) {
            settle(reject, error);
          }
        },
      });
      if (refused) failed(refused);
    });
  }

  // onWebhook sets the receiver; null is none.
  onWebhook(receiver) {
    const failed = this.#open.receive(Boolean(receiver));
    if (failed) throw new Error(failed);
    this.#receive(receiver ?? null);
  }

  #receive(receiver) {
    keep(Number(receiver !== null) - Number(this.#receiver !== null));
    this.#receiver = receiver;
  }

  async #deliver(id, method, url, headers, body) {
    let error = null, status = 500, list = [], content = null;
    try {
      const answer = await this.#receiver(new Request(url, { method, headers: pairs(headers), body }));
      const response = answer ?? new Response(null, { status: 204 });
      if (response.type === "error") error = "the connection was closed"; // Response.error()
      else [status, list, content] = [response.status, [...response.headers].flat(), new Uint8Array(await response.arrayBuffer())];
    } catch (thrown) {
      content = new TextEncoder().encode(String(thrown)); // as a framework would
    }
    this.#exports?.delivered(id, error, status, list, content); // unless it was closed meanwhile
  }

  async call(method, path, body) {
    const response = await this.fetch(path, {
      method,
      headers: { authorization: `Bearer ${this.apiKey}`, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const envelope = await response.json();
    if (!response.ok) {
      throw Object.assign(new Error(`${method} ${path}: ${response.status} ${envelope.detail ?? envelope.message}`), { status: response.status, body: envelope });
    }
    return envelope.data;
  }

  advance(to) {
    const time = to instanceof Date ? to.toISOString() : to;
    const body = time === "next" ? { next: true } : /^\d{4}-/.test(time) ? { to: time } : { by: time };
    return this.call("POST", "/__mock/clock/advance", body);
  }

  pay(id) {
    return this.call("POST", `/__mock/transactions/${encodeURIComponent(id)}/pay`);
  }

  fault(fault) {
    return this.call("POST", "/__mock/faults", fault);
  }

  snapshot() {
    return settled((done) => this.#open.snapshot(done));
  }

  restore(snapshot) {
    return settled((done) => this.#open.restore(snapshot, done));
  }

  async close() {
    if (!this.#exports) return;
    const { close } = this.#exports;
    this.#exports = null;
    this.#receive(null);
    await settled(close);
    for (const failed of [...this.#sinks.values()]) failed("the gateway was closed");
  }

  [Symbol.asyncDispose ?? Symbol.for("asyncDispose")]() {
    return this.close();
  }
}

// settled returns the result of a function that calls done(reason, result).
function settled(start) {
  keep(1);
  return new Promise((resolve, reject) => {
    start((reason, result) => (reason ? reject(new Error(reason)) : resolve(result)));
  }).finally(() => keep(-1));
}

function pairs(list) {
  return Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i], list[2 * i + 1]]);
}

function response(status, headers, body, cut, url, redirected) {
  let content = [204, 205, 304].includes(status) ? null : body;
  if (cut) { // the connection broke in the body
    content = new ReadableStream({
      start(controller) {
        if (body.length > 0) controller.enqueue(body);
      },
      pull(controller) {
        controller.error(new TypeError("terminated"));
      },
    });
  }
  const made = new Response(content, { status, headers: pairs(headers) });
  return Object.defineProperties(made, { url: { value: url }, redirected: { value: redirected } });
}
