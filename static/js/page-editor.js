// The editor of a status page: lines move and go in place, the server adds what it finds, and the
// preview follows what is typed. All of it works by the form's own buttons too.
const form = document.querySelector("[data-page-editor]");
const place = form.querySelector("[data-lines]");
const preview = document.querySelector("[data-preview]");
const frame = preview.querySelector("[data-frame]");
const PAUSE = 350; // ms without typing, until the preview is asked for

// --- the preview

let asked = 0;
let timer;
async function look() {
  clearTimeout(timer);
  const mine = ++asked;
  try {
    const answer = await fetch(form.dataset.previewAt, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "error" });
    const text = await answer.text();
    // An older answer that comes late says what is typed no more.
    if (mine === asked && answer.ok) show(text);
    if (mine === asked) preview.toggleAttribute("data-stale", !answer.ok);
  } catch {
    if (mine === asked) preview.setAttribute("data-stale", "");
  }
}
// What is shown is replaced in place: a frame that loads again flickers.
function show(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const there = frame.contentDocument;
  if (!there?.querySelector("main")) {
    frame.srcdoc = text;
    return;
  }
  there.documentElement.dataset.theme = fresh.documentElement.dataset.theme ?? "system";
  there.querySelector("[data-colours]")?.remove();
  there.head.append(...fresh.querySelectorAll("[data-colours]"));
  there.body.replaceChildren(...fresh.body.childNodes);
  fit();
}
function fit() {
  const there = frame.contentDocument;
  if (!there?.querySelector("main")) return; // it has not loaded yet
  there.documentElement.style.scrollbarGutter = "auto"; // no bar needs room where all is visible
  frame.style.height = `${there.body.offsetHeight + 2}px`;
}
frame.addEventListener("load", fit);
window.addEventListener("resize", fit);
fit();
frame.tabIndex = -1; // nothing in it is left to scroll
function soon() {
  clearTimeout(timer);
  timer = setTimeout(look, PAUSE);
}
form.addEventListener("input", (event) => {
  if (!event.target.matches("[data-enter], [name=pick]")) soon();
});
form.querySelector("[data-refresh]").hidden = true; // it follows by itself

// --- lines

const list = () => place.querySelector("[data-list]");
const lines = () => [...list().children];
const isHeading = (line) => line.matches(".heading");
function tell(text) {
  place.querySelector("[data-answer]").textContent = text;
}
// The form has the sentences; {name} and the like in them stand for values.
const sentence = (name, values) => form.dataset[name].replace(/\{(\w+)\}/g, (_whole, key) => values[key]);
const nameOf = (line) => (isHeading(line) ? line.querySelector("input:not([type=hidden])").value : line.querySelector("label").textContent);

// What moves together: a line alone, a heading with its whole group where there is one to pass.
function blocks(line, step) {
  const headings = lines().filter(isHeading);
  const alone = headings[0] === line && (step < 0 || headings.length === 1);
  if (!isHeading(line) || alone) return lines().map((item) => [item]);
  const groups = [];
  for (const item of lines()) {
    if (isHeading(item)) groups.push([item]);
    else groups.at(-1)?.push(item);
  }
  return groups;
}

function move(line, step) {
  const all = blocks(line, step);
  const here = all.findIndex(([first]) => first === line);
  const other = all[here + step];
  if (!other) return tell(sentence(step < 0 ? "atTop" : "atBottom", { name: nameOf(line) }));
  if (step < 0) other[0].before(...all[here]);
  else other.at(-1).after(...all[here]);
  tell(sentence("moved", { name: nameOf(line), position: lines().indexOf(line) + 1, count: lines().length }));
  soon();
}

function remove(line) {
  const near = line.nextElementSibling ?? line.previousElementSibling;
  tell(sentence("removed", { name: nameOf(line) }));
  line.remove();
  (near?.querySelector("[data-act=remove]") ?? place.querySelector("#find")).focus();
  soon();
}

// What needs the server: it sends the lines and the fields for adding as they then are.
async function ask(button) {
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  const body = new URLSearchParams(new FormData(form));
  body.set("do", button.value);
  const fresh = document.createElement("template");
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { "X-Fragment": "lines" }, redirect: "error" });
    if (!answer.ok) throw new Error(answer.statusText);
    fresh.innerHTML = await answer.text();
  } catch {
    // The plain way shows what is the matter, with everything typed kept.
    button.removeAttribute("aria-busy");
    form.requestSubmit(button);
    return;
  }
  const next = fresh.content.querySelector("[autofocus]");
  next?.removeAttribute("autofocus"); // that is for a page that opens
  place.replaceChildren(fresh.content);
  ready();
  next?.focus();
  soon();
}

place.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (!button) return;
  event.preventDefault();
  const line = button.closest("[data-line]");
  const act = button.dataset.act;
  if (act === "remove") remove(line);
  else if (line) {
    move(line, act === "up" ? -1 : 1);
    button.focus(); // it has moved with its line
  } else ask(button);
});

// The Return key in a field for adding presses the button beside it, and saves in all others.
form.querySelector("[value=enter]").value = "";
place.addEventListener("keydown", (event) => {
  const field = event.target.closest("[data-enter]");
  if (event.key !== "Enter" || !field) return;
  event.preventDefault();
  ask(place.querySelector(`[data-act="${field.dataset.enter}"]`));
});

// --- by hand: a mouse or a finger takes a line by its handle

let dragged = null;
let pointer = 0; // how far below the top of the window it is
const EDGE = 100; // px at the top and the bottom of the window, where a dragged line scrolls the page
place.addEventListener("pointerdown", (event) => {
  const handle = event.target.closest("[data-handle]");
  if (!handle || event.button !== 0) return;
  event.preventDefault();
  dragged = handle.closest("[data-line]");
  dragged.setAttribute("data-moving", "");
  pointer = event.clientY;
  requestAnimationFrame(scroll);
});
// On the window: a line that moves in the document loses the pointer, which may also leave the list.
window.addEventListener("pointermove", (event) => {
  pointer = event.clientY;
  follow();
});
function scroll() {
  if (!dragged) return;
  const step = pointer < EDGE ? -8 : pointer > window.innerHeight - EDGE ? 8 : 0;
  const before = window.scrollY;
  if (step) window.scrollBy({ top: step, behavior: "instant" });
  if (window.scrollY !== before) follow();
  requestAnimationFrame(scroll);
}
function follow() {
  if (!dragged) return;
  const middle = (block) => (block[0].getBoundingClientRect().top + block.at(-1).getBoundingClientRect().bottom) / 2;
  for (const step of [-1, 1]) {
    const all = blocks(dragged, step);
    const other = all[all.findIndex(([first]) => first === dragged) + step];
    if (other && (step < 0 ? pointer < middle(other) : pointer > middle(other))) return move(dragged, step);
  }
}
function drop() {
  dragged?.removeAttribute("data-moving");
  dragged = null;
}
window.addEventListener("pointerup", drop);
window.addEventListener("pointercancel", drop);

function ready() {
  for (const part of place.querySelectorAll("[data-handle], [data-drag-hint]")) part.hidden = false;
}
ready();

// --- the password belongs to one of the choices

const visibility = form.querySelector("#visibility");
const password = form.querySelector("[data-password]");
function showPassword() { password.hidden = visibility.value !== "password" && !password.querySelector(".fault"); }
visibility.addEventListener("change", showPassword);
showPassword();
