"""The first steps in a new installation, on the home page of people who can do them.

Stored records show which steps are done. The list is not the same for all: each person adds their
own second factor, and an editor has fewer steps than an admin. Each person can hide their list. A
process remembers who has done all steps, so that the records are not read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flask import current_app
from flask_login import current_user

from app.i18n import _
from app.records import LAST_BACKUP, PageQuery
from app.stores import current_access, current_mail, current_store
from app.web.frame import servers

_DONE = "wakeful.first_steps_done"  # the ids of people who have done all


@dataclass(frozen=True, slots=True)
class FirstStep:
    title: str
    why: str
    endpoint: str
    is_done: bool


def first_steps() -> Sequence[FirstStep]:
    """The steps of the logged-in person; none if all are done, or the list is hidden."""
    person = current_user.person
    done_by = current_app.extensions.setdefault(_DONE, set())
    is_over = person.first_steps_away or person.id in done_by
    if is_over or not current_user.may_edit or servers.servers() is not None:
        return ()
    steps = list(_steps())
    if all(step.is_done for step in steps):
        done_by.add(person.id)
        return ()
    return steps


def _steps() -> Iterator[FirstStep]:
    store, person = current_store(), current_user.person
    yield FirstStep(
        _("Create a contact"),
        _("Who is alerted, by email, chat or phone. Then send a test alert."),
        "contacts.index" if (contacts := store.contacts.names()) else "contacts.new",
        bool(contacts),
    )
    if current_user.is_admin:
        yield FirstStep(
            _("Set up the mail server"),
            _("Alerts, invitations and recovery links go through it."),
            "mail_settings.show",
            current_mail().is_set(),
        )
    yield FirstStep(
        _("Add a second factor"),
        _("A password alone can be guessed or phished."),
        "two_factor.show",
        person.second_factor,
    )
    if current_user.is_admin:
        yield FirstStep(
            _("Make a backup"),
            _("Download one, and keep the file on another machine."),
            "backups.show",
            current_access().settings.get(LAST_BACKUP) is not None,
        )
    pages = store.status_pages.list(PageQuery(per_page=1)).total
    yield FirstStep(
        _("Publish a status page"),
        _("What your users see, in your words."),
        "status_pages.index" if pages else "page_editor.new",
        bool(pages),
    )
