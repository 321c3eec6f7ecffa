// The monitor's form: the name follows the URL until somebody types one; "Check now" shows its outcome
// in place.
const form = document.querySelector("[data-monitor-form]");
const url = form.querySelector("#url");
const name = form.querySelector("#name");
// A stored monitor has an empty name if its server does not return the name.
const isNew = "suggests" in form.dataset;
let follows = isNew && name.value === "";

// As the server names a monitor without a name: host and path.
function hostOf(text) {
  const address = text.trim().replace(/^(dns:\/*|[a-z][a-z0-9+.-]*:(\/\/|\/?$))/i, "").split(/[?#]/)[0];
  return address.replace(/^\/+|\/+$/g, "").slice(0, 255);
}
name.addEventListener("input", () => { follows = isNew && name.value === ""; });
url.addEventListener("input", () => { if (follows) name.value = hostOf(url.value); });

// Show only the fields that the kind of this URL has (http without a scheme), and fields with an
// error, so that it can be corrected.
const schemes = new Map(form.dataset.schemes.trim().split(" ").map((pair) => pair.split(":")));
function showKind() {
  const kind = schemes.get(url.value.trim().split(":")[0].toLowerCase()) ?? "http";
  for (const part of form.querySelectorAll("[data-kinds]")) {
    const strange = !part.dataset.kinds.split(" ").includes(kind);
    part.hidden = strange && !part.querySelector(".fault");
  }
}
url.addEventListener("input", showKind);
showKind();

// The suggested days of the certificate warning are for https and tls.
const days = form.querySelector("#ssl_alert_days");
const suggested = form.dataset.suggests;
let chosen = !suggested;
days.addEventListener("change", () => { chosen = true; });
function suggestDays() {
  if (!chosen) days.value = /^\s*(?!https:|tls:)[a-z][a-z0-9+.-]*:\/\//i.test(url.value) ? "" : suggested;
}
url.addEventListener("input", suggestDays);
if (days.value === suggested) suggestDays();

function showFaulty() {
  for (const link of outcome.querySelectorAll("a[href^='#']")) {
    const input = document.getElementById(link.hash.slice(1));
    const part = input?.closest("[data-kinds]");
    if (!part?.hidden) continue;
    part.hidden = false;
    input.closest("details").open = true;
  }
}

// Two of the three conditions need a text to look up.
const condition = form.querySelector("#alert_condition");
const lookup = form.querySelector("[data-lookup]");
function showLookup() { lookup.hidden = condition.value === "url_unavailable"; }
condition.addEventListener("change", showLookup);
showLookup();

const check = form.querySelector("[data-check]"); // some servers cannot check
const outcome = document.querySelector("[data-outcome]");
check?.addEventListener("click", async (event) => {
  event.preventDefault();
  if (check.getAttribute("aria-busy") === "true") return;
  check.setAttribute("aria-busy", "true");
  const body = new FormData(form);
  body.set("check", "1");
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(body), headers: { "X-Fragment": "check" }, redirect: "error" });
    if (!answer.headers.get("content-type")?.startsWith("text/html") || answer.status >= 400) throw new Error(answer.statusText);
    outcome.innerHTML = await answer.text();
    showFaulty();
  } catch {
    // Submit without the script: the page then shows the errors and keeps what was typed. A button that
    // is marked busy would not submit.
    check.removeAttribute("aria-busy");
    form.requestSubmit(check);
    return;
  }
  check.removeAttribute("aria-busy");
  outcome.focus({ preventScroll: true });
  outcome.scrollIntoView({ block: "nearest" });
});

// How often it would have alerted because it is slow, with the values that are typed. The sentence is
// taken from the page that a browser without scripts would show.
const slowAlerts = form.querySelector("[data-slow-alerts]");
async function countSlowAlerts() {
  const body = new FormData(form);
  body.set("slow_alerts", "slow_alert_after");
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(body), redirect: "error" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    slowAlerts.textContent = page.querySelector("[data-slow-alerts]").textContent;
  } catch {
    slowAlerts.textContent = "";
  }
}
form.querySelector("[data-count-slow-alerts]")?.addEventListener("click", (event) => { event.preventDefault(); countSlowAlerts(); });
// The sentence is not about changed values.
for (const name of slowAlerts ? ["slow_after", "slow_alert_after"] : []) {
  form.querySelector(`#${name}`).addEventListener("input", () => { slowAlerts.textContent = ""; });
}

// Show the faults and the answers of each row, and those of the whole list, from the fresh page.
function takeOver(list, fresh) {
  for (const row of fresh.querySelectorAll("[data-pair]")) {
    for (const input of row.querySelectorAll("input, select")) {
      const ours = document.getElementById(input.id);
      if (!ours) continue;
      ours.parentElement.querySelector(".fault")?.remove();
      for (const name of ["aria-invalid", "aria-describedby"]) {
        if (input.hasAttribute(name)) ours.setAttribute(name, input.getAttribute(name));
        else ours.removeAttribute(name);
      }
      const fault = input.parentElement.querySelector(".fault");
      if (fault) ours.after(fault);
    }
    const answer = row.querySelector("[data-answer]");
    if (answer?.childElementCount) document.getElementById(answer.id)?.replaceChildren(...answer.children);
  }
  list.querySelector(":scope > .fault")?.remove();
  const fault = fresh.querySelector(":scope > .fault");
  if (fault) list.querySelector("[data-pair]").before(fault);
}

// "Send test alert" shows the service's answer in its row and keeps what was typed. The answer is taken
// from the page that a browser without scripts would show.
form.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-try]");
  if (!button) return;
  event.preventDefault();
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  const body = new FormData(form);
  body.set("try", button.value);
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(body), redirect: "error" });
    // 422: a row is wrong, and the others were sent. Submitting again would send them twice.
    if (!answer.ok && answer.status !== 422) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const list = button.closest("[data-pairs]");
    const fresh = page.getElementById(list.id);
    if (!fresh) throw new Error("the answer is another page");
    takeOver(list, fresh);
  } catch {
    // Submit without the script: the page then shows the errors and keeps what was typed.
    button.removeAttribute("aria-busy");
    button.removeAttribute("formaction"); // scroll to the errors at the top, not to the row
    form.requestSubmit(button);
    return;
  }
  button.removeAttribute("aria-busy");
});
