// Printing needs a script; without one, the browser's own menu does it.
const button = document.querySelector("[data-print]");
button.hidden = false;
button.addEventListener("click", () => window.print());
