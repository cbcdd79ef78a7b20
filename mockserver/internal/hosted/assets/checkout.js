// What the page does beyond its forms, which work without it: copy buttons, one
// click for one payment, and polling for the payment's status.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy);
    const label = button.textContent;
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      document.execCommand("copy"); // no clipboard outside https and localhost
    }
    button.textContent = button.dataset.done;
    const said = document.querySelector("[data-said]"); // for screen readers
    said.textContent = button.dataset.done;
    setTimeout(() => { button.textContent = label; said.textContent = ""; }, 2000);
  });
}

for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}

document.querySelector("[data-focus]")?.focus();

let leaving = false; // a form is being submitted: the page that follows is newer than any poll

// The server starts one payment however often the button is pressed. This only
// shows that the first press worked.
for (const form of document.forms) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
    leaving = true;
    setTimeout(() => { for (const b of form.querySelectorAll("button")) b.disabled = true; });
  });
}
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  leaving = false;
  for (const form of document.forms) {
    delete form.dataset.sent;
    for (const b of form.querySelectorAll("button")) b.disabled = false;
  }
});

const { version, status } = document.body.dataset;
const left = document.querySelector("[data-left]");

async function look() {
  let next = document.hidden ? 5000 : 1000;
  try {
    const response = await fetch(status, { credentials: "same-origin", cache: "no-store" });
    const gone = response.status === 404;
    const now = gone ? {} : await response.json();
    if ((gone || response.ok && now.version !== version) && !leaving) {
      return location.replace(location.pathname);
    }
    if (left && now.left) left.textContent = now.left;
  } catch {
    next = 5000; // the gateway is down
  }
  setTimeout(look, next);
}
if (status) setTimeout(look, 1000);
