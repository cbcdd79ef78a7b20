import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { binary } from "./binary.mjs";

const flag = (name) => "-" + name.replace(/[A-Z]/g, (letter) => "-" + letter.toLowerCase());

export async function start(options = {}) {
  const args = ["-addr=127.0.0.1:0", "-log=json", "-stop-with-stdin"];
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) args.push(`${flag(name)}=${value}`);
  }
  const child = spawn(binary(), args, { stdio: ["pipe", "pipe", "pipe"] });
  const exited = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve); // when everything that it printed has been read
  });
  exited.catch(() => {}); // reported by ready
  let complaint = "";
  createInterface(child.stderr).on("line", (line) => {
    try {
      const event = JSON.parse(line);
      if (event.type === "error") complaint = event.message;
    } catch {
      complaint = line; // not of the log
    }
  });
  const printed = once(createInterface(child.stdout), "line").then(([line]) => JSON.parse(line));
  const ready = await Promise.race([printed, exited.then(() => null)]);
  if (!ready) throw new Error(`mockgateway: ${complaint || "it has ended before it was ready"}`);
  // A test that forgets close still ends: the gateway stops with its standard input.
  for (const handle of [child, child.stdin, child.stdout, child.stderr]) handle.unref();
  return new Gateway(ready, child, exited);
}

class Gateway {
  #child;
  #exited;

  constructor(ready, child, exited) {
    this.url = ready.base_url;
    this.apiKey = ready.api_key;
    this.#child = child;
    this.#exited = exited;
  }

  async call(method, path, body) {
    const response = await fetch(this.url + path, {
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

  async close() {
    this.#child.ref();
    this.#child.stdin.end();
    await this.#exited;
  }

  [Symbol.asyncDispose ?? Symbol.for("asyncDispose")]() {
    return this.close();
  }
}
