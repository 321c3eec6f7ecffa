"""A first monitor without friction, in a browser that runs no script."""

import html
import re
from datetime import UTC, datetime, timedelta

import pytest

from app.db import db
from app.db.tables import MonitorRow
from tests.factories import make_monitor, now

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def stored(app) -> list[MonitorRow]:
    with app.app_context():
        rows = list(db.session.scalars(db.select(MonitorRow).order_by(MonitorRow.id)))
        db.session.expunge_all()
        return rows


# --- Address, name and certificate


def test_a_bare_host_is_enough_for_a_monitor(app, editor):
    for typed, name in (
        ("127.0.0.1:9/health?key=x", "127.0.0.1:9/health"),
        ("localhost:9", "localhost:9"),
        ("[::1]:8443/a/", "[::1]:8443/a"),
    ):
        editor.open("/monitors/new").press("Save", url=typed)
        monitor = stored(app)[-1]
        assert (monitor.url, monitor.name) == (f"https://{typed}", name)
        assert monitor.ssl_alert_days == 14, typed
    page = editor.open("/monitors/new?url=https://shop.example.com/a").page.text
    assert 'value="shop.example.com/a"' in page, "the name follows without a script too"


def test_no_certificate_is_warned_about_where_nobody_chose_it_and_there_is_none(app, editor):
    editor.open("/monitors/new").press("Check now", url="tcp://127.0.0.1:9")
    assert "do not have this field" not in editor.text
    assert "refused" in editor.text
    for url, more in (
        ("http://127.0.0.1:9/", {}),
        ("tcp://127.0.0.1:9", {}),
        ("http://127.0.0.1:9/a", {"ssl_alert_days": "30"}),  # it may redirect to HTTPS
    ):
        editor.open("/monitors/new").press("Save", url=url, **more)
    assert [monitor.ssl_alert_days for monitor in stored(app)] == [None, None, 30]
    make_monitor(app, url="https://127.0.0.1:9/", ssl_alert_days=14)
    editor.open("/monitors/4/edit").press("Save", url="tcp://127.0.0.1:10")
    assert stored(app)[3].ssl_alert_days is None, "it became one without"


def test_pasted_https_urls_get_the_warning_and_others_do_not(app, editor):
    urls = "127.0.0.1:9/a?b=c\nhttp://127.0.0.1:9/b\ntcp://127.0.0.1:9"
    editor.open("/monitors/import").press("Preview", urls=urls).press("Create 3 monitors")
    warnings = [(row.name, row.ssl_alert_days) for row in stored(app)]
    assert warnings == [("127.0.0.1:9/a", 14), ("127.0.0.1:9/b", None), ("127.0.0.1:9", None)]


def test_automatic_days_are_stored_shown_and_listed_by_the_life_of_the_certificate(app, editor):
    editor.open("/monitors/new").press("Save", url="127.0.0.1:9", ssl_alert_days="auto")
    assert "expiry unknown , alert when a third of its lifetime remains" in editor.text
    noon = now().replace(hour=12)
    for days, listed in ((14, True), (17, False)):
        expires = noon + timedelta(days=days)
        life = {"ssl_issued_at": expires - timedelta(days=47), "ssl_expires_at": expires}
        made = make_monitor(app, name=f"In {days}", ssl_alert_days="auto", state=life)
        assert "alert 15 days before (automatic)" in editor.open(f"/monitors/{made.id}").text
        assert (f"certificate {days} days" in editor.open("/monitors").text) == listed
    form, _ = editor.open("/monitors/1/edit").form_with("Save")
    assert ("ssl_alert_days", "auto") in form.values


# --- A URL that another monitor checks already


def test_a_url_that_another_monitor_checks_is_pointed_out_and_not_refused(app, editor):
    make_monitor(app, name="Shop", url="https://127.0.0.1:9")
    editor.open("/monitors/new").press("Save", url="127.0.0.1:9/", name="Again")
    assert "Shop already checks this URL." in editor.text
    assert 'href="/monitors/1">Shop</a>' in editor.page.text
    assert len(stored(app)) == 1
    assert editor.press("Create anyway", name="Again").path == "/monitors/2"
    assert [row.name for row in stored(app)] == ["Shop", "Again"]


def test_a_changed_url_is_checked_for_duplicates_again(app, editor):
    make_monitor(app, name="Shop", url="https://127.0.0.1:9/")
    make_monitor(app, name="Blog", url="https://127.0.0.1:9/blog")
    editor.open("/monitors/new").press("Save", url="127.0.0.1:9")
    editor.press("Create anyway", url="127.0.0.1:9/blog#top").shows("Blog already checks this URL.")
    editor.press("Create anyway", url="127.0.0.1:9/Blog")  # paths have case
    assert editor.path == "/monitors/3"


def test_a_duplicate_shown_by_check_now_is_not_asked_about_again(app, editor):
    make_monitor(app, name="Shop", url="http://127.0.0.1:9/")
    editor.open("/monitors/new").press("Check now", url="http://127.0.0.1:9/")
    assert "Shop already checks this URL." in editor.text
    assert editor.press("Save").path == "/monitors/2"


def test_an_edit_or_clone_with_the_same_url_shows_no_duplicate_warning(app, editor):
    for name in ("Shop", "Shop too"):
        make_monitor(app, name=name, url="http://127.0.0.1:9/")
    make_monitor(app, name="Blog", url="http://127.0.0.1:9/blog")
    assert editor.open("/monitors/1/edit").press("Save", name="Store").path == "/monitors/1"
    assert editor.open("/monitors/1/clone").press("Save").path == "/monitors/4"
    editor.open("/monitors/3/edit").press("Save", url="http://127.0.0.1:9")
    assert "Store , Shop too , Store (copy) already check this URL." in editor.text
    assert editor.press("Save anyway").path == "/monitors/3"


# --- What the folded sections hold


def summaries(page: str) -> dict[str, str]:
    pairs = re.findall(
        r"<summary><span class=\"what\">([^<]+)</span> <span class=\"sum\"[^>]*>([^<]*)</span>",
        page,
    )
    return {title: html.unescape(summary) for title, summary in pairs}


def test_folded_sections_say_what_they_hold(app, editor):
    texts = summaries(editor.open("/monitors/new").page.text)
    assert texts == {
        "When a ping is due": "",
        "When to alert": "The URL is unavailable, within 30 s, 2 rechecks",
        "Who to alert": "Nobody yet",
        "Request": "GET, expects 200-399",
        "Certificate and domain": "Certificate: 14 days before, Domain: Off",
        "Maintenance": "None planned",
        "Reached through": "Nothing else",
    }
    make_monitor(
        app,
        alert_condition="url_text", alert_text_lookup="Sold out", slow_after=900, confirmations=1,
        slow_alert_after=10,
        alerts=[["email", "ops@example.com"], ["email", "shop@example.com"]], remind_after=30,
        quiet_start="22:00", quiet_end="07:00", request_headers=[["A", "b"]],
        request_auth_username="ada", follow_redirects=False, verify_tls=False,
        ssl_alert_days="auto", maintenance_start_at=NOON, maintenance_end_at=NOON,
    )  # fmt: skip
    assert summaries(editor.open("/monitors/1/edit").page.text) == {
        "When a ping is due": "",
        "When to alert": "The response contains the text, “Sold out”, within 30 s, slow after"
        " 900 ms, alert when slow for 10 min, 1 recheck",
        "Who to alert": "2 channels, reminder every 30 minutes, quiet from 22:00, until 07:00",
        "Request": "GET, expects 200-399, no redirects, 1 header, as ada",
        "Certificate and domain": "Certificate: Automatic (when a third of its lifetime remains),"
        " Domain: Off, certificate not verified",
        "Maintenance": "From 2026-11-21 12:00:00, until 2026-11-21 12:00:00",
        "Reached through": "Nothing else",
    }


def test_the_summary_says_nothing_of_what_the_kind_does_not_have(app, editor):
    make_monitor(app, url="tcp://127.0.0.1:9")
    texts = summaries(editor.open("/monitors/1/edit").page.text)
    assert texts["Certificate and domain"] == "Domain: Off"


# --- Channels that cannot work

NO_MAIL = (
    "This channel cannot alert anybody yet. No mail server is set up. An admin can set one up "
    "under Settings, Email."
)


def test_a_channel_that_cannot_work_says_so_before_it_is_saved(app, editor):
    editor.open("/monitors/new").shows("Email (not set up)", "SMS (not set up)").hides(NO_MAIL)
    row = {"alerts[0][key]": "email", "alerts[0][value]": "ops@example.com"}
    editor.press("Add a channel", **row).shows(NO_MAIL)
    editor.press("Save", url="127.0.0.1:9")
    assert editor.path == "/monitors/1"  # it is no error: the server may be set later


def test_an_admin_gets_from_a_channel_to_the_mail_server_that_it_lacks(admin, editor):
    row = {"channels[0][key]": "email", "channels[0][value]": "ops@example.com"}
    link = "Set up the mail server"
    admin.open("/contacts/new").press("Add a channel", name="Team", **row).shows(link)
    assert 'aria-label="Channels, row 1: Email address"' in admin.page.text
    assert 'href="/settings/email"' in admin.page.text
    editor.open("/contacts/new").press("Add a channel", name="Team", **row).shows(NO_MAIL)
    editor.hides(link)


def test_a_contact_that_cannot_be_reached_says_so_where_it_is_chosen(app, editor):
    make_monitor(app)
    editor.open("/contacts/new")
    row = {"channels[0][key]": "email", "channels[0][value]": "ops@example.com"}
    editor.press("Add a channel", name="Shop team", **row).shows(NO_MAIL)
    editor.press("Save")
    for path in ("/monitors/new", "/monitors", "/monitors/import"):
        assert "Shop team (Email is not set up)" in editor.open(path).text, path
    editor.open("/monitors/new").press("Save", url="127.0.0.1:9/a", contacts=["Shop team"])
    assert "Shop team" in editor.text


@pytest.mark.settings(smtp_url="smtp://mail.example", sms_url="twilio://a:b@+15550100")
def test_channels_that_are_set_up_say_nothing(editor):
    assert "not set up" not in editor.open("/monitors/new").text


def test_a_form_without_anything_names_the_url_alone(editor):
    for button in ("Save", "Check now"):
        editor.open("/monitors/new").press(button)
        editor.shows("URL: This field is required.").hides("Name: ")
    editor.open("/monitors/new").press("Save", url="ftp://x", name="n" * 256)
    editor.shows_in_order("URL: ", "Name: ")
