"""Create monitors from imported candidates in any store: first a dry run, afterwards one monitor at
a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from app.errors import Accepted, Invalid, NotFound, WakefulError
from app.forms.imported import ImportDefaults, ValidatedCandidate
from app.forms.imported import validate as validate_one
from app.forms.schema import FormContext
from app.i18n import N_, _, _n
from app.imports.candidates import Candidate
from app.records import (
    CONTACT,
    DEFAULT_ACCEPTED_STATUSES,
    MASK,
    Monitor,
    MonitorQuery,
    Pair,
    is_heartbeat,
    mask,
)
from app.stores import same_url
from app.stores.base import Extent, Store

# More than any list has. A remote store reads only its first pages.
MAX_COMPARED = 20_000
PAGE = 100
SHARED_BY = 3  # a sentence that so many rows share is listed once
MAX_SINGLE = 20  # monitors that are read one by one


@dataclass(frozen=True, slots=True)
class ImportRow:
    """A row of the dry run. ``watched_by``: the name of the stored monitor with the same check.
    ``repeats``: the position of the earlier row with the same check.
    """

    validated: ValidatedCandidate
    watched_by: str = ""
    repeats: str = ""

    @property
    def is_new(self) -> bool:
        return self.validated.fits and not self.watched_by and not self.repeats


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a dry run's rows. ``paused``: the new monitors that start paused. ``silent``:
    the new monitors that would alert nobody.
    """

    new: int
    duplicates: int
    unfit: int
    paused: int
    silent: int


def counts(rows: Sequence[ImportRow]) -> Counts:
    new = [row.validated for row in rows if row.is_new]
    unfit = sum(not row.validated.fits for row in rows)
    paused = sum(validated.candidate.paused for validated in new)
    silent = sum(not validated.alerts for validated in new)
    return Counts(len(new), len(rows) - len(new) - unfit, unfit, paused, silent)


def notes(rows: Sequence[ImportRow]) -> Mapping[str, int]:
    """The sentences that many rows share, with the number of these rows. The preview lists each
    sentence once with a mark, and the rows have the marks: nobody reads fifty rows with nine equal
    sentences.
    """
    uses = Counter(sentence for row in rows for sentence in dict.fromkeys(row.validated.sentences))
    return {sentence: count for sentence, count in uses.items() if count >= SHARED_BY}


def alert_nobody(count: int, *, contacts: bool = True) -> str:
    """The sentence that ``count`` monitors alert nobody. ``contacts``: whether the server has
    contacts to choose from.
    """
    number = f"{count:,}"
    if not contacts:
        return _n(
            "%(num)s of these monitors alerts nobody.",
            "%(num)s of these monitors alert nobody.",
            count,
            num=number,
        )
    return _n(
        "%(num)s of these monitors alerts nobody. Choose a contact for it.",
        "%(num)s of these monitors alert nobody. Choose a contact for them.",
        count,
        num=number,
    )


STILL_RUNS = N_("It was created, but could not be paused.")


class Created(NamedTuple):
    """Whether a monitor was stored. ``problem``: a sentence; a stored monitor may have one too."""

    stored: bool
    problem: str = ""


class Importer:
    """Imports into ``store``. ``shared``: the values for every monitor. ``contacts``: the channels
    of the contacts in the file, by name.
    """

    def __init__(
        self,
        store: Store,
        shared: ImportDefaults,
        contacts: Mapping[str, Sequence[Pair]] | None = None,
        *,
        telegram_token_set: bool = False,
    ) -> None:
        self.store, self.shared = store, shared
        self.added_fields = store.extent > Extent.BARE
        self.contacts = store.extent == Extent.WHOLE
        self._file_contacts = contacts or {}
        self.new_contacts: dict[str, Sequence[Pair]] = {}
        self._stored_contacts: set[str] = set()
        self.compared = 0  # stored monitors that a dry run has compared
        self.context = FormContext(
            now=store.now(),
            telegram_token_set=telegram_token_set,
            contact_exists=self._contact_exists if self.contacts else None,
            bare=not self.added_fields,
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of all contacts, read once: a remote store sends a request each time."""
        return frozenset(name.casefold() for name in self.store.contacts.names())

    def _contact_exists(self, value: str) -> bool:
        name = value.strip()
        is_named = name in self.new_contacts or name.casefold() in self._names
        is_id = name.isascii() and name.isdigit()
        return is_named or (is_id and self.store.contacts.exists(name))

    @cached_property
    def _contact_names(self) -> Mapping[str, str]:
        """The name in the store of each contact of the file. A stored contact with the same
        channels is used. If only the name is equal, the new contact gets a number.
        """
        return {name: self._contact_name(name, rows) for name, rows in self._file_contacts.items()}

    def _contact_name(self, name: str, channels: Sequence[Pair]) -> str:
        for number in range(1, 100):
            candidate = f"{name} {number}" if number > 1 else name
            if candidate in self.new_contacts:
                continue
            if candidate.casefold() not in self._names:
                self.new_contacts[candidate] = channels
                return candidate
            id = self.store.contacts.id_of(candidate)
            if id is not None and tuple(self.store.contacts.get(id).channels) == tuple(channels):
                return candidate
        return name

    def _with_stored_contacts(self, candidate: Candidate) -> Candidate:
        """The candidate with the stored names of its contacts, or with their channels if the store
        has no contacts.
        """
        rows: list[Pair] = []
        for row in candidate.fields.get("alerts", ()):
            if row.key != CONTACT or row.value not in self._file_contacts:
                rows.append(row)
            elif self.contacts:
                rows.append(Pair(CONTACT, self._contact_names[row.value]))
            else:
                rows += self._file_contacts[row.value]
        alerts = {"alerts": tuple(dict.fromkeys(rows))} if rows else {}
        return replace(candidate, fields={**candidate.fields, **alerts})

    def validate(self, candidate: Candidate) -> ValidatedCandidate:
        return validate_one(
            self._with_stored_contacts(candidate),
            self.shared,
            self.context,
            added_fields=self.added_fields,
            contacts=self.contacts,
        )

    def dry_run(self, candidates: Sequence[Candidate]) -> list[ImportRow]:
        """The row of each candidate. This stores nothing."""
        validated = [self.validate(entry) for entry in candidates]
        addresses = {same_url.address(entry.url) for entry in validated if entry.fits}
        watched: dict[str, list[Monitor]] = {}
        for monitor in self._stored(addresses) if addresses else ():
            watched.setdefault(same_url.address(monitor.url), []).append(monitor)
        return _rows_of(validated, watched)

    def _stored(self, addresses: set[str]) -> Sequence[Monitor]:
        """The monitors of these addresses."""
        refs = self.store.monitors.refs(limit=MAX_COMPARED)
        self.compared = len(refs)
        ids = {ref.id for ref in refs if ref.url and same_url.address(ref.url) in addresses}
        if len(ids) > MAX_SINGLE:
            query = MonitorQuery(per_page=PAGE, uptime=(), brief=True)
            every = self.store.monitors.every(query, MAX_COMPARED // PAGE)
            return list(islice((monitor for monitor in every if monitor.id in ids), len(ids)))
        monitors: list[Monitor] = []
        for id in ids:
            with suppress(NotFound):  # it was deleted meanwhile
                monitors.append(self.store.monitors.get(id))
        return monitors

    def create(self, validated: ValidatedCandidate, *, unsure: bool = False) -> Created:
        """Store a monitor, and the contacts of the file that it needs. ``unsure``: an earlier
        attempt got no answer, so the monitor may be stored already.
        """
        if validated.fields is None:
            return Created(False, " ".join(validated.faults))
        id = self._id_of(validated) if unsure else None
        try:
            for row in validated.fields.get("alerts") or ():
                unstored = self.new_contacts.keys() - self._stored_contacts
                if row.key == CONTACT and row.value in unstored:
                    channels = tuple(self.new_contacts[row.value])
                    self.store.contacts.create({"name": row.value, "channels": channels})
                    self._stored_contacts.add(row.value)
            if id is None:
                id = self.store.monitors.create(validated.fields).id
        except Invalid as fault:
            return Created(False, sentences(fault))
        except Accepted as fault:
            running = f" {_(STILL_RUNS)}" if validated.candidate.paused else ""
            return Created(True, f"{fault}{running}")
        return Created(True, self._pause(id) if validated.candidate.paused else "")

    def _id_of(self, validated: ValidatedCandidate) -> int | None:
        monitors = self.store.monitors.watching(validated.url)
        return next((monitor.id for monitor in monitors if monitor.name == validated.name), None)

    def _pause(self, id: int) -> str:
        try:
            self.store.monitors.update(id, {"pause": True})
        except WakefulError as fault:
            return f"{_(STILL_RUNS)} {fault}"
        return ""


def _rows_of(
    validated: Sequence[ValidatedCandidate], watched: Mapping[str, Sequence[Monitor]]
) -> list[ImportRow]:
    rows: list[ImportRow] = []
    earlier: dict[tuple[Any, ...], str] = {}
    for entry in validated:
        if entry.fields is None:
            rows.append(ImportRow(entry))
            continue
        address = same_url.address(entry.url)
        twins = (monitor for monitor in watched.get(address, ()) if _is_twin(monitor, entry))
        check = (
            _identity_of(entry.fields)
            or (entry.fields["name"] if is_heartbeat(entry.url) else "")
            or (*_values(entry.fields, _OF_ENTRIES), *_headers_of(entry.fields))
        )
        watched_by = next((monitor.name for monitor in twins), "")
        rows.append(ImportRow(entry, watched_by, earlier.get((address, check), "")))
        earlier.setdefault((address, check), entry.candidate.position)
    return rows


# The fields in which two checks of one URL differ, besides the request's headers.
_CHECK = {
    "request_method": "GET",
    "request_body": "",
    "alert_condition": "url_unavailable",
    "alert_text_lookup": "",
    "assertions": (),
    "request_auth_username": "",
}
# A list of URLs does not have these fields, so they count only if the entry has them.
_OPTIONAL = {"accepted_statuses": DEFAULT_ACCEPTED_STATUSES, "follow_redirects": True}
# The fields in which two entries of one file may differ.
_OF_ENTRIES = {
    **_CHECK, **_OPTIONAL, "verify_tls": True, "ssl_alert_days": "", "domain_alert_days": "",
}  # fmt: skip


def _identity_of(fields: Mapping[str, Any]) -> str:
    """The token or the slug of a heartbeat, because all heartbeats have the same URL. Empty for
    other kinds, and for a heartbeat without either.
    """
    if not is_heartbeat(fields["url"]):
        return ""
    return fields.get("heartbeat_token") or fields.get("slug") or ""


def _values(fields: Mapping[str, Any], usual: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        str(value if (value := fields.get(name)) not in (None, "", ()) else default)
        for name, default in usual.items()
    )


def _headers_of(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = fields.get("request_headers") or ()
    return sorted((row.key.lower(), row.value) for row in rows)


def _is_twin(monitor: Monitor, entry: ValidatedCandidate) -> bool:
    """Whether a stored monitor of this URL makes the check of ``entry``, or has its name. Values
    that a server masks or leaves out count as equal, because a second monitor would alert twice.
    """
    fields = entry.fields or {}
    if identity := _identity_of(fields):
        # Jobs of two projects may have one name, but no two have one secret.
        if monitor.ping_url and not monitor.ping_url.startswith(MASK):
            secret = monitor.ping_url.rpartition("/")[2]
            return identity in (secret, monitor.slug)
        return monitor.slug == identity or monitor.name == fields["name"]
    if monitor.name == fields["name"]:
        return True
    if is_heartbeat(entry.url):
        return False
    usual = _CHECK | {name: _OPTIONAL[name] for name in _OPTIONAL if name in entry.candidate.fields}
    present = {name: getattr(monitor, name, None) for name in (*usual, "request_headers")}
    values = zip(usual, _values(fields, usual), _values(present, usual), strict=True)
    for name, new, old in values:
        if new != old and old != mask(new) and name not in monitor.unreadable:
            return False
    headers, stored_headers = _headers_of(fields), _headers_of(present)
    return "request_headers" in monitor.unreadable or (
        len(headers) == len(stored_headers)
        and all(
            name == other_name and (value == other or other.startswith(MASK))
            for (name, value), (other_name, other) in zip(headers, stored_headers, strict=True)
        )
    )


def sentences(fault: Invalid) -> str:
    """All sentences of a refusal. A remote server may refuse without a field."""
    by_field = [sentence for several in fault.errors.values() for sentence in several]
    return " ".join(by_field) or str(fault)
