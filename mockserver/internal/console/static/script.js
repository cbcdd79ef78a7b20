// Reloads the part of the page that shows something when the gateway reports an
// event. Everything else works without this script.
"use strict";
(() => {
  let timer = 0;
  let loading = false;
  let again = false;

  // A form that is being filled in, or a text that is being read out or copied, is
  // left alone.
  const busy = () => {
    const active = document.activeElement;
    const typing = active && active.closest("main form") && active.matches("input, select, textarea");
    return typing || String(getSelection()) !== "" || document.querySelector("main form.changed");
  };

  const refresh = async () => {
    timer = 0;
    if (loading) { again = true; return; }
    if (busy()) { schedule(1000); return; }
    loading = true;
    try {
      const address = new URL(location.href);
      address.searchParams.delete("note");
      const response = await fetch(address, { headers: { Accept: "text/html" } });
      const text = await response.text();
      if (response.ok && !busy()) { replace(new DOMParser().parseFromString(text, "text/html")); }
    } catch { /* the gateway is gone; the stream reconnects */ }
    loading = false;
    if (again) { again = false; schedule(300); }
  };

  const replace = (page) => {
    const x = scrollX, y = scrollY;
    const open = [...document.querySelectorAll("main details")].map((d) => d.open);
    const note = document.querySelector("main .note");
    const main = document.querySelector("main");
    const next = page.querySelector("main");
    const stream = document.querySelector("#stream");
    const sideways = [...main.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
    next.querySelectorAll("details").forEach((d, i) => { if (i < open.length) { d.open = open[i]; } });
    if (stream) { next.querySelector("#stream")?.replaceWith(stream); }
    main.replaceChildren(...(note ? [note] : []), ...next.childNodes);
    main.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = sideways[i] ?? 0; });
    document.querySelector("header .now")?.replaceWith(page.querySelector("header .now"));
    scrollTo(x, y);
  };

  const schedule = (wait) => { if (!timer) { timer = setTimeout(refresh, wait); } };

  document.addEventListener("input", (e) => { e.target.closest("main form")?.classList.add("changed"); });
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (form.method !== "post") { return; }
    if (form.dataset.sent) { e.preventDefault(); return; }
    form.dataset.sent = "yes";
    form.querySelectorAll("button").forEach((b) => { b.setAttribute("aria-busy", "true"); });
  });
  addEventListener("pageshow", () => { document.querySelectorAll("form").forEach((f) => { delete f.dataset.sent; }); });
})();
