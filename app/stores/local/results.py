"""Results, statistics of them, the certificates that checks have seen, and checks on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from sqlalchemy import bindparam, select

from app.checks.kinds import sends_secrets_elsewhere, spec_of
from app.codec import reader
from app.db import assignments, by_place, db, listed, rollups
from app.db.assignments import not_checked
from app.db.tables import IncidentRow, MonitorEvidenceRow, MonitorRow, MonitorStateRow
from app.db.types import Unreadable, from_ms, readable, to_ms
from app.engine.recorder import slowness
from app.engine.recorder.evidence import good_checks
from app.errors import Invalid
from app.i18n import _
from app.judge import slow
from app.records import (
    SLOW_ALERTS_DAYS,
    Certificate,
    CertificateChain,
    CheckedNow,
    Outcome,
    Page,
    Result,
    ResultQuery,
    SlowAlerts,
)
from app.rules import text
from app.stats import RANGES, series
from app.stats.tally import HOUR_MS
from app.stores import base
from app.stores.base import Fields
from app.stores.local.part import LocalPart, fits, get_monitor, require_monitor

_certificate = reader(Certificate, "certificate")
_STATE = MonitorStateRow.__table__.c
# Built once, and of the table, because each page of a monitor runs it.
_LEAF = select(_STATE.ssl_fingerprint).where(_STATE.monitor_id == bindparam("id"))
# The checks that the preview of slow alerts reads at most: a month of one check every 10 s.
MAX_PREVIEWED = 260_000


class LocalResults(LocalPart, base.Results):
    def __init__(self, store: base.Store) -> None:
        super().__init__(store)
        self._charted = rollups.ChartFigures()

    def list(self, query: ResultQuery) -> Page[Result]:
        """The newest first; ``from_`` is included, ``to`` is not."""
        require_monitor(query.monitor_id)
        results, total = listed.page(query)
        return Page(results, query.page, query.per_page, total)

    def certificates(self, monitor_id: int) -> CertificateChain:
        require_monitor(monitor_id)
        leaf = db.session.scalar(_LEAF, {"id": monitor_id})
        if leaf is None:
            return CertificateChain()
        for check in _stored_checks(monitor_id):
            chain = check.get("tls") or []
            # Evidence from before a renewal has a certificate that is no longer in use.
            if chain and chain[0].get("sha256") == leaf:
                at = check.get("checked_at")
                seen_at = datetime.fromisoformat(at) if at else None
                return CertificateChain(seen_at, tuple(_certificate(data) for data in chain))
        return CertificateChain()

    def statistics(
        self, monitor_id: int, range_: str, *, response: bool = True
    ) -> Mapping[str, Any]:
        """``range_`` is a key of ``app.stats.RANGES``."""
        if range_ not in RANGES:
            raise Invalid({"range": [text.one_of(RANGES)]})
        monitor, now = require_monitor(monitor_id), self.now()
        span = series.span_of_range(range_, to_ms(now))
        return {**self._statistics(monitor, span, now, response=response), "range": range_}

    def statistics_between(
        self, monitor_id: int, start: datetime, end: datetime
    ) -> Mapping[str, Any]:
        monitor = require_monitor(monitor_id)
        now = self.now()
        if start >= now:
            raise Invalid({"from": [_(text.IN_FUTURE)]})
        begin, stop = to_ms(start), to_ms(end)
        span = series.span_of(begin, stop, to_ms(now))
        if span.width < HOUR_MS and rollups.only_summed(monitor_id, *span[:2]):
            span = series.span_of(begin, stop, to_ms(now), min_width=HOUR_MS)
        return self._statistics(monitor, span, from_ms(span.end))

    def _statistics(
        self, monitor: Any, span: series.ChartSpan, now: datetime, *, response: bool = True
    ) -> Mapping[str, Any]:
        """``monitor``: the row of ``require_monitor``."""
        id = monitor.monitor_id
        incidents = rollups.incidents_between([id], span.start, span.end)[id]
        summed, pieces = self._charted.read(monitor, span, incidents, now, response=response)
        return series.statistics_of(span, pieces, incidents, summed)

    def slow_alerts(self, monitor_id: int, limit: int, minutes: int) -> SlowAlerts:
        monitor, now = get_monitor(db.session, monitor_id), self.now()
        since = max(now - timedelta(days=SLOW_ALERTS_DAYS), monitor.created_at)
        places = assignments.of_each(db.session, [monitor_id])[monitor_id]
        rules = slowness.rules_for(monitor, limit, minutes, since, places)
        reach = rules.reach // timedelta(milliseconds=1)
        spans = rollups.slow_spans(monitor_id, to_ms(since), to_ms(now), limit, reach)
        remaining_ms = MAX_PREVIEWED * monitor.interval * 1000 // max(1, len(places))
        for start, end in reversed(spans):
            remaining_ms -= end - start
            if remaining_ms < 0:
                since = max(since, from_ms(start - remaining_ms))
        checks = chain.from_iterable(
            rollups.checks([monitor_id], max(start, to_ms(since)), end, phases=False)[monitor_id]
            for start, end in spans
        )
        starts = [start for start, _end in slow.spans(rules, checks)]
        return SlowAlerts(since, len(starts), starts[-1] if starts else None)

    def by_place(
        self, monitor_id: int, start: datetime, count: int, seconds: int
    ) -> Mapping[str, Sequence[int | None]]:
        averages: dict[str, list[int | None]] = {}
        for name, bucket, average in by_place.averages(
            db.session, monitor_id, to_ms(start), count, seconds * 1000
        ):
            averages.setdefault(name, [None] * count)[bucket] = average
        return averages

    def report(
        self, monitor_ids: Sequence[int], start: datetime, end: datetime, *, days: bool = False
    ) -> Mapping[int, Mapping[str, Any]]:
        ids = [id for id in dict.fromkeys(monitor_ids) if fits(id)]
        existing = db.session.scalars(select(MonitorRow.id).where(MonitorRow.id.in_(ids))).all()
        return rollups.report_figures(existing, to_ms(start), to_ms(end), self.now(), days=days)


def _stored_checks(monitor_id: int) -> list[Mapping[str, Any]]:
    """The checks of a monitor with stored evidence, also the failing check of an open incident."""
    row = db.session.get(MonitorEvidenceRow, monitor_id)
    opened = db.session.scalar(
        select(IncidentRow.evidence).where(
            IncidentRow.monitor_id == monitor_id, IncidentRow.ended_at.is_(None)
        )
    )
    failing = (readable(row.failing) or []) if row else []
    good = good_checks(readable(row.last_good)) if row else []
    checks = [*failing, (readable(opened) or {}).get("failing"), *good]
    return [check for check in checks if check]


class LocalChecks(LocalPart, base.Checks):
    def run(self, monitor_id: int) -> CheckedNow:
        from app.engine import now

        require_monitor(monitor_id)
        return now.check_now(monitor_id)

    def run_unsaved(self, fields: Fields, *, secrets_from: int | None = None) -> Outcome:
        from app.engine import now

        password = fields.get("request_auth_password")
        if secrets_from is not None and password is None:
            monitor = get_monitor(db.session, secrets_from)
            if not sends_secrets_elsewhere(monitor, fields):
                password = monitor.request_auth_password
        spec = spec_of(fields, readable(password))
        if spec.auth is not None and isinstance(password, Unreadable):
            spec = replace(spec, fault=not_checked({"request_auth_password": password.why}))
        return now.check_fields(spec)
