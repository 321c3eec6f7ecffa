"""People, API keys, sessions, links to the wall, and the notices that every page shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from app.records.marks import Mark

MIN_PASSWORD = 8
MAX_CREDENTIAL = 255
MAX_PERSON_NAME = 80
MAX_PASSKEY_NAME = 80
MAX_PASSKEYS = 20  # of a person


class Scope(StrEnum):
    """The rights of a key. Each includes the rights of those before it."""

    PING = "ping"  # call heartbeats by their slugs; no right to use the API
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class Role(StrEnum):
    """A person's role. Each includes the rights of those after it."""

    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"

    @property
    def scope(self) -> Scope:
        """The widest scope that a key of a person with this role can have."""
        return {Role.ADMIN: Scope.ADMIN, Role.EDITOR: Scope.WRITE}.get(self, Scope.READ)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as shown; the secret part is not stored.

    ``granted``: the scope that it was created with; ``scope``: its scope now, limited by its
    owner's role. ``owner``: the person's email address; None for a key without an owner.
    ``networks``: the CIDRs that it may be used from; all if empty. ``tag``: the key sees and
    changes only the monitors with this tag.
    """

    id: Annotated[int, Mark.INTERNAL]
    prefix: Annotated[str, Mark.INTERNAL]
    name: str
    scope: Annotated[str, Scope]
    created_at: Annotated[datetime, Mark.INTERNAL]
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: Annotated[datetime | None, Mark.INTERNAL] = None
    owner: str | None = None
    networks: tuple[str, ...] = ()
    tag: str | None = None
    granted: Annotated[str, Mark.INTERNAL] = ""
    owner_id: Annotated[int | None, Mark.INTERNAL] = None
    owner_disabled: Annotated[bool, Mark.INTERNAL] = False

    def may(self, needed: Scope) -> bool:
        scopes = [*Scope]
        return scopes.index(Scope(self.scope)) >= scopes.index(needed)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may log in. ``time_zone`` is an IANA name."""

    id: int
    email: str
    role: str
    time_zone: str = "UTC"
    created_at: datetime | None = None
    last_login_at: datetime | None = None
    disabled: bool = False
    theme: str = "auto"  # auto, light, dark
    name: str | None = None
    second_factor: bool = False  # asked for at each login, after the password
    first_steps_away: bool = False  # the person has hidden the first steps on the home page

    @property
    def label(self) -> str:
        """The name of this person for others, or the email address."""
        return self.name or self.email


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey of a person. It works at ``host`` alone."""

    id: int
    name: str
    host: str
    created_at: datetime
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """The second factors of a person. ``app_at``: when the authenticator app was added; None if
    there is none. ``app_unreadable``: its secret cannot be read, so each of its codes is refused.
    """

    app_at: datetime | None = None
    app_unreadable: bool = False
    passkeys: tuple[Passkey, ...] = ()
    codes_left: int = 0

    @property
    def is_set(self) -> bool:
        return self.app_at is not None or bool(self.passkeys)


@dataclass(frozen=True, slots=True)
class Client:
    """The origin of a request. ``device``: the token in the cookie of a browser that has logged in
    before. ``host``: the host name of this server in the request.
    """

    address: str | None = None
    user_agent: str | None = None
    device: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A browser in which a person is logged in. ``browser`` and ``system`` are words of
    ``app.access.sessions``. ``password_at``: when the password was last typed in it.
    """

    id: int
    person_id: int
    created_at: datetime
    last_used_at: datetime
    password_at: datetime | None = None
    address: str | None = None
    browser: str | None = None
    system: str | None = None


@dataclass(frozen=True, slots=True)
class Invitation:
    """The right to make an account with this role, until the link expires."""

    id: int
    email: str
    role: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class WallLink:
    """A link that shows the wall without an account; its token is not stored. ``tag``: the wall
    shows only the monitors with this tag. ``server``: the name of a remote server, if there are
    several.
    """

    id: int
    name: str
    tag: str | None
    zone: str
    server: str | None = None
    created_by: str | None = None
    created_at: datetime | None = None
    last_used_at: datetime | None = None


class Notice(StrEnum):
    """Notices that every page shows as long as they apply: names of rows of the
    ``settings`` table.
    """

    NETWORK_DOWN = "notice.network_down"  # the value: since when
    PLACES_SILENT = "notice.places_silent"  # the value: their titles
    DEMO = "notice.demo"


LAST_BACKUP = "backup.last"  # the setting with the time of the last backup, as ISO 8601
