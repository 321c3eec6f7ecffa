// The time of day on the wall, in the person's zone.
const clock = document.querySelector("[data-wall-clock]");
const format = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: clock.dataset.zone });
setInterval(() => { clock.textContent = format.format(new Date()); }, 1000);
