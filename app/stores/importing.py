"""Create monitors from imported candidates, in any store.

``judge`` says what each becomes, and stores nothing; ``create`` stores one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.errors import Invalid, WakefulError
from app.forms.candidates import Judged, Shared
from app.forms.candidates import judge as judge_one
from app.forms.schema import Context
from app.imports.candidates import Candidate
from app.rules.url import take_apart
from app.stores.base import Feature, Store

# More than any list has; a remote store looks at its first pages alone.
MOST_KNOWN = 20_000
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the dry run. ``twin``: the name of what watches the same URL already, in the
    store or earlier in the file (``twin_place``).
    """

    judged: Judged
    twin: str = ""
    twin_place: str = ""

    @property
    def is_new(self) -> bool:
        """Whether it fits and its URL is not watched yet."""
        return self.judged.fits and not self.twin


def judge(
    store: Store,
    candidates: Sequence[Candidate],
    shared: Shared,
    *,
    telegram_token_set: bool = False,
) -> list[Row]:
    offers = store.offers
    contacts = Feature.CONTACTS in offers
    known: dict[str, bool] = {}

    def contact_known(name: str) -> bool:
        if name not in known:
            known[name] = store.contacts.is_known(name)
        return known[name]

    context = Context(
        now=store.now(),
        telegram_token_set=telegram_token_set,
        contact_known=contact_known if contacts else None,
    )
    judged = [
        judge_one(
            one, shared, context, own_fields=Feature.EXTRA_FIELDS in offers, contacts=contacts
        )
        for one in candidates
    ]
    return _with_twins(judged, _watched(store))


def _watched(store: Store) -> Mapping[str, str]:
    return {same(one.url): one.name for one in store.monitors.refs(limit=MOST_KNOWN) if one.url}


def _with_twins(judged: Sequence[Judged], watched: Mapping[str, str]) -> list[Row]:
    rows, earlier = [], dict[str, str]()
    for one in judged:
        url = same(one.url) if one.fits else ""
        if url in watched:
            rows.append(Row(one, watched[url]))
        else:
            rows.append(Row(one, twin_place=earlier.get(url, "")))
        if url:
            earlier.setdefault(url, one.candidate.place)
    return rows


def same(url: str) -> str:
    """What two spellings of one URL have in common."""
    scheme = url.partition(":")[0].lower()
    try:
        return take_apart(url, {**_PORTS, scheme: _PORTS.get(scheme)}).url
    except ValueError:
        return url


def create(store: Store, judged: Judged) -> str:
    """Store a monitor; why not, as a sentence, if the store refuses it."""
    if judged.fields is None:
        return " ".join(judged.faults)
    try:
        monitor = store.monitors.create(judged.fields)
    except Invalid as fault:
        return sentences(fault)
    if not judged.candidate.paused:
        return ""
    try:
        store.monitors.update(monitor.id, {"pause": True})
    except WakefulError as fault:
        return f"It was created, but it could not be paused: {fault}"
    return ""


def sentences(fault: Invalid) -> str:
    """All of them; another server may say no without one for any field."""
    return " ".join(one for several in fault.errors.values() for one in several) or str(fault)
