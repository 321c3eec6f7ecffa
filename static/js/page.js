// What every page does with a script; all of it works, plainer, without.

// Faults first: the summary takes focus, so that it is read out and the keyboard starts there. Its
// autofocus does that without a script; where that is only for inputs, this does.
if (!("autofocus" in HTMLElement.prototype)) document.querySelector("[data-focus]")?.focus();

// A link in the summary goes to its field, also when that is folded away.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.(".error-summary a[href^='#']");
  const field = link && document.getElementById(link.hash.slice(1));
  if (!field) return;
  event.preventDefault();
  for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  field.focus();
  field.scrollIntoView({ block: "center" });
});

// A browser scrolls to the caret of a text area alone, and leaves the rest of it behind a bar.
document.addEventListener("focusin", (event) => {
  if (event.target.matches("textarea")) event.target.scrollIntoView({ block: "nearest" });
});

// Copy buttons show where copying is possible.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
    button.lastChild.textContent = "Copied";
  });
}

// A form is sent once, and its button says that it is at work.
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (event.defaultPrevented || event.target.method !== "post" || !button) return;
  if (button.getAttribute("aria-busy") === "true") event.preventDefault();
  button.setAttribute("aria-busy", "true");
});
// Coming back with the browser's button finds it ready again.
window.addEventListener("pageshow", () => {
  for (const busy of document.querySelectorAll("[aria-busy=true]")) busy.removeAttribute("aria-busy");
});

// Selects that filter act at once; without a script the Show button does it.
for (const select of document.querySelectorAll("select[data-submit]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

// Running clocks go on counting.
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
