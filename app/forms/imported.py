"""Validate imported candidates with the monitor form, so that every rule of the form applies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from dataclasses import fields as dataclass_fields
from typing import Any

from app import records
from app.checks.kinds import FIELDS, kind_of
from app.errors import Invalid
from app.forms.alert_lists import BASE_API_CHANNELS
from app.forms.fields import with_scheme
from app.forms.monitor import ADDED_FIELDS, MonitorStoreForm, name_of
from app.forms.monitor_choices import CONDITION_LABELS, days_label
from app.forms.schema import FormContext, bind, labels_of
from app.i18n import N_, _
from app.imports.candidates import BECOMES, Candidate
from app.imports.values import cut_line, duration_text
from app.rules import brackets
from app.rules.assertions import words
from app.rules.channel_values import CHANNELS

# Fields whose values no sentence and no page repeats.
SECRETS = ("request_headers", "request_auth_password", "request_body", "alerts", "heartbeat_token")
_LABELS = labels_of(MonitorStoreForm)
TAGS_DROPPED = N_("Tags: the first %(most)s are kept, the others are dropped: %(tags)s.")
# The fields of a monitor in a preview, in this order: _ALWAYS if its kind has them, the others if
# their values are not the defaults.
_ALWAYS = ("interval", "accepted_statuses", "timeout", "confirmations", "ssl_alert_days")
_SHOWN = (
    *_ALWAYS, "domain_alert_days", "slow_after", "slow_alert_after", "remind_after",
    "alert_condition",
    "alert_text_lookup", "request_method", "follow_redirects", "verify_tls", "cache_buster",
    "request_headers", "request_body", "request_auth_username", "notes", "starttls", "ping_count",
    "assertions", "period", "schedule", "zone", "grace", "max_run", "slug", "heartbeat_token",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ValidatedCandidate:
    """A candidate and its ``fields`` for the store. If it is not valid, ``fields`` is None, and
    ``faults`` say why. ``settings``: the lines of the preview, each with label and value.
    """

    candidate: Candidate
    fields: Mapping[str, Any] | None = field(default=None, repr=False)
    faults: Sequence[str] = ()
    remarks: Sequence[str] = ()
    settings: Sequence[str] = field(default=(), repr=False)

    @property
    def fits(self) -> bool:
        return self.fields is not None

    @property
    def name(self) -> str:
        return str(self.fields["name"]) if self.fields else self.candidate.name[: records.MAX_NAME]

    @property
    def url(self) -> str:
        return str(self.fields["url"]) if self.fields else self.candidate.url[: records.MAX_NAME]

    @property
    def sentences(self) -> Sequence[str]:
        return (*self.faults, *self.remarks)

    @property
    def tags(self) -> Sequence[str]:
        return tuple((self.fields or {}).get("tags") or ())

    @property
    def alerts(self) -> Sequence[records.Pair]:
        """Contacts and channels, as they may be shown."""
        return tuple(map(records.masked_alert, (self.fields or {}).get("alerts") or ()))


@dataclass(frozen=True, slots=True)
class ImportDefaults:
    """The values that imported monitors get: an interval if they have none, and additional tags and
    contacts.
    """

    interval: int = 60
    tags: Sequence[str] = ()
    contacts: Sequence[str] = ()


def validate(
    candidate: Candidate,
    shared: ImportDefaults,
    context: FormContext,
    *,
    added_fields: bool = True,
    contacts: bool = True,
) -> ValidatedCandidate:
    """Validate a candidate. ``added_fields``, ``contacts``: whether the store has the fields that
    the base API lacks, and contacts. Otherwise, they are dropped with a remark.
    """
    if candidate.refusal:
        return ValidatedCandidate(candidate, None, (candidate.refusal,))
    remarks = list(candidate.remarks)
    values = _values(candidate, shared)
    further_tags = [tag for tag in values["tags"] if tag not in shared.tags]
    if dropped := further_tags[max(0, records.MAX_TAGS - len(shared.tags)) :]:
        values["tags"] = tuple(tag for tag in values["tags"] if tag not in dropped)
        remarks.append(_(TAGS_DROPPED, most=records.MAX_TAGS, tags=cut_line(", ".join(dropped))))
    if not added_fields:
        remarks += _drop_added_fields(values) + _drop_channels(values)
    if not contacts:
        remarks += _drop_contacts(values)
    try:
        entered = {name: value for name, value in values.items() if value != ()}
        fields = bind(MonitorStoreForm, brackets.write(entered), context)
    except Invalid as fault:
        return ValidatedCandidate(candidate, None, tuple(_faults(fault, values)), tuple(remarks))
    lacking = () if added_fields else ADDED_FIELDS
    return ValidatedCandidate(candidate, fields, (), tuple(remarks), _settings(fields, lacking))


def _values(candidate: Candidate, shared: ImportDefaults) -> dict[str, Any]:
    url = with_scheme(candidate.url)
    name = candidate.name or name_of(url)
    interval = {} if "interval" in candidate.fields else records.interval_fields(shared.interval)
    values = {
        **{name: str(seconds) for name, seconds in interval.items()},
        **candidate.fields,
        "url": url,
        "name": name[: records.MAX_NAME],
    }
    tags = dict.fromkeys((*values.get("tags", ()), *shared.tags))
    alerts = dict.fromkeys(
        (
            *(records.Pair(records.CONTACT, name) for name in shared.contacts),
            *values.get("alerts", ()),
        )
    )
    return values | {"tags": tuple(tags), "alerts": tuple(alerts)}


def _drop_added_fields(values: dict[str, Any]) -> list[str]:
    every, remarks = values.pop("check_every", None), []
    if every:
        new = duration_text(int(values["interval"]))
        field_name = _(_LABELS["interval"])
        remarks.append(_(BECOMES, field=field_name, old=duration_text(int(every)), new=new))
    dropped = [name for name in ADDED_FIELDS if values.pop(name, ()) not in ((), "")]
    return [*remarks, *(_dropped_sentence(_LABELS[name]) for name in dropped)]


def _drop_channels(values: dict[str, Any]) -> list[str]:
    """Drop the channels that the base API lacks. Return the remarks."""
    keys = (records.CONTACT, *map(str, BASE_API_CHANNELS))
    dropped = dict.fromkeys(pair.key for pair in values["alerts"] if pair.key not in keys)
    values["alerts"] = tuple(pair for pair in values["alerts"] if pair.key in keys)
    return [_dropped_sentence(CHANNELS[records.Channel(key)].label) for key in dropped]


def _drop_contacts(values: dict[str, Any]) -> list[str]:
    alerts = values["alerts"]
    values["alerts"] = records.alerts_without_contacts(alerts)
    return [_dropped_sentence(N_("Contacts"))] if values["alerts"] != alerts else []


def _dropped_sentence(label: str) -> str:
    return _("%(field)s dropped: this server does not support it.", field=_(label))


def _settings(fields: Mapping[str, Any], lacking: Collection[str]) -> list[str]:
    """The lines of the preview. ``lacking``: the fields that the store does not have."""
    kind = kind_of(fields["url"])
    settings = []
    for name in _SHOWN:
        value = fields.get(name)
        if name == "interval":
            if records.is_heartbeat(fields["url"]):  # it has a period, or a schedule
                continue
            value = fields.get("check_every") or value
        if name in lacking or (kind and name in FIELDS and name not in kind.fields):
            continue
        record_field = records.Monitor.__dataclass_fields__.get(name)
        if name in _ALWAYS or value not in (None, "", (), record_field and record_field.default):
            settings.append(f"{_(_LABELS[name])}: {_value(name, value)}")
    return settings


def _value(name: str, value: Any) -> str:
    if value is None:
        return _("off")
    if name == "interval":
        return duration_text(value)
    if name == "schedule":
        return "; ".join(value)
    if name in ("ssl_alert_days", "domain_alert_days") and isinstance(value, int):
        return days_label(value)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if name == "request_headers":
        return ", ".join(pair.key for pair in value)
    if name == "assertions":
        return "; ".join(words(row) for row in value)
    if name == "notes":
        return cut_line(value)
    if name == "request_body":
        return _("%(num)s characters", num=len(value))
    if name == "heartbeat_token":  # people recognize the token, so they need not change their jobs
        return records.mask(value)
    return _(CONDITION_LABELS[value]) if name == "alert_condition" else str(value)


def _faults(fault: Invalid, values: Mapping[str, Any]) -> list[str]:
    """The faults as sentences with the label of the field, and its value if that is no secret."""
    faults = []
    for name, sentences in fault.errors.items():
        field_name = name.partition(".")[0]
        label, value = _(_LABELS.get(field_name, field_name)), values.get(field_name)
        is_text = isinstance(value, str) and value and field_name not in SECRETS
        quoted = f' "{cut_line(str(value))}"' if is_text else ""
        faults += [f"{label}{quoted}: {sentence}" for sentence in sentences]
    return faults or [str(fault)]


def record_of(candidate: Candidate) -> dict[str, Any]:
    """``candidate`` as JSON, for the step after the preview."""
    fields = {
        name: [
            asdict(item) if isinstance(item, records.Pair | records.Assertion) else item
            for item in value
        ]
        if isinstance(value, tuple)
        else value
        for name, value in candidate.fields.items()
    }
    names = (field.name for field in dataclass_fields(candidate))
    return {name: getattr(candidate, name) for name in names} | {"fields": fields}


def _entry(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    return records.Pair(**item) if "key" in item else records.Assertion(**item)


def candidate_of(record: Mapping[str, Any]) -> Candidate:
    """The candidate that ``record_of`` wrote."""
    fields = {
        name: tuple(map(_entry, value)) if isinstance(value, list) else value
        for name, value in record["fields"].items()
    }
    return Candidate(**{**record, "fields": fields, "remarks": tuple(record["remarks"])})
