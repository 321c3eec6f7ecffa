// Parts marked data-live refresh every 10 seconds, or every data-every seconds, while the page is
// visible. The server's HTML is merged into the page, so that focus, scroll position, ticked boxes and
// typed text are kept.
const EVERY = 1_000 * (document.body.dataset.every ?? 10);
const parts = [...document.querySelectorAll("[data-live]")];
// After a form with errors, location.href is the form's address, not the page's.
let address = document.querySelector("[data-live-at]")?.dataset.liveAt ?? location.href;
// Attributes that the person changes (folding, ticking, choosing): a refresh does not remove them.
const KEPT = ["open", "checked", "selected", "aria-busy", "tabindex"];
let etag = null;
let waiting = null; // the controller that aborts the request under way
let over = false; // whether the session has ended: the login page would answer every further request

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
    if (!fresh.hasAttribute(name) && !KEPT.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name === "open") continue; // the person may have opened or closed it
    // Tokens differ in every answer and are all valid, so the old one is kept.
    if (name === "value" && old.name === "csrf_token") continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  mergeChildren(old, fresh);
}

// Match old and new elements: a row by its key, a button's form by its action. Otherwise a button
// could change into another one while somebody clicks it.
function named(parent) {
  const children = new Map();
  for (const child of parent.children) {
    let key = child.dataset?.key ?? (child.nodeName === "FORM" && child.getAttribute("action"));
    if (!key) continue;
    while (children.has(key)) key += " again";
    children.set(key, child);
  }
  return children;
}

// The longest subsequence of ``children`` that is in order in ``all`` already: only the others move.
function settled(children, all) {
  const positions = children.map((child) => all.indexOf(child));
  const length = positions.map(() => 1);
  const before = positions.map(() => -1);
  let last = -1;
  positions.forEach((position, index) => {
    for (let other = 0; other < index; other++) {
      if (positions[other] < position && length[other] >= length[index]) {
        length[index] = length[other] + 1;
        before[index] = other;
      }
    }
    if (last < 0 || length[index] > length[last]) last = index;
  });
  const stay = new Set();
  for (; last >= 0; last = before[last]) stay.add(children[last]);
  return stay;
}

// Moving an element takes the focus from it, except where the browser has moveBefore.
function move(parent, child, before) {
  if (parent.moveBefore) parent.moveBefore(child, before);
  else parent.insertBefore(child, before);
}

function mergeChildren(old, fresh) {
  const mine = named(old);
  const theirs = named(fresh);
  // First remove what is gone, so that the elements behind it need not move.
  for (const [key, child] of mine) {
    if (theirs.has(key)) continue;
    child.remove();
    mine.delete(key);
  }
  const pairs = new Map([...theirs].map(([key, want]) => [want, mine.get(key)]));
  const kept = new Set(mine.values());
  const stay = settled([...pairs.values()].filter(Boolean), [...old.children]);
  let current = old.firstChild;
  const pass = () => {
    const next = current.nextSibling;
    if (!kept.has(current)) current.remove();
    current = next;
  };
  for (const want of [...fresh.childNodes]) {
    const ours = pairs.get(want);
    if (ours) {
      while (stay.has(ours) && current !== ours) pass();
      if (ours === current) current = current.nextSibling;
      else move(old, ours, current);
      sync(ours, want);
    } else if (current && !kept.has(current) && !pairs.has(want)) {
      const next = current.nextSibling;
      sync(current, want);
      current = next;
    } else {
      old.insertBefore(want.cloneNode(true), current);
    }
  }
  while (current) pass();
}

const FOCUSABLE = "a[href], button, input:not([type=hidden]), select, textarea, summary";
// Keep the focus: on the same control, else on one in the same row, else on the part's heading.
function refocus(part, focused, key) {
  if (focused === document.activeElement) return;
  const row = key && part.querySelector(`[data-key="${CSS.escape(key)}"]`);
  const target = (focused.isConnected && focused.checkVisibility() && focused)
    || row?.querySelector(FOCUSABLE)
    || part.querySelector("h1, h2")
    || document.getElementById("main");
  if (!target.matches(`${FOCUSABLE}, [tabindex]`)) target.tabIndex = -1;
  target.focus({ preventScroll: true });
}

function update(part, fresh) {
  const focused = document.activeElement;
  const key = focused?.closest("[data-key]")?.dataset.key;
  const hadFocus = part.contains(focused);
  mergeChildren(part, fresh);
  if (hadFocus) refocus(part, focused, key);
}

// After the login, the browser comes back to this page.
function tellLoggedOut() {
  const notice = document.createElement("div");
  notice.className = "notice warning";
  notice.role = "status";
  document.getElementById("main").prepend(notice);
  const link = document.createElement("a");
  link.href = address;
  link.textContent = document.body.dataset.logIn;
  const words = document.createElement("div");
  words.append(`${document.body.dataset.loggedOut} `, link);
  notice.append(words); // after its container is in the page, so that screen readers read it out
}

async function refresh() {
  if (!waiting && !over && !document.hidden && navigator.onLine) await ask();
}

async function ask() {
  const asked = address;
  waiting = new AbortController();
  try {
    const headers = { "X-Fragment": "live" };
    if (etag) headers["If-None-Match"] = etag;
    const answer = await fetch(asked, { headers, redirect: "manual", cache: "no-store", signal: waiting.signal });
    if (answer.type === "opaqueredirect") {
      over = true;
      tellLoggedOut();
    } else if (answer.status === 200) {
      const fresh = document.createElement("template");
      fresh.innerHTML = await answer.text();
      etag = answer.headers.get("ETag");
      for (const part of parts) {
        const own = part.dataset.live && fresh.content.querySelector(`[data-live="${part.dataset.live}"]`);
        if (own || !part.dataset.live) update(part, own || fresh.content);
      }
      const title = document.querySelector("[data-live] [data-title]")?.dataset.title;
      if (title) document.title = `${title} · Wakeful`;
      document.dispatchEvent(new CustomEvent("wakeful:fresh"));
    }
    for (const part of parts) part.toggleAttribute("data-stale", answer.status >= 400);
  } catch {
    // The server does not answer: keep what is shown and mark it as old.
    if (asked === address) for (const part of parts) part.setAttribute("data-stale", "");
  } finally {
    waiting = null;
    if (asked !== address && !over) ask();
  }
}

// A filter applies while somebody types: the parts show what it finds, and the address contains it.
function filter(form) {
  const wanted = new URL(form.action);
  wanted.search = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  if (wanted.href === address) return;
  address = wanted.href;
  etag = null;
  history.replaceState(history.state, "", address);
  if (waiting) waiting.abort();
  else ask();
}

if (parts.length) {
  setInterval(refresh, EVERY);
  // The first check of a new monitor takes a moment: refresh sooner, then less and less often.
  let pause = 400;
  const soon = () => {
    if (pause > 5_000 || !document.querySelector("[data-live] [data-soon]")) return;
    refresh();
    setTimeout(soon, pause *= 1.4);
  };
  setTimeout(soon, pause);
  document.addEventListener("visibilitychange", refresh);
  document.addEventListener("wakeful:refresh", refresh);
  let typing;
  for (const form of document.querySelectorAll("form[data-filter]")) {
    form.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(filter, 200, form);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(typing);
      filter(form);
    });
  }
}

// Update "3 minutes ago" while the page is open.
const UNITS = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
const WORDS = new Intl.RelativeTimeFormat(document.documentElement.lang);
function relative(seconds) {
  const distance = Math.abs(seconds);
  if (distance < 5) return seconds < 0 ? document.body.dataset.inAMoment : document.body.dataset.justNow;
  const [size, unit] = UNITS.find(([length]) => distance >= length);
  return WORDS.format(-Math.sign(seconds) * Math.floor(distance / size), unit);
}
setInterval(() => {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    if (Math.abs(seconds) < 30 * 86400) time.textContent = relative(seconds);
  }
}, EVERY);
