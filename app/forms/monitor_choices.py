"""Choices in the monitor form: intervals, conditions, rules, days of warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.forms.fields import Labels, NumberChoice, form_of
from app.i18n import N_, _, _n
from app.records import ALERT_DAYS, INTERVALS, AlertCondition, LocationRule

CONDITION_LABELS = {
    AlertCondition.URL_UNAVAILABLE: N_("The URL is unavailable"),
    AlertCondition.URL_TEXT: N_("The response contains the text"),
    AlertCondition.URL_NO_TEXT: N_("The response does not contain the text"),
}

RULE_LABELS = {
    LocationRule.ANY: N_("Any place"),
    LocationRule.MAJORITY: N_("More than half of the places"),
    LocationRule.ALL: N_("All places"),
}
AUTO_LABEL = N_("Automatic (when a third of its lifetime remains)")


def interval_label(seconds: int) -> str:
    if seconds % 60:
        return _n("Every second", "Every %(num)s seconds", seconds)
    if seconds % 3600:
        return _n("Every minute", "Every %(num)s minutes", seconds // 60)
    if seconds == 86_400:
        return _("Every day")
    return _n("Every hour", "Every %(num)s hours", seconds // 3600)


def interval_labels(intervals: Sequence[int] = INTERVALS) -> Labels:
    return {seconds: interval_label(seconds) for seconds in intervals}


# The intervals that the dashboard offers besides ``INTERVALS``; the base API lacks them.
ADDED_INTERVALS = (10, 15, 20, 30, 120, 7200, 21_600, 43_200, 86_400)


class IntervalChoice(NumberChoice):
    """The seconds between checks, in a browser, where ``interval`` and ``check_every`` are one
    field.
    """

    def __init__(self, label: str, **kwargs: Any) -> None:
        super().__init__(label, self._labels, label_of=interval_label, **kwargs)

    def _labels(self) -> Labels:
        added = () if form_of(self).context.bare else ADDED_INTERVALS
        return interval_labels(sorted((*INTERVALS, *added)))


def days_label(days: int) -> str:
    if days == 0:
        return _("On the day")
    return _n("%(num)s day before", "%(num)s days before", days)


def days_labels() -> dict[Any, str]:
    return {days: days_label(days) for days in ALERT_DAYS}
