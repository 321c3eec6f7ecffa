// Parts marked data-live refresh every 10 seconds while somebody looks. What the server sends is
// woven into the page, so that focus, scroll position, ticked boxes and typed text stay.
const EVERY = 10_000;
const parts = [...document.querySelectorAll("[data-live]")];
// After a form that was not taken, the page stands at the address of that form.
const address = document.querySelector("[data-live-at]")?.dataset.liveAt ?? location.href;
// What belongs to whoever folded, ticked or chose something.
const THEIRS = ["open", "checked", "selected", "aria-busy"];
let etag = null;
let waiting = false;

function sync(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh.cloneNode(true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.matches("[data-keep]")) return;
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !THEIRS.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name === "open") continue; // who folded something away wants it so
    // Tokens differ on every answer and are all valid; boxes belong to whoever ticked them.
    if (name === "value" && old.name === "csrf_token") continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  weave(old, fresh);
}

function weave(old, fresh) {
  const keyed = new Map([...old.children].filter((child) => child.dataset?.key).map((child) => [child.dataset.key, child]));
  let here = old.firstChild;
  for (const want of [...fresh.childNodes]) {
    const known = want.dataset?.key && keyed.get(want.dataset.key);
    if (known) {
      keyed.delete(want.dataset.key);
      if (known !== here) old.insertBefore(known, here);
      else here = here.nextSibling;
      sync(known, want);
    } else if (here && !here.dataset?.key && !want.dataset?.key) {
      const next = here.nextSibling;
      sync(here, want);
      here = next;
    } else {
      old.insertBefore(want.cloneNode(true), here);
    }
  }
  while (here) {
    const next = here.nextSibling;
    here.remove();
    here = next;
  }
}

async function refresh() {
  if (waiting || document.hidden || !navigator.onLine) return;
  waiting = true;
  try {
    const headers = { "X-Fragment": "live" };
    if (etag) headers["If-None-Match"] = etag;
    const answer = await fetch(address, { headers, redirect: "error", cache: "no-store" });
    if (answer.status === 200) {
      etag = answer.headers.get("ETag");
      const fresh = document.createElement("template");
      fresh.innerHTML = await answer.text();
      for (const part of parts) {
        const own = part.dataset.live && fresh.content.querySelector(`[data-live="${part.dataset.live}"]`);
        if (own || !part.dataset.live) weave(part, own || fresh.content);
      }
      const title = document.querySelector("[data-live] [data-title]")?.dataset.title;
      if (title) document.title = `${title} · Wakeful`;
      document.dispatchEvent(new CustomEvent("wakeful:fresh"));
    }
    for (const part of parts) part.toggleAttribute("data-stale", answer.status >= 400);
  } catch {
    // The server is away or the session has ended: what is shown stays, and says that it is old.
    for (const part of parts) part.setAttribute("data-stale", "");
  } finally {
    waiting = false;
  }
}

if (parts.length) {
  setInterval(refresh, EVERY);
  document.addEventListener("visibilitychange", refresh);
  document.addEventListener("wakeful:refresh", refresh);
}

// "3 minutes ago" stays true while the page stands.
const WORDS = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
function relative(seconds) {
  const away = Math.abs(seconds);
  if (away < 5) return "just now";
  const [size, unit] = WORDS.find(([length]) => away >= length);
  const count = Math.floor(away / size);
  const words = `${count} ${unit}${count === 1 ? "" : "s"}`;
  return seconds > 0 ? `${words} ago` : `in ${words}`;
}
setInterval(() => {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    if (Math.abs(seconds) < 30 * 86400) time.textContent = relative(seconds);
  }
}, EVERY);
