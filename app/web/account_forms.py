"""Forms of invitations and of lost passwords."""

from __future__ import annotations

from app.forms.browser import BrowserForm
from app.forms.fields import Word
from app.i18n import N_
from app.records import MIN_PASSWORD, Role
from app.web.forms import (
    PasswordTwiceForm,
    email_field,
    new_password_field,
    own_zone_field,
    password_field,
    person_name_field,
)
from app.web.shown.looks import ROLES


class InviteForm(BrowserForm):
    email = email_field("off")
    role = Word(N_("Role"), words=Role, labels=ROLES.__getitem__, default=Role.EDITOR)


class JoinForm(PasswordTwiceForm):
    """Somebody who was invited makes their account."""

    name = person_name_field()
    password = new_password_field(N_("Password"))
    password_again = password_field(N_("Password again"), "new-password")
    time_zone = own_zone_field()


class ForgottenForm(BrowserForm):
    email = email_field("username")


class RecoveryForm(PasswordTwiceForm):
    password = new_password_field(
        N_("New password"),
        N_("%(least)s characters or more. It logs you out everywhere.", least=MIN_PASSWORD),
    )
    password_again = password_field(N_("New password again"), "new-password")
