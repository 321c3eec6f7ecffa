// The button of a preview says how many monitors it creates.
const form = document.querySelector("[data-import]");
const button = form?.querySelector("[data-count]");

function show() {
  const count = form.querySelectorAll("input[name=pick]:checked").length;
  button.textContent = (count === 1 ? button.dataset.one : button.dataset.many).replace("{}", count);
  button.disabled = count === 0;
}

if (button) {
  form.addEventListener("change", show);
  window.addEventListener("pageshow", show);
  show();
}
