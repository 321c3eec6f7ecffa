// Work in steps goes on by itself; without a script the button does it.
document.querySelector("[data-go-on]").requestSubmit();
