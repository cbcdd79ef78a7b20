// The steps of the page. mockgateway/ has the package @mockgateway/wasm; in a clone this
// command writes it: go run ./internal/release wasm docs/playground/mockgateway
const $ = (id) => document.getElementById(id);
let gateway;

// --- elements

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// highlight returns JSON with its names, strings and numbers marked.
function highlight(text) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|\b(-?\d+(?:\.\d+)?|true|false|null)\b/g)) {
    const [token, string, colon] = found;
    parts.push(text.slice(end, found.index), element("span", { className: colon ? "name" : string ? "string" : "number" }, string ?? token));
    if (colon) parts.push(colon);
    end = found.index + token.length;
  }
  return [...parts, text.slice(end)];
}

function code(text, label) {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // not JSON: shown as it is
  }
  const pre = element("pre", { tabIndex: 0 }, ...highlight(shown));
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", label);
  return pre;
}

function status(text, good) {
  return element("span", { className: good ? "status" : "status bad" }, text);
}

// --- requests

// send makes a request, shows it and its response, and returns them.
async function send(into, method, path, body) {
  const text = typeof body === "string" ? body : body && JSON.stringify(body);
  const answer = element("div");
  const shown = element("div", { className: "exchange" }, element("p", {}, element("code", {}, element("b", {}, method), ` ${path}`)));
  if (text) shown.append(element("div", {}, element("p", {}, "Request"), code(text, "Request")));
  shown.append(answer);
  into.append(shown);
  try {
    const response = await gateway.fetch(path, {
      method,
      headers: { authorization: `Bearer ${gateway.apiKey}`, "content-type": "application/json" },
      body: text || undefined,
    });
    const received = await response.text();
    answer.append(element("p", {}, "Response", status(response.status, response.ok)));
    if (received) answer.append(code(received, "Response"));
    let envelope = {};
    try {
      envelope = JSON.parse(received);
    } catch {
      // a page or no body
    }
    return { status: response.status, data: envelope.data, body: envelope };
  } catch (error) {
    answer.append(element("p", {}, "Response", status("none", false)), code(`${error.name}: ${error.message}`, "Error"));
    return { error };
  } finally {
    await update();
  }
}

// update shows the clock, and the console if it is open.
async function update() {
  const { now } = await gateway.call("GET", "/__mock/clock");
  $("clock").dateTime = now;
  $("clock").textContent = `${now.slice(0, 16).replace("T", " ")} UTC`;
  if (!$("console").hidden) await show(current);
}

const settled = () => gateway.call("POST", "/__mock/deliveries/wait", {});

function charge(reference, amount) {
  return {
    external_ref: reference, amount, method: "pix", products: [{ name: "Coffee, 500 g", price: amount }],
    buyer: { name: "Ana Souza", email: "ana@example.com", document: { type: "CPF", number: "52998224725" } },
  };
}

// expect stops a step whose response isn't the one that it explains.
function expect(result, wanted) {
  if (result.status !== wanted) throw new Error(`the response is ${result.status ?? result.error}, not ${wanted}`);
  return result;
}

// --- steps

let paid; // the id of the first transaction

const steps = [
  {
    title: "Create a Pix charge", button: "Create the charge",
    text: "Your server creates a transaction with its own reference. Amounts are in cents.",
    async run(into) {
      paid = expect(await send(into, "POST", "/v2/transactions", charge("order-1", 15470)), 201).data.id;
      return "The buyer pays it with the code in pix. Your server is told about each change: see the webhooks.";
    },
  },
  {
    title: "The buyer pays", button: "Pay it",
    text: "With a real gateway this happens in the buyer’s bank. Here the control plane does it.",
    async run(into) {
      expect(await send(into, "POST", `/__mock/transactions/${paid}/pay`), 200);
      await settled();
      return "The webhook transaction.paid has arrived, signed with the secret of your endpoint.";
    },
  },
  {
    title: "Let 40 days pass", button: "Advance the clock",
    text: "The clock is virtual: renewals, expiries and retries of webhooks that are due happen at once.",
    async run(into) {
      const { data } = expect(await send(into, "POST", "/__mock/clock/advance", { by: "40d" }), 200);
      return `It is now ${data.now.slice(0, 10)}.`;
    },
  },
  {
    title: "Refund a part", button: "Refund 50.00",
    text: "The buyer returns one item, 40 days after the payment.",
    async run(into) {
      const { data } = expect(await send(into, "PUT", `/v2/transactions/${paid}/refund`, { amount: 5000, reason: "One bag was damaged" }), 200);
      await settled();
      return `${(data.remaining_balance / 100).toFixed(2)} of the payment is left.`;
    },
  },
  {
    title: "Lose a response", button: "Lose it",
    text: "The request arrives, but the connection breaks before the response. Was the buyer charged? Send the same reference again.",
    async run(into) {
      await gateway.fault({ fault: "lose-response", on: "transactions.create", times: 1 });
      const first = await send(into, "POST", "/v2/transactions", charge("order-2", 2990));
      if (!first.error) throw new Error("the response was not lost");
      const second = expect(await send(into, "POST", "/v2/transactions", charge("order-2", 2990)), 409);
      return `The second attempt gets ${second.body.code}: the first one did create the charge, and the buyer is charged once.`;
    },
  },
];

for (const [i, step] of steps.entries()) {
  const button = element("button", { disabled: true, onclick: () => perform(i) }, step.button);
  const result = element("div");
  const section = element("section", { className: "step" },
    element("h2", { id: `step-${i + 1}` }, `${i + 1}. ${step.title}`), element("p", {}, step.text), button, result);
  section.setAttribute("aria-labelledby", `step-${i + 1}`);
  Object.assign(step, { element: section, button, result });
  $("steps").append(section);
}

async function perform(i) {
  const step = steps[i];
  step.button.disabled = $("all").disabled = true;
  step.result.replaceChildren();
  try {
    const said = await step.run(step.result);
    step.result.append(element("p", { className: "say" }, said));
    step.element.classList.add("done");
    if (steps[i + 1]) steps[i + 1].button.disabled = false;
    $("all").disabled = i === steps.length - 1;
    return true;
  } catch (error) {
    problem(error);
    return false;
  }
}

$("all").onclick = async () => {
  for (let i = steps.findIndex((step) => !step.element.classList.contains("done")); i >= 0 && i < steps.length; i++) {
    if (!(await perform(i))) return;
  }
};

// --- webhooks

async function verified(request, body) {
  const [timestamp, signature] = ["x-gateway-timestamp", "x-gateway-signature"].map((name) => request.headers.get(name) ?? "");
  const bytes = (text) => new TextEncoder().encode(text);
  const key = await crypto.subtle.importKey("raw", bytes(gateway.webhookSecret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const hex = signature.replace(/^sha256=/, "");
  const mac = Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const fresh = Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300;
  return fresh && crypto.subtle.verify("HMAC", key, mac, bytes(`${timestamp}.${body}`));
}

async function receive(request) {
  const body = await request.text();
  const valid = await verified(request, body);
  const response = !valid ? 401 : $("fail").checked ? 500 : 200;
  const event = JSON.parse(body);
  const headers = [...request.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  $("no-hooks").hidden = true;
  $("hooks").prepend(element("li", {},
    element("p", { className: "what" }, element("b", {}, event.data?.event_type ?? event.type), status(valid ? "signature valid" : "signature invalid", valid),
      status(`you respond ${response}`, response === 200)),
    element("details", {}, element("summary", {}, event.data?.correlation_id ?? event.id), code(headers, "Headers"), code(body, "Body"))));
  return new Response(null, { status: response });
}

// --- the console

const home = "/__mock/console";
let current = home;
let turn = 0;

// The frame's document is loaded once, and each page replaces what it holds: a link or a button
// that is visible is never without the listeners below.
let opened;
const frame = () => opened ??= new Promise((resolve) => {
  const { contentDocument: empty } = $("console");
  $("console").onload = () => {
    const { contentDocument } = $("console");
    if (contentDocument === empty) return;
    contentDocument.addEventListener("click", follow);
    contentDocument.addEventListener("submit", submit);
    resolve(contentDocument);
  };
  $("console").srcdoc = "<!doctype html>";
});

// show renders a page of the console, unless another has been asked for meanwhile. Its scripts are
// left out, as they would run in this page; links and forms are passed to the gateway.
async function show(to, init = {}) {
  const mine = ++turn, before = current;
  if (!init.method) current = to;
  const response = await gateway.fetch(to, { ...init, headers: { accept: "text/html" } });
  const text = await response.text();
  const page = new DOMParser().parseFromString(text, "text/html");
  if (!response.headers.get("content-type")?.startsWith("text/html")) page.body.replaceChildren(element("pre", {}, text));
  for (const script of page.querySelectorAll("script")) script.remove();
  for (const sheet of page.querySelectorAll("link[rel=stylesheet]")) {
    const css = await gateway.fetch(new URL(sheet.getAttribute("href"), response.url));
    sheet.replaceWith(element("style", {}, await css.text()));
  }
  const shown = await frame();
  if (mine !== turn) return;
  const { pathname, search } = new URL(response.url);
  current = pathname + search;
  const top = current === before ? shown.scrollingElement.scrollTop : 0;
  shown.replaceChild(shown.adoptNode(page.documentElement), shown.documentElement);
  shown.scrollingElement.scrollTop = top;
}

const address = (path) => new URL(path, new URL(current, gateway.url));

function follow(event) {
  const link = event.target.closest("a[href]");
  const to = link?.getAttribute("href");
  if (!to || to.startsWith("#")) return;
  event.preventDefault();
  const url = address(to);
  if (url.origin === gateway.url) show(url.pathname + url.search).catch(problem);
  else open(url, "_blank", "noopener");
}

function submit(event) {
  event.preventDefault();
  const form = event.target;
  const data = new FormData(form, event.submitter);
  const url = address(form.getAttribute("action") || current);
  if (form.method !== "post") {
    url.search = new URLSearchParams(data);
    show(url.pathname + url.search).catch(problem);
    return;
  }
  const body = form.enctype === "multipart/form-data" ? data : new URLSearchParams(data);
  show(url.pathname + url.search, { method: "POST", body }).then(update).catch(problem);
}

$("open-console").onclick = () => {
  $("console").hidden = false;
  show(paid ? `${home}/transactions/${paid}` : home).catch(problem);
};

$("own").onsubmit = async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const method = form.get("method");
  $("own-result").replaceChildren();
  await send($("own-result"), method, form.get("path"), method === "GET" || method === "DELETE" ? undefined : form.get("body")).catch(problem);
};

// --- the start

function problem(error) {
  $("problem").hidden = false;
  $("problem").textContent = error.message;
}

// download returns the program's file and shows how much of it has arrived.
async function download() {
  const response = await fetch(new URL("mockgateway/mockgateway.wasm", import.meta.url));
  if (!response.ok) throw new Error(`mockgateway.wasm: ${response.status} ${response.statusText}`);
  let bytes = 0;
  const counted = new TransformStream({
    transform(chunk, controller) {
      bytes += chunk.length;
      $("state").textContent = `Loading the gateway: ${(bytes / 1e6).toFixed(0)} MB`;
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(counted));
}

try {
  const { createGateway } = await import("./mockgateway/index.js");
  $("state").classList.add("wait");
  gateway = await createGateway({ clock: "manual", wasm: await download() });
  gateway.onWebhook(receive);
  await update();
  $("state").className = "chip ready";
  $("state").textContent = "The gateway runs";
  $("key").textContent = gateway.apiKey;
  for (const button of [steps[0].button, $("all"), $("open-console"), $("own").querySelector("button")]) button.disabled = false;
} catch (error) {
  $("state").textContent = "The gateway did not start";
  problem(new Error(`${error.message}. In a clone, run "go run ./internal/release wasm docs/playground/mockgateway", and serve docs/playground with any HTTP server.`));
}
