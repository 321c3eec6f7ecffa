"""The audit log in words: actors, actions, objects with links to their pages, and changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from flask import current_app, url_for
from wtforms import Form

from app.access.second_factor import REQUIRED_ROLES
from app.codec.value_types import plain
from app.forms.resources import FORMS
from app.forms.schema import labels_of
from app.i18n import N_, _
from app.records import Action, Actor, ActorKind, AuditedObject, AuditLine, ObjectKind
from app.records.resources import RESOURCES
from app.rules.time import iso
from app.web import forms

ACTORS: Mapping[ActorKind, str] = {
    ActorKind.PERSON: N_("Person"), ActorKind.KEY: N_("API key"), ActorKind.LINK: N_("Link"),
    ActorKind.VISITOR: N_("Not logged in"), ActorKind.COMMAND: N_("Command line"),
    ActorKind.AGENT: N_("Agent"), ActorKind.WAKEFUL: N_("Wakeful"),
}  # fmt: skip
ACTIONS: Mapping[Action, str] = {
    Action.CREATED: N_("Created"), Action.CHANGED: N_("Changed"), Action.DELETED: N_("Deleted"),
    Action.PAUSED: N_("Paused"), Action.RESUMED: N_("Resumed"),
    Action.ACKNOWLEDGED: N_("Acknowledged"), Action.RESOLVED: N_("Resolved"),
    Action.REOPENED: N_("Reopened"), Action.REVOKED: N_("Revoked"), Action.ACCEPTED: N_("Accepted"),
    Action.USED: N_("Used"), Action.SHOWN: N_("Shown"), Action.IMPORTED: N_("Imported"),
    Action.EXPORTED: N_("Exported"), Action.BACKED_UP: N_("Backed up"),
    Action.RESTORED: N_("Restored"), Action.ROTATED: N_("Rotated"),
    Action.RETRIED: N_("Sent again"), Action.GIVEN_UP: N_("Given up"),
    Action.LOGGED_IN: N_("Logged in"), Action.LOGGED_OUT: N_("Logged out"),
    Action.LOGIN_FAILED: N_("Failed to log in"), Action.SESSION_ENDED: N_("Session ended"),
}  # fmt: skip
OBJECTS: Mapping[ObjectKind, str] = {resource.kind: resource.title for resource in RESOURCES}
# The endpoint of an object's page, which takes its id.
PAGES: Mapping[ObjectKind, str] = {
    ObjectKind.MONITOR: "monitors.show",
    ObjectKind.INCIDENT: "incidents.show",
    ObjectKind.CONTACT: "contacts.show",
    ObjectKind.STATUS_PAGE: "status_pages.show",
    ObjectKind.DELIVERY: "deliveries.show",
    ObjectKind.PERSON: "people.edit",
}


def who(actor: Actor) -> str:
    """The actor: the name, or the kind of actor if is_shown is no name."""
    return actor.name or _(ACTORS[actor.kind])


def action(line: AuditLine) -> str:
    if line.action == Action.LOGIN_FAILED and line.actor.kind == ActorKind.PERSON:
        return _("Typed a wrong password")  # a logged-in person who was asked for the password
    is_named = line.action in set(Action)
    return _(ACTIONS[Action(line.action)]) if is_named else line.action


def name_of(audited: AuditedObject) -> str:
    if audited.kind == ObjectKind.SETTING and audited.name:
        return setting_name(audited.name)
    if audited.name:
        return audited.name
    return "" if audited.id is None else f"#{audited.id}"


def page_of(line: AuditLine) -> str | None:
    """The address of the object's page; None if it has no page or was deleted in this line."""
    audited = line.object
    if audited is None or audited.id is None or line.action == Action.DELETED:
        return None
    endpoint = PAGES.get(audited.kind)
    is_shown = endpoint is not None and endpoint in current_app.view_functions
    return url_for(endpoint, id=audited.id) if is_shown and endpoint else None


# The fields of changes with ids, and the kind of their objects.
_IDS: Mapping[str, ObjectKind] = {
    "contact_id": ObjectKind.CONTACT, "depends_on": ObjectKind.MONITOR,
    "groups": ObjectKind.MONITOR, "impact": ObjectKind.MONITOR, "incident_id": ObjectKind.INCIDENT,
    "monitor_id": ObjectKind.MONITOR, "monitors": ObjectKind.MONITOR, "names": ObjectKind.MONITOR,
    "status_page_id": ObjectKind.STATUS_PAGE,
}  # fmt: skip
Names = Mapping[tuple[ObjectKind, int], str]


def objects_in(lines: Sequence[AuditLine]) -> set[tuple[ObjectKind, int]]:
    """The objects whose ids the changes of these lines contain."""
    return {
        (_IDS[field], id)
        for line in lines
        for field, change in line.changes.items()
        if field in _IDS and isinstance(change, Mapping)
        for content in change.values()
        for id in _ids_in(content)
    }


def _ids_in(content: Any) -> Iterator[int]:
    """The ids in a value: an id, a list, ``{"key": id}``, ``{"monitors": [id]}`` or ``"id: …"``."""
    if isinstance(content, int) and not isinstance(content, bool):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield from _ids_in(part)
    elif isinstance(content, Mapping):
        yield from _ids_in([content.get("key"), content.get("monitors")])
    elif isinstance(content, str) and (id := content.partition(": ")[0]).isascii() and id.isdigit():
        yield int(id[:19])


def named(field: str, content: Any, names: Names) -> str:
    """A value of a change, with names in place of ids."""
    kind = _IDS.get(field)
    if kind is None:
        return value(content)

    def name(id: Any) -> str:
        return names.get((kind, id)) or f"#{id}"

    def write(part: Any) -> str:
        if isinstance(part, Mapping) and "key" in part:
            return f"{name(part['key'])}: {part.get('value')}"
        if isinstance(part, Mapping):
            return f"{part.get('name')} ({', '.join(map(name, part.get('monitors') or ()))})"
        if isinstance(part, str) and (id := next(_ids_in(part), None)) is not None:
            return f"{name(id)}: {part.partition(': ')[2]}"
        return name(part) if isinstance(part, int) else value(part)

    parts = content if isinstance(content, list) else [content]
    return ", ".join(map(write, parts)) or value(content)


def value(content: Any) -> str:
    """One value of a change, on one line."""
    if content is None or content in ("", []):
        return "–"
    if isinstance(content, bool):
        return _("yes") if content else _("no")
    if isinstance(content, list) and all(isinstance(item, str | int) for item in content):
        return ", ".join(map(str, content))
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def json_line(line: AuditLine) -> str:
    """A line of the export."""
    audited = line.object
    fields = {
        "id": line.id,
        "at": iso(line.at),
        "actor": {"kind": line.actor.kind, "id": line.actor.id, "name": line.actor.name},
        "address": line.actor.address,
        "action": line.action,
        "object": audited and {"kind": audited.kind, "id": audited.id, "name": audited.name},
        "changes": line.changes,
    }
    return json.dumps(plain(fields), ensure_ascii=False) + "\n"


# The forms with the labels of fields, by kind of object. If two forms have a field, the first
# counts.
_FORMS: Mapping[ObjectKind, tuple[type[Form], ...]] = {
    **{kind: (form,) for kind, form in FORMS.items()},
    ObjectKind.PERSON: (forms.PersonForm, forms.ProfileForm, forms.NewPasswordForm),
    ObjectKind.INVITATION: (forms.PersonForm,),
    ObjectKind.KEY: (forms.KeyForm,),
    ObjectKind.WALL_LINK: (forms.WallLinkForm,),
    ObjectKind.SETTING: (forms.MailServerForm,),
}
# Labels of fields that no form has under this name.
_MORE: Mapping[ObjectKind, Mapping[str, str]] = {
    ObjectKind.MONITOR: {"paused": N_("Paused"), "contacts": N_("Contacts")},
    ObjectKind.INCIDENT: {
        "acknowledged_by": N_("Acknowledged by"), "classification": N_("Classification"),
    },
    ObjectKind.CONTACT: {"replaced_with": N_("Replaced with")},
    ObjectKind.POST: {"status_page_id": N_("Status page")},
    ObjectKind.SUBSCRIBERS: {"subscribers": N_("Subscribers")},
    ObjectKind.REPORT_MAIL: {"contact_id": N_("Contact")},
    ObjectKind.LOCATION: {"public_key": N_("Public key"), "token": N_("Token")},
    ObjectKind.PERSON: {
        "password": N_("Password"), "left_out": N_("Failures counted together"),
        "first": N_("First"), "last": N_("Last"),
    },
    ObjectKind.SECOND_FACTOR: {
        "app": N_("Authenticator app"), "passkey": N_("Passkey"),
        "recovery_codes": N_("Recovery codes"), "second_factor": N_("Second factor"),
    },
    ObjectKind.KEY: {"owner": N_("Owner"), "revoked_at": N_("Revoked")},
    ObjectKind.WALL_LINK: {"server": N_("Server")},
    ObjectKind.SETTING: {"value": N_("Value"), "roles": N_("Required for")},
    ObjectKind.INSTALLATION: {"re_encrypted": N_("Encrypted again")},
    ObjectKind.AUDIT_LOG: {
        "search": N_("Search"), "actor_kind": N_("Who"), "action": N_("Action"),
        "object_kind": N_("Object"), "from": N_("From"), "to": N_("To"),
    },
}  # fmt: skip
_SETTINGS: Mapping[str, str] = {
    "smtp_url": N_("Mail server"),
    "webhook_secret": N_("Webhook secret"),
    "webhook_secret_shown": N_("Webhook secret, shown once"),
    REQUIRED_ROLES: N_("Who needs a second factor"),
}


def field_name(audited: AuditedObject | None, field: str) -> str:
    """The label of a field in the form of its object; the stored name for a field that no
    form has.
    """
    label = None if audited is None else _labels(audited.kind).get(field)
    return _(label) if label else field


def setting_name(name: str) -> str:
    """The label of a setting. ``name``: its name in the table."""
    label = _SETTINGS.get(name) or labels_of(forms.NetworksForm).get(name)
    return _(label) if label else name


@cache
def _labels(kind: ObjectKind) -> Mapping[str, str]:
    labels: dict[str, str] = {}
    for form in reversed(_FORMS.get(kind, ())):
        labels |= labels_of(form)
    return {**labels, **_MORE.get(kind, {})}
