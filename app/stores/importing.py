"""Create monitors from imported candidates, in any store: a dry run, and then one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.errors import Invalid, WakefulError
from app.forms.imported import Judged, Shared
from app.forms.imported import judge as judge_one
from app.forms.schema import Context
from app.i18n import _
from app.imports.candidates import Candidate
from app.stores import same_url
from app.stores.base import Feature, Store

# More than any list has; a remote store looks at its first pages alone.
MOST_KNOWN = 20_000


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the dry run. ``watched_by``: the monitor that watches the same URL already;
    ``repeats``: the place of the earlier line with the same URL.
    """

    judged: Judged
    watched_by: str = ""
    repeats: str = ""

    @property
    def is_new(self) -> bool:
        return self.judged.fits and not self.watched_by and not self.repeats


@dataclass(frozen=True, slots=True)
class Counts:
    """Of the rows of a dry run."""

    new: int
    duplicates: int
    unfit: int


def counts(rows: Sequence[Row]) -> Counts:
    new = sum(row.is_new for row in rows)
    unfit = sum(not row.judged.fits for row in rows)
    return Counts(new, len(rows) - new - unfit, unfit)


class Importer:
    """Imports into ``store``; every monitor gets what ``shared`` has."""

    def __init__(self, store: Store, shared: Shared, *, telegram_token_set: bool = False) -> None:
        self.store, self.shared = store, shared
        self.own_fields = Feature.EXTRA_FIELDS in store.offers
        self.contacts = Feature.CONTACTS in store.offers
        self.context = Context(
            now=store.now(),
            telegram_token_set=telegram_token_set,
            contact_known=self._contact_known if self.contacts else None,
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        """Of all contacts, asked once: over another server each question is a request."""
        return frozenset(name.casefold() for name in self.store.contacts.names())

    def _contact_known(self, value: str) -> bool:
        name = value.strip()
        is_id = name.isascii() and name.isdigit()
        return name.casefold() in self._names or (is_id and self.store.contacts.is_known(name))

    def judge(self, candidate: Candidate) -> Judged:
        return judge_one(
            candidate,
            self.shared,
            self.context,
            own_fields=self.own_fields,
            contacts=self.contacts,
        )

    def dry_run(self, candidates: Sequence[Candidate]) -> list[Row]:
        """What each becomes. Nothing is stored."""
        judged = [self.judge(one) for one in candidates]
        known = (
            self.store.monitors.refs(limit=MOST_KNOWN) if any(one.fits for one in judged) else ()
        )
        return _with_twins(
            judged, {same_url.address(one.url): one.name for one in known if one.url}
        )

    def create(self, judged: Judged) -> str:
        """Store a monitor; if the store refuses it, the reason as a sentence."""
        if judged.fields is None:
            return " ".join(judged.faults)
        try:
            monitor = self.store.monitors.create(judged.fields)
        except Invalid as fault:
            return sentences(fault)
        if judged.candidate.paused:
            return self._pause(monitor.id)
        return ""

    def _pause(self, id: int) -> str:
        try:
            self.store.monitors.update(id, {"pause": True})
        except WakefulError as fault:
            return _("It was created, but could not be paused.") + f" {fault}"
        return ""


def _with_twins(judged: Sequence[Judged], watched: Mapping[str, str]) -> list[Row]:
    rows: list[Row] = []
    earlier: dict[str, str] = {}
    for one in judged:
        url = same_url.address(one.url) if one.fits else ""
        rows.append(Row(one, watched.get(url, ""), earlier.get(url, "")))
        if url:
            earlier.setdefault(url, one.candidate.place)
    return rows


def sentences(fault: Invalid) -> str:
    """All of them; another server may say no without one for any field."""
    return " ".join(one for several in fault.errors.values() for one in several) or str(fault)
