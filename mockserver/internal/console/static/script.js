// Shows what happens while it happens: the gateway's stream of events reloads what
// the page shows and feeds the list on the home page. Everything else works
// without this script.
"use strict";
(() => {
  const main = document.querySelector("main");
  const state = document.querySelector("#live");
  const shown = 40; // lines of the list
  let stream = null;
  let last = ""; // the id of the latest event
  let timer = 0;
  let loading = false;
  let again = false;

  // A form that is being filled in, or a text that is being copied, is left alone.
  const busy = () => {
    const active = document.activeElement;
    const typing = active && main.contains(active) && active.matches("input, select, textarea");
    return typing || main.querySelector("form.changed") || main.contains(getSelection().anchorNode) && String(getSelection()) !== "";
  };

  const refresh = async () => {
    timer = 0;
    if (loading) { again = true; return; }
    if (busy()) { say("Paused while you fill in a form"); schedule(1000); return; }
    loading = true;
    try {
      const address = new URL(location.href);
      address.searchParams.delete("note");
      const response = await fetch(address, { headers: { Accept: "text/html" } });
      const text = await response.text();
      if (response.ok && !busy()) { replace(new DOMParser().parseFromString(text, "text/html")); }
      say("Live");
    } catch { /* the gateway is unreachable; the event stream reconnects */ }
    loading = false;
    if (again) { again = false; schedule(300); }
  };

  const focusable = () => [...main.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")];

  const replace = (page) => {
    const x = scrollX, y = scrollY;
    const next = page.querySelector("main");
    const focused = focusable().indexOf(document.activeElement);
    const sideways = [...main.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
    const open = [...main.querySelectorAll("details")].map((d) => d.open);
    next.querySelectorAll("details").forEach((d, i) => { if (i < open.length) { d.open = open[i]; } });
    const kept = [main.querySelector(".note")].filter(Boolean);
    const list = main.querySelector("#stream");
    if (list) { next.querySelector("#stream")?.replaceWith(list); }
    main.replaceChildren(...kept, ...next.childNodes);
    document.querySelector("header .now")?.replaceWith(page.querySelector("header .now"));
    main.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = sideways[i] ?? 0; });
    prepare(false);
    if (focused >= 0) { focusable()[focused]?.focus({ preventScroll: true }); }
    scrollTo(x, y);
  };

  // Shows the buttons that need this script, and the current state of a diagram that is
  // wider than the screen.
  const prepare = (loaded) => {
    main.querySelectorAll("[data-copy]").forEach((b) => { b.hidden = false; });
    const current = main.querySelector(".diagram .current rect");
    const scroll = current?.closest(".scroll");
    if (loaded && scroll) {
      scroll.scrollLeft += current.getBoundingClientRect().right - scroll.getBoundingClientRect().right + scroll.clientWidth / 3;
    }
  };

  const copy = async (button) => {
    const from = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(from.textContent);
    } catch { // no clipboard outside https and localhost
      getSelection().selectAllChildren(from);
      document.execCommand("copy");
      getSelection().removeAllRanges();
    }
    button.textContent = "Copied";
    document.querySelector("#said").textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; document.querySelector("#said").textContent = ""; }, 2000);
  };

  const schedule = (wait) => { if (!timer) { timer = setTimeout(refresh, wait); } };

  const say = (text) => { state.hidden = false; state.textContent = text; };

  const clock = (stamp) => (stamp || "").slice(0, 19).replace("T", " ");

  // Formats an event of each type as one line.
  const lines = {
    request: (e) => `${e.status || "no response"} ${e.method} ${e.path} ${e.code || ""}`,
    control: (e) => `${e.status} ${e.method} ${e.path} ${e.code || ""}`,
    transition: (e) => `${e.resource} ${e.reference || e.id}: ${e.from ? e.from + " → " : ""}${e.to}${e.cause ? ", by " + e.cause : ""}`,
    timer: (e) => `${e.kind} of ${e.id}${e.error ? ": " + e.error : ""}`,
    webhook: (e) => `${e.kind} of ${e.reference || e.resource_id}`,
    delivery: (e) => `${e.kind} → ${e.url || e.endpoint}: ${e.error || e.status || e.state}`,
    clock: (e) => `${clock(e.from)} → ${clock(e.to)}`,
    fault: (e) => `${e.fault || ""} ${e.action} ${e.target || ""}`,
    reset: (e) => e.cause || "",
    lost: (e) => `${e.events || "some"} events are missing here`,
  };

  const note = (type, event) => {
    const list = main.querySelector("#stream ol");
    if (!list) { return; }
    list.closest("#stream").hidden = false;
    const inner = event[type] || event.request || {};
    const line = document.createElement("li");
    const time = document.createElement("time");
    const kind = document.createElement("span");
    time.textContent = clock(event.at);
    kind.className = "kind";
    kind.textContent = type;
    line.className = "t-" + type;
    line.classList.toggle("bad", inner.status >= 400 || Boolean(inner.error));
    line.append(time, " ", kind, " ", lines[type](inner));
    list.prepend(line);
    while (list.children.length > shown) { list.lastChild.remove(); }
  };

  const listen = () => {
    const address = document.body.dataset.events;
    if (!address || stream || document.hidden) { return; }
    const url = new URL(address, location.href);
    if (last) { url.searchParams.set("after", last); }
    stream = new EventSource(url);
    stream.onopen = () => say("Live");
    stream.onerror = () => say("Waiting for the gateway");
    for (const type of Object.keys(lines)) {
      stream.addEventListener(type, (message) => {
        last = message.lastEventId;
        note(type, JSON.parse(message.data));
        schedule(200);
      });
    }
  };

  const stop = () => { stream?.close(); stream = null; };

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { stop(); } else { listen(); schedule(0); }
  });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (e) => {
    document.querySelectorAll("form").forEach((f) => { delete f.dataset.sent; });
    if (e.persisted) { listen(); schedule(0); }
  });
  document.addEventListener("input", (e) => { e.target.closest("main form")?.classList.add("changed"); });
  document.addEventListener("submit", (e) => {
    if (e.target.method !== "post") { return; }
    if (e.target.dataset.sent) { e.preventDefault(); return; }
    e.target.dataset.sent = "yes";
  });
  document.addEventListener("click", (e) => {
    const button = e.target.closest("[data-copy]");
    if (button) { copy(button); }
  });
  prepare(true);
  listen();
})();
