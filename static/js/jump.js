// Ctrl-K opens a list of pages, monitors and actions; "/" goes to the page's own search.
const dialog = document.getElementById("jump");
const input = dialog?.querySelector("input");
const results = dialog?.querySelector(".places");
const TARGETS = "a, button";
let asked = 0;
let shown = null; // the query whose hits the list shows
let timer;

function say(sentence) {
  const line = document.createElement("li");
  line.className = "soft";
  line.textContent = sentence;
  results.replaceChildren(line);
}

async function search() {
  const mine = ++asked;
  const wanted = input.value;
  try {
    const address = new URL(input.form.action);
    address.searchParams.set("q", wanted);
    const answer = await fetch(address, { headers: { "X-Fragment": "jump" }, redirect: "manual" });
    // A slow answer must not replace a newer one.
    if (mine !== asked) return;
    if (answer.type === "opaqueredirect") { // to the login page
      say(document.body.dataset.loggedOut);
    } else if (answer.ok) {
      results.innerHTML = await answer.text();
      shown = wanted;
    }
  } catch {
    if (mine === asked) say(document.body.dataset.noAnswer);
  }
}

function open() {
  if (dialog.open) return;
  input.value = "";
  dialog.showModal();
  input.focus();
  search();
}

// Enter acts on what was typed, not on an older list that is still shown.
async function go() {
  clearTimeout(timer);
  if (shown !== input.value) await search();
  if (shown === input.value) results.querySelector(TARGETS)?.click();
}

function move(step) {
  const links = [...results.querySelectorAll(TARGETS)];
  const index = links.indexOf(document.activeElement) + step;
  if (index < 0) input.focus();
  else links[Math.min(index, links.length - 1)]?.focus();
}

function typing(target) {
  return target.closest("input, textarea, select, [contenteditable]") !== null;
}

if (dialog) {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    } else if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !typing(event.target)) {
      event.preventDefault();
      const search = document.querySelector("[data-search]");
      if (search) search.select();
      else open();
    }
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-jump]")) {
      event.preventDefault();
      open();
    } else if (event.target === dialog) dialog.close();
  });
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && event.target === input) {
      event.preventDefault();
      go();
    }
  });
}
