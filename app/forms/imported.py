"""Imported candidates as the fields of the monitor form: every rule of the form is theirs too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.errors import Invalid
from app.forms import binding
from app.forms.fields import with_scheme
from app.forms.monitor import OWN_FIELDS, MonitorForm, name_of, warns_by_default
from app.forms.schema import Context, labels_of
from app.i18n import N_, _
from app.imports.candidates import Candidate, shown
from app.records import CONTACT, DEFAULT_SSL_ALERT_DAYS, MAX_NAME, Pair
from app.rules import brackets

# Values that no sentence and no page repeats.
SECRETS = ("request_headers", "request_auth_password", "request_body", "alerts")
_LABELS = labels_of(MonitorForm)


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate and what a store takes for it; ``fields`` is None where something does not fit,
    and ``faults`` then say what, and how to correct it.
    """

    candidate: Candidate
    fields: Mapping[str, Any] | None = field(default=None, repr=False)
    faults: Sequence[str] = ()
    remarks: Sequence[str] = ()

    @property
    def fits(self) -> bool:
        return self.fields is not None

    @property
    def name(self) -> str:
        return str(self.fields["name"]) if self.fields else self.candidate.name[:MAX_NAME]

    @property
    def url(self) -> str:
        return str(self.fields["url"]) if self.fields else self.candidate.url[:MAX_NAME]

    @property
    def tags(self) -> Sequence[str]:
        return tuple((self.fields or {}).get("tags") or ())

    @property
    def alerts(self) -> Sequence[Pair]:
        """Contacts and channels. Values of channels are secrets."""
        return tuple((self.fields or {}).get("alerts") or ())


@dataclass(frozen=True, slots=True)
class Shared:
    """What every imported monitor gets: the interval where it has none, tags and contacts."""

    interval: int = 60
    tags: Sequence[str] = ()
    contacts: Sequence[str] = ()


def judge(
    candidate: Candidate,
    shared: Shared,
    context: Context,
    *,
    own_fields: bool = True,
    contacts: bool = True,
) -> Judged:
    """``own_fields``, ``contacts``: whether the store has them; without, they are dropped and said
    to be.
    """
    if candidate.refusal:
        return Judged(candidate, None, (candidate.refusal,))
    remarks = list(candidate.remarks)
    values = _values(candidate, shared)
    if not own_fields:
        remarks += _drop_own_fields(values)
    if not contacts:
        remarks += _drop_contacts(values)
    try:
        fields = binding.bind(MonitorForm, _pairs(values), context)
    except Invalid as fault:
        return Judged(candidate, None, tuple(_faults(fault, values)), tuple(remarks))
    return Judged(candidate, fields, (), tuple(remarks))


def _values(candidate: Candidate, shared: Shared) -> dict[str, Any]:
    url = with_scheme(candidate.url)
    name = candidate.name or name_of(url)
    warning = {"ssl_alert_days": str(DEFAULT_SSL_ALERT_DAYS)} if warns_by_default(url) else {}
    values = {
        "interval": str(shared.interval),
        **warning,
        **candidate.fields,
        "url": url,
        "name": name[:MAX_NAME],
    }
    tags = dict.fromkeys((*values.get("tags", ()), *shared.tags))
    alerts = dict.fromkeys(
        (*(Pair(CONTACT, name) for name in shared.contacts), *values.get("alerts", ()))
    )
    return values | {"tags": tuple(tags), "alerts": tuple(alerts)}


def _pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    tags = {"tags": ",".join(values["tags"])} if values.get("tags") else {}
    sent = {name: value for name, value in values.items() if name != "tags" and value != ()}
    return list(brackets.write(sent | tags))


def _drop_own_fields(values: dict[str, Any]) -> list[str]:
    lost = [name for name in OWN_FIELDS if values.pop(name, ()) not in ((), "")]
    return [_not_here(_LABELS[name]) for name in lost]


def _drop_contacts(values: dict[str, Any]) -> list[str]:
    kept = tuple(one for one in values["alerts"] if one.key != CONTACT)
    lost = kept != values["alerts"]
    values["alerts"] = kept
    return [_not_here(N_("Contacts"))] if lost else []


def _not_here(label: str) -> str:
    return _("%(field)s dropped: this server does not support it.", field=_(label))


def _faults(fault: Invalid, values: Mapping[str, Any]) -> list[str]:
    """The field, its value where that is no secret, and the form's sentence."""
    said = []
    for name, sentences in fault.errors.items():
        field_ = name.partition(".")[0]
        label, value = _(_LABELS.get(field_, field_)), values.get(field_)
        tells = isinstance(value, str) and value and field_ not in SECRETS
        quoted = f' "{shown(value)}"' if tells and isinstance(value, str) else ""
        said += [f"{label}{quoted}: {sentence}" for sentence in sentences]
    return said or [str(fault)]


def record_of(candidate: Candidate) -> dict[str, Any]:
    """``candidate`` as JSON, for the step after the preview."""
    fields = {
        name: [[one.key, one.value] if isinstance(one, Pair) else one for one in value]
        if isinstance(value, tuple)
        else value
        for name, value in candidate.fields.items()
    }
    return {
        "place": candidate.place,
        "name": candidate.name,
        "url": candidate.url,
        "fields": fields,
        "remarks": list(candidate.remarks),
        "refusal": candidate.refusal,
        "paused": candidate.paused,
    }


def candidate_of(record: Mapping[str, Any]) -> Candidate:
    """What ``record_of`` wrote."""
    fields = {
        name: tuple(Pair(*one) if isinstance(one, list) else one for one in value)
        if isinstance(value, list)
        else value
        for name, value in record["fields"].items()
    }
    return Candidate(**{**record, "fields": fields, "remarks": tuple(record["remarks"])})
