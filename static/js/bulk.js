// Selecting monitors: select all, count the selected ones, show only the fields of the chosen action.
// Elements are looked up each time, because a search replaces the list.
function boxes(form) { return [...form.querySelectorAll("input[name=ids]")]; }

function show() {
  const form = document.querySelector("[data-bulk]");
  const bar = form?.querySelector("[data-bulk-bar]");
  if (!bar) return;
  const ticked = boxes(form).filter((box) => box.checked).length;
  const count = bar.querySelector("[data-bulk-count]");
  bar.hidden = ticked === 0;
  count.hidden = false;
  const everything = bar.querySelector("#everything");
  count.textContent = everything?.checked ? everything.nextElementSibling.textContent : document.body.dataset.selected.replace("{}", ticked);
  const all = form.querySelector("[data-tick-all]");
  all.hidden = false;
  all.checked = ticked > 0 && ticked === boxes(form).length;
  all.indeterminate = ticked > 0 && !all.checked;
  const action = bar.querySelector("#action").value;
  for (const part of bar.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(action);
}

document.addEventListener("change", (event) => {
  const form = event.target.closest("[data-bulk]");
  if (!form) return;
  if (event.target.matches("[data-tick-all]")) {
    for (const box of boxes(form)) box.checked = event.target.checked;
  }
  show();
});
document.addEventListener("wakeful:fresh", show);
window.addEventListener("pageshow", show);
show();
