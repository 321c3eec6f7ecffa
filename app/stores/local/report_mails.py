"""Monthly reports by email in the local database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from app.alerts.targets import channels_of
from app.db import DbSession, db, writing
from app.db.tables import ContactRow, ReportMailRow
from app.errors import Invalid, NotFound
from app.forms.monitor import no_contact
from app.i18n import N_, _
from app.records import Channel, Page, PageQuery, ReportMail
from app.stores.base import Collection, Fields
from app.stores.local.part import Part, found_row
from app.stores.local.search import fits, ids_of_page

NO_ADDRESS = N_("This contact has no email address. Add one to it first.")
ORDERED = N_("This contact gets this report already.")
_FOUND = select(ReportMailRow, ContactRow.name).join(
    ContactRow, ContactRow.id == ReportMailRow.contact_id
)


class ReportMails(Part, Collection[ReportMail, PageQuery]):
    def list(self, query: PageQuery) -> Page[ReportMail]:
        """By age."""
        order = (ReportMailRow.id,)
        ids, total = ids_of_page(select(ReportMailRow.id), order, query.page, query.per_page)
        rows = db.session.execute(_FOUND.where(ReportMailRow.id.in_(ids)).order_by(*order))
        return Page([_record(*row) for row in rows], query.page, query.per_page, total)

    def get(self, id: int) -> ReportMail:
        found = _FOUND.where(ReportMailRow.id == id).execution_options(populate_existing=True)
        row = db.session.execute(found).one_or_none() if fits(id) else None
        if row is None:
            raise NotFound("monthly report", id)
        return _record(*row)

    def create(self, fields: Fields) -> ReportMail:
        now = self.now()
        with writing() as session:
            row = ReportMailRow(**self._columns(session, fields), created_at=now, updated_at=now)
            _refuse_second(session, row)
            session.add(row)
            session.flush()
            id = row.id
        return self.get(id)

    def update(self, id: int, fields: Fields) -> ReportMail:
        with writing() as session:
            row = found_row(session, ReportMailRow, "monthly report", id)
            for name, value in self._columns(session, fields).items():
                setattr(row, name, value)
            _refuse_second(session, row)
            row.updated_at = self.now()
        return self.get(id)

    def delete(self, id: int) -> None:
        with writing() as session:
            session.delete(found_row(session, ReportMailRow, "monthly report", id))

    def _columns(self, session: DbSession, fields: Fields) -> dict[str, Any]:
        """Raises Invalid for a contact that there is not, or that no mail reaches."""
        columns = dict(fields)
        if "contact" in columns:
            name = columns.pop("contact")
            contact_id = self.store.contacts.id_of(name)
            contact = None if contact_id is None else _locked(session, contact_id)
            if contact is None:
                raise Invalid({"contact": [no_contact(name)]})
            if not any(channel == Channel.EMAIL for channel, _value in channels_of(contact)):
                raise Invalid({"contact": [_(NO_ADDRESS)]})
            columns["contact_id"] = contact.id
        return columns


def _refuse_second(session: DbSession, row: ReportMailRow) -> None:
    """Raise Invalid where the contact gets the same report already."""
    same = select(ReportMailRow.id).where(
        ReportMailRow.contact_id == row.contact_id,
        ReportMailRow.tag.is_(None) if row.tag is None else ReportMailRow.tag == row.tag,
    )
    with session.no_autoflush:
        if set(session.scalars(same)) - {row.id}:
            raise Invalid({"contact": [_(ORDERED)]})


def _locked(session: DbSession, contact_id: int) -> ContactRow | None:
    """Of two who order the same report at once, the second finds that of the first."""
    return session.get(ContactRow, contact_id, with_for_update=True)


def _record(row: ReportMailRow, contact: str) -> ReportMail:
    return ReportMail(row.id, contact, row.tag, row.created_at, row.updated_at)
