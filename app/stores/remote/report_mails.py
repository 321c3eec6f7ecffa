"""Monthly reports by email of another server, which sends them."""

from __future__ import annotations

from typing import Any

from app.codec import reader
from app.records import PageQuery, ReportMail
from app.stores.remote.collection import Collection


class ReportMails(Collection[ReportMail, PageQuery]):
    path = "/report-mails"
    kind = "monthly report"

    def read(self, data: Any) -> ReportMail:
        return _mail(data)


_mail = reader(ReportMail, "monthly report")
