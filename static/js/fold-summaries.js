// Show the values of folded fields in their summaries while people type, as the server does when the
// page is loaded (app/web/shown/form_summaries.py).
const summaries = document.querySelectorAll("[data-parts]");

function valueOf(form, name) {
  const rows = form.querySelector(`[data-pairs="${name}"]`);
  if (rows) {
    const filled = [...rows.querySelectorAll("[data-pair]")].filter((row) => [...row.querySelectorAll("input, select")].some((input) => input.value.trim()));
    return String(filled.length);
  }
  const inputs = [...form.querySelectorAll(`[name="${name}"]`)];
  if (!inputs.length || inputs[0].closest("[data-kinds][hidden], [data-lookup][hidden]")) return null;
  const [first] = inputs;
  const boxes = inputs.filter((input) => input.type === "checkbox");
  if (boxes.length) {
    const ticked = boxes.filter((box) => box.checked).map((box) => box.value);
    return ticked.join(", ");
  }
  if (first.tagName === "SELECT" && first.value === "keep") return null; // left as it is
  if (first.tagName === "SELECT") return first.selectedOptions[0]?.text ?? "";
  return first.type === "datetime-local" ? first.value.replace("T", " ") : first.value;
}

function partOf(form, { field, text, many, none }) {
  const value = valueOf(form, field);
  if (value === null) return "";
  if (value === "" || value === "0") return none;
  return (many && value !== "1" ? many : text).replace("{}", () => value);
}

function show() {
  for (const summary of summaries) {
    const form = summary.closest("form");
    const parts = JSON.parse(summary.dataset.parts).map((part) => partOf(form, part)).filter(Boolean);
    summary.textContent = parts.join(", ") || summary.dataset.empty;
  }
}

show(); // other scripts may have filled fields in
for (const type of ["input", "change", "click"]) {
  // After the scripts that show, hide, add and remove fields.
  document.addEventListener(type, () => setTimeout(show));
}
