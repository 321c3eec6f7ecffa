// Start the next step. Without a script, the person presses the button.
document.querySelector("[data-go-on]").requestSubmit();
