"""The base of all forms: WTForms with a record to overlay, a context, and errors under the names as
sent.

The same classes read a form body, a JSON body (as pairs), a query, and a form of a browser.
``FormContext`` says which, and has the data that rules need besides the input. ``bind`` turns pairs
into the values of a new record, ``overlay`` into the values of an update, ``query_values`` into
parameters. They raise ``Invalid`` with the first MAX_ERRORS faults.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from wtforms import Form
from wtforms.fields.core import Field, UnboundField

from app.errors import Invalid
from app.i18n import N_, _
from app.rules.brackets import Name, Pairs, parse
from app.rules.text import shortened

UNKNOWN = N_("This operation does not take this field.")
NOT_STATED = N_("This server does not say what is stored.")
NOT_UNDERSTOOD = N_("What this server has stored is hidden, or in a form that is not understood.")
TWICE = N_("This field was sent more than once. Send it once.")
EITHER = N_("Send %(field)s either bare or with an index, not both.")
MAX_ERRORS = 50  # in one answer: a body may have ten thousand misspelt fields
_MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class FormContext:
    """The data that rules need besides the input.

    ``now`` is in UTC, for rules about the future. ``zone`` is for times without an offset.
    ``browser``: absent checkboxes mean no, blank rows are ignored, and a time may omit its seconds.
    ``places``: the titles of the existing places by their names; None if only the store knows them.
    ``contact_exists`` returns whether there is a contact of a name or id; None if only the store
    knows.
    ``bare``: the record is of a server with the base API alone, which lacks Wakeful's rules.
    """

    now: datetime | None = None
    telegram_token_set: bool = False
    zone: ZoneInfo | None = None
    browser: bool = False
    places: Mapping[str, str] | None = None
    contact_exists: Callable[[str], bool] | None = None
    bare: bool = False


class SentPairs(dict[str, list[str]]):
    """Pairs as WTForms reads them: every name with its values in order."""

    def __init__(self, pairs: Pairs) -> None:
        grouped: defaultdict[str, list[str]] = defaultdict(list)
        for name, value in pairs:
            grouped[name].append(value)
        super().__init__(grouped)

    def getlist(self, name: str) -> list[str]:
        return self.get(name, [])


def why_not_shown(record: object, name: str) -> str:
    """Why a page cannot show this field of the record, as a sentence; empty if it can."""
    if name in getattr(record, "missing", ()):
        return _(NOT_STATED)
    return _(NOT_UNDERSTOOD) if name in getattr(record, "misread", ()) else ""


def labels_of(form: type[Form]) -> dict[str, str]:
    """The label of each field by its name, not yet translated."""
    fields = {name: getattr(form, name) for name in dir(form)}
    return {
        name: str(field.kwargs.get("label") or (field.args[0] if field.args else name))
        for name, field in fields.items()
        if isinstance(field, UnboundField)
    }


FormClass = TypeVar("FormClass", bound=type[Form])


def defaults_of(record: type) -> Callable[[FormClass], FormClass]:
    """A decorator that gives the fields of a form the defaults of its record."""
    defaults = {field.name: field.default for field in fields(record)}

    def give(form: FormClass) -> FormClass:
        for name, default in defaults.items():
            field = form.__dict__.get(name)
            if isinstance(field, UnboundField) and default not in (None, MISSING, ()):
                field.kwargs.setdefault("default", default)
        return form

    return give


class SchemaField(Field):
    """The base of all fields: whether it was sent, and its errors under the names as sent."""

    sent = False
    extra = False  # an input of the browser that is not a field of the record
    several = False  # it reads names with an index, such as tags[0]
    nested = False  # it also reads names with three brackets, such as groups[0][monitors][0]
    suggests_tags = False  # a browser offers the existing tags
    warning = ""  # a sentence for the person before the record is saved

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A sentence on why a browser cannot show the stored value; empty if it can. Such a
        # field counts as sent only if a value was entered.
        self.not_shown = self._form.why_not_shown(self.short_name)  # type: ignore[attr-defined]

    def name_fault(self, name: Name) -> str | None:
        """A sentence if this field does not read the name, with brackets or without; else None."""
        raise NotImplementedError

    def how_to_send(self) -> str:
        """A sentence on how to send the value, in answer to a name that the field does not read."""
        raise NotImplementedError

    def repeat_fault(self, name: Name) -> str:
        """The fault of a name that was sent more than once. Several values under a name without
        brackets are a list in another notation.
        """
        return self.how_to_send() if self.several and not name.index else _(TWICE)

    def named_errors(self) -> Iterator[tuple[str, Sequence[str]]]:
        if self.errors:
            yield self.name, self.errors

    def inputs_with_errors(self) -> Iterator[tuple[str, str]]:
        """(id of the input, sentence) for a summary of errors that links to the inputs."""
        for sentence in self.errors:
            yield self.id, sentence

    def refuse_stored(self) -> None:
        """Remove the stored value if the field was not sent: a new server must not get a secret
        that was entered for the old one.
        """
        if not self.sent:
            self.data = self.default

    def add_fault(self, sentence: str) -> None:
        """Add the error of a cross-field rule."""
        self.errors = [*self.errors, sentence]


class SchemaForm(Form):
    """A form over pairs. ``record`` fills the fields that were not sent. ``clone``: it creates a
    new record from them.
    """

    clone = False

    def __init__(
        self,
        formdata: Any = None,
        *,
        record: object | None = None,
        context: FormContext | None = None,
        **kwargs: Any,
    ) -> None:
        self.record = record
        self.context = context or FormContext()
        super().__init__(formdata, obj=record, **kwargs)

    def schema_fields(self) -> Iterator[SchemaField]:
        for field in self:
            if isinstance(field, SchemaField):
                yield field

    def validate(self, extra_validators: Any = None) -> bool:
        super().validate(extra_validators)
        self.check_cross_field()
        return not any(field.errors for field in self) and not self.named_errors()

    def check_cross_field(self) -> None:
        """Check the cross-field rules, which add errors with ``add_fault`` and skip fields that
        have errors already.
        """

    def why_not_shown(self, name: str) -> str:
        return why_not_shown(self.record, name) if self.context.browser else ""

    def add_faults(self, faults: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        """Add the faults of a cross-field rule to their fields."""
        for name, sentence in dict(faults).items():
            field: Any = self[name]
            field.add_fault(sentence)

    def flawless(self, *fields: Field) -> bool:
        return not any(field.errors for field in fields)

    def named_errors(self) -> dict[str, list[str]]:
        """Sentences by the names as sent: ``name``, ``alerts.7.value``."""
        return {
            name: list(sentences)
            for field in self.schema_fields()
            for name, sentences in field.named_errors()
        }

    def takes_stored_password(self) -> bool:
        """Whether an empty password keeps the stored one, as in a browser."""
        return False

    def values(self) -> dict[str, Any]:
        """The values of all fields, by name."""
        return {field.short_name: field.data for field in self.schema_fields() if not field.extra}

    def values_sent(self) -> dict[str, Any]:
        """The values of the fields that were sent."""
        return {
            field.short_name: field.data
            for field in self.schema_fields()
            if field.sent and not field.extra
        }


# --- From pairs to values ------------------------------------------------------------------------


def bind(
    form_class: type[SchemaForm], pairs: Pairs, context: FormContext | None = None
) -> dict[str, Any]:
    """Every field of a new record, defaults included. Raises Invalid."""
    return _validate(form_class, pairs, None, context).values()


def overlay(
    form_class: type[SchemaForm], record: object, pairs: Pairs, context: FormContext | None = None
) -> dict[str, Any]:
    """The sent fields of an update. They are validated together with the other fields of
    ``record``. Raises Invalid.
    """
    return _validate(form_class, pairs, record, context).values_sent()


def query_values(form_class: type[SchemaForm], pairs: Pairs) -> dict[str, Any]:
    """The parameters of a list or of another operation; an empty value counts as not sent. Raises
    Invalid.
    """
    return dict(_cached_values(form_class, tuple(pair for pair in pairs if pair[1] != "")))


@lru_cache(maxsize=256)  # a page that refreshes itself repeats its query, and forms are slow
def _cached_values(
    form_class: type[SchemaForm], pairs: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    return _validate(form_class, pairs, None, None).values()


def _validate(
    form_class: type[SchemaForm], pairs: Pairs, record: object | None, context: FormContext | None
) -> SchemaForm:
    sent_pairs = SentPairs(pairs)
    form = form_class(sent_pairs, record=record, context=context)
    errors = _faulty_names(form, sent_pairs)
    form.validate()
    for name, sentences in form.named_errors().items():
        errors.setdefault(_error_key(name), sentences)
    if errors:
        raise Invalid(dict(list(errors.items())[:MAX_ERRORS]))
    return form


def _faulty_names(form: SchemaForm, sent_pairs: SentPairs) -> dict[str, list[str]]:
    """The errors of unknown names, and of names that were sent twice, or with an index and also
    without.
    """
    fields = {field.name: field for field in form if isinstance(field, SchemaField)}
    errors: dict[str, list[str]] = {}
    names = {raw: _field_name(parse(raw), fields) for raw in sent_pairs}
    with_index = {name.field for name in names.values() if name and name.index is not None}
    for raw, values in sent_pairs.items():
        name = names[raw]
        field = fields.get(raw.partition("[")[0])
        if field is None or field.extra:
            errors[_error_key(name.dotted if name else raw)] = [_(UNKNOWN)]
            continue
        if name is None:  # such as locations[], as other programs write lists
            errors[_error_key(raw)] = [field.how_to_send()]
            continue
        fault = field.name_fault(name)
        if fault:
            errors[_error_key(name.dotted if field.several else name.field)] = [fault]
        elif len(values) > 1:
            errors[_error_key(name.dotted)] = [field.repeat_fault(name)]
        elif name.index is None and name.field in with_index:
            errors[name.field] = [_(EITHER, field=name.field)]
    return errors


def _field_name(name: Name | None, fields: Mapping[str, SchemaField]) -> Name | None:
    """``name``; None if it has more brackets than its field reads."""
    if name is None or name.entry is None:
        return name
    field = fields.get(name.field)
    return name if field is not None and field.nested else None


def _error_key(name: str) -> str:
    """A sent name as the key of an error: cut, and without lone surrogates."""
    short = shortened(name, _MAX_NAME)
    return short.encode("utf-8", "replace").decode()
