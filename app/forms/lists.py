"""Fields with several values: rows of key and value, lists of ids, tags.

If any index is sent, the list is replaced as a whole; the unindexed name, sent empty, clears it.
Indices may have gaps and start anywhere: they order the list as numbers (decision 2). Errors have
the index as sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from markupsafe import Markup
from wtforms import widgets
from wtforms.fields.core import Field
from wtforms.utils import unset_value

from app.forms.fields import ELSEWHERE, MASK_WITHOUT_STORED, OneValue, form_of, looks_masked
from app.forms.schema import TWICE, SchemaField, SentPairs
from app.i18n import N_, _
from app.records import DEFAULT_PLACES, MAX_CONTACT_NAME, MAX_LOCATION, MAX_TAG, MAX_TAGS, Pair
from app.rules import text
from app.rules.brackets import Name, Typed, index_order, parse

SEND_INDICES = N_(
    "Send %(name)s[0]=%(example)s and so on (a list in JSON), or the bare name empty for none."
)
REPLACES = N_(
    "This would replace all that this server has stored, which is not known here. Select the box to"
    " replace it, or remove what you entered."
)
NO_SUCH_PLACE = N_("No place has this name.")


@dataclass(slots=True)
class IndexedRow:
    """One row of a list. ``index``: the digits as sent."""

    list_name: str
    index: str

    def name_of(self, column: str) -> str:
        return f"{self.list_name}[{self.index}][{column}]"

    def id_of(self, column: str) -> str:
        return f"{self.list_name}-{self.index}-{column}"


@dataclass(slots=True)
class PairRow(IndexedRow):
    """One row of key and value as sent or shown."""

    columns: ClassVar[tuple[str, ...]] = ("key", "value")
    key: str = ""
    value: str = field(default="", repr=False)
    sent: frozenset[str] = frozenset()
    errors: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def is_blank(self) -> bool:
        return not any(getattr(self, column) for column in self.columns)

    @property
    def all_errors(self) -> list[str]:
        return [sentence for column in self.columns for sentence in self.errors[column]]

    @property
    def button_value(self) -> str:
        """The value of a ``remove`` or ``try`` button for this row."""
        return f"{self.list_name}[{self.index}]"


def indexed_names(field_name: str, formdata: Any) -> list[Name]:
    """The names with an index that were sent for a field, in numeric order of the indices, without
    names that have a second index.
    """
    names = (parse(name) for name in formdata if name.startswith(f"{field_name}["))
    flat = (name for name in names if name and name.entry is None)
    return sorted(flat, key=lambda name: name.order)


class ListField(SchemaField):
    """The base of fields whose values have indices."""

    widget: Any = widgets.ListWidget()
    several = True

    def _value(self) -> str:
        return ""

    def names_in(self, formdata: Any) -> list[Name]:
        """The names with an index that were sent for this field, in order."""
        return indexed_names(self.name, formdata)

    def begin(
        self, formdata: Any, data: Any, *, takes_unindexed: bool = False
    ) -> list[Name] | None:
        """The first step of ``process``. Return the names to read, or None if there is nothing to
        read. ``takes_unindexed``: the unindexed name may have values too.
        """
        self.object_data = tuple(data) if isinstance(data, tuple | list) else ()
        self.process_errors, self.raw_data = [], []
        names = self.names_in(formdata) if formdata is not None else []
        unindexed = formdata.getlist(self.name) if formdata is not None else []
        browser = form_of(self).context.browser
        self.sent = bool(names or unindexed) or (browser and formdata is not None)
        unread = unindexed and not names and not takes_unindexed
        if unread and (unindexed[0] or isinstance(unindexed[0], Typed)):
            self.process_errors = [self.how_to_send()]
            return None
        return names if self.sent else None

    def entry_faults(self) -> Iterator[tuple[str, str, Sequence[str]]]:
        """The faults of entries. For each: the part of the error's name after the field's name, the
        id of the input, and the sentences.
        """
        raise NotImplementedError

    def validate(self, form: Any, extra_validators: Any = ()) -> bool:
        self.errors = list(self.process_errors)
        return not self.errors and not any(True for _fault in self.entry_faults())

    def named_errors(self) -> Iterator[tuple[str, Sequence[str]]]:
        yield from super().named_errors()
        for part, _input, sentences in self.entry_faults():
            yield f"{self.name}.{part}", sentences

    def inputs_with_errors(self) -> Iterator[tuple[str, str]]:
        yield from super().inputs_with_errors()
        for _part, input_id, sentences in self.entry_faults():
            for sentence in sentences:
                yield input_id, sentence


Choices = Sequence[tuple[str, str]]  # values with their labels
Faults = tuple[str | None, str | None]  # of a key and of a value


class PairList(ListField):
    """Rows of key and value: a tuple of ``Pair``.

    ``labels`` and ``choices``: by the column of a row. ``check`` returns the faults of a row.
    ``hide`` masks a stored row. The dashboard and read-only keys get masked values; a mask that
    matches a stored row keeps the value of that row.
    """

    row_type: type[PairRow] = PairRow

    def __init__(
        self,
        *args: Any,
        limit: int,
        labels: Mapping[str, str],
        choices: Mapping[str, Choices] | None = None,
        check: Callable[[Field, Pair], Faults] | None = None,
        required: bool = False,
        hide: Callable[[Any], Any] = Pair.masked,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **{"default": (), **kwargs})
        self.limit, self.labels, self.choices = limit, labels, choices or {}
        self.check, self.required, self.hide = check, required, hide
        self.rows: list[PairRow] = []
        self.replaces = False  # whether the box to replace a ``not_shown`` list is checked

    def name_fault(self, name: Name) -> str | None:
        if name.index is None or name.column in self.row_type.columns:
            return None
        return self.how_to_send_row(name.index[:20])

    def how_to_send_row(self, index: str) -> str:
        return _(
            "Send %(name)s[%(index)s][key] and %(name)s[%(index)s][value].",
            name=self.name,
            index=index,
        )

    def how_to_send(self) -> str:
        return _(
            "Send %(name)s[0][key] and %(name)s[0][value], "
            "or the bare name empty to clear the list.",
            name=self.name,
        )

    def process(self, formdata: Any, data: Any = None, extra_filters: Any = None) -> None:
        names = self.begin(formdata, data)
        # A stored list that cannot be read has no rows for a mask to match.
        stored: tuple[Pair, ...] = () if self.not_shown else self.object_data
        self.data = stored
        if names is None:
            entries = () if self.sent else stored
            self.rows = [self.row_of(str(number), pair) for number, pair in enumerate(entries)]
            return
        browser = form_of(self).context.browser
        if len(names) > 10 * self.limit:  # a page with so many rows is of no use
            self.process_errors = [text.too_many(self.limit)]
            return
        self.rows = self._read_rows(formdata, names)
        used = [row for row in self.rows if not (browser and self.is_unused(row))]
        if len(used) > self.limit:
            self.process_errors = [text.too_many(self.limit)]
        else:
            self.validate_rows(used, stored)
        if self.not_shown:
            self._replace(formdata, used)

    def _replace(self, formdata: Any, used: list[PairRow]) -> None:
        """Accept rows in place of stored ones that a remote server did not show, if the box to
        replace these is checked. A clone replaces nothing.
        """
        self.replaces = bool(formdata.get(f"replace_{self.name}"))
        self.sent = bool(used) if form_of(self).clone else self.replaces
        if used and not self.sent:
            self.process_errors = [_(REPLACES)]

    def row_of(self, index: str, pair: Any) -> PairRow:
        """The row that shows a stored entry, with masks."""
        masked = self.hide(pair)
        return PairRow(self.name, index, masked.key, masked.value)

    def entry_of(self, row: PairRow) -> Any:
        """The values of a row."""
        return Pair(row.key, row.value)

    def is_unused(self, row: PairRow) -> bool:
        """Whether a row of a browser was left empty."""
        return row.is_blank

    def _read_rows(self, formdata: Any, names: list[Name]) -> list[PairRow]:
        rows: dict[tuple[int, str], PairRow] = {}
        for name in names:
            row = rows.setdefault(name.order, self.row_type(self.name, name.index or ""))
            value = formdata.getlist(f"{self.name}[{name.index}][{name.column}]")
            if name.column not in row.columns or not value:
                continue
            if name.column in row.sent:  # alerts[1] and alerts[01]
                row.errors[row.columns[0]].append(_(TWICE))
                continue
            row.sent |= {name.column}
            setattr(row, name.column, value[0])
        return list(rows.values())

    def validate_rows(self, rows: list[PairRow], entries: tuple[Any, ...]) -> None:
        """Set ``data``: the stored entries of masked rows, and the validated values of others."""
        unused = dict(enumerate(entries))
        stored_rows: dict[str, Any] = {}
        # Rows at their own index first: a moved row must not take the value of a row that stayed.
        for at_own_index in (True, False):
            for row in rows:
                if row.index in stored_rows or not looks_masked(row.value):
                    continue
                for position, pair in unused.items():
                    if at_own_index and index_order(str(position)) != index_order(row.index):
                        continue
                    if self.hide(pair) == self.entry_of(row):
                        stored_rows[row.index] = unused.pop(position)
                        break
        self.data = tuple(stored_rows.get(row.index) or self.validate_row(row) for row in rows)

    def note_missing(self, row: PairRow) -> None:
        for column in row.columns:
            if column not in row.sent:
                row.errors[column].append(_(text.INCOMPLETE_ROW))

    def validate_row(self, row: PairRow) -> Any:
        self.note_missing(row)
        pair = Pair(row.key, row.value)
        if not row.all_errors:
            if looks_masked(row.value):
                row.errors["value"].append(_(MASK_WITHOUT_STORED))
            elif self.check:
                for column, fault in zip(row.columns, self.check(self, pair), strict=True):
                    row.errors[column] += [fault] if fault else []
        return Pair(str(pair.key), str(pair.value))

    def refuse_stored(self) -> None:
        """Remove the stored values if the list was not sent, and refuse masks if it was."""
        if not self.sent:
            self.data = ()
        for row in self.rows if self.sent else ():
            if looks_masked(row.value) and not row.errors["value"]:
                row.errors["value"].append(_(ELSEWHERE))

    def valid_rows(self) -> list[tuple[PairRow, Pair]]:
        """The rows of a browser without faults, each with its value (the stored one for a mask)."""
        if self.process_errors:
            return []
        used = [row for row in self.rows if not self.is_unused(row)]
        return [
            (row, pair) for row, pair in zip(used, self.data, strict=True) if not row.all_errors
        ]

    def entry_faults(self) -> Iterator[tuple[str, str, Sequence[str]]]:
        for row in self.rows:
            for column in row.columns:
                if errors := row.errors[column]:
                    yield f"{row.index}.{column}", row.id_of(column), errors

    def add_row(self) -> PairRow:
        """Add a blank row, for a browser without JavaScript."""
        index = max((int(row.index[-9:]) for row in self.rows), default=-1) + 1
        row = self.row_type(self.name, str(index))
        self.rows.append(row)
        return row

    def forget_errors(self) -> None:
        self.errors, self.process_errors = [], []
        for row in self.rows:
            row.errors.clear()


def _boxes(field: EntryList, **_attributes: Any) -> Markup:
    """A checkbox for each choice of the field."""
    box = Markup(
        '<div class="check"><input type="checkbox" id="{id}" name="{field}"'
        ' value="{value}"{checked}>'
        '<label for="{id}">{label}</label></div>'
    )
    return Markup("\n").join(
        box.format(
            id=f"{field.id}-{number}",
            field=field.name,
            value=value,
            label=label,
            checked=Markup(" checked") if value in map(str, field.data) else "",
        )
        for number, (value, label) in enumerate(field.choices)
    )


class EntryList(ListField):
    """One value for each index: a tuple without duplicates, of at most ``limit``. A browser may
    also send the unindexed name several times. ``example`` is a value, for sentences.
    """

    widget: Any = staticmethod(_boxes)
    example = "1"

    def __init__(self, *args: Any, limit: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **{"default": (), **kwargs})
        self.limit = limit
        self.entry_errors: dict[str, str] = {}
        self.choices: list[tuple[str, str]] = []  # (id, label), set by the page that shows them

    def name_fault(self, name: Name) -> str | None:
        if name.column is None:
            return None
        return _(
            "Send %(name)s[0]=%(example)s, one value for each index.",
            name=self.name,
            example=self.example,
        )

    def how_to_send(self) -> str:
        return _(SEND_INDICES, name=self.name, example=self.example)

    def process(self, formdata: Any, data: Any = None, extra_filters: Any = None) -> None:
        browser, self.entry_errors = form_of(self).context.browser, {}
        names = self.begin(formdata, data, takes_unindexed=browser)
        self.data = self.object_data
        if names is None:
            return
        entries = [
            (name.index or "", value)
            for name in names
            for value in formdata.getlist(f"{self.name}[{name.index}]")
        ]
        unindexed = formdata.getlist(self.name) if browser else []
        entries += [(str(number), value) for number, value in enumerate(unindexed) if value]
        self.data = tuple(dict.fromkeys(self._read(index, value) for index, value in entries))
        if self.limit is not None and len(self.data) > self.limit:
            self.process_errors, self.entry_errors = [text.too_many(self.limit)], {}

    def _read(self, index: str, value: str) -> Any:
        try:
            return self.read_entry(value)
        except ValueError as fault:
            self.entry_errors[index] = str(fault)
            return None

    def read_entry(self, value: str) -> Any:
        """The value of one index. Raises ValueError with a sentence."""
        raise NotImplementedError

    def entry_faults(self) -> Iterator[tuple[str, str, Sequence[str]]]:
        for index, sentence in self.entry_errors.items():
            yield index, self.id, [sentence]


class IdList(EntryList):
    """Ids of records: a tuple of ``int``. ``noun``: of a record, for the sentence of a fault."""

    noun = "monitor"

    def read_entry(self, value: str) -> int:
        return text.record_id(value, self.noun)


class DependencyIds(IdList):
    """Ids of the monitors that a monitor is reached through. They are not changed if the page of a
    browser had no boxes for them, or could not show the stored ones and none was checked.
    """

    def process(self, formdata: Any, data: Any = None, extra_filters: Any = None) -> None:
        super().process(formdata, data, extra_filters)
        if form_of(self).context.browser and self.sent:
            was_shown = self.name in formdata
            self.sent = was_shown and bool(self.data or not self.not_shown)
            self.data = self.data if was_shown else self.object_data


class Places(EntryList):
    """Names of places to check from: a tuple of ``str``; the default place if none is chosen."""

    example = DEFAULT_PLACES[0]

    def process(self, formdata: Any, data: Any = None, extra_filters: Any = None) -> None:
        super().process(formdata, data, extra_filters)
        self.data = self.data or DEFAULT_PLACES
        # If the places are not known, the chosen ones are the choices.
        own_names = {name: name for name in self.data}
        self.choices = list((form_of(self).context.places or own_names).items())

    def read_entry(self, value: str) -> str:
        text.characters(text.length(text.one_value(value), MAX_LOCATION))
        places = form_of(self).context.places
        if places and value not in places:
            raise ValueError(_(NO_SUCH_PLACE))
        return value


def _contact_boxes(field: ContactNames, **_attributes: Any) -> Markup:
    """The boxes, and a hidden input that shows that the page had boxes."""
    return _boxes(field) + Markup('<input type="hidden" name="{}" value="">').format(field.name)


class ContactNames(EntryList):
    """Names of contacts as boxes: a tuple of ``str``. A page sets ``choices``."""

    widget = staticmethod(_contact_boxes)
    extra = True

    def read_entry(self, value: str) -> str:
        return text.characters(text.length(text.one_value(value), MAX_CONTACT_NAME))


class Lines(EntryList):
    """Short texts: a tuple of ``str``. A browser sends them as the lines of one text. ``rule``
    returns the value of a text, or raises ValueError with a sentence.
    """

    widget: Any = widgets.TextArea()

    def __init__(self, *args: Any, rule: Callable[[str], str], example: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rule, self.example = rule, example
        self.typed: Sequence[str] = ()  # in a browser

    def process(self, formdata: Any, data: Any = None, extra_filters: Any = None) -> None:
        if formdata is not None and form_of(self).context.browser and self.name in formdata:
            lines = "\n".join(formdata.getlist(self.name)).splitlines()
            self.typed = [line for line in lines if line.strip()]
            formdata = SentPairs([(self.name, line) for line in self.typed] or [(self.name, "")])
        super().process(formdata, data, extra_filters)

    def _value(self) -> str:
        return "\n".join(self.typed or self.data or ())

    def read_entry(self, value: str) -> str:
        return self.rule(text.characters(text.one_value(value)))


class Tags(OneValue):
    """Words separated by commas: a tuple of ``str`` without duplicates, stripped of white space.

    A list with one tag for each index is read too, such as the JSON list that the API returned.
    """

    several = True
    suggests_tags = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"default": (), **kwargs})

    def name_fault(self, name: Name) -> str | None:
        return None if name.column is None else self.how_to_send()

    def how_to_send(self) -> str:
        return _("Send comma-separated words, such as %(name)s=web,shop.", name=self.name)

    def process(self, formdata: Any, data: Any = unset_value, extra_filters: Any = None) -> None:
        super().process(formdata, data, extra_filters)
        names = indexed_names(self.name, formdata) if formdata is not None else []
        if not names:
            return
        self.sent, self.process_errors = True, []
        try:
            values = [
                self._listed(value)
                for name in names
                for value in formdata.getlist(f"{self.name}[{name.index}]")
            ]
            self.data = self.read(",".join(values))
        except ValueError as fault:
            self.process_errors = [str(fault)]

    def _listed(self, value: str) -> str:
        text.characters(value)
        if "," in value:
            raise ValueError(_("A tag cannot contain a comma."))
        return value

    def read(self, value: str) -> tuple[str, ...]:
        text.characters(text.length(text.one_value(value), MAX_TAGS * (MAX_TAG + 10)))
        tags = tuple(dict.fromkeys(tag for part in value.split(",") if (tag := part.strip())))
        if len(tags) > MAX_TAGS:
            raise ValueError(text.too_many(MAX_TAGS))
        for tag in tags:
            if len(tag) > MAX_TAG:
                raise ValueError(
                    _(
                        "The tag that starts with %(tag)s is longer than %(most)s characters.",
                        tag=tag[:20],
                        most=MAX_TAG,
                    )
                )
        return tags

    def show(self, data: Any) -> str:
        return ", ".join(data or ())
