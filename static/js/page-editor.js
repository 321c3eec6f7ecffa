// The editor of a status page: lines are moved and removed in place, the server adds lines, and the
// preview follows the input. Without a script, the buttons of the form do the same.
const form = document.querySelector("[data-page-editor]");
const lineArea = form.querySelector("[data-lines]");
const preview = document.querySelector("[data-preview]");
const frame = preview.querySelector("[data-frame]");
const PAUSE = 350; // ms without typing, until the preview is asked for

// --- the preview

let asked = 0;
let timer;
async function askPreview() {
  clearTimeout(timer);
  const mine = ++asked;
  try {
    const answer = await fetch(form.dataset.previewAt, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "error" });
    const text = await answer.text();
    // A late answer to an older request is dropped.
    if (mine === asked && answer.ok) show(text);
    if (mine === asked) preview.toggleAttribute("data-stale", !answer.ok);
  } catch {
    if (mine === asked) preview.setAttribute("data-stale", "");
  }
}
// Replace the content of the frame: a frame that loads again flickers.
function show(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const shown = frame.contentDocument;
  if (!shown?.querySelector("main")) {
    frame.srcdoc = text;
    return;
  }
  shown.documentElement.dataset.theme = fresh.documentElement.dataset.theme ?? "system";
  shown.querySelector("[data-colours]")?.remove();
  shown.head.append(...fresh.querySelectorAll("[data-colours]"));
  shown.body.replaceChildren(...fresh.body.childNodes);
  fit();
}
function fit() {
  const shown = frame.contentDocument;
  if (!shown?.querySelector("main")) return; // it has not loaded yet
  shown.documentElement.style.scrollbarGutter = "auto"; // no bar needs room where all is visible
  frame.style.height = `${shown.body.offsetHeight + 2}px`;
}
frame.addEventListener("load", fit);
window.addEventListener("resize", fit);
fit();
frame.tabIndex = -1; // nothing in it is left to scroll
function soon() {
  clearTimeout(timer);
  timer = setTimeout(askPreview, PAUSE);
}
form.addEventListener("input", (event) => {
  if (!event.target.matches("[data-enter], [name=pick]")) soon();
});
form.querySelector("[data-refresh]").hidden = true; // the preview is refreshed without the button

// --- lines

const list = () => lineArea.querySelector("[data-list]");
const lines = () => [...list().children];
const isHeading = (line) => line.matches(".heading");
function announce(text) {
  lineArea.querySelector("[data-answer]").textContent = text;
}
// The form has the sentences; {name} and the like in them stand for values.
const sentence = (name, values) => form.dataset[name].replace(/\{(\w+)\}/g, (_whole, key) => values[key]);
const nameOf = (line) => (isHeading(line) ? line.querySelector("input:not([type=hidden])").value : line.querySelector("label").textContent);

// The lines in blocks that move together: each line alone, or groups with their headings if a heading
// is moved and there is another group to pass.
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
  const index = all.findIndex(([first]) => first === line);
  const other = all[index + step];
  if (!other) return announce(sentence(step < 0 ? "atTop" : "atBottom", { name: nameOf(line) }));
  if (step < 0) other[0].before(...all[index]);
  else other.at(-1).after(...all[index]);
  announce(sentence("moved", { name: nameOf(line), position: lines().indexOf(line) + 1, count: lines().length }));
  soon();
}

function remove(line) {
  const near = line.nextElementSibling ?? line.previousElementSibling;
  announce(sentence("removed", { name: nameOf(line) }));
  line.remove();
  (near?.querySelector("[data-act=remove]") ?? lineArea.querySelector("#find")).focus();
  soon();
}

// Send the form for a button that adds lines, and show the lines of the answer.
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
    // Submit without the script: the page then shows the fault and keeps what was typed.
    button.removeAttribute("aria-busy");
    form.requestSubmit(button);
    return;
  }
  const next = fresh.content.querySelector("[autofocus]");
  next?.removeAttribute("autofocus"); // it is for a page that is loaded
  lineArea.replaceChildren(fresh.content);
  ready();
  next?.focus();
  soon();
}

lineArea.addEventListener("click", (event) => {
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

// The Return key in a field that adds lines presses the button beside it; in other fields, it saves.
form.querySelector("[value=enter]").value = "";
lineArea.addEventListener("keydown", (event) => {
  const field = event.target.closest("[data-enter]");
  if (event.key !== "Enter" || !field) return;
  event.preventDefault();
  ask(lineArea.querySelector(`[data-act="${field.dataset.enter}"]`));
});

// --- dragging a line by its handle

let dragged = null;
let pointer = 0; // px from the top of the window
const EDGE = 100; // px at the top and the bottom of the window, where a dragged line scrolls the page
lineArea.addEventListener("pointerdown", (event) => {
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
  for (const part of lineArea.querySelectorAll("[data-handle], [data-drag-hint]")) part.hidden = false;
}
ready();

// --- the password belongs to one of the choices

const visibility = form.querySelector("#visibility");
const password = form.querySelector("[data-password]");
function showPassword() { password.hidden = visibility.value !== "password" && !password.querySelector(".fault"); }
visibility.addEventListener("change", showPassword);
showPassword();
