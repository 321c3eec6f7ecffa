// Show the button that prints. Without a script, people print from the menu of the browser.
const button = document.querySelector("[data-print]");
button.hidden = false;
button.addEventListener("click", () => window.print());
