// The buttons of a preview say how many monitors they create.
const form = document.querySelector("[data-import]");
const buttons = [...(form?.querySelectorAll("[data-count]") ?? [])];

function show() {
  const count = form.querySelectorAll("input[name=pick]:checked").length;
  for (const button of buttons) {
    button.textContent = (count === 1 ? button.dataset.one : button.dataset.many).replace("{}", count);
    button.disabled = count === 0;
  }
}

if (buttons.length) {
  form.addEventListener("change", show);
  window.addEventListener("pageshow", show);
  show();
}
