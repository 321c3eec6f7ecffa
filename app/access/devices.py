"""Browsers in which a person has logged in before. Wrong passwords of strangers do not lock them
out: the attempts of such a browser are counted by themselves (``People.login``).

A cookie holds a token, and only its hash is stored, for each person who has logged in there. Each
login replaces the token, so an old copy of the cookie is worth nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, select, update

from app.access.tokens import digest_of, make_token
from app.db import AnySession, DbSession, db
from app.db.statements import delete_rows, keep_newest
from app.db.tables import DeviceRow

DEVICE_RETENTION = timedelta(days=180)  # since the last login
DEVICES_PER_PERSON = 20  # the rest is forgotten, the longest unused first


def device_of(token: str | None, person_id: int, now: datetime) -> int | None:
    """The id of this browser, if the person has logged in there before."""
    if not token:
        return None
    row = _row(db.session, token, person_id)
    return None if row is None or now - row.last_used_at >= DEVICE_RETENTION else row.id


def forget_old(now: datetime) -> None:
    delete_rows(DeviceRow, DeviceRow.last_used_at <= now - DEVICE_RETENTION)


def remember(
    session: DbSession, token: str | None, person_id: int, now: datetime
) -> tuple[int, str]:
    """Note that the person logs in with the browser of ``token``. Returns the id of the device and
    the new token of the browser. Call it in a write transaction.
    """
    new = make_token()
    if token:
        # This changes the rows of all people who share the browser, because it has one cookie.
        session.execute(
            update(DeviceRow)
            .where(DeviceRow.digest == digest_of(token))
            .values(digest=digest_of(new))
        )
    row = _row(session, new, person_id)
    if row is None:
        row = DeviceRow(digest=digest_of(new), person_id=person_id)
        session.add(row)
    row.last_used_at = now
    session.flush()
    theirs = DeviceRow.person_id == person_id
    keep_newest(session, DeviceRow.id, theirs, DeviceRow.last_used_at, DEVICES_PER_PERSON)
    return row.id, new


def _row(session: AnySession, token: str, person_id: int) -> DeviceRow | None:
    query = select(DeviceRow).where(DeviceRow.digest == digest_of(token))
    return session.scalar(query.where(DeviceRow.person_id == person_id))


def forget_devices(session: DbSession, person_id: int, keep: int | None = None) -> None:
    """Forget all devices of the person but ``keep`` (an id)."""
    others = () if keep is None else (DeviceRow.id != keep,)
    session.execute(delete(DeviceRow).where(DeviceRow.person_id == person_id, *others))
