/* Refreshes the widget each minute, in place, so that the focus stays. */
const MILLISECONDS = 60_000;

async function refresh() {
  const answer = await fetch(location.href, { cache: "no-cache" }).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector(".widget");
  const shown = document.querySelector(".widget");
  if (!fresh || fresh.outerHTML === shown.outerHTML) return;
  shown.href = fresh.href;
  shown.replaceChildren(...fresh.childNodes);
}

setInterval(refresh, MILLISECONDS);
