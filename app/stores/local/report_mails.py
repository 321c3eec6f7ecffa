"""Monthly reports by email in the local database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from app.alerts.targets import channels_of
from app.db import DbSession, db
from app.db.statements import select_fresh
from app.db.tables import ContactRow, ReportMailRow
from app.db.types import record_of
from app.errors import Invalid
from app.forms.alert_lists import no_contact
from app.i18n import N_, _
from app.records import Channel, PageQuery, ReportMail
from app.stores.base import Fields
from app.stores.local.part import LocalCollection

NO_ADDRESS = N_("This contact has no email address. Add one to it first.")


class ReportMails(LocalCollection[ReportMail, PageQuery]):
    order = (ReportMailRow.id,)

    def records(self, ids: Sequence[int]) -> Sequence[ReportMail]:
        rows = db.session.execute(
            select_fresh(ReportMailRow)
            .add_columns(ContactRow.name)
            .join(ContactRow, ContactRow.id == ReportMailRow.contact_id)
            .where(ReportMailRow.id.in_(ids))
            .order_by(*self.order)
        )
        return [record_of(ReportMail, row, contact=contact) for row, contact in rows]

    def columns(self, session: DbSession, id: int | None, fields: Fields) -> dict[str, Any]:
        """Raises Invalid for a contact that does not exist, or that has no email address."""
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

    def check(self, session: DbSession, row: Any) -> None:
        """Raise Invalid if the contact gets the same report already."""
        same = select(ReportMailRow.id).where(
            ReportMailRow.contact_id == row.contact_id,
            ReportMailRow.tag.is_(None) if row.tag is None else ReportMailRow.tag == row.tag,
        )
        with session.no_autoflush:
            if set(session.scalars(same)) - {row.id}:
                raise Invalid({"contact": [_("This contact gets this report already.")]})


def _locked(session: DbSession, contact_id: int) -> ContactRow | None:
    """The contact, locked. If the same report is stored twice at once, the second request waits and
    finds the first.
    """
    return session.get(ContactRow, contact_id, with_for_update=True)
