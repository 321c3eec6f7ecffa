"""Status pages in the local database. The rules of decision 12 that need stored data are here."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from flask import has_request_context, request
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from app.access import passwords
from app.access.dashboard_hosts import is_used
from app.config import Settings
from app.db import DbSession, db, writing
from app.db.tables import StatusPageMonitorRow, StatusPageRow, SubscriberRow
from app.db.types import record_of
from app.errors import CHANGED_MEANWHILE, Conflict, Invalid
from app.i18n import N_, _
from app.records import PAGE_IMAGES, PageQuery, StatusPage, Visibility
from app.records.resources import STATUS_PAGES
from app.rules import slugs
from app.rules.natural import natural_key
from app.rules.page_state import image_link, page_link
from app.rules.text import TAKEN
from app.rules.url import host_of
from app.stores import base
from app.stores.base import Fields
from app.stores.local import page_members
from app.stores.local.cancelling import keeping_calendars
from app.stores.local.page_states import states_of_pages
from app.stores.local.part import Rows, counted_by, fits, lock_row
from app.stores.mail import base_here

OWN_HOST = N_("This host name leads to Wakeful's dashboard. Enter another one.")
USED_HOST = N_(
    "People use Wakeful's dashboard at this host name. Enter another one. If the dashboard has"
    " moved, set WAKEFUL_PUBLIC_URL first."
)
COLUMNS = (
    "name", "description", "visibility", "domain", "show_urls", "show_response_times",
    "auto_post_after", "zone", "theme", "accent", "language", "home_url", "footer",
)  # fmt: skip
_ATTEMPTS = 20  # an attempt fails only if another process takes the slug or the domain


class LocalStatusPages(Rows[StatusPage, PageQuery], base.StatusPages):
    order = (StatusPageRow.id.desc(),)

    def __init__(self, store: base.Store, settings: Settings) -> None:
        super().__init__(store, STATUS_PAGES, StatusPageRow)
        self._settings, self._hosts = settings, settings.own_hosts
        self._any_host = settings.answers_any_host

    def of_monitor(self, monitor_id: int) -> Sequence[StatusPage]:
        if not fits(monitor_id):
            return ()
        page_ids = select(StatusPageMonitorRow.status_page_id).where(
            StatusPageMonitorRow.monitor_id == monitor_id
        )
        pages = self.records(list(db.session.scalars(page_ids)))
        return sorted(pages, key=lambda page: (natural_key(page.name), page.id))

    def create(self, fields: Fields) -> StatusPage:
        secret = _hashed(fields)
        id: int = _retrying_races(partial(self._create, fields, secret))
        return self.get(id)

    def update(self, id: int, fields: Fields) -> StatusPage:
        secret = _hashed(fields)
        _retrying_races(partial(self._update, id, fields, secret))
        return self.get(id)

    def delete(self, id: int) -> None:
        with writing() as session:
            session.delete(locked_page(session, id))

    def _create(self, fields: Fields, secret: str | None) -> int:
        now = self.now()
        with writing() as session:
            self._check(session, None, {"visibility": Visibility.PUBLIC, **fields}, secret)
            slug = fields.get("slug") or _free_slug(session, None, fields)
            row = StatusPageRow(slug=slug, password_turn=0, created_at=now)
            self._set(session, row, fields, secret)
            return row.id

    def _update(self, id: int, fields: Fields, secret: str | None) -> None:
        with writing() as session:
            row = locked_page(session, id)
            merged = {"name": row.name, "visibility": row.visibility, **fields}
            self._check(session, row, merged, secret if "password" in fields else row.password_hash)
            with keeping_calendars(session, [id], self.now()):
                if "slug" in fields:
                    row.slug = fields["slug"] or _free_slug(session, id, merged)
                self._set(session, row, fields, secret)

    def _set(
        self, session: DbSession, row: StatusPageRow, fields: Fields, secret: str | None
    ) -> None:
        for name in COLUMNS:
            if name in fields:
                setattr(row, name, fields[name])
        for name in PAGE_IMAGES:
            if name in fields:
                data = b64decode(fields[name]) if fields[name] else None
                setattr(row, name, data)
                setattr(row, f"{name}_version", data and sha256(data).hexdigest()[:12])
        if "password" in fields:
            row.password_hash, row.password_turn = secret, row.password_turn + 1
        row.updated_at = self.now()
        session.add(row)
        session.flush()
        page_members.change(session, row, fields)

    def _check(
        self, session: DbSession, row: StatusPageRow | None, merged: Fields, secret: str | None
    ) -> None:
        """Raises Invalid if the merged page is wrong: two updates that are valid alone may be
        invalid together.
        """
        id, own_domain = (None, None) if row is None else (row.id, row.domain)
        slug, domain = merged.get("slug"), merged.get("domain")
        # The host of this request is the dashboard's, which the page would replace there. Many
        # installations have no PUBLIC_URL that says so.
        request_host = host_of(request.host) if has_request_context() else None
        errors = {}
        if slug and _is_taken(session, StatusPageRow.slug, slug, id):
            errors["slug"] = [_(TAKEN)]
        if domain and domain in (request_host, *self._hosts):
            errors["domain"] = [_(OWN_HOST)]
        # A page that has this domain already must still be possible to save.
        elif domain and domain != own_domain and self._any_host and is_used(domain, self.now()):
            errors["domain"] = [_(USED_HOST)]
        elif domain and _is_taken(session, StatusPageRow.domain, domain, id):
            errors["domain"] = [_(TAKEN)]
        if merged["visibility"] == Visibility.PASSWORD and secret is None:
            errors["password"] = [_("Enter a password for this page.")]
        if errors:
            raise Invalid(errors)

    def records(self, ids: Sequence[int]) -> Sequence[StatusPage]:
        """The pages with these ids, in one query for each table."""
        rows = {row.id: row for row in self.rows(ids)}
        page_ids = list(rows)
        members, confirmed = page_members.of_pages(page_ids), SubscriberRow.confirmed_at
        counts = counted_by(SubscriberRow.status_page_id, page_ids, confirmed.is_not(None))
        states, base = states_of_pages(page_ids, self.now()), base_here(self._settings)
        return [
            record_of(
                StatusPage,
                rows[id],
                **members[id],
                link=link_of(rows[id], base),
                password_set=rows[id].password_hash is not None,
                logo_link=image_of(rows[id], base, "logo"),
                favicon_link=image_of(rows[id], base, "favicon"),
                state=states[id],
                subscribers=counts[id],
            )
            for id in page_ids
        ]


def locked_page(session: DbSession, id: int) -> StatusPageRow:
    """The page, locked until the transaction ends. Every change of the page, its members or its
    posts takes this lock. Raises NotFound.
    """
    return lock_row(session, StatusPageRow, "status page", id, key_share=True)


def link_of(page: StatusPageRow, base_url: str) -> str:
    """The URL of a page for the public."""
    link = page_link(base_url, page.slug, page.domain)
    return f"{link}/" if page.domain else link


def image_of(page: StatusPageRow, base_url: str, name: str) -> str | None:
    """The URL of an image of a page for the public; None without the image."""
    version: str | None = getattr(page, f"{name}_version")
    link = page_link(base_url, page.slug, page.domain)
    return None if version is None else image_link(link, name, version)


def _hashed(fields: Fields) -> str | None:
    """The hash of a new password. It takes long to make, so call this before the transaction."""
    password = fields.get("password")
    return passwords.hashed(password) if password else None


def _retrying_races(write: Callable[[], Any]) -> Any:
    """Write again if another process took the slug or the domain after the check."""
    for _attempt in range(_ATTEMPTS):
        try:
            return write()
        except IntegrityError:
            db.session.rollback()
    raise Conflict(_(CHANGED_MEANWHILE))


def _is_taken(session: DbSession, column: Any, value: str, own_id: int | None) -> bool:
    id = session.scalar(select(StatusPageRow.id).where(column == value))
    return id is not None and id != own_id


def _free_slug(session: DbSession, id: int | None, merged: Fields) -> str:
    """A free slug for a page without one."""
    if merged.get("visibility") == Visibility.UNLISTED:
        return slugs.random()
    slug = slugs.of_name(merged["name"])
    # A numbered slug may be cut short, but has the same first 32 characters.
    similar = select(StatusPageRow.slug).where(
        StatusPageRow.slug.startswith(slug[:32], autoescape=True), StatusPageRow.id != (id or 0)
    )
    return slugs.numbered(slug, set(session.scalars(similar)))
