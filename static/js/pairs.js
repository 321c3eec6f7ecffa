// Rows of key and value: add and remove them in place. Without a script, the server does it.
const INDEX = /\[(\d+)\]/;

function renumber(list) {
  list.querySelectorAll("[data-pair]").forEach((row, index) => {
    for (const input of row.querySelectorAll("[data-numbered]")) {
      const { numbered, input: entered = "" } = input.dataset;
      input.setAttribute("aria-label", numbered.replace("{}", index + 1).replace("[]", entered));
    }
  });
}

// "Send test alert to all" needs two rows.
function count(list) {
  const rows = [...list.querySelectorAll("[data-pair]")];
  const all = list.querySelector("[data-try-all]");
  if (all) all.hidden = rows.length < 2;
}

function blank(row) {
  for (const input of row.querySelectorAll("input, select")) input.value = "";
  for (const input of row.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
  for (const fault of row.querySelectorAll(".fault")) fault.remove();
  for (const answer of row.querySelectorAll("[data-answer]")) answer.replaceChildren();
  show(row);
}

function add(list) {
  const rows = [...list.querySelectorAll("[data-pair]")];
  const used = rows.map((row) => Number(INDEX.exec(row.querySelector("[name]").name)[1]));
  const fresh = Math.max(-1, ...used) + 1;
  const row = list.pattern.cloneNode(true);
  for (const element of row.querySelectorAll("[name], [id], [value]")) {
    for (const name of ["name", "id", "value"]) {
      const value = element.getAttribute(name);
      if (value === null) continue;
      if (name === "value" && !element.matches("[data-remove], [data-try]")) continue;
      element.setAttribute(name, name === "id" ? value.replace(/-\d+-/, `-${fresh}-`) : value.replace(INDEX, `[${fresh}]`));
    }
  }
  list.querySelector("[data-add]").parentElement.before(row);
  renumber(list);
  row.querySelector("input, select").focus();
}

function remove(list, row) {
  const next = row.nextElementSibling?.querySelector("input, select, button") ?? list.querySelector("[data-add]");
  if (list.querySelectorAll("[data-pair]").length > 1) row.remove();
  else blank(row);
  renumber(list);
  next.focus();
}

// For the chosen channel, show what to enter, an example, and why the channel cannot work, if so.
function show(row) {
  const value = row.querySelector("[data-any]");
  if (!value) return;
  const [chosen] = row.querySelector("select").selectedOptions;
  value.dataset.input = chosen.dataset.input ?? value.dataset.any;
  value.placeholder = chosen.dataset.hint ?? value.dataset.input;
  const why = document.querySelector(`template[data-lacks="${CSS.escape(chosen.value)}"]`);
  row.querySelector("[data-lacks-note]")?.replaceChildren(...(why ? [why.content.cloneNode(true)] : []));
}

document.addEventListener("change", (event) => {
  const row = event.target.closest("[data-pair]");
  if (!row) return;
  show(row);
  renumber(row.closest("[data-pairs]"));
});

for (const list of document.querySelectorAll("[data-pairs]")) {
  // Kept from the start, so that the last row can be removed and one added again.
  list.pattern = list.querySelector("[data-pair]")?.cloneNode(true);
  if (list.pattern) blank(list.pattern);
  list.addEventListener("input", () => count(list));
  list.addEventListener("click", (event) => {
    const button = event.target.closest("[data-add], [data-remove]");
    if (!button || !list.pattern) return;
    event.preventDefault();
    if (button.matches("[data-add]")) add(list);
    else remove(list, button.closest("[data-pair]"));
    count(list);
  });
}
