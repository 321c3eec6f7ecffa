"""The names of a form's inputs and the words of its choices as people know them, for pages that
show what was typed without the form around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from wtforms import Form
from wtforms.fields.core import UnboundField

from app.forms import browser
from app.forms.browser import BrowserForm
from app.forms.fields import Switch
from app.i18n import _
from app.web import forms


def label_of(name: str) -> str:
    """``Alerts, row 1: Channel`` of ``alerts[0][key]``; a name that no form has is spelt out."""
    base, rest = name.partition("[")[::2]
    field = _fields().get(base)
    label = field.kwargs.get("label") if field else None
    label = label or (
        field.args[0] if field and field.args else base.replace("_", " ").capitalize()
    )
    label = _(label)
    number, half = rest.rstrip("]").partition("][")[::2]
    if number.isdecimal() and len(number) < 4:
        label = _("%(field)s, row %(number)s", field=label, number=int(number) + 1)
    return f"{label}{_half(field, half)}"


def is_box(name: str) -> bool:
    """Whether the input is a checkbox: what it sends means yes."""
    field = _fields().get(name)
    return field is not None and issubclass(field.field_class, Switch)


def choice_of(name: str, value: str) -> str:
    """``Viewer: read only`` of the role ``viewer``: what the person chose, as the form calls it.
    What no form offers stays as it is.
    """
    label = _choices().get(name, {}).get(value)
    return value if label is None else _(label)


def _half(field: UnboundField[Any] | None, half: str) -> str:
    labels = {} if field is None else field.kwargs
    return f": {_(labels[f'{half}_label'])}" if f"{half}_label" in labels else ""


@cache
def _fields() -> dict[str, UnboundField[Any]]:
    return dict(_all_fields())


@cache
def _choices() -> dict[str, dict[str, str]]:
    """By field and word. Several forms may have a field of the name, each with words of its own."""
    found: dict[str, dict[str, str]] = {}
    for name, field in _all_fields():
        words, labels = field.kwargs.get("words"), field.kwargs.get("labels")
        if words is not None and labels is not None:
            found.setdefault(name, {}).update((word.value, labels(word)) for word in words)
    return found


def _all_fields() -> Iterator[tuple[str, UnboundField[Any]]]:
    for form in (*_below(BrowserForm), *vars(forms).values(), *vars(browser).values()):
        if isinstance(form, type) and issubclass(form, Form):
            for name in dir(form):
                field = None if name.startswith("_") else getattr(form, name)
                if isinstance(field, UnboundField):
                    yield name, field


def _below(form: type[Form]) -> Iterator[type[Form]]:
    """The forms made of this one, those of single pages too."""
    for one in form.__subclasses__():
        yield one
        yield from _below(one)
