"""Mark and translate the sentences that people read. They are in one gettext catalogue.

``_`` translates a sentence, ``_n`` one that counts something, both when they are called: inside a
function, never while a module is imported. ``N_`` marks a constant of a module or a class, which
``_`` translates where it is shown. Values have names: ``_("%(name)s is down.", name=name)``. A
sentence with values needs ``%%`` for a per cent sign, a sentence without values a single ``%``.

Templates have ``_`` and ``_n`` too, and ``{% trans %}`` for a sentence with markup in it. Scripts
take their sentences from ``data-`` attributes of the page.
``make messages`` collects what is marked in app/translations/messages.pot. There is no second
language yet: without a chosen translation, every sentence is the English one of the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from gettext import NullTranslations
from typing import Any

ENGLISH = "en"

_chosen: ContextVar[NullTranslations | None] = ContextVar("translations", default=None)


def choose(translations: NullTranslations | None) -> None:
    """Translate with ``translations`` in this thread or task, until the next choice."""
    _chosen.set(translations)


@contextmanager
def speaking(translations: NullTranslations | None) -> Iterator[None]:
    """Translate with ``translations`` inside the ``with`` block."""
    token = _chosen.set(translations)
    try:
        yield
    finally:
        _chosen.reset(token)


def spoken() -> str:
    """The language of the sentences, for the ``lang`` of a page."""
    translations = _chosen.get()
    language = translations.info().get("language", ENGLISH) if translations else ENGLISH
    return language.replace("_", "-")


class Marked(str):
    """A sentence in English, for ``_`` to translate later. ``pattern`` has the names of
    ``values`` in it; the text itself has the values.
    """

    __slots__ = ("pattern", "values")

    pattern: str
    values: dict[str, Any]

    def __new__(cls, pattern: str, values: dict[str, Any]) -> Marked:
        marked = super().__new__(cls, pattern % values)
        marked.pattern, marked.values = pattern, values
        return marked


def N_(sentence: str, /, **values: Any) -> str:
    """Mark a constant for the catalogue; the English text until ``_`` translates it."""
    return Marked(sentence, values) if values else sentence


def _(sentence: str, /, **values: Any) -> str:
    """``sentence`` in the chosen language, with ``values`` filled in.

    An empty string stays empty: gettext would answer with the catalogue's header.
    """
    if isinstance(sentence, Marked):
        values = sentence.values
        sentence = sentence.pattern
    translations = _chosen.get()
    text = translations.gettext(sentence) if translations and sentence else sentence
    return text % values if values else text


def _n(singular: str, plural: str, num: float, /, **values: Any) -> str:
    """``singular`` or ``plural``, by the chosen language's rule for the number ``num``.

    ``%(num)s`` stands for the number, unless ``values`` says how it is written.
    """
    return _ngettext(singular, plural, num) % ({"num": num} | values)


AND, OR = N_("%(names)s and %(last)s"), N_("%(names)s or %(last)s")


def join_words(names: Iterable[str], sentence: str = AND) -> str:
    """``Oslo, Sydney and Bergen``; with ``or`` if ``sentence`` is OR."""
    *first, last = list(names) or [""]
    return _(sentence, names=", ".join(first), last=last) if first else last


def _gettext(sentence: str) -> str:
    translations = _chosen.get()
    return translations.gettext(sentence) if translations else sentence


def _ngettext(singular: str, plural: str, num: float) -> str:
    translations = _chosen.get()
    # Plural rules have no form for fractions; English says "1.5 days".
    if translations and num == int(num):
        return translations.ngettext(singular, plural, int(num))
    return singular if num == 1 else plural


def install(environment: Any) -> None:
    """Add the extension for ``{% trans %}`` and the functions to ``environment``, which is Jinja's.

    The new style of the extension is off: it would mark every result of ``_`` as safe HTML, also a
    result that contains what somebody typed.
    """
    environment.add_extension("jinja2.ext.i18n")
    environment.policies["ext.i18n.trimmed"] = True
    environment.install_gettext_callables(_gettext, _ngettext, newstyle=False)
    environment.globals.update(_=_, _n=_n, spoken=spoken)
