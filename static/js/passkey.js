// Passkeys. For a form with data-passkey ("create" or "get"), the script requests options from the
// server, lets the browser sign them, and sends the form with the signed answer. Without options, the
// form is sent without an answer: the page that comes back says why.
const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

// Browsers have functions for this, and for the opposite direction, only since 2025.
function readable(options) {
  const decoded = (list) => (list ?? []).map((item) => ({ ...item, id: bytes(item.id) }));
  const result = { ...options, challenge: bytes(options.challenge) };
  if (options.user) result.user = { ...options.user, id: bytes(options.user.id) };
  if (options.excludeCredentials) result.excludeCredentials = decoded(options.excludeCredentials);
  if (options.allowCredentials) result.allowCredentials = decoded(options.allowCredentials);
  return result;
}

function written(credential) {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = text(credential.response[name]);
  }
  return JSON.stringify({ id: credential.id, rawId: text(credential.rawId), type: credential.type, response, clientExtensionResults: {} });
}

async function sign(form) {
  const answer = await fetch(form.dataset.options, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  if (!answer.ok || answer.redirected) return "";
  const publicKey = readable(await answer.json());
  return written(await navigator.credentials[form.dataset.passkey]({ publicKey }));
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  const note = form.querySelector("[data-note]");
  const say = (sentence) => { note.textContent = sentence; note.hidden = false; };
  if (!window.PublicKeyCredential) {
    say(form.dataset.unsupported);
    continue;
  }
  for (const hidden of form.querySelectorAll("[data-with-script]")) hidden.hidden = false;
  form.addEventListener("submit", async (event) => {
    if (form.elements.credential.value) return;
    event.preventDefault();
    note.hidden = true;
    if (form.matches("[aria-busy]")) return;
    form.setAttribute("aria-busy", "true");
    try {
      form.elements.credential.value = await sign(form);
      form.submit();
    } catch {
      say(form.dataset.failed);
      form.removeAttribute("aria-busy");
    }
  });
}
