"""Monthly reports by email of another server, which sends them."""

from __future__ import annotations

from typing import Any

from app.codec import reader
from app.records import PageQuery, ReportMail
from app.stores.base import Feature
from app.stores.remote.collection import Collection


class ReportMails(Collection[ReportMail, PageQuery]):
    path = "/report-mails"
    kind = "monthly report"
    feature = Feature.REPORT_MAILS

    def read(self, data: Any) -> ReportMail:
        return _mail(data)


_mail = reader(ReportMail, "monthly report")
