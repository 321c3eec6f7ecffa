"""The manuals in docs/ as pages, and a search in their sections.

A page is rendered and cached at its first use, so that neither a checkout nor a wheel needs a build
step. Raw HTML in a manual is shown as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from app.paths import DOCS

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

INDEX = "README"  # the manuals by task
API = "api-manual"  # /docs/api is the reference, which is generated
# The manual for a page of the dashboard, by endpoint or by blueprint.
HELP = {
    "home": "", "monitors": "kinds", "monitors.ping": "heartbeats", "monitors.pings": "heartbeats",
    "checks": "kinds#causes-of-every-kind", "bulk": "dependencies", "imports": "import",
    "markers": "api-manual/11-maintenance-windows-and-markers",
    "incidents": "kinds#causes-of-every-kind",
    "windows": "api-manual/11-maintenance-windows-and-markers", "status_pages": "status-pages",
    "status_pages.subscribers": "status-pages#subscribers", "page_editor": "status-pages",
    "posts": "status-pages#write-posts", "post_templates": "status-pages#write-posts",
    "contacts": "api-manual/5-alerts#51-channels",
    "shared_channels": "api-manual/5-alerts#51-channels",
    "deliveries": "api-manual/5-alerts#52-deliveries", "locations": "scale/several-places",
    "keys": "people#api-keys", "people": "people", "invitations": "people#invite-people",
    "settings": "settings", "mail_settings": "people#set-up-email", "backups": "backup",
    "audit": "people#the-audit-log", "profile": "people#time-zones", "sessions": "people#sessions",
    "two_factor": "people#a-second-factor", "reports": "operate/how-it-runs",
    "jump": "people#find-and-do-things-with-ctrl-k", "remote": "remote",
}  # fmt: skip
LONG = 16_000  # characters; a longer manual has a page for each of its chapters
MAX_HITS, MAX_WORDS = 25, 10
_EXCERPT = 110  # characters before and after the first word that matches
_CREATION_WORDS = ("add", "create", "make", "new")  # the search treats these as synonyms
# Words of a question that say nothing about its topic.
_FILLERS = {
    "a", "an", "and", "can", "do", "does", "for", "how", "i", "in", "is", "my", "of", "on", "the",
    "to",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ManualSection:
    """A heading of a manual and the plain text below it. ``page``: the address of its page, below
    /docs. ``title``: that of the manual.
    """

    page: str
    title: str
    heading: str
    anchor: str
    level: int
    text: str


def of_page(endpoint: str | None, blueprint: str | None) -> str | None:
    """The address below /docs of the manual for a page of the dashboard; None if there is none."""
    return HELP.get(endpoint or "", HELP.get(blueprint or ""))


@cache
def names() -> dict[str, str]:
    """The file of each manual by its name in addresses, in the order of the list by task."""
    by_task = re.findall(r"\(([\w-]+\.md)", (DOCS / f"{INDEX}.md").read_text("utf-8"))
    files = dict.fromkeys([f"{INDEX}.md", *by_task, *(path.name for path in DOCS.glob("*.md"))])
    return {API if file == "api.md" else file.removesuffix(".md"): file for file in files}


@cache
def chapters(name: str) -> Mapping[str, str]:
    """The Markdown of each page of a manual, by its anchor; "" is the first page. Raises KeyError
    for an unknown name.
    """
    text = _text(name)
    if len(text) <= LONG:
        return {"": text}
    first, *others = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    return {"": first} | {slug(_plain(part.splitlines()[0][3:])): part for part in others}


@cache
def rendered(name: str, chapter: str = "") -> Markup:
    """A page of a manual. Raises KeyError for an unknown name."""
    parser = _parser()
    tokens = parser.parse(chapters(name)[chapter])
    _adapt_tokens(tokens, name, "docs/" if name == INDEX else "../" if chapter else "")
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - it escapes


@cache
def inline(text: str) -> Markup:
    """A line of Markdown, such as a description in the API's document."""
    return Markup(_parser().renderInline(text))  # noqa: S704 - it escapes


@cache
def sections(name: str) -> Sequence[ManualSection]:
    """The sections of a manual; the first has the title of the manual as its heading."""
    pieces = re.split(r"^(#+) (.+)$", _text(name), flags=re.MULTILINE)[1:]
    entries = zip(pieces[::3], map(_plain, pieces[1::3]), map(_plain, pieces[2::3]), strict=True)
    page, title = "" if name == INDEX else name, _plain(pieces[1])
    entries_read = []
    for marks, heading, text in entries:
        anchor = slug(heading)
        if len(marks) == 2 and anchor in chapters(name):
            page = f"{name}/{anchor}"
        entries_read.append(ManualSection(page, title, heading, anchor, len(marks), text))
    return entries_read


def _address(name: str, anchor: str) -> str:
    """The address of a section of a manual, below /docs."""
    pages = [section.page for section in sections(name) if section.anchor == anchor]
    return f"{(pages or [name])[0]}#{anchor}" if anchor else name


def _text(name: str) -> str:
    return (DOCS / names()[name]).read_text("utf-8")


def _plain(markdown: str) -> str:
    """The text without the marks of links, code, emphasis, lists and tables."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|`|\*\*|^ *- ", r"\1", markdown, flags=re.MULTILINE)
    return " ".join(re.sub(r"\||---+", " ", text).split())


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _adapt_tokens(tokens: Sequence[Token], name: str, base: str) -> None:
    """Prepare the tokens of a manual for the dashboard. ``base`` leads from the page to /docs.
    Headings get the anchors of GitHub; links get the addresses of the dashboard; cells of tables
    get the name of their column, because a phone shows them below each other.
    """
    columns: list[str] = []
    column = 0
    for token, content in zip(tokens, [*tokens[1:], None], strict=True):
        match token.type:
            case "heading_open" if content:
                heading = _words(content)
                token.attrSet("id", slug(heading))
                (content.children or []).append(_anchor_link(heading))
            case "table_open":
                token.attrSet("class", "list stack")
                columns = []
            case "th_open" if content:
                token.attrSet("scope", "col")
                columns.append(_words(content))
            case "tr_open":
                column = 0
            case "td_open":
                if columns[column] and column:
                    token.attrSet("data-label", columns[column])
                column += 1
            case "code_block" | "fence":
                token.type = "code_block"  # so that attributes belong to <pre>
                token.attrSet("tabindex", "0")  # a keyboard scrolls it
            case "inline":
                _rewrite_links(token.children or (), name, base)


def _anchor_link(heading: str) -> Token:
    from markdown_it.token import Token

    link = Markup(' <a class="anchor" href="#{}" aria-label="{}">#</a>')
    return Token("html_inline", "", 0, content=link.format(slug(heading), f"# {heading}"))


def _rewrite_links(tokens: Iterable[Token], name: str, base: str) -> None:
    """Adapt the links. Links to files that are no manuals become plain text."""
    pages = {file: name for name, file in names().items() if name != INDEX}
    file, anchor, is_plain = "", "", False
    for token in tokens:
        if token.type == "link_open":
            target, sign, anchor = str(token.attrGet("href") or "").partition("#")
            is_plain = bool(target) and ":" not in target and target not in pages
            file = target
            if target in pages or (sign and not target and len(chapters(name)) > 1):
                token.attrSet("href", base + _address(pages.get(target, name), anchor))
        elif token.type == "image":
            _replace_picture(token, base)
        elif token.type == "text" and token.content == file and file in pages:
            token.content = _title(pages[file], anchor)
        if is_plain and token.tag == "a":
            token.tag, token.attrs = "span", {}


def _replace_picture(image: Token, base: str) -> None:
    """Replace a picture in light colours with a light and a dark one; CSS shows one of them."""
    light = f"{base}{image.attrGet('src')}"
    pair = Markup('<img class="on-{}" src="{}" alt="{}" loading="lazy">')
    sources = (("light", light), ("dark", light.replace("-light.", "-dark.")))
    image.type = "html_inline"
    image.content = "".join(pair.format(*source, image.content) for source in sources)


def _title(name: str, anchor: str) -> str:
    """The text of a link to a manual or a section of it, in place of the file's name."""
    headings = [section.heading for section in sections(name) if section.anchor == anchor]
    return (headings or [sections(name)[0].heading])[0]


def _words(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def slug(heading: str) -> str:
    """The anchor of a heading, as on GitHub, so that the links of the manuals work there too."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


# --- Search ---------------------------------------------------------------------------------------


def search(query: str, more: Iterable[ManualSection] = ()) -> list[tuple[ManualSection, Markup]]:
    """The sections of all manuals, and of ``more``, that contain more than half of the words of
    ``query``, each with an excerpt. Those with the most words in their headings come first.
    """
    words = [word for part in query.casefold().split() if (word := part.strip("?!.,;:'\"()"))]
    words = ([word for word in words if word not in _FILLERS] or words)[:MAX_WORDS]
    patterns = [_pattern(word) for word in words]
    ranked = []
    everything = [section for name in names() for section in sections(name)]
    for order, section in enumerate([*everything, *more]):
        heading = section.heading if section.level > 1 else f"{section.page} {section.heading}"
        headings = f"{section.title} {heading}"
        in_headings, in_heading, anywhere = (
            sum(bool(pattern.search(text)) for pattern in patterns)
            for text in (headings, heading, f"{headings} {section.text}")
        )
        if anywhere * 2 > len(patterns):
            ranked.append((-in_headings, -in_heading, -anywhere, order, section))
    return [
        (section, _excerpt(section.text, patterns))
        for *_ranks, section in sorted(ranked)[:MAX_HITS]
    ]


def _pattern(word: str) -> re.Pattern[str]:
    """A pattern for words that begin with ``word``; a short word matches itself and its plural
    alone, so that "add" does not match "address".
    """
    if word in _CREATION_WORDS:
        return re.compile(rf"\b(?:{'|'.join(_CREATION_WORDS)})s?\b", re.IGNORECASE)
    word = word.removesuffix("s") if len(word) > 3 else word
    end = r"\w*" if len(word) > 3 else r"(?:s\b|\b)"
    return re.compile(rf"(?<!\w){re.escape(word)}{end}", re.IGNORECASE)


def _excerpt(text: str, patterns: Sequence[re.Pattern[str]]) -> Markup:
    """The text around the first match, with every match marked."""
    matches = [match.start() for pattern in patterns if (match := pattern.search(text))]
    middle = min(matches, default=0)
    start, end = max(0, middle - _EXCERPT), middle + _EXCERPT
    part = text[start:end]
    if start:
        part = f"… {part.partition(' ')[2]}"
    if end < len(text):
        part = f"{part.rpartition(' ')[0]} …"
    pieces = re.split(f"({'|'.join(pattern.pattern for pattern in patterns)})", part, flags=re.I)
    return Markup("").join(
        Markup("<mark>{}</mark>").format(piece) if number % 2 else escape(piece)
        for number, piece in enumerate(pieces)
    )
