// For tests/support/axe.py: which texts of a page axe must judge.

window.looks = (() => {
  // Beside elements with a background, these paint what a text may stand on.
  const PAINTED = "img, svg, canvas, video";
  const OUTLINE = "h1, h2, h3, h4, h5, h6, main, [role]";
  const FIELDS = "select, textarea, input:not([type=checkbox], [type=radio], [type=file])";
  const LETTER = /[\p{L}\p{N}]/u; // axe takes what has none for a picture
  const CLEAR = "rgba(0, 0, 0, 0)";
  let texts = {}; // elements by their look; under "" those of which the look does not tell all
  let links = []; // that only colours may tell from the text around them
  let before = null; // what the look before showed of this page

  // All rules run, but for those that `judge` runs. Not preloaded: the style sheets, for a rule that
  // is off, and films, of which there are none. Passed rules would be megabytes.
  const run = (what, options) =>
    axe.run(what, { preload: false, resultTypes: ["violations"], ...options });
  const told = ({ violations }) => violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));

  const off = { enabled: false };
  const rules = { "color-contrast": off, "link-in-text-block": off };
  const shown_now = () => [...document.querySelectorAll("body, body *")]
    .filter((at) => at.checkVisibility({ visibilityProperty: true }));

  // After the first look at a page, on another screen: what came, what lost a part, what scrolls.
  async function structure() {
    const shown = new Set(shown_now());
    const come = [...shown].filter((at) => !before?.has(at));
    const gone = [...before ?? []].filter((at) => !shown.has(at));
    const whole = !before || [...come, ...gone].some((at) => at.matches(OUTLINE));
    before = shown;
    if (whole) return told(await run(document, { rules }));
    const parts = [...come, ...gone.map((at) => at.closest("a, button, label") ?? at.parentElement)]
      .concat([...shown].filter((at) => at.scrollWidth > at.clientWidth))
      .filter((at) => shown.has(at));
    return parts.length ? told(await run({ include: parts }, { rules })) : [];
  }

  // Groups the texts by all that their contrast depends on: their own style, and the backgrounds of
  // what they are in, as long as nothing else is painted in their place.
  function find() {
    const styles = new Map();
    const style = (at) => styles.get(at) ?? styles.set(at, getComputedStyle(at)).get(at);
    const shown = shown_now();
    const painted = shown
      .filter((at) => style(at).backgroundColor !== CLEAR || style(at).backgroundImage !== "none"
        || at.matches(PAINTED))
      .map((at) => [at, at.getBoundingClientRect()]);
    const stands_alone = (text, box) => painted.every(([at, place]) =>
      place.left >= box.right || box.left >= place.right || place.top >= box.bottom
      || box.top >= place.bottom || at.contains(text) || text.contains(at));
    const around = new Map();
    const background = (at) => {
      if (!at) return "";
      if (!around.has(at)) {
        const { backgroundColor, backgroundImage, filter, mixBlendMode, opacity } = style(at);
        const own = [backgroundColor, backgroundImage, filter, mixBlendMode, opacity].join(" ");
        around.set(at, `${own}|${background(at.parentElement)}`);
      }
      return around.get(at);
    };
    const words = (at) => at.matches(FIELDS) ? at.value || at.placeholder || "" : [...at.childNodes]
      .map((one) => one.nodeType === Node.TEXT_NODE ? one.data : "").join("");
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const look = (at, box) => {
      if (!stands_alone(at, box)) return "";
      const { color, fontSize, fontWeight, textShadow } = style(at);
      const short = words(at).trim().length < 2; // axe is not sure of these
      return [at.localName, color, fontSize, fontWeight, textShadow, short, dark, background(at)].join("|");
    };
    const clipped = (at) => at && (style(at).overflowX === "hidden"
      && at.getBoundingClientRect().width <= 1 || clipped(at.parentElement));
    texts = {};
    for (const at of shown) {
      const box = at.getBoundingClientRect();
      const seen = box.right > 0 && box.bottom > 0 && !clipped(at);
      if (seen && LETTER.test(words(at))) (texts[look(at, box)] ??= []).push(at);
    }
    const within_text = (link) => {
      let block = link;
      while (style(block).display === "inline") block = block.parentElement;
      return block.textContent.trim().length > link.textContent.trim().length;
    };
    links = shown.filter((at) => at.matches("a[href]") && within_text(at)
      && !style(at).textDecorationLine.includes("underline"));
    return Object.keys(texts);
  }

  // Which of the looks can be read, and what axe finds. One text of each look is judged; all where
  // axe passes over that one, because it belongs to something disabled, say.
  async function judge(fresh) {
    const known = fresh.filter((look) => look);
    const first = await judged("color-contrast",
      [...texts[""] ?? [], ...known.map((look) => texts[look][0])]);
    const missed = known.filter((look) => !first.all.includes(texts[look][0]));
    const others = await judged("color-contrast", missed.flatMap((look) => texts[look].slice(1)));
    const good = new Set([...first.good, ...others.good]);
    const readable = known.filter((look) => texts[look].some((at) => good.has(at)));
    const of_links = await judged("link-in-text-block", links);
    return [readable, [first, others, of_links].flatMap(({ faults }) => faults)];
  }

  async function judged(rule, elements) {
    if (!elements.length) return { all: [], good: [], faults: [] };
    const found = await run({ include: elements }, {
      runOnly: [rule], elementRef: true, resultTypes: ["violations", "passes", "incomplete"],
    });
    const at = (results) => results.flatMap(({ nodes }) => nodes.map(({ element }) => element));
    const good = at([...found.passes, ...found.incomplete]);
    return { good, all: [...good, ...at(found.violations)], faults: told(found) };
  }

  return { structure, find, judge };
})();
