"""A monthly report reaches the mail server as any message of the outbox does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.db import writing
from app.db.journal import assign_numbers, insert_results, row_of
from app.db.tables import ReportMailRow
from app.engine import report_mails
from app.records import DEFAULT_PLACE_ID, DeliveryStatus, Result, Verdict
from tests.alerts.conftest import Outbox
from tests.alerts.sinks import MailSink
from tests.support.contacts import contact

FIRST = datetime(2026, 11, 1, 0, 30, tzinfo=UTC)


def test_a_report_is_mailed_also_in_quiet_hours_and_after_a_failure(
    box: Outbox, mail: MailSink
) -> None:
    box.configure(smtp_url=f"smtp://127.0.0.1:{mail.port}?from=Wakeful <alerts@example.com>")
    box.clock.now = FIRST
    mail.script["boss@shop.example"] = ["451 try again", "250 OK"]
    night = {"quiet_start": "22:00", "quiet_end": "07:00"}
    boss = contact(box, "Boss", ("email", "boss@shop.example"), **night)
    monitor = box.monitor(name="Shop <b>", interval=3600)
    long_ago = FIRST - timedelta(days=40)
    with box.app.app_context(), writing() as session:
        session.add(ReportMailRow(contact_id=boss, created_at=long_ago, updated_at=long_ago))
        results = [
            Result(FIRST - timedelta(hours=hour), Verdict.UP, monitor_id=monitor.id)
            for hour in range(2, 50)
        ]
        assign_numbers(results)
        insert_results([row_of(result, DEFAULT_PLACE_ID) for result in results])
    with box.app.app_context():
        assert report_mails.send(FIRST) == 1
    box.turn()
    assert not mail.mails
    box.turn(10)
    (sent,) = mail.mails
    assert sent["Subject"] == "Availability of Shop <b>, October 2026"
    text = sent.get_body(("plain",)).get_content()
    assert "/reports?month=2026-10" in text
    assert "Uptime 100%" in text
    html = sent.get_body(("html",)).get_content()
    assert "Shop &lt;b&gt;" in html
    assert "Shop <b>" not in html
    assert "for your contact on the Reports page" in html
    (row,) = box.rows()
    assert (row.status, row.sources) == (DeliveryStatus.DELIVERED, f",{boss},")
