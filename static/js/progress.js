// Start the next step by itself; without a script, the person presses the button.
document.querySelector("[data-go-on]").requestSubmit();
