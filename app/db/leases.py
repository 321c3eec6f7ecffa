"""Who checks what is due: leases on monitors, and what a check needs to know of them.

A lease is a token and a time. Whoever holds it checks the monitor and records the result under the
token; when the time has passed without that (a crash), somebody else may take the monitor. Needs an
application context.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    bindparam,
    cast,
    func,
    or_,
    select,
    type_coerce,
    update,
)

from app.db import db, writing
from app.db.clocks import SKEW
from app.db.tables import MonitorRow, MonitorStateRow
from app.db.types import Unreadable, readable, to_ms
from app.records import Cause, CheckSpec, Pair, words_of

# Beyond a check's own time limit: waiting for a place in the prober, and to be recorded.
LEASE_MARGIN = timedelta(seconds=30)

_SPEC_COLUMNS = (
    MonitorRow.id, MonitorRow.url, MonitorRow.request_method, MonitorRow.request_headers,
    MonitorRow.request_auth_username, MonitorRow.request_auth_password, MonitorRow.request_body,
    MonitorRow.alert_condition, MonitorRow.alert_text_lookup, MonitorRow.timeout,
    MonitorRow.accepted_statuses, MonitorRow.follow_redirects, MonitorRow.verify_tls,
    MonitorRow.cache_buster, MonitorRow.slow_after, MonitorRow.ssl_alert_days,
)  # fmt: skip


def next_due(now: datetime) -> datetime | None:
    """When the next monitor that nobody holds is due; in the past if it is overdue."""
    found: datetime | None = db.session.scalar(
        select(MonitorStateRow.next_check_at)
        .where(MonitorStateRow.next_check_at.is_not(None), _free(now))
        .order_by(MonitorStateRow.next_check_at)
        .limit(1)
    )
    db.session.rollback()
    return found


def claim(now: datetime, token: str, limit: int) -> list[CheckSpec]:
    """Take up to ``limit`` due monitors under ``token``, those that have waited longest first."""
    with writing() as session:
        due = session.execute(
            select(MonitorStateRow.monitor_id, MonitorRow.timeout)
            .join(MonitorRow, MonitorRow.id == MonitorStateRow.monitor_id)
            .where(MonitorStateRow.next_check_at <= now, _free(now))
            .order_by(MonitorStateRow.next_check_at)
            .limit(limit)
            # On PostgreSQL several checkers claim at once: each passes over what another is taking.
            .with_for_update(of=MonitorStateRow, skip_locked=True)
        ).all()
        if due:
            session.connection().execute(
                update(MonitorStateRow.__table__)  # type: ignore[arg-type]
                .where(MonitorStateRow.__table__.c.monitor_id == bindparam("of"))
                .values(lease_until=bindparam("until"), lease_token=token),
                [{"of": row.monitor_id, "until": _until(now, row.timeout)} for row in due],
            )
    return specs([row.monitor_id for row in due])


def release(monitor_ids: Collection[int], token: str) -> None:
    """Give back what was claimed and not checked: it is due again at once."""
    if monitor_ids:
        with writing() as session:
            session.execute(
                update(MonitorStateRow)
                .where(
                    MonitorStateRow.monitor_id.in_(monitor_ids),
                    MonitorStateRow.lease_token == token,
                )
                .values(lease_until=None, lease_token=None)
            )


def holders() -> list[str]:
    """The tokens under which monitors are held."""
    held = select(MonitorStateRow.lease_token).where(MonitorStateRow.lease_token.is_not(None))
    found = [token for token in db.session.scalars(held.distinct()) if token is not None]
    db.session.rollback()
    return found


def free(tokens: Collection[str]) -> None:
    """Take back all that is held under these tokens: it is due again at once."""
    with writing() as session:
        session.execute(
            update(MonitorStateRow)
            .where(MonitorStateRow.lease_token.in_(tokens))
            .values(lease_until=None, lease_token=None)
        )


def specs(monitor_ids: Sequence[int]) -> list[CheckSpec]:
    """What a check of each of these monitors needs to know; unknown ids are left out. A spec whose
    monitor cannot be read whole says so as its ``fault``.
    """
    if not monitor_ids:
        return []
    rows = db.session.execute(select(*_SPEC_COLUMNS).where(MonitorRow.id.in_(monitor_ids))).all()
    db.session.rollback()
    return [_spec(row) for row in rows]


def due_after_outage(now: datetime) -> int:
    """Make due at once what could not be checked because our own network failed; how many."""
    with writing() as session:
        done = session.execute(
            update(MonitorStateRow)
            .where(
                MonitorStateRow.cause_code == Cause.NETWORK_DOWN,
                MonitorStateRow.next_check_at > now,
            )
            .values(next_check_at=now)
        )
        return int(done.rowcount)  # type: ignore[attr-defined]


def due_after_step(now: datetime, confirm_seconds: float) -> int:
    """Make due what a clock that was set back has put out of reach; how many.

    No check is planned further ahead than its interval and a repeat, and no lease lasts longer than
    a time limit and its margin. A lease is ended but its token kept: while nobody else has taken
    the monitor, whoever is checking it may still record.
    """
    repeat = timedelta(seconds=confirm_seconds)
    planned = _ahead(MonitorStateRow.next_check_at, MonitorRow.interval) > to_ms(
        now + repeat + SKEW
    )
    leased = _ahead(MonitorStateRow.lease_until, MonitorRow.timeout) > to_ms(
        now + LEASE_MARGIN + SKEW
    )
    found = list(
        db.session.scalars(
            select(MonitorStateRow.monitor_id)
            .join(MonitorRow, MonitorRow.id == MonitorStateRow.monitor_id)
            .where(or_(planned, leased))
        )
    )
    db.session.rollback()
    if found:
        with writing() as session:
            of_these = MonitorStateRow.monitor_id.in_(found)
            for moment in (MonitorStateRow.next_check_at, MonitorStateRow.lease_until):
                session.execute(
                    update(MonitorStateRow).where(of_these, moment > now).values({moment: now})
                )
    return len(found)


def _ahead(moment: Any, seconds: Any) -> Any:
    """A moment in ms, less so many seconds of the monitor's own."""
    return type_coerce(moment, BigInteger) - cast(seconds, BigInteger) * 1000


def checks_per_second() -> float:
    """How many checks the schedule needs in a second, on average."""
    rate = select(func.sum(1.0 / MonitorRow.interval)).where(MonitorRow.paused.is_(False))
    found = db.session.scalar(rate)
    db.session.rollback()
    return float(found or 0)


def _free(now: datetime) -> ColumnElement[bool]:
    return or_(MonitorStateRow.lease_until.is_(None), MonitorStateRow.lease_until <= now)


def _until(now: datetime, timeout: int) -> datetime:
    return now + timedelta(seconds=timeout) + LEASE_MARGIN


def _spec(row: Any) -> CheckSpec:
    user = row.request_auth_username
    needed = {
        "request_headers": row.request_headers,
        "request_auth_password": None if user is None else row.request_auth_password,
        "request_body": row.request_body,
    }
    broken = {name: value for name, value in needed.items() if isinstance(value, Unreadable)}
    return CheckSpec(
        url=row.url,
        monitor_id=row.id,
        request_method=row.request_method,
        request_headers=tuple(
            Pair(key, value) for key, value in readable(row.request_headers) or ()
        ),
        auth=None if user is None else (user, readable(row.request_auth_password) or ""),
        request_body=readable(row.request_body),
        alert_condition=row.alert_condition,
        alert_text_lookup=row.alert_text_lookup,
        timeout=row.timeout,
        accepted_statuses=row.accepted_statuses,
        follow_redirects=row.follow_redirects,
        verify_tls=row.verify_tls,
        cache_buster=bool(row.cache_buster),
        slow_after=row.slow_after,
        ssl_alert_days=row.ssl_alert_days,
        fault=not_checked(broken) if broken else None,
    )


def not_checked(broken: Mapping[str, Unreadable]) -> str:
    """Why a check is not made, and what to do; ``broken`` by the name of the field."""
    why = next(iter(broken.values())).why
    return (
        f"Not checked: the stored {words_of(list(broken))} cannot be read, because {why}."
        " Edit the monitor and enter or remove what is missing."
    )
