// Selects the browser's time zone in the form of a new account and of a login. Without a script, it is
// UTC. Everybody can change it in the profile.
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const field of document.querySelectorAll("[data-own-zone]")) {
  // If the page comes back with a fault, the chosen zone stays.
  if (!own || field.form.querySelector("[aria-invalid]")) continue;
  if (field.tagName === "SELECT") {
    const fits = (option) => option.value === own || option.dataset.was === own;
    const option = [...field.options].find(fits);
    if (option) field.value = option.value;
  } else field.value = own;
}
