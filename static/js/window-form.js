// The form of a maintenance window: hide the fields that the choice does not need.
const form = document.querySelector("[data-window-form]");
const often = form.querySelector("#often");
const parts = { cron: form.querySelector("[data-cron]"), until: form.querySelector("[data-until]"), choices: form.querySelector("[data-choices]") };

function show() {
  parts.cron.hidden = often.value !== "cron";
  parts.until.hidden = often.value === "none";
  parts.choices.hidden = form.querySelector("#scope-all").checked;
}
form.addEventListener("change", show);

// Search the listed monitors while somebody types; the button searches all monitors on the server.
const rows = [...parts.choices.querySelectorAll(".choices .check")];
const chosen = parts.choices.querySelector("[data-chosen]");
function find(text) {
  for (const row of rows) {
    row.hidden = !row.querySelector("input").checked && !row.textContent.toLowerCase().includes(text.trim().toLowerCase());
  }
}
parts.choices.querySelector("[data-filter]").addEventListener("input", (event) => find(event.target.value));
parts.choices.querySelector("[data-filter]").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  parts.choices.querySelector("button[name=find]").click();
});
parts.choices.addEventListener("change", () => {
  const count = rows.filter((row) => row.querySelector("input").checked).length;
  chosen.textContent = document.body.dataset.selected.replace("{}", count);
});
show();
