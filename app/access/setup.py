"""The first account: made on the first visit with a one-time link that the server prints
(decisions.md 6).
"""

from __future__ import annotations

import hmac
import secrets

from sqlalchemy import func, select

from app.access import passwords
from app.access.people import People, check_account
from app.access.settings import SettingsTable
from app.db import db, writing
from app.db.settings import remove_setting
from app.db.tables import PersonRow
from app.errors import Denied
from app.records import Person, Role

SETUP_TOKEN = "setup_token"  # noqa: S105 - the setting's name
VOID = "This set-up link is not valid any more. Log in, or ask an admin for an account."


class Setup(People, SettingsTable):
    def setup_needed(self) -> bool:
        """Whether nobody has an account yet."""
        return not _anybody()

    def setup_token(self) -> str:
        """The secret part of the set-up link: made once, the same until the first account
        exists. One that cannot be read is made anew: the link is printed at each start.
        """
        if SETUP_TOKEN in self.unreadable_settings():
            self.set_setting(SETUP_TOKEN, None)
        return self.setting_or_make(SETUP_TOKEN, lambda: secrets.token_urlsafe(24))

    def is_setup_token(self, token: str) -> bool:
        """Whether ``token`` would be taken now."""
        known = self.setting(SETUP_TOKEN)
        same = hmac.compare_digest((known or "").encode(), token.encode("utf-8", "surrogatepass"))
        return known is not None and same and self.setup_needed()

    def use_setup_token(self, token: str, email: str, password: str) -> Person:
        """Make the first account, an admin, who is then logged in. Raises Denied when the token is
        wrong or used up, and Invalid.
        """
        if not self.is_setup_token(token):
            raise Denied(VOID)
        check_account(email, Role.ADMIN, password)
        hash_ = passwords.hashed(password)
        with writing() as session:
            # The token's row is taken away first: of two visitors at once, one finds it gone.
            if not remove_setting(SETUP_TOKEN) or _anybody():
                raise Denied(VOID)
            person = self._add_person(session, email, hash_, Role.ADMIN)
        return self._logged_in(person.id, None)  # whoever makes it goes straight in


def _anybody() -> bool:
    return bool(db.session.execute(select(func.count()).select_from(PersonRow)).scalar_one())
