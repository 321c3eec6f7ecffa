// Status pages with a script show times in the reader's zone, and the day under the pointer or chosen
// by arrow keys. They work without it.

// The page has the language of its own texts, its body the language of Wakeful's sentences.
const lang = document.body.lang || document.documentElement.lang;
const language = lang === "en" ? "en-GB" : lang;
const exact = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
const clock = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const hour = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit" });
const dayName = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

// The page has the sentences; {time} and the like in them stand for values.
const sentence = (name, values) => document.body.dataset[name].replace(/\{(\w+)\}/g, (_whole, key) => values[key]);

const dayOf = (moment) => moment.toDateString();

function tell(root) {
  const today = dayOf(new Date());
  for (const time of root.querySelectorAll("time[data-at], time[data-clock], time[data-since]")) {
    const moment = new Date(time.dateTime);
    const ofToday = "since" in time.dataset && dayOf(moment) === today;
    time.textContent = ("at" in time.dataset ? exact : ofToday ? hour : clock).format(moment);
  }
  for (const range of root.querySelectorAll("[data-range]")) {
    range.textContent = exact.formatRange(...[...range.children].map((time) => new Date(time.dateTime)));
  }
}

// The zone of the times, and the time of the page, which may stay open for days, or be printed.
function date() {
  const zone = document.querySelector(".zone");
  if (!zone) return;
  const own = exact.resolvedOptions().timeZone;
  const days = zone.dataset.zone;
  const zones = sentence(own === days ? "zones" : "zonesAndDays", { zone: own, days });
  // If the page is stale, its notice has the time.
  const old = document.querySelector("main > .notice");
  zone.textContent = old ? zones : `${sentence("asOf", { time: clock.format(new Date()) })} ${zones}`;
}

const DAY = 86_400_000;

function span(seconds) {
  const units = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
  const parts = [];
  for (const [size, unit] of units) {
    const count = Math.floor(seconds / size);
    seconds -= count * size;
    if (count) parts.push(`${count} ${unit}`);
    else if (parts.length) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

// ``0-56,60,61:99.1:780``: indices of days, with the percentage and the seconds down, in maintenance
// and unknown (app/pages/bars.py).
function read(text) {
  const days = new Map();
  for (const part of text ? text.split(",") : []) {
    const [index, ...figures] = part.split(":");
    const [first, last] = index.split("-").map(Number);
    for (let at = first; at <= (last ?? first); at += 1) days.set(at, figures);
  }
  return days;
}

function words(figures) {
  if (!figures) return sentence("up", { percent: 100 });
  const [percent, down, maintenance, unknown] = figures;
  const parts = [sentence(percent ? "up" : "noData", { percent })];
  if (down) parts.push(sentence("down", { time: span(down) }));
  if (maintenance) parts.push(sentence("maintenance", { time: span(maintenance) }));
  if (unknown) parts.push(sentence("unknown", { time: span(unknown) }));
  return parts.join(", ");
}

class Days {
  constructor(link) {
    this.link = link;
    const range = link.closest("[data-first]").dataset;
    this.count = Number(range.count);
    this.first = Date.parse(`${range.first}T00:00:00Z`);
    this.days = read(link.dataset.days);
    this.index = this.count - 1;
    this.whole = link.getAttribute("href");
    this.tip = document.createElement("span");
    this.tip.className = "tip";
    this.tip.hidden = true;
    this.tip.setAttribute("role", "status");
    this.mark = document.createElement("span");
    this.mark.className = "mark";
    this.mark.hidden = true;
    const frame = document.createElement("div");
    frame.className = "frame";
    link.before(frame);
    frame.append(link, this.mark, this.tip);
    link.addEventListener("keydown", (event) => this.key(event));
    link.addEventListener("pointermove", (event) => this.show(this.under(event)));
    link.addEventListener("pointerdown", (event) => this.show(this.under(event)));
    link.addEventListener("pointerleave", () => document.activeElement === link || this.hide());
    link.addEventListener("blur", () => this.hide());
  }

  under(event) {
    const box = this.link.getBoundingClientRect();
    const index = Math.floor(((event.clientX - box.left) / box.width) * this.count);
    return Math.min(this.count - 1, Math.max(0, index));
  }

  key(event) {
    const shown = !this.tip.hidden;
    const to = { ArrowLeft: shown ? this.index - 1 : this.index, ArrowRight: shown ? this.index + 1 : this.index, Home: 0, End: this.count - 1 }[event.key];
    if (event.key === "Escape") this.hide();
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.show(Math.min(this.count - 1, Math.max(0, to)));
  }

  show(index) {
    const day = new Date(this.first + index * DAY);
    const iso = day.toISOString().slice(0, 10);
    this.index = index;
    this.tip.textContent = `${dayName.format(day)}: ${words(this.days.get(index))}`;
    const path = this.whole.split("#")[0];
    this.link.href = `${path}${path ? `?month=${iso.slice(0, 7)}` : ""}#day-${iso}`;
    const left = ((index + 0.5) / this.count) * 100;
    this.mark.hidden = this.tip.hidden = false;
    this.mark.style.left = `${left}%`;
    const room = this.link.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(room, (left / 100) * this.link.clientWidth - this.tip.offsetWidth / 2))}px`;
  }

  hide() {
    this.mark.hidden = this.tip.hidden = true;
    this.link.setAttribute("href", this.whole);
  }
}

function dress(root) {
  tell(root);
  for (const link of root.querySelectorAll("a.days")) new Days(link);
}

// Refresh the page in place each minute, unless the focus is in it.
const MINUTE = 60_000;
const main = document.querySelector("main[data-fresh]");

// Sections that the reader has folded or unfolded stay as they are.
const chosen = new Map();
main?.addEventListener("click", (event) => {
  const details = event.target.closest("summary")?.parentElement;
  if (details) chosen.set(details.id, !details.open);
});

async function refresh() {
  if (document.hidden || main.contains(document.activeElement)) return;
  const answer = await fetch(location.href, { cache: "no-cache" }).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector("main[data-fresh]");
  if (!fresh) return;
  if (fresh.innerHTML !== main.original) {
    main.original = fresh.innerHTML;
    document.title = page.title;
    main.replaceChildren(...fresh.childNodes);
    for (const [id, open] of chosen) document.getElementById(id)?.toggleAttribute("open", open);
    dress(main);
  }
  date();
}

if (main) {
  main.original = main.innerHTML;
  setInterval(refresh, MINUTE);
  document.addEventListener("visibilitychange", refresh);
}
dress(document);
date();
