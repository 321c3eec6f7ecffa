"""What fields and settings are called in the audit log: as the forms call them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from wtforms import Form

from app.access.second_factor import REQUIRED_ROLES
from app.forms.resources import FORMS
from app.forms.schema import labels_of
from app.i18n import N_, _
from app.records import ObjectKind as Kind
from app.records import Thing
from app.web.forms import (
    KeyForm,
    NetworksForm,
    NewPasswordForm,
    PersonForm,
    ProfileForm,
    WallLinkForm,
)
from app.web.mail_forms import MailServerForm

# By kind of object; of two forms with one field, the first counts.
_FORMS: Mapping[Kind, tuple[type[Form], ...]] = {
    **{kind: (form,) for kind, form in FORMS.items()},
    Kind.PERSON: (PersonForm, ProfileForm, NewPasswordForm),
    Kind.INVITATION: (PersonForm,),
    Kind.KEY: (KeyForm,),
    Kind.WALL_LINK: (WallLinkForm,),
    Kind.SETTING: (MailServerForm,),
}
# What no form has, or has under another name.
_MORE: Mapping[Kind, Mapping[str, str]] = {
    Kind.MONITOR: {"paused": N_("Paused"), "contacts": N_("Contacts")},
    Kind.INCIDENT: {
        "acknowledged_by": N_("Acknowledged by"),
        "classification": N_("Classification"),
    },
    Kind.CONTACT: {"replaced_with": N_("Replaced with")},
    Kind.POST: {"status_page_id": N_("Status page")},
    Kind.SUBSCRIBERS: {"subscribers": N_("Subscribers")},
    Kind.REPORT_MAIL: {"contact_id": N_("Contact")},
    Kind.LOCATION: {"public_key": N_("Public key"), "token": N_("Token")},
    Kind.PERSON: {
        "password": N_("Password"),
        "left_out": N_("Failures counted together"),
        "first": N_("First"),
        "last": N_("Last"),
    },
    Kind.SECOND_FACTOR: {
        "app": N_("Authenticator app"),
        "passkey": N_("Passkey"),
        "recovery_codes": N_("Recovery codes"),
        "second_factor": N_("Second factor"),
    },
    Kind.KEY: {"owner": N_("Owner"), "revoked_at": N_("Revoked")},
    Kind.WALL_LINK: {"server": N_("Server")},
    Kind.SETTING: {"value": N_("Value"), "roles": N_("Required for")},
    Kind.INSTALLATION: {"re_encrypted": N_("Encrypted again")},
    Kind.AUDIT_LOG: {
        "search": N_("Search"),
        "actor_kind": N_("Who"),
        "action": N_("Action"),
        "object_kind": N_("Object"),
        "from": N_("From"),
        "to": N_("To"),
    },
}
_SETTINGS: Mapping[str, str] = {
    "smtp_url": N_("Mail server"),
    "webhook_secret": N_("Webhook secret"),
    "webhook_secret_shown": N_("Webhook secret, shown once"),
    REQUIRED_ROLES: N_("Who needs a second factor"),
}


def field_name(thing: Thing | None, field: str) -> str:
    """The label of a field in the form of its object. A field that no form has any more is called
    as it is stored.
    """
    label = None if thing is None else _labels(thing.kind).get(field)
    return _(label) if label else field


def setting_name(name: str) -> str:
    """What a setting is called, by the name under which it is stored."""
    label = _SETTINGS.get(name) or labels_of(NetworksForm).get(name)
    return _(label) if label else name


@cache
def _labels(kind: Kind) -> Mapping[str, str]:
    labels: dict[str, str] = {}
    for form in reversed(_FORMS.get(kind, ())):
        labels |= labels_of(form)
    return {**labels, **_MORE.get(kind, {})}
