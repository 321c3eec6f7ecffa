"""Monthly reports by email."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from app.records.marks import Id, Mark


@dataclass(frozen=True, slots=True)
class ReportMail:
    """A report that is sent on the first of each month to the email addresses of a contact, by its
    name; of the monitors with ``tag``, or of all.
    """

    id: Id
    contact: str
    tag: str | None = None
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
