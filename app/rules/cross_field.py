"""Cross-field rules: which combinations of values a monitor, a contact or an incident may have.

The form checks the stored record with the sent fields over it. The store checks again before it
writes, because two valid updates at the same time may combine into an invalid monitor.
Each rule returns the fields that must change, each with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from app.i18n import N_, _
from app.records import CLOCK_SKEW_SECONDS, METHODS_WITHOUT_TEXT, SOURCES_OF_BODY, TEXT_CONDITIONS
from app.rules.text import END_BEFORE_START, IN_FUTURE

Faults = Sequence[tuple[str, str]]

BEFORE_START = N_("This is before the incident started.")
AFTER_END = N_("This is after the incident ended.")
BEFORE_ACKNOWLEDGED = N_("This is before the incident was acknowledged.")
NO_BODY = N_("An answer to %(method)s has no body to search. Choose another method, such as GET.")
INCIDENT_TIMES = ("started_at", "acknowledged_at", "ended_at")


def text_condition(condition: str, lookup: str | None, method: str) -> Faults:
    if condition not in TEXT_CONDITIONS:
        return ()
    faults = []
    if not lookup:
        faults.append(("alert_text_lookup", _("This alert condition needs a text to find.")))
    if method in METHODS_WITHOUT_TEXT:
        faults.append(("request_method", _(NO_BODY, method=method)))
    return faults


def body_of_assertions(assertions: object, method: str) -> Faults:
    """``assertions``: a tuple; any other value stands for unreadable ones."""
    if method not in METHODS_WITHOUT_TEXT or not isinstance(assertions, tuple):
        return ()
    if not any(assertion.source in SOURCES_OF_BODY for assertion in assertions):
        return ()
    return [("request_method", _(NO_BODY, method=method))]


def maintenance(start: datetime | None, end: datetime | None) -> Faults:
    if start is None and end is None:
        return ()
    if start is None or end is None:
        missing = "maintenance_start_at" if start is None else "maintenance_end_at"
        return [(missing, _("A maintenance window needs both its start and its end."))]
    return [("maintenance_end_at", _(END_BEFORE_START))] if end <= start else ()


def quiet_hours(start: str | None, end: str | None) -> Faults:
    if start is None and end is None:
        return ()
    if start is None or end is None:
        missing = "quiet_start" if start is None else "quiet_end"
        return [(missing, _("Quiet hours need both their start and their end."))]
    sentence = _("Quiet hours cannot end at the time at which they start. Choose another.")
    return [("quiet_end", sentence)] if start == end else ()


def due(period: int | None, schedule: Sequence[str]) -> Faults:
    if period is not None and schedule:
        return [("schedule", _("A heartbeat has a period or a schedule, not both. Leave one out."))]
    return ()


def slow_alert(minutes: int | None, limit: int | None) -> Faults:
    if minutes and limit is None:
        sentence = _("Nothing counts as slow yet. Set after how many milliseconds it is slow.")
        return [("slow_alert_after", sentence)]
    return ()


# The fields that each rule reads, in the order of its arguments.
RULES: Sequence[tuple[Sequence[str], Callable[..., Faults]]] = (
    (("alert_condition", "alert_text_lookup", "request_method"), text_condition),
    (("assertions", "request_method"), body_of_assertions),
    (("maintenance_start_at", "maintenance_end_at"), maintenance),
    (("quiet_start", "quiet_end"), quiet_hours),
    (("period", "schedule"), due),
    (("slow_alert_after", "slow_after"), slow_alert),
)


def incident_times(
    times: Mapping[str, datetime | None], now: datetime, new: Collection[str] = INCIDENT_TIMES
) -> dict[str, str]:
    """The faults of an incident's times, under the names of the ``new`` ones. Stored times are not
    compared with ``now``, because the clock may have been set back since.
    """
    started, acknowledged, ended = (times.get(name) for name in INCIDENT_TIMES)
    latest = now + timedelta(seconds=CLOCK_SKEW_SECONDS)
    faults: dict[str, str] = {}
    for name in INCIDENT_TIMES:
        moment = times.get(name)
        if name not in new or moment is None:
            continue
        if moment > latest:
            faults[name] = _(IN_FUTURE)
        elif started is not None and moment < started:
            faults[name] = _(BEFORE_START)
    if acknowledged is not None and ended is not None and acknowledged > ended:
        if "acknowledged_at" in new:
            faults.setdefault("acknowledged_at", _(AFTER_END))
        elif "ended_at" in new:
            faults.setdefault("ended_at", _(BEFORE_ACKNOWLEDGED))
    return faults
