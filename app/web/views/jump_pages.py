"""The pages that Ctrl-K finds, by their names and by other words for what they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flask import current_app, url_for
from flask_login import current_user

from app.i18n import N_, _
from app.records import Role
from app.records.resources import RESOURCES
from app.stores import Extent
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
    """``also``: what people call it. ``needs``: how much the store must have for it."""

    name: str
    endpoint: str
    role: Role = Role.VIEWER
    also: str = ""
    needs: Extent = Extent.BARE


VIEWER, EDITOR, ADMIN = Role.VIEWER, Role.EDITOR, Role.ADMIN
TAG, WHOLE = Extent.TAG, Extent.WHOLE
# Those that are not there, or that a server lacks, are left out.
PAGES = (
    Entry(N_("Home"), "home.show", also=N_("dashboard overview start")),
    Entry(N_("Monitors"), "monitors.index", also=N_("checks urls sites hosts list")),
    Entry(N_("New monitor"), "monitors.new", EDITOR, N_("add create watch url site check")),
    Entry(N_("Add many or import"), "imports.start", EDITOR,
          N_("paste urls monitors bulk csv kuma uptimerobot betterstack gatus")),
    Entry(N_("Incidents"), "incidents.index", also=N_("outages downtime down alerts history")),
    Entry(N_("Report an incident"), "incidents.new", EDITOR, N_("new incident outage create")),
    Entry(N_("Maintenance"), "windows.index", VIEWER,
          N_("silence mute snooze downtime window schedule calendar"), WHOLE),
    Entry(N_("New maintenance"), "windows.new", EDITOR,
          N_("add create silence mute snooze downtime window schedule"), WHOLE),
    Entry(N_("Markers"), "markers.index", VIEWER, N_("deploys releases deployments versions"),
          WHOLE),
    Entry(N_("Status pages"), "status_pages.index", VIEWER, N_("public subscribers badge widget"),
          WHOLE),
    Entry(N_("New status page"), "page_editor.new", EDITOR, N_("add create public"),
          WHOLE),
    Entry(N_("Contacts"), "contacts.index", VIEWER,
          N_("alerts channels notifications teams webhook slack discord telegram flock sms email"
             " pager on-call"), WHOLE),
    Entry(N_("New contact"), "contacts.new", EDITOR,
          N_("add create channel notification team webhook slack discord telegram flock sms email"),
          WHOLE),
    Entry(N_("Deliveries"), "deliveries.index", VIEWER,
          N_("alerts notifications sent messages log"),
          TAG),
    Entry(N_("Reports"), "reports.show", VIEWER,
          N_("uptime sla availability statistics month print"),
          WHOLE),
    Entry(N_("Wall"), "wall.show", also=N_("tv screen kiosk big")),
    Entry(N_("Links to the wall"), "wall_links.index", ADMIN,
          N_("tv screen kiosk share read-only")),
    Entry(N_("Places"), "locations.index", VIEWER,
          N_("locations regions agents probers checkers remote vantage"), WHOLE),
    Entry(N_("New place"), "locations.new", EDITOR,
          N_("add create location agent prober region"), WHOLE),
    Entry(N_("API keys"), "keys.index", EDITOR, N_("tokens terraform secrets integrations")),
    Entry(N_("People"), "people.index", ADMIN, N_("users accounts team members roles")),
    Entry(N_("Invite a person"), "invitations.new", ADMIN,
          N_("add user account member invitation")),
    Entry(N_("Settings"), "settings.show", ADMIN,
          N_("networks private webhook secret configuration")),
    Entry(N_("Audit log"), "audit.index", ADMIN,
          N_("history changes who events security trail log-ins")),
    Entry(N_("Backup"), "backups.show", ADMIN, N_("restore save copy dump")),
    Entry(N_("Email settings"), "mail_settings.show", ADMIN, N_("smtp mail server sender")),
    Entry(N_("Profile"), "profile.show", VIEWER,
          N_("time zone colours dark light theme password name account language")),
    Entry(N_("Second factor"), "two_factor.show", VIEWER,
          N_("2fa mfa totp authenticator app passkey security key recovery codes login")),
    Entry(N_("Sessions"), "sessions.index", VIEWER,
          N_("devices browsers logged in log out everywhere")),
)  # fmt: skip


def _all() -> Iterator[Entry]:
    yield from PAGES
    for one in RESOURCES:
        if one.page:
            yield Entry(one.page, f"{one.name}.index", VIEWER, one.also, WHOLE)


def named(query: str) -> list[Place]:
    """The pages with ``query`` at the start of a word of their names; all, for an empty one."""
    return [_place(one) for one in _open() if _is_named(query.casefold(), one)]


def called(query: str) -> list[Place]:
    """The pages with every word of ``query`` at the start of another word for them; none that
    ``named`` finds.
    """
    wanted = query.casefold()
    words = wanted.split()
    others = [one for one in _open() if words and not _is_named(wanted, one)]
    found = [one for one in others if _fits(words, one)]
    # Whole words first: "sla" is not the start of "slack".
    return [_place(one) for one in sorted(found, key=lambda one: not set(words) & _known(one))]


def within(query: str) -> list[Place]:
    """The pages with ``query`` anywhere in their names."""
    return [_place(one) for one in _open() if query.casefold() in _(one.name).casefold()]


def _is_named(wanted: str, one: Entry) -> bool:
    return f" {wanted}" in f" {_(one.name).casefold()}"


def _fits(words: list[str], one: Entry) -> bool:
    return all(any(other.startswith(word) for other in _known(one)) for word in words)


def _known(one: Entry) -> set[str]:
    return set(f"{_(one.name)} {_(one.also) if one.also else ''}".casefold().split())


def _open() -> Iterator[Entry]:
    """Those that this person may open, here and now."""
    for one in _all():
        there = one.endpoint in current_app.view_functions
        if there and current_user.can(one.role) and servers.extent() >= one.needs:
            yield one


def _place(one: Entry) -> Place:
    return Place(_(one.name), _("Page"), url_for(one.endpoint), "right")
