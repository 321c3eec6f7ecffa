"""The pages that Ctrl-K finds, by their names and by other words for what they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flask import current_app, url_for
from flask_login import current_user

from app.records import Role
from app.stores import Feature
from app.web.frame import servers


@dataclass(frozen=True, slots=True)
class Place:
    """One line of the list. ``posts``: it changes something, so it is a button that sends a form
    to ``href``, never a link.
    """

    name: str
    note: str
    href: str
    sign: str
    posts: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """``also``: what people call it. ``needs``: what a server has to offer for it."""

    name: str
    endpoint: str
    role: Role = Role.VIEWER
    also: str = ""
    needs: Feature | None = None


VIEWER, EDITOR, ADMIN = Role.VIEWER, Role.EDITOR, Role.ADMIN
# Those that are not there, or that a server does not offer, are left out.
PAGES = (
    Entry("Home", "home.show", also="dashboard overview start"),
    Entry("Monitors", "monitors.index", also="checks urls sites hosts list"),
    Entry("New monitor", "monitors.new", EDITOR, "add create watch url site check"),
    Entry("Add many or import", "imports.start", EDITOR,
          "paste urls monitors bulk csv kuma uptimerobot betterstack gatus"),
    Entry("Incidents", "incidents.index", also="outages downtime down alerts history"),
    Entry("Report an incident", "incidents.new", EDITOR, "new incident outage create"),
    Entry("Maintenance", "windows.index", VIEWER,
          "silence mute snooze downtime window schedule calendar", Feature.WINDOWS),
    Entry("New maintenance", "windows.new", EDITOR,
          "add create silence mute snooze downtime window schedule", Feature.WINDOWS),
    Entry("Markers", "markers.index", VIEWER, "deploys releases deployments versions",
          Feature.MARKERS),
    Entry("Status pages", "status_pages.index", VIEWER, "public subscribers badge widget",
          Feature.STATUS_PAGES),
    Entry("New status page", "page_editor.new", EDITOR, "add create public",
          Feature.STATUS_PAGES),
    Entry("Post templates", "post_templates.index", VIEWER, "", Feature.POST_TEMPLATES),
    Entry("Contacts", "contacts.index", VIEWER,
          "alerts channels notifications teams webhook slack discord telegram flock sms email"
          " pager on-call", Feature.CONTACTS),
    Entry("New contact", "contacts.new", EDITOR,
          "add create channel notification team webhook slack discord telegram flock sms email",
          Feature.CONTACTS),
    Entry("Deliveries", "deliveries.index", VIEWER, "alerts notifications sent messages log",
          Feature.DELIVERIES),
    Entry("Reports", "reports.show", VIEWER, "uptime sla availability statistics month print",
          Feature.REPORTS),
    Entry("Wall", "wall.show", also="tv screen kiosk big"),
    Entry("Links to the wall", "wall_links.index", ADMIN, "tv screen kiosk share read-only"),
    Entry("Places", "locations.index", VIEWER,
          "locations regions agents probers checkers remote vantage", Feature.LOCATIONS),
    Entry("New place", "locations.new", EDITOR, "add create location agent prober region",
          Feature.LOCATIONS),
    Entry("API keys", "keys.index", EDITOR, "tokens terraform secrets integrations"),
    Entry("People", "people.index", ADMIN, "users accounts team members roles"),
    Entry("Invite a person", "invitations.new", ADMIN, "add user account member invitation"),
    Entry("Settings", "settings.show", ADMIN, "networks private webhook secret configuration"),
    Entry("Email settings", "mail_settings.show", ADMIN, "smtp mail server sender"),
    Entry("Profile", "profile.show", VIEWER,
          "time zone colours dark light theme password name account language"),
)  # fmt: skip


def named(query: str) -> list[Place]:
    """The pages with ``query`` at the start of a word of their names; all, for an empty one."""
    return [_place(one) for one in _open() if _is_named(query.casefold(), one)]


def called(query: str) -> list[Place]:
    """The pages with every word of ``query`` at the start of another word for them, or with
    ``query`` elsewhere in their names; none that ``named`` finds.
    """
    wanted = query.casefold()
    words = wanted.split()
    others = [one for one in _open() if words and not _is_named(wanted, one)]
    found = [one for one in others if _fits(words, one) or wanted in one.name.casefold()]
    # Whole words first: "sla" is not the start of "slack".
    return [_place(one) for one in sorted(found, key=lambda one: not set(words) & _known(one))]


def _is_named(wanted: str, one: Entry) -> bool:
    return f" {wanted}" in f" {one.name.casefold()}"


def _fits(words: list[str], one: Entry) -> bool:
    return all(any(other.startswith(word) for other in _known(one)) for word in words)


def _known(one: Entry) -> set[str]:
    return set(f"{one.name} {one.also}".casefold().split())


def _open() -> Iterator[Entry]:
    """Those that this person may open, here and now."""
    offered = servers.offered()
    for one in PAGES:
        there = one.endpoint in current_app.view_functions
        if there and current_user.can(one.role) and (one.needs is None or offered[one.needs]):
            yield one


def _place(one: Entry) -> Place:
    return Place(one.name, "Page", url_for(one.endpoint), "right")
