// Selecting monitors: select all, count the selected, show only the fields of the chosen action.
const form = document.querySelector("[data-bulk]");
const bar = form?.querySelector("[data-bulk-bar]");

function boxes() { return [...form.querySelectorAll("input[name=ids]")]; }

function show() {
  const ticked = boxes().filter((box) => box.checked).length;
  const count = bar.querySelector("[data-bulk-count]");
  bar.hidden = ticked === 0;
  count.hidden = false;
  count.textContent = document.body.dataset.selected.replace("{}", ticked);
  const all = form.querySelector("[data-tick-all]");
  all.hidden = false;
  all.checked = ticked > 0 && ticked === boxes().length;
  all.indeterminate = ticked > 0 && !all.checked;
  const action = bar.querySelector("#action").value;
  for (const part of bar.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(action);
}

if (bar) {
  form.addEventListener("change", (event) => {
    if (event.target.matches("[data-tick-all]")) {
      for (const box of boxes()) box.checked = event.target.checked;
    }
    show();
  });
  document.addEventListener("wakeful:fresh", show);
  window.addEventListener("pageshow", show);
  show();
}
