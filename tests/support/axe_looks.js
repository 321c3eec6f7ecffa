// For tests/support/axe.py: what of a page axe must judge, and whether its texts can be read.

window.looks ??= (() => {
  const CLEAR = "rgba(0, 0, 0, 0)";
  const LETTER = /[\p{L}\p{N}]/u; // axe takes what has none for a picture
  const FIELDS = "select, textarea, input:not([type=checkbox], [type=radio], [type=file])";
  const OFF = ":disabled, [aria-disabled=true], [inert]"; // no rule is about the colours of these
  const PICTURES = "img, svg, canvas, video"; // a text may stand on one of them
  const LARGE = 24, LARGE_BOLD = 18.66; // pixels; from here on, a contrast of 3 is enough
  const MARK = 64; // pixels; what is as narrow or low is an arrow, a dot, the shadow of an edge
  const IMAGES = /, (?=(?:repeating-)?(?:linear|radial|conic)-gradient\(|url\()/;
  const COLOURS = /(?:rgba?|hsla?|hwb|oklch|oklab|lch|lab|color)\([^()]*\)/g;
  const LINE = 12; // pixels; what is lower or narrower is no ground of a text

  let style, shown, own, keys, outline, links, doubtful, layered;

  // Passed rules would be megabytes. Not preloaded: the style sheets, for a rule that is off, and
  // films, of which there are none.
  const run = async (what, options) => {
    const { violations } = await axe.run(what,
      { preload: false, resultTypes: ["violations"], elementRef: true, ...options });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => told(id, html)));
  };
  const told = (rule, html) => `${rule}: ${html.slice(0, 200)}`;

  function look() {
    const styles = new Map();
    style = (at) => styles.get(at) ?? styles.set(at, getComputedStyle(at)).get(at);
    shown = new Set([...document.querySelectorAll("*")]
      .filter((at) => at.checkVisibility({ visibilityProperty: true })));
  }

  // ---- Structure: each part of a page has a key, which says all that axe's rules depend on.

  // Attributes whose value no rule reads, but for whether there is one.
  const ANY = ["title", "placeholder", "aria-label", "label", "value", "src", "id", "name"];
  const UNREAD = /^(data-|class$|style$|action$|method$|datetime$|m(in|ax)|step$|pattern$|checked$|selected$|open$|aria-value)/;
  const IDS = /^(for|list|form|headers|aria-(labelledby|describedby|controls|owns|details|errormessage|activedescendant|flowto))$/;
  const ALWAYS = "img, iframe, object, area, audio, video"; // judged each time: rules compare them
  const SPACED = /(letter|word)-spacing|line-height/; // what a rule reads of a style attribute
  const LANDMARK = "main, header, footer, nav, aside, dialog, form, section[aria-label], "
    + "section[aria-labelledby], [role=banner], [role=complementary], [role=contentinfo], "
    + "[role=form], [role=main], [role=navigation], [role=region], [role=search], [role=dialog]";
  // Rules on the page as a whole. All others judge an element by what it is in and what is in it.
  const OF_WHOLE = /^(accesskeys|aria-hidden-body|bypass|document-title|duplicate-id|frame-|heading-order|html-|landmark-|meta-|page-has-|region|skip-link)/;
  // What these contain does not decide whether they are right, but for OF_WHOLE.
  const FRAMES = "html, head, body, main, header, footer, nav, aside, section, article, div, form, p, figure";
  const MEANT = /role=|aria-|tabindex=|scrolls/;
  const SVG = "http://www.w3.org/2000/svg";

  function hash(text) {
    let one = 0xdeadbeef, two = 0x41c6ce57;
    for (let at = 0; at < text.length; at++) {
      one = Math.imul(one ^ text.charCodeAt(at), 2654435761);
      two = Math.imul(two ^ text.charCodeAt(at), 1597334677);
    }
    return (4294967296 * (two >>> 0) + (one >>> 0)).toString(36);
  }

  const named = (at) => at ? `${at.localName}${shown.has(at)}${!!at.textContent.trim()}` : "none";
  const target = (id) => named(document.getElementById(id));

  function attribute(at, { name, value }) {
    if (UNREAD.test(name) && !(name === "style" && SPACED.test(value))) return "";
    if (at.namespaceURI === SVG && !/^(role|tabindex|aria-|id$|href$)/.test(name)) return "";
    if (IDS.test(name)) return `${name}=${value.split(/\s+/).map(target)}`;
    if (name === "href") return `href=${value[0] === "#" ? `#${target(value.slice(1))}` : !!value}`;
    return ANY.includes(name) ? `${name}=${!!value.trim()}` : `${name}=${value}`;
  }

  function scrolls(at) {
    const { overflowX, overflowY } = style(at);
    return (overflowX !== "visible" && at.scrollWidth > at.clientWidth)
      || (overflowY !== "visible" && at.scrollHeight > at.clientHeight);
  }

  const marks = (at) => [at.localName, shown.has(at) && "shown", shown.has(at) && scrolls(at) && "scrolls",
    ...[...at.attributes].map((one) => attribute(at, one)), ...[...at.labels ?? []].map(named),
  ].filter(Boolean).join(" ");

  // What is alike and comes in a row counts once: a list's rows, say.
  const row = (parts) => parts.filter((part, at) => part && part !== parts[at - 1]).join(",");

  function part(at) {
    const inner = [...at.childNodes].map((one) => one.nodeType === Node.TEXT_NODE
      ? one.data.trim() && "text" : one.nodeType === Node.ELEMENT_NODE && part(one));
    own.set(at, { marks: marks(at), sum: "" });
    return own.get(at).sum = hash(`${own.get(at).marks}(${row(inner)})`);
  }

  function number(at, above) {
    const { marks, sum } = own.get(at);
    const frame = at.matches(FRAMES) && !MEANT.test(marks);
    const chain = `${above}>${marks}`;
    if (!at.matches(ALWAYS)) keys.set(at, hash(frame ? chain : chain + sum));
    for (const child of at.children) number(child, chain);
  }

  // What rules about the page as a whole depend on: head, headings, landmarks.
  function whole() {
    const called = (at) => [at.getAttribute("aria-label"), ...(at.getAttribute("aria-labelledby") ?? "")
      .split(/\s+/).map((id) => document.getElementById(id)?.textContent)].join();
    const seen = [...shown].filter((at) => document.body.contains(at));
    const outside = seen.filter((at) => !at.closest(LANDMARK) && text_of(at).trim());
    const names = seen.filter((at) => at.matches(LANDMARK)).map((at) => own.get(at).marks + called(at));
    return hash([
      own.get(document.documentElement).marks, own.get(document.head).sum, own.get(document.body).marks,
      row(seen.filter((at) => at.matches(`h1, h2, h3, h4, h5, h6, ${LANDMARK}`))
        .map((at) => own.get(at).marks)),
      names.map((mark) => names.indexOf(mark)).filter((first, at) => first !== at),
      row(outside.map((at) => own.get(at).marks)),
      [...document.querySelectorAll("[accesskey]")].map((at) => at.accessKey),
    ].join("|"));
  }

  // axe is not sure whether these do harm.
  function doubles() {
    const ids = new Set();
    return [...document.querySelectorAll("[id]")].filter(({ id }) => ids.size === ids.add(id).size)
      .map((at) => told("duplicate-id", at.outerHTML));
  }

  // ---- Colours: a text's contrast with each ground that it may stand on.

  const text_of = (at) => [...at.childNodes]
    .map((one) => one.nodeType === Node.TEXT_NODE ? one.data : "").join("");

  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const read = new Map();
  // Red, green, blue from 0 to 255 and how opaque it is from 0 to 1, of any colour that CSS knows.
  function colour(said) {
    if (read.has(said)) return read.get(said);
    const plain = said.match(/^rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)$/);
    if (plain) return read.set(said, [+plain[1], +plain[2], +plain[3], +(plain[4] ?? 1)]).get(said);
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = said;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return read.set(said, [r, g, b, a / 255]).get(said);
  }
  const mix = (top, below, share) => [0, 1, 2].map((at) => top[at] * share + below[at] * (1 - share));
  const over = (top, below) => mix(top, below, top[3]);
  const light = (rgb) => rgb.map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  function contrast(one, other) {
    const [dim, bright] = [light(one), light(other)].sort((a, b) => a - b);
    return (bright + 0.05) / (dim + 0.05);
  }

  // The colours that an element may lay over what is below: its background, and each of a gradient's.
  // null for a picture: nobody knows its colours. What is small and shown once is a mark or a shadow
  // at an edge, and leaves the text alone.
  function laid({ backgroundColor, backgroundImage, backgroundRepeat, backgroundSize }) {
    const flat = colour(backgroundColor);
    if (backgroundImage === "none") return [flat];
    const at = (list, number) => list.split(", ")[number % list.split(", ").length];
    const small = (_, number) => at(backgroundRepeat, number) === "no-repeat"
      && at(backgroundSize, number).split(" ").some((size) => size.endsWith("px") && parseFloat(size) <= MARK);
    const large = backgroundImage.split(IMAGES).filter((one, number) => !small(one, number));
    if (large.some((one) => !one.includes("gradient("))) return null;
    const stops = large.flatMap((one) => one.match(COLOURS) ?? []).map(colour);
    return [flat, ...stops.map((stop) => [...over(stop, flat), Math.max(stop[3], flat[3])])];
  }

  // A ::before or ::after that is as large as a line of text may lie behind the texts beside it.
  const beside = (at) => ["::before", "::after"].map((name) => getComputedStyle(at, name))
    .filter((of) => of.content !== "none" && Math.min(parseFloat(of.width), parseFloat(of.height)) >= LINE
      && (of.backgroundColor !== CLEAR || of.backgroundImage !== "none"));

  // The grounds on which `at` stands, as [text, ground] with opacity applied; null where no
  // calculation tells them.
  function pairs(at, fore) {
    const chain = [];
    for (let one = at; one; one = one.parentElement) chain.unshift(one);
    const base = colour(style(document.documentElement).colorScheme.includes("dark")
      && matchMedia("(prefers-color-scheme: dark)").matches ? "rgb(18, 18, 18)" : "rgb(255, 255, 255)");
    const down = (depth, ground) => {
      if (depth === chain.length) return [[over(colour(fore), ground), ground]];
      const of = style(chain[depth]);
      const layers = laid(of);
      if (!layers || of.filter !== "none" || of.mixBlendMode !== "normal") return null;
      const grounds = [...layers, ...layered(chain[depth])].map((layer) => over(layer, ground));
      const found = [...new Set(grounds.map(String))].map((one) => down(depth + 1, one.split(",").map(Number)));
      if (found.includes(null)) return null;
      const share = +of.opacity;
      return found.flat().map(([text, back]) => [mix(text, ground, share), mix(back, ground, share)]);
    };
    return down(0, base.slice(0, 3));
  }

  function judge() {
    const extra = new Map();
    layered = (at) => extra.get(at) ?? extra.set(at, beside(at).flatMap((of) => {
      const base = colour(style(at).backgroundColor);
      return (laid(of) ?? []).map((layer) => [...over(layer, base), Math.max(layer[3], base[3])]);
    })).get(at);
    const seen = [...shown].filter((at) => document.body.contains(at));
    const painted = seen.filter((at) => at !== document.body && (style(at).backgroundColor !== CLEAR
      || style(at).backgroundImage !== "none" || at.matches(PICTURES)))
      .map((at) => [at, at.getBoundingClientRect()]);
    const clipped = (at) => at && (style(at).overflowX === "hidden"
      && at.getBoundingClientRect().width <= 1 || clipped(at.parentElement));
    const disabled = (at) => at.closest(OFF) || at.closest("label")?.control?.matches(OFF);
    const faults = [], memo = new Map();
    // Where colours are forced, the browser tells the fill of letters as it would be without.
    const forced = matchMedia("(forced-colors: active)").matches;
    doubtful = new Map();
    for (const at of seen) {
      const field = at.matches(FIELDS);
      if (!LETTER.test(field ? at.value || at.placeholder || "" : text_of(at))) continue;
      const box = at.getBoundingClientRect();
      if (box.right <= 0 || box.bottom <= 0 || disabled(at) || clipped(at)) continue;
      const of = field && !at.value ? getComputedStyle(at, "::placeholder") : style(at);
      const fore = at.namespaceURI === SVG ? of.fill : forced ? of.color : of.webkitTextFillColor;
      const size = parseFloat(of.fontSize);
      const limit = size >= LARGE || size >= LARGE_BOLD && +of.fontWeight >= 700 ? 3 : 4.5;
      const place = [fore, limit, of.opacity, at.parentElement === null];
      const readable = (found) => found?.every(([text, ground]) => contrast(text, ground) >= limit - 0.005);
      const siblings = memo.get(at.parentElement) ?? memo.set(at.parentElement, new Map()).get(at.parentElement);
      const same = [...place, style(at).backgroundColor, style(at).backgroundImage, style(at).filter,
        style(at).mixBlendMode, style(at).opacity, layered(at)].join();
      if (!siblings.has(same)) siblings.set(same, readable(pairs(at, fore)));
      if (!siblings.get(same)) {
        faults.push(told("color-contrast", at.outerHTML));
        continue;
      }
      const others = painted.filter(([one, its]) => its.left < box.right && box.left < its.right
        && its.top < box.bottom && box.top < its.bottom && !one.contains(at) && !at.contains(one));
      const known = others.every(([one]) => !one.matches(PICTURES) && readable(pairs(one, fore)));
      if (!known) doubtful.set(at, hash(JSON.stringify(["text", place, pairs(at, fore),
        others.map(([one, its]) => [one.localName, pairs(one, fore), style(one).position,
          style(one).zIndex, its.left <= box.left && its.top <= box.top && its.right >= box.right])])));
    }
    const plain = seen.filter((at) => at.matches("a[href]") && within_text(at)
      && !style(at).textDecorationLine.includes("underline"));
    links = new Map(plain.map((at) => [at, hash(JSON.stringify(["link", ...looks_to_block(at)]))]));
    return faults;
  }

  function to_block(link) {
    const chain = [link];
    while (style(chain.at(-1)).display === "inline") chain.push(chain.at(-1).parentElement);
    return chain;
  }
  const within_text = (link) =>
    to_block(link).at(-1).textContent.trim().length > link.textContent.trim().length;
  const looks_to_block = (link) => to_block(link).map((at) => {
    const { color, backgroundImage, fontWeight, fontSize, fontStyle, fontFamily, border, outline } = style(at);
    return [at.localName, pairs(at, color), backgroundImage, fontWeight, fontSize, fontStyle, fontFamily,
      border, outline];
  });

  // ---- What tests/support/axe.py calls.

  // Doubles, and texts that cannot be read; the keys of all that axe may have to judge; whether it
  // must in any case; whether it is here.
  function find(structure) {
    look();
    own = new Map();
    keys = new Map();
    outline = "";
    if (structure) {
      part(document.documentElement);
      number(document.documentElement, "");
      outline = whole();
    }
    const faults = structure ? [...doubles(), ...judge()] : judge();
    const asked = [outline, ...keys.values(), ...doubtful.values(), ...links.values()];
    return [faults, asked.join(" "), structure && document.querySelector(ALWAYS) !== null, "axe" in window];
  }

  // What axe finds in what has a key of ``fresh``.
  async function ask(fresh) {
    const news = new Set(fresh.split(" "));
    const faults = [];
    const some = async (elements, options) => {
      if (elements.length) faults.push(...await run({ include: elements }, options));
    };
    const fresh_of = (map) => [...map].filter(([, key]) => news.has(key)).map(([at]) => at);
    const new_parts = new Set([...own.keys()].filter((at) => !keys.has(at) || news.has(keys.get(at))));
    if (outline && (new_parts.size || news.has(outline)))
      faults.push(...await structure(new_parts, news.has(outline)));
    await some(fresh_of(doubtful), { runOnly: ["color-contrast"] });
    await some(fresh_of(links), { runOnly: ["link-in-text-block"] });
    return faults;
  }

  // All rules on the elements in ``parts``, and those of the whole if ``whole``. axe can be given
  // parts to leave out, but to find out what is in them takes it longer than to judge them.
  async function structure(parts, whole) {
    const { rules } = axe._audit;
    const all = rules.map(({ gather }) => gather);
    const of_colours = ["color-contrast", "link-in-text-block"];
    for (const rule of rules) {
      if (OF_WHOLE.test(rule.id)) continue;
      rule.gather = (context) => axe.utils.select(rule.selector, context)
        .filter((one) => parts.has(one.actualNode))
        .filter((one) => !rule.excludeHidden || axe.commons.dom.isVisibleToScreenReaders(one));
    }
    const off = rules.map(({ id }) => id)
      .filter((id) => of_colours.includes(id) || (!whole && OF_WHOLE.test(id)));
    const found = await run(document,
      { rules: Object.fromEntries(off.map((id) => [id, { enabled: false }])) });
    rules.forEach((rule, at) => { rule.gather = all[at]; });
    return found;
  }

  return { find, ask };
})();
