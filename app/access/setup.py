"""The first account: created on the first visit with a one-time link that the server prints
(decision 6).
"""

from __future__ import annotations

import hmac
import secrets

from app.access import passwords
from app.access.people import People, check_account
from app.access.settings import StoredSettings
from app.db import db, schema, writing
from app.db.settings import remove_setting
from app.db.statements import count_of
from app.db.tables import PersonRow
from app.errors import Denied
from app.i18n import N_, _
from app.records import Person, Role

SETUP_TOKEN = "setup_token"  # noqa: S105 - the setting's name
VOID = N_("This set-up link is no longer valid. Log in, or ask an admin for an account.")


class Setup:
    def __init__(self, people: People, settings: StoredSettings) -> None:
        self.people, self.settings = people, settings

    def needed(self) -> bool:
        """Whether there is no account yet."""
        return count_of(db.session, PersonRow) == 0

    def database(self) -> str:
        """The location of the database, so that people notice a wrong one."""
        return schema.location()

    def token(self) -> str:
        """The secret part of the set-up link: the same until the first account exists. An
        unreadable one is replaced, because the link is printed at each start.
        """
        if self.settings.is_unreadable(SETUP_TOKEN):
            self.settings.set(SETUP_TOKEN, None)
        return self.settings.get_or_make(SETUP_TOKEN, lambda: secrets.token_urlsafe(24))

    def is_token(self, token: str) -> bool:
        """Whether ``token`` is valid now."""
        stored = self.settings.get(SETUP_TOKEN)
        same = hmac.compare_digest((stored or "").encode(), token.encode("utf-8", "surrogatepass"))
        return stored is not None and same and self.needed()

    def use(self, token: str, email: str, password: str, *, time_zone: str = "UTC") -> Person:
        """Create the first account, an admin, and log in. Raises Denied if the token is wrong or
        used up, and Invalid.
        """
        if not self.is_token(token):
            raise Denied(_(VOID))
        check_account(email, Role.ADMIN, password, time_zone=time_zone)
        hash_ = passwords.hashed(password)
        with writing() as session:
            # Remove the token's row first: the second of two visitors at once finds no row.
            if not remove_setting(SETUP_TOKEN) or not self.needed():
                raise Denied(_(VOID))
            person = self.people.add(session, email, hash_, Role.ADMIN, time_zone=time_zone)
        return self.people.record_login(person.id)
