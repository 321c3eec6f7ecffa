"""The list of a monitor's assertions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from app.forms.fields import MASK_WITHOUT_STORED, form_of, looks_masked
from app.forms.lists import PairList, PairRow
from app.i18n import N_, _
from app.records import MAX_ASSERTIONS, Assertion
from app.rules import text
from app.rules.assertions import LABELS, OP_LABELS, faults
from app.rules.brackets import Typed

_LABELS = {
    "source": N_("What"), "property": N_("Header or path"), "op": N_("Condition"),
    "value": N_("Value"),
}  # fmt: skip
_CHOICES = {
    "source": [(str(source), label) for source, label in LABELS.items()],
    "op": [(str(op), label) for op, label in OP_LABELS.items()],
}


@dataclass(slots=True)
class AssertionRow(PairRow):
    """One row as sent or shown."""

    columns: ClassVar[tuple[str, ...]] = ("source", "property", "op", "value")
    source: str = ""
    property: str = ""
    op: str = ""


class AssertionList(PairList):
    """A tuple of ``Assertion``."""

    row_type = AssertionRow

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(
            *args,
            limit=MAX_ASSERTIONS,
            labels=_LABELS,
            choices=_CHOICES,
            hide=Assertion.masked,
            **kwargs,
        )

    def how_to_send_row(self, index: str) -> str:
        row = f"{self.name}[{index}]"
        return _("Send %(row)s[source], [property], [op] and [value].", row=row)

    def how_to_send(self) -> str:
        return _(
            "Send %(name)s[0][source], [property], [op] and [value] (a list of objects in JSON), "
            "or the bare name empty to clear the list.",
            name=self.name,
        )

    def row_of(self, index: str, entry: Any) -> PairRow:
        masked = entry.masked()
        return AssertionRow(
            self.name,
            index,
            source=masked.source,
            property=masked.property or "",
            op=masked.op,
            value=masked.value or "",
        )

    def entry_of(self, row: Any) -> Assertion:
        return Assertion(
            str(row.source), str(row.property) or None, str(row.op), str(row.value) or None
        )

    def validate_row(self, row: Any) -> Assertion:
        """Validate a row. JSON may send a number or a boolean as the value; it is compared
        as text.
        """
        entry = self.entry_of(row)
        for column in row.columns:
            value = getattr(row, column)
            is_scalar = column == "value" and getattr(value, "kind", "") in ("number", "boolean")
            if isinstance(value, Typed) and not is_scalar:
                fault = text.fault_of(lambda value=value: text.characters(value))  # type: ignore[misc]
                row.errors[column].append(fault or _(text.ONE_VALUE))
        if row.all_errors:
            return entry
        if looks_masked(row.value):
            row.errors["value"].append(_(MASK_WITHOUT_STORED))
        else:
            for column, sentence in faults(entry).items():
                row.errors[column].append(sentence)
        return entry

    def add_offered(self, pressed: str) -> None:
        """Add the row that a button offers. ``pressed``: the value of the button, with the parts of
        the row as a list in JSON.
        """
        try:
            parts = json.loads(pressed)
        except (ValueError, RecursionError):
            parts = None
        if isinstance(parts, list) and len(parts) == len(AssertionRow.columns):
            self.rows = [row for row in self.rows if not row.is_blank]
            row = self.add_row()
            for column, part in zip(row.columns, parts, strict=True):
                setattr(row, column, part if isinstance(part, str) else "")

    def add_row_fault(self, position: int, column: str, sentence: str) -> None:
        """``position``: the index of the row among the rows that are not blank."""
        browser = form_of(self).context.browser
        row = [row for row in self.rows if not (browser and row.is_blank)][position]
        if not row.errors[column]:
            row.errors[column].append(sentence)
