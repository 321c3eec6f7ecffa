// A line over the response-time chart shows the values at the pointer, or moves by arrow keys. A part
// that is selected by dragging opens in full width, at another address. Without a script, each part of
// the chart has a title, and a form below it chooses the time.
//
// The chart may be refreshed at any moment (live.js): its elements are looked up each time.
const MIN = 5 * 60; // seconds: nothing is measured more finely

let at = null; // the bucket that is read
let from = null; // where the selection began
let dragging = false;

document.documentElement.classList.add("reads-charts");

const chart = () => document.querySelector("figure[data-readings]");
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

function parts(figure) {
  return {
    left: Number(figure.dataset.left),
    right: Number(figure.dataset.right),
    readings: JSON.parse(figure.dataset.readings),
    line: figure.querySelector(".cross"),
    chosen: figure.querySelector(".chosen"),
    text: figure.querySelector("[aria-live]"),
    button: figure.querySelector(".reading button"),
  };
}

function selection() {
  return from === null ? [at, at] : [Math.min(from, at), Math.max(from, at)];
}

function hint(figure) {
  if (figure.querySelector(".chart-scroll:focus-visible")) return figure.dataset.hintKeys;
  return matchMedia("(hover: hover)").matches ? figure.dataset.hint : figure.dataset.hintTouch;
}

function words(figure, readings, selected) {
  if (at === null) return figure.dataset.page && !figure.querySelector("text.none") ? hint(figure) : "";
  if (!selected) return readings[at];
  const [first, last] = selected.map((index) => readings[index].split(": ")[0]);
  return figure.dataset.part.replace("{first}", () => first).replace("{last}", () => last);
}

function draw() {
  const figure = chart();
  if (!figure) return;
  const { left, right, readings, line, chosen, text, button } = parts(figure);
  const width = (right - left) / readings.length;
  if (at !== null) at = clamp(at, 0, readings.length - 1);
  const [first, last] = selection();
  const selected = at !== null && first !== last;
  line.setAttribute("visibility", at === null ? "hidden" : "visible");
  chosen.setAttribute("visibility", selected ? "visible" : "hidden");
  if (at !== null) {
    const x = left + (at + 0.5) * width;
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
  }
  if (selected) {
    chosen.setAttribute("x", left + first * width);
    chosen.setAttribute("width", (last - first + 1) * width);
  }
  const sentence = words(figure, readings, selected && [first, last]);
  if (text.textContent !== sentence) text.textContent = sentence;
  text.hidden = !sentence;
  button.hidden = at === null || dragging || !figure.dataset.page || matchMedia("(hover: hover)").matches;
}

function show(start, end) {
  const figure = chart();
  const address = new URL(figure.dataset.page, location.href);
  const stamp = (ms) => new Date(ms).toISOString().replace(/\.\d+/, "");
  address.searchParams.set("from", stamp(start));
  address.searchParams.set("to", stamp(Math.min(end, Math.max(Date.now(), start + MIN * 1000))));
  location.assign(address);
}

// Open the selected part; if that is a single bucket, a quarter of the chart around it.
function zoom() {
  const figure = chart();
  if (!figure?.dataset.page || at === null) return;
  const { readings } = parts(figure);
  let [first, last] = selection();
  if (first === last) {
    const around = Math.ceil(readings.length / 8);
    first = Math.max(0, at - around);
    last = Math.min(readings.length - 1, at + around);
  }
  const seconds = Number(figure.dataset.seconds);
  const missing = Math.max(0, MIN - (last - first + 1) * seconds) / 2;
  const start = Date.parse(figure.dataset.start) + (first * seconds - missing) * 1000;
  show(start, start + ((last - first + 1) * seconds + 2 * missing) * 1000);
}

function clear() {
  at = from = null;
  dragging = false;
  draw();
}

function drawingOf(event) {
  return event.target.closest?.("figure[data-readings] svg");
}

function bucketAt(drawing, event) {
  const { left, right, readings } = parts(chart());
  const box = drawing.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * drawing.viewBox.baseVal.width;
  return clamp(Math.floor(((x - left) / (right - left)) * readings.length), 0, readings.length - 1);
}

document.addEventListener("pointerdown", (event) => {
  const drawing = drawingOf(event);
  if (!drawing || event.button !== 0) return;
  at = from = bucketAt(drawing, event);
  if (event.pointerType === "touch") from = null; // a finger scrolls; the button zooms
  else if (chart().dataset.page) {
    dragging = true;
    drawing.setPointerCapture(event.pointerId);
    event.preventDefault(); // no text is selected
  }
  draw();
});
document.addEventListener("pointermove", (event) => {
  const drawing = drawingOf(event);
  if (drawing) {
    at = bucketAt(drawing, event);
    if (!dragging && event.pointerType !== "touch") from = null;
    draw();
  } else if (at !== null && event.pointerType === "mouse" && !chart()?.contains(document.activeElement)) {
    clear();
  }
});
document.addEventListener("pointerup", (event) => {
  if (!dragging) return;
  dragging = false;
  const [first, last] = selection();
  if (drawingOf(event) && first !== last) zoom();
  else from = null;
  draw();
});
document.addEventListener("pointercancel", () => {
  if (dragging) clear();
});
document.addEventListener("click", (event) => {
  if (event.target.closest?.("figure[data-readings] .reading button")) zoom();
});

const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
document.addEventListener("keydown", (event) => {
  if (!event.target.matches?.("figure[data-readings] .chart-scroll")) return;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const last = parts(chart()).readings.length - 1;
  if (event.key in STEPS) {
    if (!event.shiftKey) from = null;
    else if (from === null) from = at ?? last;
    at = at === null && STEPS[event.key] < 0 && !event.shiftKey ? last : clamp((at ?? last) + STEPS[event.key], 0, last);
  } else if (event.key === "Enter") zoom();
  else if (event.key === "-") document.querySelector("[data-wider]")?.click();
  else if (event.key === "Escape" && at !== null) clear();
  else return;
  event.preventDefault();
  draw();
  chart().querySelector(".cross").scrollIntoView({ block: "nearest", inline: "nearest" });
});
document.addEventListener("focusin", (event) => {
  if (event.target.matches?.("figure[data-readings] .chart-scroll")) draw();
});
document.addEventListener("focusout", (event) => {
  if (event.target.matches?.("figure[data-readings] .chart-scroll") && !dragging && !chart()?.contains(event.relatedTarget)) clear();
});
document.addEventListener("wakeful:fresh", draw);
draw();
