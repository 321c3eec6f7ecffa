"""Fields with a single value. ``app.rules.text`` has the sentences for refusals.

A field that is not sent keeps the record's value. A field that is sent empty gets its default, or
None if it has none; an empty switch without a default is refused. Templates read labels, help texts
and choices from the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, ClassVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from wtforms import widgets
from wtforms.fields.choices import Choice, SelectFieldBase  # type: ignore[attr-defined]
from wtforms.fields.core import Field
from wtforms.form import BaseForm
from wtforms.validators import ValidationError

from app.checks.kinds import read_url
from app.forms.schema import SchemaField, SchemaForm
from app.i18n import N_, _
from app.records import AUTO, MASK, MAX_TAG, mask
from app.rules import text, zones
from app.rules.brackets import Name, Typed
from app.rules.quiet_hours import parse_clock, parse_zone
from app.rules.time import in_zone

MASK_WITHOUT_STORED = N_(
    "This value is masked, and no stored value matches it. Send the value itself."
)


Labels = Mapping[Any, str]


def form_of(field: Field) -> SchemaForm:
    form: SchemaForm = field._form  # type: ignore[attr-defined]
    return form


def looks_masked(value: str) -> bool:
    return value.startswith(MASK) and len(value) in (len(MASK), len(MASK) + 4)


KEEP = "keep"  # the choice that keeps a stored value that is not known
LEAVE = N_("Leave as it is")


class OneValue(SchemaField):
    """The base of fields with a single value. ``read`` converts text that is not empty into a
    value, or raises ValueError with a sentence.
    """

    keeps = ""  # the input of a browser that keeps the stored value, if the field is ``not_shown``

    # WTForms' stubs type ``widget`` by field class
    widget: Any = widgets.TextInput()

    def __init__(self, *args: Any, required: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.required = required = required and not self.not_shown
        self.sent_text: str | None = None  # to show again beside its error
        if required:
            self.flags.required = True

    def name_fault(self, name: Name) -> str | None:
        return None if name.index is None else self.how_to_send()

    def how_to_send(self) -> str:
        return _(text.ONE_VALUE)

    def process_formdata(self, valuelist: list[Any]) -> None:
        self.sent = bool(valuelist)
        if not valuelist:
            return
        self.sent_text = valuelist[0]
        if self.is_untouched(valuelist[0]):
            self.sent = not self.not_shown
            self.data = self.object_data if self.sent else None
        elif self.is_empty(valuelist[0]):
            self.data = self.default
        else:
            self.data = self.read(valuelist[0])

    def process_data(self, value: Any) -> None:
        super().process_data(None if self.not_shown else value)

    def is_untouched(self, value: str) -> bool:
        """Whether a browser sent the text that the page showed. The field then keeps its stored
        value, which ``read`` may refuse or change: a time that occurs twice, or a value of another
        server. The text that is shown in place of a damaged value counts as entered.
        """
        form = form_of(self)
        damaged = getattr(form.record, "unreadable", ())
        if not form.context.browser or form.record is None or self.short_name in damaged:
            return False
        page_text = self.keeps if self.not_shown else self.show(self.object_data)
        return _unified_lines(value) == _unified_lines(page_text)

    def is_empty(self, value: str) -> bool:
        return value == "" and not isinstance(value, Typed)

    def read(self, value: str) -> Any:
        raise NotImplementedError

    def show(self, data: Any) -> str:
        """The text for the input."""
        return "" if data is None else str(data)

    def _value(self) -> str:
        return self.show(self.data) if self.sent_text is None else self.sent_text

    def pre_validate(self, form: BaseForm) -> None:
        if self.required and self.data is None and not self.process_errors:
            raise ValidationError(_(text.REQUIRED))


class Text(OneValue):
    """Text as sent. ``limit`` is in characters, ``max_bytes`` in UTF-8 bytes; ``lines`` accepts
    tabs and line breaks."""

    def __init__(
        self,
        *args: Any,
        limit: int | None = None,
        max_bytes: int | None = None,
        lines: bool = False,
        unify_lines: bool = False,
        rule: Callable[[str], object] | None = None,
        **kwargs: Any,
    ) -> None:
        if lines:
            kwargs.setdefault("widget", widgets.TextArea())
        super().__init__(*args, **kwargs)
        self.limit, self.max_bytes, self.lines = limit, max_bytes, lines
        # A browser sends every line break as CRLF, whatever was typed or stored.
        self.unify_lines = unify_lines or (lines and form_of(self).context.browser)
        self.rule = rule
        if limit is not None:
            self.flags.maxlength = limit

    def read(self, value: str) -> str:
        text.one_value(value)
        if self.unify_lines and not isinstance(value, Typed):
            value = _unified_lines(value)
        if self.limit is not None:
            text.length(value, self.limit)
        if self.max_bytes is not None:
            text.size(value, self.max_bytes)
        text.characters(value, lines=self.lines)
        if self.required and not value.strip():
            raise ValueError(_(text.REQUIRED))
        if self.rule is not None:
            self.rule(value)
        return value


class Tag(Text):
    """One tag of monitors."""

    suggests_tags = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, limit=MAX_TAG, **kwargs)

    def read(self, value: str) -> str:
        if "," in value:
            raise ValueError(_("Enter one tag, without a comma."))
        return super().read(value).strip()


class Url(Text):
    """A URL, read by the same rule as in checks. A bare remote server accepts only web URLs."""

    widget = widgets.URLInput()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rule = _read_web_url if form_of(self).context.bare else read_url

    def read(self, value: str) -> str:
        if form_of(self).context.browser:
            self.sent_text = value = with_scheme(value)
        return super().read(value)


def _read_web_url(url: str) -> None:
    """The rule for a server with the base API alone, which checks by HTTP requests."""
    parts = urlsplit(url)  # may raise ValueError
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ValueError(_("This server checks web addresses alone, such as https://example.com."))


def with_scheme(text: str) -> str:
    """The text with ``https://`` in front, if it is a URL without a scheme, such as
    ``example.com``, ``example.com:8443/health`` or ``localhost``.
    """
    text = text.strip()
    host = re.split("[/?#]", text, maxsplit=1)[0]
    _name, colon, port = host.rpartition(":")
    lacks_scheme = port.isdigit() if colon and not host.endswith("]") else bool(host)
    plausible = "." in host or bool(colon) or host == "localhost"
    return f"https://{text}" if lacks_scheme and plausible and "://" not in text else text


ELSEWHERE = N_(
    "The URL names another server now, or its certificate is no longer verified, and a stored"
    " secret is not sent there. Enter it again, or remove it."
)


class Secret(Text):
    """Text that the dashboard shows masked. If the mask is sent back, the stored value is kept
    (decision 3).
    """

    def read(self, value: str) -> str:
        entered = super().read(value)
        secret = self.object_data
        if isinstance(secret, str) and _unified_lines(entered) == _unified_lines(mask(secret)):
            return secret
        if looks_masked(entered):
            raise ValueError(_(MASK_WITHOUT_STORED))
        return entered

    def show(self, data: Any) -> str:
        return "" if data is None else mask(str(data))

    def refuse_stored(self) -> None:
        """Remove the stored value if the field was not sent, and refuse a mask if it was."""
        if self.sent and self.sent_text is not None and looks_masked(self.sent_text):
            self.add_fault(_(ELSEWHERE))
        super().refuse_stored()


def _unified_lines(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\r", "\n")


class Password(Text):
    """A password, which is never shown. An empty one from a browser keeps the stored one."""

    widget = widgets.PasswordInput(hide_value=True)

    def process_formdata(self, valuelist: list[Any]) -> None:
        if form_of(self).context.browser and valuelist and valuelist[0] == "":
            return
        super().process_formdata(valuelist)

    def refuse_stored(self) -> None:
        """Refuse an empty field of a browser, which would keep the stored password."""
        if form_of(self).takes_stored_password():
            self.add_fault(_(ELSEWHERE))


class Number(OneValue):
    """A whole number within ``bounds``: the lowest and, if there is one, the highest."""

    widget = widgets.NumberInput()

    def __init__(self, label: str, bounds: tuple[int, int | None], **kwargs: Any) -> None:
        super().__init__(label, **kwargs)
        self.low, self.high = self.flags.min, high = bounds
        if high is not None:
            self.flags.max = high

    def read(self, value: str) -> int:
        number = text.integer(value)
        if number < self.low or (self.high is not None and number > self.high):
            raise ValueError(
                _("Enter a whole number from %(low)s to %(high)s.", low=self.low, high=self.high)
                if self.high is not None
                else _("Enter a whole number, %(low)s or more.", low=self.low)
            )
        return number


class RecordId(OneValue):
    """A whole number that may be an id; only the store knows whether the record exists."""

    def read(self, value: str) -> int:
        return text.integer(value)


class Ids(OneValue):
    """Ids of records, separated by commas because a query's length is limited: a tuple of ``int``
    without duplicates. Only the store knows whether the records exist.
    """

    def __init__(self, *args: Any, limit: int, **kwargs: Any) -> None:
        super().__init__(*args, **{"default": (), **kwargs})
        self.limit = limit

    def read(self, value: str) -> tuple[int, ...]:
        ids = tuple(dict.fromkeys(text.record_id(part) for part in value.split(",")))
        if len(ids) > self.limit:
            raise ValueError(text.too_many(self.limit))
        return ids


class Options(OneValue, SelectFieldBase):
    """One of a few values, each with its label. ``choices`` are (text, label) for a select; an
    optional field starts with ``none``. ``labels`` with numbers in them are a function, which is
    called for each form in its language. ``label_of``: returns the label of a stored value that is
    none of the choices.
    """

    widget = widgets.Select()
    keeps = KEEP

    def __init__(
        self,
        label: str,
        labels: Labels | Callable[[], Labels],
        none: str | None = None,
        label_of: Callable[[Any], str] = str,
        **kwargs: Any,
    ) -> None:
        super().__init__(label, **kwargs)
        self.label_of = label_of
        labels = labels() if callable(labels) else labels
        self.allowed = {str(value): value for value in labels}
        self.choices = [(KEEP, LEAVE)] if self.not_shown else []
        self.choices += [("", none)] if none is not None else []
        self.choices += [(str(value), label) for value, label in labels.items()]

    def process_data(self, value: Any) -> None:
        super().process_data(value)
        is_stored = value is not None and form_of(self).context.browser and not self.not_shown
        # Another server may have stored a value that is none of the choices.
        if is_stored and form_of(self).record is not None and str(value) not in self.allowed:
            self.allowed[str(value)] = value
            self.choices.append((str(value), self.label_of(value)))

    def leave_out(self, *values: str) -> None:
        """Neither show nor accept these."""
        self.choices = [choice for choice in self.choices if choice[0] not in values]
        for value in values:
            del self.allowed[value]
        if self.data in values:
            self.process_errors = [text.one_of(self.allowed)]

    def read(self, value: str) -> Any:
        word = str(text.one_value(value))
        if word in self.allowed:
            return self.allowed[word]
        raise ValueError(text.one_of(self.allowed))

    def iter_choices(self) -> Iterator[Choice]:
        current = self._value()
        if self.not_shown and self.sent_text is None:
            current = KEEP
        for value, label in self.choices:
            yield Choice(value, _(label), value == current, {})


class WordChoice(Options):
    """One of an enum's words, matched exactly. ``words``: the enum, or the label of each word."""

    def __init__(self, label: str, words: type[StrEnum] | Labels, **kwargs: Any) -> None:
        if isinstance(words, type):
            super().__init__(label, {word: word.value for word in words}, **kwargs)
            self.words = words
        else:
            super().__init__(label, words, **kwargs)
            self.words = type(next(iter(words)))


class NumberChoice(Options):
    """One of a few whole numbers."""

    def read(self, value: str) -> Any:
        return super().read(str(text.integer(value)))


class CertificateDays(NumberChoice):
    """Some days before a certificate expires, or ``auto``."""

    def read(self, value: str) -> Any:
        return AUTO if value == AUTO and AUTO in self.allowed else super().read(value)


class Switch(OneValue, SelectFieldBase):
    """True or false. In a browser it is a checkbox, and not sent means no."""

    widget: Any = widgets.CheckboxInput()
    on: ClassVar[Any] = True
    off: ClassVar[Any] = False
    choices: Sequence[tuple[str, str]] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.not_shown:  # a box cannot say that nothing is chosen
            self.widget, self.keeps = widgets.Select(), KEEP
            self.choices = [(KEEP, LEAVE), ("1", N_("On")), ("0", N_("Off"))]

    def iter_choices(self) -> Iterator[Choice]:
        for value, label in self.choices or ():
            yield Choice(value, _(label), value == (self.sent_text or KEEP), {})

    def process_formdata(self, valuelist: list[Any]) -> None:
        if form_of(self).context.browser and not valuelist and not self.not_shown:
            self.sent, self.data = True, self.off
        else:
            super().process_formdata(valuelist[-1:] if form_of(self).context.browser else valuelist)

    def is_empty(self, value: str) -> bool:
        return super().is_empty(value) and self.default is not None

    def read(self, value: str) -> Any:
        return self.on if text.boolean(value) else self.off

    def _value(self) -> str:
        return "1"  # what a checked checkbox sends


class NumberSwitch(Switch):
    """A switch that the base API writes as the integer 0 or 1."""

    on = 1
    off = 0

    def read(self, value: str) -> Any:
        number = text.integer(value)
        if number not in (0, 1):
            raise ValueError(text.one_of(["0", "1"]))
        return number


class ClockTime(OneValue):
    """A time of day as ``HH:MM``, on the clock of a zone that another field names."""

    widget = widgets.TimeInput()

    def read(self, value: str) -> str:
        parse_clock(text.one_value(value))
        return str(value)


class _ZoneList(widgets.Select):
    """A list whose options are rendered once and cached: 400 of them take longer than the rest of
    the form.
    """

    @classmethod
    def render_option(cls, choice: Any, **_kwargs: Any) -> Any:  # type: ignore[override]
        return _zone_option(choice.value, choice.label, choice.selected)


@lru_cache(maxsize=2_000)
def _zone_option(name: str, label: str, selected: bool) -> Any:
    """The option of a zone. ``data-was``: its older name, which browsers may still use."""
    was = {"data-was": zones.FORMER[name]} if name in zones.FORMER else {}
    render: Any = widgets.Select.render_option  # of which types-WTForms has the old signature
    return render(Choice(name, label, selected, was))


class Zone(Text, SelectFieldBase):
    """The IANA name of a time zone; in a browser, a list by region. A stored zone stays in the
    list. ``none``: the label of the choice without a zone, if there is one.
    """

    widget = _ZoneList()

    def __init__(self, *args: Any, none: str = "", **kwargs: Any) -> None:
        self.none = none
        super().__init__(*args, rule=parse_zone, **kwargs)

    @property
    def choices(self) -> Sequence[str]:
        return zones.offered()

    def has_groups(self) -> bool:
        return True

    def iter_groups(self) -> Iterator[tuple[str, list[Choice]]]:
        current = self._value()
        if self.none:
            yield _("Default"), [Choice("", _(self.none), not current, {})]
        if current and current not in self.choices:
            yield _(zones.OTHER_REGION), [Choice(current, current.replace("_", " "), True, {})]
        for region, names in zones.by_region().items():
            yield region, [Choice(name, zones.city_of(name), name == current, {}) for name in names]


class DateTime(OneValue):
    """A time, aware and in UTC. A browser sends it in the person's zone."""

    widget = widgets.DateTimeLocalInput()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("render_kw", {"step": "1"})
        super().__init__(*args, **kwargs)

    def read(self, value: str) -> datetime:
        zone = form_of(self).context.zone
        if zone is None or not form_of(self).context.browser:
            return text.moment(value)
        return typed_in(zone, value)

    def show(self, data: Any) -> str:
        if not isinstance(data, datetime):
            return ""
        local = in_zone(data, form_of(self).context.zone or UTC)
        return local.replace(tzinfo=None, microsecond=0).isoformat()


def typed_in(zone: ZoneInfo, value: str) -> datetime:
    """A time as typed in ``zone``; the first moment if the time occurs twice."""
    if len(value) == len("2026-11-21T08:00"):
        value += ":00"  # browsers omit seconds of zero
    wall = text.moment(f"{value}Z").replace(tzinfo=None)  # browsers send no zone
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) != wall:
        raise ValueError(
            _(
                "This time does not exist in %(zone)s: the clocks go forward. "
                "Choose a time one hour later.",
                zone=zone.key,
            )
        )
    return moment
