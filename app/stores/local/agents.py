"""The requests of agents. ``agent_results`` handles their results. Needs an application context."""

from __future__ import annotations

import base64
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from app.access import Access, keys
from app.access.keys import AgentPlace
from app.codec.packing import pack
from app.codec.sealing import ABOUT_ASSIGNED, public_key, seal_to
from app.codec.values import text
from app.config import Settings
from app.db import assignments, changes, db, places, writing
from app.db.assignments import Assigned
from app.db.statements import pieces
from app.db.tables import MonitorRow
from app.db.types import to_ms
from app.engine.schedule import Standing
from app.errors import Conflict, Invalid
from app.i18n import N_, _
from app.records import MAX_ID
from app.stores.local import agent_results
from app.stores.local.agent_results import Budgets, ResultIntake

OTHER_KEY = N_(
    "The agent of this place has another key. If its folder was lost, make a new token for the "
    "place and start the agent with it."
)
MAX_CHANGES = 5_000  # with more, the agent reads everything again
SIGN_SECONDS = 2.0  # between two writes of a place's last request


class LocalAgents:
    def __init__(self, settings: Settings, access: Access) -> None:
        self.budgets = Budgets(access)
        self._confirm_seconds = settings.confirm_seconds
        # By place
        self._locks: dict[int, threading.Lock] = defaultdict(threading.Lock)
        self._signs: dict[int, float] = {}  # when its last sign of life was written (monotonic)

    def place_of(self, token: str) -> AgentPlace | None:
        place = keys.agent_of(token)
        db.session.rollback()
        return place

    def ended_place(self, token: str) -> str | None:
        """The name of the place whose last ended token this is; None for any other token."""
        name = keys.ended_place(token)
        db.session.rollback()
        return name

    def hello(self, place: AgentPlace, data: Mapping[str, Any]) -> dict[str, Any]:
        """The first request of an agent, with its public key. The secrets of its monitors are
        encrypted with this key until a new token is made. Raises Invalid and Conflict.
        """
        key = str(data.get("public_key") or "")
        try:
            public_key(key)
        except ValueError as fault:
            raise Invalid({"public_key": [_("The key is wrong: %(why)s", why=fault)]}) from None
        if place.public_key != key:
            with writing():
                is_stored = keys.store_public_key(place, key)
            if not is_stored:
                raise Conflict(_(OTHER_KEY))
        return {"location": place.name, "confirm_seconds": self._confirm_seconds}

    def assigned(self, place: AgentPlace, data: Mapping[str, Any]) -> dict[str, Any]:
        """The monitors to check, encrypted for the agent: all of them, or those that have changed
        after the change number ``since``. Raises Conflict and Throttled.
        """
        if place.public_key is None:
            raise Conflict(_("Send your public key first."))
        with self._one_at_a_time(place):
            return self._sealed(place, place.public_key, _number(data.get("since"), 0, MAX_ID))

    def _sealed(self, place: AgentPlace, key: str, since: int | None) -> dict[str, Any]:
        change = changes.newest()  # read before the rows: a later change is sent again
        ids = None if since is None else self._changed(since, change)
        if ids is None:
            assigned = assignments.of_place(place.id)
        else:
            assigned = assignments.of_monitors(place.id, ids)
        versions = _versions([assignment.spec.monitor_id or 0 for assignment in assigned])
        content = {
            "whole": ids is None,
            "assigned": [_assigned(assignment, versions) for assignment in assigned],
            "gone": sorted((ids or set()) - {each.spec.monitor_id for each in assigned}),
        }
        sealed = seal_to(base64.b64decode(key), content, ABOUT_ASSIGNED.format(place.name))
        return {"change": change, "sealed": base64.b64encode(sealed).decode()}

    @staticmethod
    def _changed(since: int, newest: int) -> set[int] | None:
        """The monitors that have changed; None if older changes were deleted."""
        if since > newest:
            return None  # a backup has replaced the database that had the change ``since``
        newer = changes.since(since, MAX_CHANGES)
        if len(newer) == MAX_CHANGES or (newer and newer[0][0] != since + 1):
            return None  # changes in between were deleted, or there are too many
        return {monitor_id for _number, monitor_id in newer}

    def store_results(self, place: AgentPlace, data: Mapping[str, Any]) -> dict[str, Any]:
        """Store results. Return the numbers of stored and refused results, the standings of their
        monitors, and the number of the newest change. Raises Invalid and Throttled.
        """
        intake = ResultIntake(place, datetime.now(UTC))
        with self._one_at_a_time(place):
            results, wrong = agent_results.read(data.get("results"))
            self.budgets.count(place, "results", len(results) + wrong)
            intake.record(results)
        self._write_sign(place, data, recorded=intake.has_votes)
        return {
            "taken": intake.taken,
            "refused": intake.refused + wrong,
            "standings": {
                str(id): _standing(standing) for id, standing in intake.standings.items()
            },
            "change": changes.newest(),
        }

    @contextmanager
    def _one_at_a_time(self, place: AgentPlace) -> Iterator[None]:
        """Allow one long request of a place at a time. An agent may repeat a request that has not
        ended. The second one is refused and does not wait: otherwise the requests of one place
        could occupy all threads of the web server.
        """
        lock = self._locks[place.id]
        if not lock.acquire(blocking=False):
            raise agent_results.busy(place)
        try:
            yield
        finally:
            lock.release()

    def _write_sign(self, place: AgentPlace, data: Mapping[str, Any], *, recorded: bool) -> None:
        now, clock = datetime.now(UTC), time.monotonic()
        if not recorded and clock - self._signs.get(place.id, float("-inf")) < SIGN_SECONDS:
            return
        self._signs[place.id] = clock
        with writing():
            places.store_sign(
                place.name,
                now,
                process=f"agent:{place.name}"[:96],
                version=text(data.get("version")),
                clock_offset_ms=_number(data.get("clock_offset_ms"), -(10**12), 10**12),
                checks_per_minute=_number(data.get("checks_per_minute"), 0, 10**8),
                last_check_at=now if recorded else None,
            )


def _number(value: Any, least: int, limit: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if least <= value <= limit else None


def _versions(ids: Sequence[int]) -> dict[int, int]:
    versions: dict[int, int] = {}
    for part in pieces(ids, assignments.IDS_PER_STATEMENT):
        rows = db.session.execute(
            select(MonitorRow.id, MonitorRow.updated_at).where(MonitorRow.id.in_(part))
        )
        versions |= {row.id: to_ms(row.updated_at) for row in rows}
    db.session.rollback()
    return versions


def _assigned(assignment: Assigned, versions: Mapping[int, int]) -> dict[str, Any]:
    return {
        "spec": pack(assignment.spec),
        "interval": assignment.interval,
        "version": versions.get(assignment.spec.monitor_id or 0, 0),
        "standing": _standing(assignment),
    }


def _standing(standing: Standing | Assigned) -> dict[str, Any]:
    times = {
        "slot": standing.scheduled_at,
        "checked_at": standing.checked_at,
        "unconfirmed_at": standing.unconfirmed_at,
        "asked_at": standing.asked_at,
    }
    texts = {name: at and at.isoformat() for name, at in times.items()}
    return {**texts, "blind": standing.blind}
