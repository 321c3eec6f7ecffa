"""A regular expression that runs for minutes would block the interpreter, and with it every check.

So each pattern of app/ reads any text in linear time, which its form shows: there is no text that
leads from one of its loops to another one in two ways (Weideman et al., "Analyzing Matching Time
Behavior of Backtracking Regular Expression Matchers by Using Ambiguity of NFA"). A search is a
pattern behind a loop that reads everything. Nothing is timed here: test_linear_time.py times the
readers of text, some of which are no patterns.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from re import _constants as op
from re import _parser as parser
from typing import Any

import pytest

import app

ROOT = Path(app.__file__).parent
# Whose form does not show it, and why no text makes them slow.
LINEAR_ANYWAY = {
    "app.checks.expiry.whois _TIME": "reads MAX_DATE characters",
    "app.checks.expiry.whois _ZONE": "reads MAX_DATE characters",
    "app.checks.tls.checks _CODED": "begins at the start of a line alone",
    "app.checks.tls.checks _dialogue": "reads MAX_BYTES, and a reply once",
    "app.rules.assertions _SECRET_MEMBER": "reads twice MAX_FOUND characters",
    "app.rules.brackets rows": "each part ends at the bracket that the next begins with",
    "app.web.frame.fragments _AGING": "reads pages of our own",
    "app.web.frame.fragments _TOKEN": "reads pages of our own",
    "app.web.shown.manuals _excerpt": "reads manuals of our own",
    "app.web.shown.manuals _pattern": "reads manuals of our own",
    "app.web.shown.manuals _plain": "reads manuals of our own",
    "app.web.shown.timeline _DURATION": "begins once in a number, because of what must not precede",
    "app.rules.masking spellings": "is put together of characters that it reads once",
    "app.rules.causes _SEVERAL": "reads MAX_CAUSE characters",
    "app.rules.causes _VARIES": "reads MAX_CAUSE characters",
    "app.rules.causes sentence_without": "reads MAX_CAUSE characters",
    "app.rules.time _AMOUNT": "reads MAX_DURATION characters",
    "app.rules.url _AUTHORITY": "fails at the first two characters or not at all",
}
# Used under another name: at the start of a line, by `whois._values`.
MATCHED = ("_ENDS", "_NAMED")
ALPHABET = frozenset(map(chr, range(256))) | set("\u0660\ud800∙…●")
BITS = {sign: 1 << number for number, sign in enumerate(sorted(ALPHABET))}
EVERY = sum(BITS.values())
CATEGORIES = {op.CATEGORY_DIGIT: r"\d", op.CATEGORY_SPACE: r"\s", op.CATEGORY_WORD: r"\w",
              op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_NOT_SPACE: r"\S",
              op.CATEGORY_NOT_WORD: r"\W"}  # fmt: skip


@functools.cache
def signs_of(category: Any, flags: int) -> frozenset[str]:
    return frozenset(filter(re.compile(CATEGORIES[category], flags).match, ALPHABET))


def signs(kind: Any, value: Any, flags: int) -> frozenset[str]:
    """The characters that one element of a parsed pattern reads."""
    if kind is op.ANY:
        return ALPHABET if flags & re.DOTALL else ALPHABET - {"\n"}
    if kind is op.NOT_LITERAL:
        return ALPHABET - signs(op.LITERAL, value, flags)
    if kind is op.CATEGORY:
        return signs_of(value, flags & re.ASCII)
    if kind is op.IN:
        negated = value[0][0] is op.NEGATE
        read = frozenset().union(*(signs(*item, flags) for item in value[negated:]))
        return ALPHABET - read if negated else read
    low, high = value if kind is op.RANGE else (value, value)
    read = ALPHABET & set(map(chr, range(low, high + 1)))
    other = frozenset(sign.swapcase() for sign in read) if flags & re.IGNORECASE else read
    return (read | other) & ALPHABET


class Automaton:
    """The elements of a pattern that read a sign, and which may follow which (Glushkov's)."""

    def __init__(self, pattern: re.Pattern[Any], methods: set[str]) -> None:
        text = pattern.pattern
        self.flags = pattern.flags
        self.reads: list[int] = []  # sets of characters, as BITS
        self.follow: dict[int, set[int]] = defaultdict(set)
        self.possessive: set[int] = set()
        self.conditional: set[int] = set()  # an assertion stands behind them
        self.repeated = False  # the same step in two ways: a loop around a loop
        tree = parser.parse(text, pattern.flags)
        first, last, _ = self.sequence(tree)
        # Behind these nothing can fail, so no other way is tried.
        ends = set() if "fullmatch" in methods else last - self.conditional
        self.ends = ends | {
            loop for loop in last if loop in self.follow[loop] and self.reads[loop] == EVERY
        }
        if methods - {"match", "fullmatch"} and tree[0] != (op.AT, op.AT_BEGINNING):
            start = self.element(ALPHABET)
            self.follow[start] |= {start, *first}

    def element(self, read: frozenset[str]) -> int:
        self.reads.append(sum(BITS[sign] for sign in read))
        return len(self.reads) - 1

    def join(self, element: int, after: set[int]) -> None:
        self.repeated |= bool(self.follow[element] & after)
        self.follow[element] |= after

    def sequence(self, items: Any) -> tuple[set[int], set[int], bool]:
        """First and last elements, and whether there may be none."""
        first, last, empty = set[int](), set[int](), True
        for kind, value in items:
            if kind in (op.AT, op.ASSERT, op.ASSERT_NOT):
                self.conditional |= last
                continue
            heads, tails, skipped = self.item(kind, value)
            for tail in last:
                self.join(tail, heads)
            first, last = first | heads if empty else first, last | tails if skipped else tails
            empty &= skipped
        return first, last, empty

    def item(self, kind: Any, value: Any) -> tuple[set[int], set[int], bool]:
        if kind is op.SUBPATTERN:
            return self.sequence(value[3])
        if kind is op.BRANCH:
            branches = [self.sequence(branch) for branch in value[1]]
            heads, tails, skipped = zip(*branches, strict=True)
            nothing = [not branch for branch in value[1]]
            self.repeated |= sum(nothing) > 1
            return set().union(*heads), set().union(*tails), any(skipped)
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            low, high, body = value
            first, last, empty = self.sequence(body)
            if high is op.MAXREPEAT:
                for tail in last:
                    self.join(tail, first)
            if kind is op.POSSESSIVE_REPEAT and len(body) == 1 and first == last:
                self.possessive |= first
            return first, last, empty or not low
        element = {self.element(signs(kind, value, self.flags))}
        return element, element, False

    def steps(self, element: int) -> Iterator[tuple[int, int]]:
        """Which may follow, and for which signs: a possessive loop is not left for its own."""
        for after in self.follow[element]:
            kept = self.possessive & {element} - {after}
            yield after, self.reads[after] & ~self.reads[element] if kept else self.reads[after]

    def reached(self, element: int) -> set[int]:
        reached, waiting = set[int](), [element]
        while waiting:
            new = self.follow[waiting.pop()] - reached
            reached |= new
            waiting += new
        return reached

    def ambiguous(self) -> bool:
        """Whether a text leads from one loop to itself, to another one, and from that to itself."""
        reached = {element: self.reached(element) for element in range(len(self.reads))}
        loops = [element for element in reached if element in reached[element]]
        return self.repeated or any(
            self._both_ways(first, second)
            for first in loops
            for second in reached[first] & set(loops) - self.ends - {first}
        )

    def _both_ways(self, first: int, second: int) -> bool:
        reached, waiting = set(), [(first, first, second)]
        while waiting:
            stays, moves, ends = waiting.pop()
            new = {
                (a, b, c)
                for a, on_a in self.steps(stays)
                for b, on_b in self.steps(moves)
                if on_a & on_b
                for c, on_c in self.steps(ends)
                if on_a & on_b & on_c
            } - reached
            if (first, second, second) in new:
                return True
            reached |= new
            waiting += new
        return False


METHODS = "match|fullmatch|search|sub|subn|split|findall|finditer"
METHOD = rf"\.({METHODS})\b"


def patterns() -> Iterator[tuple[str, re.Pattern[Any] | None, set[str]]]:
    """The patterns of app/ by module and name or function, with the methods that are used on them.

    None for a pattern that is put together when it is used.
    """
    texts = {path: path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    whole = "".join(texts.values())
    for path, text in texts.items():
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        for owner in ast.parse(text).body if "import re\n" in text else ():
            calls = [node for node in ast.walk(owner) if isinstance(node, ast.Call)]
            names = [ast.unparse(call.func) for call in calls]
            calls = [
                (call.args[0], name.removeprefix("re."))
                for call, name in zip(calls, names, strict=True)
                if re.fullmatch(f"re(compile|{METHODS})", name.replace(".", ""))
            ]
            if calls and isinstance(owner, ast.Assign):
                name = ast.unparse(owner.targets[0])
                users = text if name.startswith("_") else whole
                methods = re.findall(rf"\b{name}{METHOD}", users) or [
                    "match" if name in MATCHED else "search"
                ]
                value = getattr(importlib.import_module(module), name)
                for pattern in [value] if isinstance(value, re.Pattern) else value:
                    yield f"{module} {name}", pattern, set(methods)
                continue
            for source, method in calls:
                literal = source.value if isinstance(source, ast.Constant) else None
                pattern = None if literal is None else re.compile(literal)
                yield f"{module} {owner.name}", pattern, {method}


def test_the_form_of_each_pattern_shows_that_it_is_linear() -> None:
    slow = {
        name: pattern and pattern.pattern
        for name, pattern, methods in patterns()
        if pattern is None or Automaton(pattern, methods).ambiguous()
    }
    assert slow.keys() == LINEAR_ANYWAY.keys(), slow


@pytest.mark.parametrize(
    ("pattern", "method", "linear"),
    [
        ("a*b", "search", False), ("a*b", "match", True), ("a*", "search", True),
        ("a+$", "sub", False), ("(a+)+b", "match", False), ("(?:a|a)*b", "match", False),
        (r"\s*,?\s*x", "match", False), (r"\s*+,?\s*+x", "match", True),
        (r"\s*,\s*x", "match", True), (".*a.*b", "match", False), ("(?i)A*[ab]*c", "match", False),
        ("<[^<>]*>", "sub", True), ("<.*?>", "sub", False),
    ],
)  # fmt: skip
def test_what_is_not_linear_is_seen(pattern: str, method: str, linear: bool) -> None:
    assert Automaton(re.compile(pattern), {method}).ambiguous() is not linear
