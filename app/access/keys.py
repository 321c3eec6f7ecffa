"""API keys: ``wk_<prefix>_<secret>``. Only a hash is stored, under the prefix (decisions.md 6)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import string
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import or_, select, update

from app.db import best_effort, db, writing
from app.db.tables import ApiKeyRow
from app.errors import Invalid, NotFound
from app.i18n import _
from app.records import MAX_NAME, ApiKey, Scope

PREFIX_LENGTH = 8
PREFIX_ALPHABET = string.ascii_lowercase + string.digits
SECRET_BYTES = 24  # 192 random bits
TOUCH_AFTER = timedelta(minutes=1)  # a busy key must not cost a write for each request


class Keys:
    clock: Callable[[], datetime]

    def create_key(
        self, name: str, scope: str, expires_at: datetime | None = None
    ) -> tuple[ApiKey, str]:
        """A new key and its whole text, which cannot be read again. Raises Invalid."""
        _check(name, scope, expires_at, self.clock())
        prefix = "".join(secrets.choice(PREFIX_ALPHABET) for _place in range(PREFIX_LENGTH))
        text = f"wk_{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"
        row = ApiKeyRow(
            prefix=prefix,
            digest=_digest(text),
            name=name,
            scope=scope,
            created_at=self.clock(),
            expires_at=expires_at,
        )
        with writing() as session:
            session.add(row)
            session.flush()
            return _record(row), text

    def authenticate_key(self, text: str) -> ApiKey | None:
        """The key with this text, or None if it is unknown, expired or revoked."""
        row = None
        parts = text.split("_", 2)
        if len(parts) == 3 and parts[0] == "wk" and len(parts[1]) == PREFIX_LENGTH:
            row = db.session.execute(
                select(ApiKeyRow).where(ApiKeyRow.prefix == parts[1])
            ).scalar_one_or_none()
        now = self.clock()
        # Compare for an unknown prefix too, so that the time does not reveal which prefixes exist.
        known = row.digest if row else "0" * 64  # in bytes: a damaged one need not be ASCII
        same = hmac.compare_digest(known.encode(), _digest(text).encode())
        if row is None or not same or row.revoked_at is not None:
            return None
        if row.expires_at is not None and row.expires_at <= now:
            return None
        key = _record(row)
        # abs(): after the clock was set back, the time must not stay in the future.
        if key.last_used_at is None or abs(now - key.last_used_at) >= TOUCH_AFTER:
            best_effort("The last use of an API key", lambda: self._touch(key.id, now))
        return key

    def keys(self) -> list[ApiKey]:
        """All keys, the newest first, revoked ones too."""
        rows = db.session.execute(select(ApiKeyRow).order_by(ApiKeyRow.id.desc())).scalars()
        return [_record(row) for row in rows]

    def revoke_key(self, prefix: str) -> None:
        """Revoke a key at once. Raises NotFound; revoking twice changes nothing."""
        with writing() as session:
            row = session.execute(
                select(ApiKeyRow).where(ApiKeyRow.prefix == prefix)
            ).scalar_one_or_none()
            if row is None:
                raise NotFound("key", prefix)
            row.revoked_at = row.revoked_at or self.clock()

    def _touch(self, id: int, now: datetime) -> None:
        with writing() as session:
            session.execute(
                update(ApiKeyRow)
                .where(
                    ApiKeyRow.id == id,
                    or_(
                        ApiKeyRow.last_used_at.is_(None),
                        ApiKeyRow.last_used_at < now,
                        ApiKeyRow.last_used_at >= now + TOUCH_AFTER,
                    ),
                )
                .values(last_used_at=now)
            )


def _digest(text: str) -> str:
    # "surrogatepass": a header may contain anything, and a wrong key must give a 401, not an
    # exception.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _check(name: str, scope: str, expires_at: datetime | None, now: datetime) -> None:
    errors: dict[str, list[str]] = {}
    if not name.strip() or len(name) > MAX_NAME:
        errors["name"] = [_("Give the key a name of at most %(most)s characters.", most=MAX_NAME)]
    if scope not in list(Scope):
        errors["scope"] = [_("Choose one of: %(scopes)s.", scopes=", ".join(Scope))]
    if expires_at is not None and expires_at <= now:
        errors["expires_at"] = [
            _("The key would have expired already. Choose a time in the future.")
        ]
    if errors:
        raise Invalid(errors)


def _record(row: ApiKeyRow) -> ApiKey:
    return ApiKey(
        id=row.id,
        prefix=row.prefix,
        name=row.name,
        scope=row.scope,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )
