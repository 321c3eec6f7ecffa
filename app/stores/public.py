"""What the public may ask for: the one interface that app/pages talks to.

Only an installation with a database of its own serves public pages; over a remote server's API,
that server does. Methods raise ``NotFound`` for what strangers must not tell apart (unknown,
closed, deleted), and ``Unavailable`` when the database cannot answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flask import Flask

from app.access.subscriptions import Purpose
from app.records import Brand, PublicMonth, PublicPage, StatusPage


@dataclass(frozen=True, slots=True)
class Address:
    """A page by what its readers' addresses name, and who may read it.

    ``password_turn`` changes with each new password. ``version`` changes with the page's settings.
    """

    id: int
    slug: str
    name: str
    domain: str | None
    visibility: str
    password_turn: int
    version: int
    brand: Brand


class PublicPages(ABC):
    @property
    @abstractmethod
    def channels(self) -> Sequence[str]:
        """How people may subscribe, words of ``Channel``."""

    @abstractmethod
    def on_write(self, app: Flask, call: Callable[[Flask], None]) -> None:
        """Call this, a method, whenever this process has written to the database."""

    @abstractmethod
    def addresses(self) -> Sequence[Address]:
        """All pages."""

    @abstractmethod
    def link(self, address: Address) -> str:
        """Where people reach a page, as messages have it. Reads nothing from the database."""

    @abstractmethod
    def listed(self) -> Sequence[StatusPage]:
        """The public pages, by name."""

    @abstractmethod
    def page(self, id: int) -> PublicPage:
        """The front of a page."""

    @abstractmethod
    def month(self, id: int, year: int, month: int) -> PublicMonth:
        """A month of its past, in the page's zone."""

    @abstractmethod
    def image(self, id: int, name: str) -> bytes:
        """The bytes of an image of a page, one of ``PAGE_IMAGES``."""

    @abstractmethod
    def password_fits(self, id: int, password: str) -> bool:
        """Whether this opens the page. Takes as long for a page without a password."""

    @abstractmethod
    def subscribe(self, id: int, channel: str, target: str, *, address: str | None) -> None:
        """Send a confirmation link, or a token to echo. Does not show whether somebody subscribed
        before. Raises Invalid with the field's name, and Throttled after too many sign-ups from
        ``address``, the client's.
        """

    @abstractmethod
    def page_of_token(self, purpose: Purpose, token: str) -> int | None:
        """The id of the page that a link was sent for; None for a token that was never given out
        or has expired. Reads nothing from the database.
        """

    @abstractmethod
    def confirm(self, token: str) -> StatusPage:
        """Confirm a subscription. NotFound for a token that was never given out or has expired."""

    @abstractmethod
    def unsubscribe(self, token: str) -> StatusPage:
        """End a subscription; one that has ended already is no error."""
