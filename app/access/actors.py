"""The actor of this request, command or task: who does what the audit log records.

The dashboard, the API, the page behind an alert's link and the commands set the actor
(``acting_as``, or ``begin`` at both ends of a request). If nobody is set, Wakeful itself acts; its
own changes leave no line.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from app.proxies import address_of
from app.records import Actor, ActorKind, ApiKey, Person

WAKEFUL = Actor(ActorKind.WAKEFUL)
_now: ContextVar[Actor | None] = ContextVar("actor", default=None)


def actor() -> Actor | None:
    """Who acts now; None for Wakeful itself."""
    return _now.get()


def begin(actor: Actor | None) -> None:
    """Set the actor of this thread or task; None for Wakeful itself. A thread serves many requests,
    so each request begins with its actor and ends with None.
    """
    _now.set(actor)


@contextmanager
def acting_as(actor: Actor | None) -> Iterator[None]:
    """Set the actor for the statements inside."""
    token = _now.set(actor)
    try:
        yield
    finally:
        _now.reset(token)


def visitor(address: str | None) -> Actor:
    """Somebody who is not logged in."""
    return Actor(ActorKind.VISITOR, address=_plain(address))


def by_person(person: Person, address: str | None) -> Actor:
    """Somebody who is logged in."""
    return Actor(ActorKind.PERSON, person.email, person.id, _plain(address))


def by_key(key: ApiKey, address: str | None) -> Actor:
    """A program with an API key."""
    return Actor(ActorKind.KEY, f"{key.name} ({key.prefix})", key.id, _plain(address))


def by_link(name: str, address: str | None) -> Actor:
    """Somebody who has a link that was sent to ``name``."""
    return Actor(ActorKind.LINK, name, address=_plain(address))


def by_command() -> Actor:
    """The command line, under the name of the system's account."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in a container
        name = ""
    return Actor(ActorKind.COMMAND, name)


def named(name: str) -> Actor:
    """The present actor with this name, such as the email address that a visitor types."""
    return replace(actor() or WAKEFUL, name=name)


def _plain(address: str | None) -> str | None:
    """An IPv4 address that is written as one of IPv6 counts as IPv4."""
    ip = address_of(address or "")
    return None if ip is None else str(ip)
