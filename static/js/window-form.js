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
show();
