// What scripts add to every page. All of it also works without them.

// Focus the summary of errors, so that it is read out and the keyboard starts there. This is for
// browsers in which autofocus works on inputs only.
if (!("autofocus" in HTMLElement.prototype)) document.querySelector("[data-focus]")?.focus();

// On a phone the tabs scroll sideways, and the chosen one may be out of sight.
document.querySelector(".one-line [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

// A link in the summary goes to its field and opens the fold that the field is in.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.(".error-summary a[href^='#']");
  const field = link && document.getElementById(link.hash.slice(1));
  if (!field) return;
  event.preventDefault();
  for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  field.focus();
  field.scrollIntoView({ block: "center" });
});

// A browser scrolls only to the caret of a text area; the sticky bar would cover the rest.
document.addEventListener("focusin", (event) => {
  if (event.target.matches("textarea")) event.target.scrollIntoView({ block: "nearest" });
});

// A link that replaces the content of a form asks first if something was typed.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-replaces]");
  if (!link) return;
  const fields = [...document.querySelector(link.dataset.replaces).elements];
  const typed = fields.some((field) => (field.type === "checkbox" ? field.checked !== field.defaultChecked
    : "defaultValue" in field && field.value !== field.defaultValue));
  if (typed && !confirm(document.body.dataset.asksToReplace)) event.preventDefault();
});

// Copy buttons show where copying is possible.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
    button.lastChild.textContent = document.body.dataset.copied;
  });
}

// Send a form only once; its button shows that it is busy.
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (event.defaultPrevented || event.target.method !== "post" || !button) return;
  if (button.getAttribute("aria-busy") === "true") event.preventDefault();
  button.setAttribute("aria-busy", "true");
});
// After the browser's Back button, the form is ready again.
window.addEventListener("pageshow", () => {
  for (const busy of document.querySelectorAll("[aria-busy=true]")) busy.removeAttribute("aria-busy");
});

// Filters apply as soon as they change; without a script, the Show button applies them.
for (const select of document.querySelectorAll("select[data-submit]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

// Update the running durations.
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
function span(seconds) {
  const parts = [];
  let left = Math.max(0, Math.floor(seconds));
  for (const [size, unit] of UNITS) {
    const count = Math.floor(left / size);
    left %= size;
    if (count || (size === 1 && !parts.length)) parts.push(`${count} ${unit}`);
    else if (parts.length) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}
function tick() {
  for (const clock of document.querySelectorAll("[data-since]")) {
    clock.textContent = span((Date.now() - Date.parse(clock.dataset.since)) / 1000);
  }
}
setInterval(tick, 1000);

// The browser asks before a person leaves a form that was changed, but not for filters, searches and
// ticks in lists. If the page is the answer to a form that was not saved, the form counts as changed.
const forms = [...document.querySelectorAll(".frame form[method=post]:not([data-bulk])")];
const before = new Map();
let sent = null;
function entries(form) {
  const searches = [...form.querySelectorAll("input[type=search]")].map((input) => input.name);
  return [...new FormData(form)].map(([name, value]) => [name, value.name ?? value])
    .filter(([name, value]) => value !== "" && !searches.includes(name)).map(([name, value]) => `${name}=${value}`).sort().join("\n");
}
function isChanged(form) {
  if (form === sent || !form.isConnected || !before.has(form)) return false;
  const unsaved = "answers" in document.body.dataset && form.querySelector("input[name=once], input[name=shown]") && !form.matches("[data-import]");
  return unsaved || before.get(form) !== entries(form);
}
window.addEventListener("load", () => { for (const form of forms) before.set(form, entries(form)); });
window.addEventListener("pageshow", () => { sent = null; });
document.addEventListener("submit", (event) => { if (!event.defaultPrevented) sent = event.target; });
window.addEventListener("beforeunload", (event) => { if (forms.some(isChanged)) event.preventDefault(); });

// Fields for tags: the list completes the tag behind the last comma, and a line says how many monitors
// the tags reach.
document.addEventListener("input", (event) => {
  const input = event.target;
  if (!input.matches("[data-tags]")) return;
  const typed = input.name === "tags" ? input.value.slice(0, input.value.lastIndexOf(",") + 1) : "";
  for (const option of input.list?.options ?? []) {
    option.dataset.tag ??= option.value;
    option.value = typed ? `${typed} ${option.dataset.tag}` : option.dataset.tag;
  }
});
let reachSoon;
let reachAsked = 0;
async function reach(form, line) {
  const chosen = new FormData(form);
  const tags = [...chosen.getAll("tags"), ...chosen.getAll("tag")];
  const parameters = new URLSearchParams([...tags.map((tag) => ["tags", tag]), ...chosen.getAll("monitors").map((id) => ["monitors", id])]);
  const mine = ++reachAsked;
  const answer = await fetch(`${line.dataset.reach}?${parameters}`, { redirect: "error" }).catch(() => null);
  if (mine === reachAsked && answer?.ok) line.textContent = await answer.text();
}
for (const line of document.querySelectorAll("[data-reach]")) {
  const form = line.closest("form");
  form.addEventListener("input", (event) => {
    if (!event.target.matches("[data-tags], [name=monitors]")) return;
    clearTimeout(reachSoon);
    reachSoon = setTimeout(reach, 300, form, line);
  });
}
