"""The lists of a status page and of a post: names, groups and impacts of monitors.

``StatusPageForm`` checks that the monitors in these lists are on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from app import records
from app.forms.fields import form_of
from app.forms.lists import SEND_INDICES, IdList, IndexedRow, ListField, PairList, PairRow
from app.forms.schema import EITHER, TWICE
from app.i18n import N_, _
from app.rules import text
from app.rules.brackets import Name, Typed, index_order, parse

NAME, MONITORS = "name", "monitors"
# Names of form fields that groups are read from.
MAX_NAMES = 4 * (records.MAX_PAGE_MONITORS + records.MAX_GROUPS)
TWICE_NAMED = N_("This monitor is in the list already. Send one entry for each monitor.")
IN_A_GROUP = N_("This monitor is already in a group. A monitor is in one group at most.")


class MonitorPairs(PairList):
    """Rows of a monitor's id and a value: a tuple of ``entry``. The form checks the ids."""

    entry: ClassVar[type[records.ComponentName | records.MonitorImpact]]
    named: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(
            *args,
            limit=records.MAX_PAGE_MONITORS,
            labels={"key": N_("Monitor"), "value": self.named},
            **kwargs,
        )

    def value_of(self, value: str) -> str:
        """Validate the value of a row. Raises ValueError with a sentence."""
        raise NotImplementedError

    def row_of(self, index: str, pair: Any) -> PairRow:
        return PairRow(self.name, index, str(pair.key), pair.value)

    def is_unused(self, row: PairRow) -> bool:
        return not row.value

    def validate_rows(self, rows: list[PairRow], stored: tuple[Any, ...]) -> None:
        ids: set[int] = set()
        entries = []
        for row in rows:
            self.note_missing(row)
            key = _apply_rule(row.errors["key"], text.record_id, row.key)
            value = _apply_rule(row.errors["value"], self.value_of, row.value)
            if key in ids:
                row.errors["key"].append(_(TWICE_NAMED))
            elif key is not None:
                ids.add(key)
            if key is not None and value is not None:
                entries.append(self.entry(key, value))
        self.data = tuple(entries)

    def rows_with_ids(self) -> Iterator[tuple[PairRow, int]]:
        """The rows without faults, each with its monitor's id."""
        for row in self.rows:
            if row.sent and not row.all_errors and row.value:
                yield row, text.record_id(row.key)


class NameList(MonitorPairs):
    """The names of monitors on the page. A browser has a row for each monitor; with an empty row,
    the page shows the monitor's name.
    """

    entry, named = records.ComponentName, N_("Name")

    def value_of(self, value: str) -> str:
        return _check_name(value)


class ImpactList(MonitorPairs):
    """The impacts of a post on its monitors. A browser has a row for each monitor of the page; with
    an empty row, the impact follows from the state of the post.
    """

    entry, named = records.MonitorImpact, N_("Impact")

    def value_of(self, value: str) -> str:
        if text.one_value(value) not in set(records.PostImpact):
            raise ValueError(text.one_of(records.PostImpact))
        return value


@dataclass(slots=True)
class GroupRow(IndexedRow):
    """A group as sent or shown. ``monitors``: index and text of each. ``errors``: by the part of
    the error's name after the index of the group, such as ``name`` or ``monitors.3``.
    """

    name: str = ""
    monitors: list[tuple[str, str]] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)

    @property
    def is_blank(self) -> bool:
        return not self.name and not self.monitors

    @property
    def all_errors(self) -> list[str]:
        return list(self.errors.values())


class GroupList(ListField):
    """Groups of monitors: a tuple of ``Group``. ``rows``: the groups as sent, in order."""

    nested = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"default": (), **kwargs})
        self.rows: list[GroupRow] = []

    def name_fault(self, name: Name) -> str | None:
        if name.index is None or _is_group_name(name):
            return None
        group = f"{self.name}[{name.index[:20]}]"
        return _("Send %(group)s[name] and %(group)s[monitors][0].", group=group)

    def how_to_send(self) -> str:
        return _(
            "Send %(name)s[0][name] and %(name)s[0][monitors][0] (a list of objects "
            "in JSON), or the bare name empty for none.",
            name=self.name,
        )

    def repeat_fault(self, name: Name) -> str:
        bare = name.column == MONITORS and name.entry is None
        return (
            _how_to_send(f"{self.name}[{name.index}][{MONITORS}]")
            if bare
            else super().repeat_fault(name)
        )

    def process(self, formdata: Any, data: Any = None, extra_filters: Any = None) -> None:
        names = self.begin(formdata, data)
        self.data, self.rows = self.object_data, []
        if not self.sent:
            self.rows = [self._row_of(str(n), group) for n, group in enumerate(self.data)]
        elif names is None:
            return
        elif len(names) > MAX_NAMES:
            self.process_errors = [text.too_many(records.MAX_GROUPS)]
        else:
            self._read(formdata, names)

    def _row_of(self, index: str, group: records.Group) -> GroupRow:
        monitors = [(str(n), str(id)) for n, id in enumerate(group.monitors)]
        return GroupRow(self.name, index, group.name, monitors)

    def _read(self, formdata: Any, names: list[Name]) -> None:
        rows: dict[tuple[int, str], GroupRow] = {}
        for name in names:
            if _is_group_name(name):
                row = rows.setdefault(name.order, GroupRow(self.name, name.index or ""))
                entry = "" if name.entry is None else f"[{name.entry}]"
                raw = f"{name.field}[{name.index}][{name.column}]{entry}"
                self._add_values(row, name, formdata.getlist(raw))
        browser = form_of(self).context.browser
        self.rows = [row for row in rows.values() if not (browser and row.is_blank)]
        if len(self.rows) > records.MAX_GROUPS:
            self.process_errors = [text.too_many(records.MAX_GROUPS)]
            self.rows = []
            return
        grouped: set[int] = set()
        self.data = tuple(_read_group(row, grouped) for row in self.rows)

    def _add_values(self, row: GroupRow, name: Name, values: list[str]) -> None:
        """Add the values of one name to its row."""
        part = str(name.column) if name.entry is None else f"{MONITORS}.{name.entry}"
        if part in row.sent:  # groups[1][name] and groups[01][name]
            row.errors[part] = _(TWICE)
        elif part == NAME:
            row.name = values[0]
        elif (part == MONITORS and row.monitors) or MONITORS in row.sent:
            row.errors[MONITORS] = _(EITHER, field=MONITORS)
        elif name.entry is not None:
            row.monitors.append((name.entry, values[0]))
        else:
            self._add_bare(row, values)
        row.sent.add(part)

    def _add_bare(self, row: GroupRow, values: list[str]) -> None:
        """Add the values of ``groups[0][monitors]``: a list in JSON, or from a browser a value for
        each checkbox. Another text is a fault.
        """
        value = values[0]
        if isinstance(value, Typed) and value.kind == "list":
            row.monitors += ((str(n), item) for n, item in enumerate(value.items))
        elif form_of(self).context.browser:
            row.monitors += ((str(n), id) for n, id in enumerate(values) if id)
        elif value or isinstance(value, Typed):
            row.errors[MONITORS] = _how_to_send(row.name_of(MONITORS))

    def names_in(self, formdata: Any) -> list[Name]:
        """The names sent for this field, in numeric order of both indices."""
        names = (parse(raw) for raw in formdata if raw.startswith(f"{self.name}["))
        return sorted(
            (name for name in names if name),
            key=lambda name: (name.order, name.column or "", index_order(name.entry or "")),
        )

    def entry_faults(self) -> Iterator[tuple[str, str, Sequence[str]]]:
        for row in self.rows:
            for part, sentence in row.errors.items():
                yield f"{row.index}.{part}", row.id_of(part.partition(".")[0]), [sentence]

    def valid_rows(self) -> Iterator[tuple[GroupRow, str, int]]:
        """Each monitor of a group without faults: row, index, id."""
        for row in self.rows:
            if row.sent and not row.errors:
                for index, value in row.monitors:
                    yield row, index, text.record_id(value)


def _how_to_send(name: str) -> str:
    """How to send the monitors of a group; ``name``: the name without the last index."""
    return _(SEND_INDICES, name=name, example=IdList.example)


def _is_group_name(name: Name) -> bool:
    return name.column == MONITORS or (name.column == NAME and name.entry is None)


def _read_group(row: GroupRow, grouped: set[int]) -> records.Group:
    """Read a row as a group. ``grouped``: the monitors of earlier groups, to which this one's are
    added.
    """
    if len(row.monitors) > records.MAX_PAGE_MONITORS:
        row.errors = {MONITORS: text.too_many(records.MAX_PAGE_MONITORS)}
        return records.Group("")
    monitors = tuple(_read_monitors(row, grouped))
    fault = text.fault_of(lambda: _check_name(row.name))
    if fault is not None:
        row.errors.setdefault(NAME, fault)
    return records.Group(row.name, monitors)


def _read_monitors(row: GroupRow, grouped: set[int]) -> Iterable[int]:
    for index, value in row.monitors:
        try:
            id = text.record_id(value)
        except ValueError as fault:
            row.errors.setdefault(f"{MONITORS}.{index}", str(fault))
            continue
        if id in grouped:
            row.errors.setdefault(f"{MONITORS}.{index}", _(IN_A_GROUP))
            continue
        grouped.add(id)
        yield id


def _check_name(value: str) -> str:
    """Return a valid name on the page. Raises ValueError with a sentence."""
    text.characters(text.length(text.one_value(value), records.MAX_NAME))
    if not value.strip():
        raise ValueError(_(text.REQUIRED))
    return value


def _apply_rule(errors: list[str], rule: Any, value: str) -> Any:
    """``rule(value)``; if the rule refuses it, add the sentence to ``errors`` and return None."""
    if errors:
        return None
    try:
        return rule(value)
    except ValueError as fault:
        errors.append(str(fault))
        return None
