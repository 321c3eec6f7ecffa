// Offers the browser's time zone where an account is made or first used. Without a script it is UTC,
// and everybody can change it in the profile.
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const field of document.querySelectorAll("[data-own-zone]")) {
  // What was chosen stays when the page comes back with a fault.
  if (!own || field.form.querySelector("[aria-invalid]")) continue;
  if (field.tagName === "SELECT") {
    const fits = (option) => option.value === own || option.dataset.was === own;
    const option = [...field.options].find(fits);
    if (option) field.value = option.value;
  } else field.value = own;
}
