"""The audit log in words: who, what, and where the page of an object is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flask import current_app, url_for

from app.codec.kinds import plain
from app.i18n import N_, _
from app.records import Action, Actor, ActorKind, AuditLine, ObjectKind, Thing
from app.records.resources import RESOURCES
from app.rules.time import iso
from app.web.shown.audit_names import setting_name

ACTORS: Mapping[ActorKind, str] = {
    ActorKind.PERSON: N_("Person"),
    ActorKind.KEY: N_("API key"),
    ActorKind.LINK: N_("Link"),
    ActorKind.VISITOR: N_("Not logged in"),
    ActorKind.COMMAND: N_("Command line"),
    ActorKind.AGENT: N_("Agent"),
    ActorKind.WAKEFUL: N_("Wakeful"),
}
ACTIONS: Mapping[Action, str] = {
    Action.CREATED: N_("Created"),
    Action.CHANGED: N_("Changed"),
    Action.DELETED: N_("Deleted"),
    Action.PAUSED: N_("Paused"),
    Action.RESUMED: N_("Resumed"),
    Action.ACKNOWLEDGED: N_("Acknowledged"),
    Action.RESOLVED: N_("Resolved"),
    Action.REOPENED: N_("Reopened"),
    Action.REVOKED: N_("Revoked"),
    Action.ACCEPTED: N_("Accepted"),
    Action.USED: N_("Used"),
    Action.SHOWN: N_("Shown"),
    Action.IMPORTED: N_("Imported"),
    Action.EXPORTED: N_("Exported"),
    Action.BACKED_UP: N_("Backed up"),
    Action.RESTORED: N_("Restored"),
    Action.ROTATED: N_("Rotated"),
    Action.RETRIED: N_("Sent again"),
    Action.GIVEN_UP: N_("Given up"),
    Action.LOGGED_IN: N_("Logged in"),
    Action.LOGGED_OUT: N_("Logged out"),
    Action.LOGIN_FAILED: N_("Failed to log in"),
    Action.SESSION_ENDED: N_("Session ended"),
}
OBJECTS: Mapping[ObjectKind, str] = {one.kind: one.title for one in RESOURCES}
# Where the page of an object is, by its id. What was deleted is not there any more.
PAGES: Mapping[ObjectKind, str] = {
    ObjectKind.MONITOR: "monitors.show",
    ObjectKind.INCIDENT: "incidents.show",
    ObjectKind.CONTACT: "contacts.show",
    ObjectKind.STATUS_PAGE: "status_pages.show",
    ObjectKind.DELIVERY: "deliveries.show",
    ObjectKind.PERSON: "people.edit",
}


def who(actor: Actor) -> str:
    """Whoever acted: the name, or what kind of actor it is where there is no name."""
    return actor.name or _(ACTORS[actor.kind])


def kind_of_actor(actor: Actor) -> str:
    return _(ACTORS[actor.kind]) if actor.name else ""


def action(line: AuditLine) -> str:
    if line.action == Action.LOGIN_FAILED and line.actor.kind == ActorKind.PERSON:
        return _("Typed a wrong password")  # they are logged in: it was asked for again
    known = line.action in set(Action)
    return _(ACTIONS[Action(line.action)]) if known else line.action


def kind_of_object(thing: Thing) -> str:
    return _(OBJECTS[thing.kind])


def name_of(thing: Thing) -> str:
    if thing.kind == ObjectKind.SETTING and thing.name:
        return setting_name(thing.name)
    if thing.name:
        return thing.name
    return "" if thing.id is None else f"#{thing.id}"


def page_of(line: AuditLine) -> str | None:
    """The address of the object's page, where it has one and may still exist."""
    thing = line.of
    if thing is None or thing.id is None or line.action == Action.DELETED:
        return None
    endpoint = PAGES.get(thing.kind)
    there = endpoint is not None and endpoint in current_app.view_functions
    return url_for(endpoint, id=thing.id) if there and endpoint else None


def value(given: Any) -> str:
    """One value of a change, on one line."""
    if given is None or given in ("", []):
        return "–"
    if isinstance(given, bool):
        return _("yes") if given else _("no")
    if isinstance(given, list) and all(isinstance(one, str | int) for one in given):
        return ", ".join(map(str, given))
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def json_line(line: AuditLine) -> str:
    """A line of the export."""
    told = {
        "id": line.id,
        "at": iso(line.at),
        "actor": {"kind": line.actor.kind, "id": line.actor.id, "name": line.actor.name},
        "address": line.actor.address,
        "action": line.action,
        "object": line.of and {"kind": line.of.kind, "id": line.of.id, "name": line.of.name},
        "changes": line.changes,
    }
    return json.dumps(plain(told), ensure_ascii=False) + "\n"
