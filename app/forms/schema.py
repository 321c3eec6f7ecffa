"""The base of all forms: WTForms with a record to overlay, a context, and errors under the names as
sent.

The same classes read a form body, a JSON body (as pairs), a query, and a browser's form.
``FormContext`` says which, and carries what rules need besides the input.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from wtforms import Form
from wtforms.fields.core import Field, UnboundField

from app.i18n import N_, _
from app.rules import brackets
from app.rules.brackets import Name

UNKNOWN = N_("This operation does not take this field.")
NOT_SENT = N_("This server does not say what is stored.")
NOT_UNDERSTOOD = N_("What this server has stored is hidden, or in a form that is not understood.")
TWICE = N_("This field was sent more than once. Send it once.")
EITHER = N_("Send %(field)s either bare or with an index, not both.")


@dataclass(frozen=True, slots=True)
class FormContext:
    """What rules need besides the input.

    ``now`` is in UTC, for rules about the future. ``zone`` is for times without an offset.
    ``browser``: absent checkboxes mean no, blank rows are ignored, and a time may omit its seconds.
    ``places`` are the existing ones, each name with what people call it; none if only the store
    knows them. ``contact_exists``: whether there is a contact of this name or id; None if only the
    store knows. ``bare``: the record is of a server that speaks the base API alone, which does not
    have Wakeful's own rules.
    """

    now: datetime | None = None
    telegram_token_set: bool = False
    zone: ZoneInfo | None = None
    browser: bool = False
    places: Mapping[str, str] | None = None
    contact_exists: Callable[[str], bool] | None = None
    bare: bool = False


class SentPairs(dict[str, list[str]]):
    """Pairs in the form that WTForms reads: every name with its values in order."""

    def __init__(self, pairs: brackets.Pairs) -> None:
        grouped: defaultdict[str, list[str]] = defaultdict(list)
        for name, value in pairs:
            grouped[name].append(value)
        super().__init__(grouped)

    def getlist(self, name: str) -> list[str]:
        return self.get(name, [])


def why_unclear(record: object, name: str) -> str:
    """Why a page cannot show this field of the record, as a sentence; empty if it can."""
    if name in getattr(record, "missing", ()):
        return _(NOT_SENT)
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
    """Give the fields of a form the defaults of the record that it makes."""
    defaults = {field.name: field.default for field in fields(record)}

    def give(form: FormClass) -> FormClass:
        for name, default in defaults.items():
            field = form.__dict__.get(name)
            if isinstance(field, UnboundField) and default not in (None, MISSING, ()):
                field.kwargs.setdefault("default", default)
        return form

    return give


class SchemaField(Field):
    """A field that knows whether it was sent, and the names for its errors."""

    sent = False
    # Shown and bound, but not a field of the record: extras of the browser.
    extra = False
    # Reads names of three brackets too, such as groups[0][monitors][0].
    nested = False
    suggests_tags = False  # a browser offers the tags that exist
    warning = ""  # what the person should know before it is saved

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Why a browser does not show what is stored; empty if it does. Then the field is only sent
        # when something is entered.
        self.unclear = self._form.why_unclear(self.short_name)  # type: ignore[attr-defined]

    def name_fault(self, name: Name) -> str | None:
        """The fault of a name, bare or with brackets; None if this field reads it."""
        raise NotImplementedError

    def how_to_send(self) -> str:
        """How its value is sent, for names with brackets that no field reads."""
        raise NotImplementedError

    def repeat_fault(self, _name: Name) -> str:
        """The fault of a name that was sent more than once."""
        return _(TWICE)

    def named_errors(self) -> Iterator[tuple[str, Sequence[str]]]:
        if self.errors:
            yield self.name, self.errors

    def inputs_with_errors(self) -> Iterator[tuple[str, str]]:
        """(id of the input, sentence) for a summary of errors that links to the inputs."""
        for sentence in self.errors:
            yield self.id, sentence

    def refuse_stored(self) -> None:
        """Do not keep the stored value of this field, or a new URL would get the old secret."""
        if not self.sent:
            self.data = self.default

    def add_fault(self, sentence: str) -> None:
        """Add the error of a rule that no single value breaks."""
        self.errors = [*self.errors, sentence]


class SchemaForm(Form):
    """A form over pairs. ``record`` fills the fields that were not sent. ``clone``: they make a new
    record.
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
        """The cross-field rules of the form. They add errors with ``add_fault``, and skip fields
        that have errors already.
        """

    def why_unclear(self, name: str) -> str:
        return why_unclear(self.record, name) if self.context.browser else ""

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
        """Whether an empty password stands for the stored one. It does so only in a browser."""
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

    def time_now(self) -> datetime:
        return self.context.now or datetime.now(UTC)
