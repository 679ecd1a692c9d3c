// Renews the parts of a page that changed. Everything can be read without this.
const body = document.body;
const topics = new Set((body.dataset.topics ?? "").split(" ").filter(Boolean));
const PAUSE = 1000;
let due = false, last = 0, timer = 0;

async function renew() {
  timer = 0;
  if (!due || document.hidden) return;
  due = false;
  last = Date.now();
  let text;
  try {
    const answer = await fetch(location.href, { headers: { "x-console-live": "1" }, redirect: "error" });
    if (!answer.ok) return;
    text = await answer.text();
  } catch {
    return; // The stream tells when the gate is back.
  }
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    if (!next || part.innerHTML === next.innerHTML) continue;
    // Whoever types or has something open is not interrupted.
    const active = document.activeElement;
    if (active && part.contains(active) && active.matches("input, select, textarea")) continue;
    const focused = active && part.contains(active) ? active.id : "";
    part.innerHTML = next.innerHTML;
    if (focused) document.getElementById(focused)?.focus();
    if (part.dataset.live === "fresh") {
      part.classList.remove("fresh");
      void part.offsetWidth;
      part.classList.add("fresh");
    }
  }
  if (fresh.title) document.title = fresh.title;
}

function schedule() {
  due = true;
  if (!timer) timer = setTimeout(renew, Math.max(0, PAUSE - (Date.now() - last)));
}

if (topics.size) {
  const stream = new EventSource("/console/events");
  stream.addEventListener("change", (event) => {
    if (topics.has(event.data)) schedule();
  });
  // What changed between the page and the stream was told to nobody.
  stream.addEventListener("open", schedule);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && due) schedule(); });
  window.addEventListener("pagehide", () => stream.close());
}

// A form that filters sends itself when a choice is made.
for (const field of document.querySelectorAll("form[data-submit] select")) {
  field.addEventListener("change", () => field.form.requestSubmit());
}

// What cannot be undone is asked about.
for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.confirm)) event.preventDefault();
  });
}
