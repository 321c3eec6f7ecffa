"""Find the sentences in the source that people read and that no mark of app/i18n.py translates.

A sentence is known by its look: two words of which the first has a capital letter, or words with
a full stop behind them. In a template, all text is for people, and so are attributes that a screen
reader reads. A script has none: it takes them from attributes of its page.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html.parser import HTMLParser

from jinja2 import Environment

SENTENCE = re.compile(r"^[A-Z][\w’'-]*,? [\w(“\"'{<%]|^[^<]*\w+ [\w ,'’-]*[\w)}][.?!:…]$")

LOGGERS = {"log", "logger", "_log"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
LOGGING = {"best_effort"}  # functions of ours whose text goes to the log
# Errors for those who wrote the code, not for those who use it.
FOR_PROGRAMMERS = {
    "AssertionError",
    "AttributeError",
    "DisconnectionError",
    "KeyError",
    "LookupError",
    "NotImplementedError",
    "OSError",
    "RuntimeError",
    "TypeError",
}
# Summaries of the API's operations, which its document has in English.
DOCUMENTED = {"operation"}
# Read by a database, another server or a library.
FOR_MACHINES = re.compile(
    r"^(?:BEGIN|LISTEN|PRAGMA|REPEATABLE|SELECT|SET|SHOW|Bearer|GenieKey|HTTP|SMTP) |^Wakeful \("
)
# Methods that look for a text of somebody else's.
LOOKING = {"replace", "startswith", "endswith", "removeprefix", "removesuffix"}


@lru_cache(maxsize=1)
def _parsed(source: str) -> tuple[ast.Module, list[ast.AST]]:
    tree = ast.parse(source)
    return tree, list(ast.walk(tree))


def in_code(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each unmarked string of a module that looks like a sentence."""
    tree, nodes = _parsed(source)
    parts = [node for node in nodes if _is_skipped(node)]
    parts += _only_logged(tree, nodes, parts)
    skipped = {id(part) for node in parts for part in ast.walk(node)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
        text = _text(node)
        if id(node) in skipped or not text or FOR_MACHINES.search(text):
            continue
        if SENTENCE.search(text):
            yield node.lineno, text  # type: ignore[attr-defined]


def _is_skipped(node: ast.AST) -> bool:
    """Marked, logged, for programmers, or documentation."""
    match node:
        case ast.Call(args=[ast.Name(id=first), *_]) if first in LOGGERS:
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in {"_", "_n", "N_"} | FOR_PROGRAMMERS | LOGGING | DOCUMENTED
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=attr)
        ) if owner in LOGGERS:
            return attr in LEVELS
        case ast.Call(func=ast.Attribute(attr=attr)):
            return attr in LOOKING | FOR_PROGRAMMERS
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _only_logged(
    tree: ast.Module, nodes: Sequence[ast.AST], skipped: Sequence[ast.AST]
) -> list[ast.AST]:
    """The constants of a module that it only writes to the log."""
    used = [node.id for node in nodes if isinstance(node, ast.Name) and _is_read(node)]
    logged = [
        argument.id
        for node in skipped
        if isinstance(node, ast.Call)
        for argument in node.args
        if isinstance(argument, ast.Name)
    ]
    constants: list[ast.AST] = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if name in logged:
                constants += [node] if used.count(name) == logged.count(name) else []
    return constants


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _text(node: ast.AST) -> str | None:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in values
            )
    return None


def misused(source: str) -> Iterator[tuple[int, str]]:
    """Line of each mark that cannot work: called while the module is imported, when nobody has
    chosen a language, or hidden by a variable of its name.
    """
    tree, nodes = _parsed(source)
    for node in _at_import(tree):
        match node:
            case ast.Call(func=ast.Name(id="_" | "_n" as name)):
                yield (node.lineno, f"{name} at import: use N_, and {name} where it is shown")
    imported = any(isinstance(node, ast.ImportFrom) and node.module == "app.i18n" for node in nodes)
    for node in nodes:
        match node:
            case ast.Name(id="_" | "_n", ctx=ast.Store()) if imported:
                yield node.lineno, f"{node.id} is a variable here"
            case ast.JoinedStr():
                yield from _within(node)


def _within(text: ast.JoinedStr) -> Iterator[tuple[int, str]]:
    """Marks of sentences within an f-string, where pybabel does not look."""
    for node in ast.walk(text):
        match node:
            case ast.Call(func=ast.Name(id="_" | "_n"), args=[ast.Constant(value=str()), *_]):
                yield node.lineno, "a mark within an f-string: put it into a variable"


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when the module is imported: all but the bodies of functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*child.args.defaults, *child.args.kw_defaults, *child.decorator_list]
            for argument in filter(None, arguments):
                yield from (argument, *_at_import(argument))
        elif not isinstance(child, ast.Lambda):
            yield from (child, *_at_import(child))


READ_ATTRIBUTES = {"aria-label", "title", "placeholder", "alt", "label", "data-confirm"}
WORD = re.compile(r"[^\W\d_]{2,}")
JINJA = Environment(extensions=["jinja2.ext.i18n"], autoescape=True)
SHOWN_STRING = re.compile(r"^[A-Z][a-z]+$|" + SENTENCE.pattern)
# What stands in a page as it is in every language.
NAMES = {"Wakeful", "Ctrl", "HTTP", "UTC", "ms", "px"}


def in_template(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of what a template shows without a mark."""
    page, strings = _split(source)
    yield from strings
    texts = _Texts()
    texts.feed(page)
    texts.close()
    yield from texts.pairs


def _split(source: str) -> tuple[str, list[tuple[int, str]]]:
    """The template's HTML, with a space for each of its tags and marked sentences and as many
    lines; and the unmarked strings in its expressions.
    """
    html, strings = [], []
    statement: list[str] = []  # the last two words or signs
    translated, depth = False, 0
    for line, kind, value in JINJA.lex(source):
        if kind == "data":
            html.append("\n" * value.count("\n") if translated else value)
            continue
        html.append(" " + "\n" * value.count("\n"))
        if kind in ("whitespace", "comment", "comment_begin", "comment_end"):
            continue
        if kind == "name" and statement[-1:] == ["{%"] and value in ("trans", "endtrans"):
            translated = value == "trans"
        if kind == "operator" and value == "(":
            depth += 1 if depth or statement[-1:] in (["_"], ["_n"]) else 0
        elif kind == "operator" and value == ")":
            depth -= 1 if depth else 0
        elif kind == "string" and not depth and SHOWN_STRING.search(value[1:-1]):
            strings.append((line, value[1:-1]))
        statement = [*statement[-1:], "{%" if kind == "block_begin" else value]
    return "".join(html), strings


class _Texts(HTMLParser):
    """Collects the texts of a page that people see or hear."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[int, str]] = []
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unread += tag in ("script", "style", "code", "kbd", "pre")
        for name, text in attrs:
            if name in READ_ATTRIBUTES:
                self._add(text or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in ("script", "style", "code", "kbd", "pre")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self._add(data)

    def _add(self, text: str) -> None:
        if any(word not in NAMES for word in WORD.findall(text)):
            self.pairs.append((self.getpos()[0], " ".join(text.split())))


SCRIPT_COMMENT = re.compile(r"(?m)(^|\s)//.*$")
SCRIPT_STRING = re.compile(
    r"""(?x) "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | `(?:[^`\\]|\\.)*` """
)
VALUE_AND_WORD = re.compile(r"\$\{[^}]*\} [a-z]{3,}")


def in_script(source: str) -> Iterator[str]:
    """The strings of a script that look like sentences, or like a value with a word behind it."""
    for match in SCRIPT_STRING.finditer(SCRIPT_COMMENT.sub("", source)):
        text = match[0][1:-1]
        if SENTENCE.search(text) or VALUE_AND_WORD.search(text):
            yield text
