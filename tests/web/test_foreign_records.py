"""A dashboard over servers that speak the base API in styles of their own: what was not understood,
or not even sent, is never written over. The requests that the server got are read.
"""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest

from tests.support.bare_server import KEY, WORST, BareServer, Style
from tests.web.visitor import Visitor

pytestmark = pytest.mark.settings(rate_limit=0)

Opened = Callable[..., tuple[BareServer, Visitor]]
EMAIL = {"key": "email", "value": "a@b.test"}
LEFT_OUT = "This server does not say"
SHOP = {"name": "Shop", "url": "https://shop.test/", "interval": 60}
START = "2026-11-21T08:00:00"


@pytest.fixture
def opened(over) -> Opened:
    """Opens a dashboard over a server of this style, which has one monitor and one incident."""

    def opened(style: Style, **fields: Any) -> tuple[BareServer, Visitor]:
        server = BareServer(style)
        server.add("monitors", **(SHOP | fields))
        server.add("incidents", monitor_id=1, started_at=START, cause="It burns")
        return server, over((server, KEY))

    return opened


def sent(server: BareServer) -> dict[str, str]:
    return server.sent[-1]


def buttons(visitor: Visitor) -> set[str]:
    return {button[0] for form in visitor.forms for button in form.buttons}


# The fields of a monitor that a server returns, besides id, name and URL.
RETURNED: dict[str, dict[str, Any]] = {
    "alerts_by_channel": {"alerts": {"email": ["a@b.test"], "slack": ["https://h.test/1"]}},
    "alerts_as_json_text": {"alerts": '[{"key": "email", "value": "a@b.test"}]'},
    "alerts_of_an_unknown_channel": {"alerts": [{"key": "pager", "value": "x"}]},
    "alerts_hidden": {"alerts": [{"key": "email", "value": "********"}]},
    "headers_by_name": {"request_headers": {"X-One": "1"}},
    "odd_interval": {"interval": 120},
    "interval_not_understood": {"interval": "often"},
    "other_method": {"request_method": "TRACE"},
    "other_condition": {"alert_condition": "keyword", "alert_text_lookup": None},
    "numbers_as_text": {"id": "1", "interval": "60", "ssl_alert_days": "7"},
    "times_in_seconds": {"maintenance_start_at": 1795248000, "maintenance_end_at": "1795248060"},
    "maintenance_the_wrong_way_round": {
        "maintenance_start_at": "2026-11-21 09:00:00", "maintenance_end_at": "2026-11-21 08:00:00",
    },
    "other_scheme": {"url": "ping://shop.test"},
    "masked_user": {"request_auth_username": "********"},
    "no_name": {"name": None},
    "in_camel_case": {"requestMethod": "PUT", "isPaused": False, "sslAlertDays": 3},
    "nothing": {},
}  # fmt: skip
NEVER = frozenset({"interval", "alerts", "request_headers", "request_method", "cache_buster",
                   "alert_condition", "ssl_alert_days", "domain_alert_days", "alert_text_lookup",
                   "maintenance_start_at", "maintenance_end_at",
                   "request_auth_username"})  # fmt: skip


def test_a_form_sends_what_the_person_touched_and_nothing_else(opened: Opened) -> None:
    server, editor = opened(Style())
    bulk = cycle(({"action": "pause"}, {"action": "interval", "interval": "300"}))
    for returned, fields in RETURNED.items():
        server.style = Style(extra=fields, hides=NEVER - fields.keys())
        editor.open("/monitors/1/edit").press("Save", name="New name")
        assert (editor.path, editor.status) == ("/monitors/1", 200), returned
        assert sent(server) == {"name": "New name"}, returned
        server.sent.clear()
        editor.open("/monitors/1/edit").press("Save")
        assert server.sent in ([], [{"name": "New name"}]), returned
        change = next(bulk)
        editor.open("/monitors").press("Apply", ids="1", **change)
        written = {"pause": "true"} if change["action"] == "pause" else {"interval": "300"}
        assert sent(server) == written, returned
        server.monitors[1] = {"id": 1} | SHOP


def test_what_the_server_leaves_out_is_shown_as_such_and_can_be_set(opened: Opened) -> None:
    server, editor = opened(Style(hides=NEVER | {"pause"}))
    editor.open("/monitors/1").shows(LEFT_OUT).hides("nobody yet")
    assert {"Pause", "Resume"} <= buttons(editor)
    editor.open("/monitors/1/edit").shows(LEFT_OUT)
    editor.press("Save", request_method="GET", cache_buster="0", ssl_alert_days="",
                 interval="60", alert_text_lookup="Sold out")  # fmt: skip
    assert sent(server) == {
        "request_method": "GET", "cache_buster": "0", "ssl_alert_days": "", "interval": "60",
        "alert_text_lookup": "Sold out",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["alerts", "request_headers"])
def test_a_list_that_is_not_known_is_replaced_as_a_whole_or_not_at_all(
    opened: Opened, name: str
) -> None:
    server, editor = opened(Style())
    key, value = ("slack", "#ops") if name == "alerts" else ("X-Two", "2")
    row = {f"{name}[0][key]": key, f"{name}[0][value]": value}
    for style in (
        Style(hides=frozenset({name})),
        *(Style(extra={name: odd}) for odd in (None, 5, [{"key": "email", "value": "****"}])),
    ):
        server.style, server.sent = style, []
        editor.open("/monitors/1/edit").press("Save", **row)
        assert editor.status == 422, style
        assert "This would replace all that this server has stored" in editor.text, style
        assert server.sent == [], style
        editor.press("Save", **row, **{f"replace_{name}": True})
        assert sent(server) == row, style


def test_a_channel_is_added_to_those_that_were_understood(opened: Opened) -> None:
    server, editor = opened(
        Style(extra={"alerts": [{"channel": "email", "target": "a@b.test"},
                                {"channel": "pager", "target": "x"}]})
    )  # fmt: skip
    editor.open("/monitors/1/edit").press("Add a channel")
    editor.press("Save", **{"alerts[2][key]": "telegram", "alerts[2][value]": "not ours"})
    assert sent(server) == {
        "alerts[0][key]": "email", "alerts[0][value]": "a@b.test",
        "alerts[1][key]": "pager", "alerts[1][value]": "x",
        "alerts[2][key]": "telegram", "alerts[2][value]": "not ours",
    }  # fmt: skip


def test_a_copy_takes_only_what_is_known(opened: Opened) -> None:
    style = Style(
        extra={"interval": 120, "alerts": "********"}, hides=frozenset({"request_method"})
    )
    server, editor = opened(style, request_auth_username="ada")
    editor.open("/monitors/1/clone").press("Save", url="https://other.test/")
    assert "Enter the password again" in editor.text
    editor.press("Save", remove_password=True)
    assert sent(server)["interval"] == "120"
    assert not {"request_method", "alerts"} & sent(server).keys()


def test_a_comment_that_is_not_returned_is_not_replaced_unasked(opened: Opened) -> None:
    server, editor = opened(Style(hides=frozenset({"comment"})))
    editor.open("/incidents/2").shows(LEFT_OUT)
    editor.press("Add comment", text="On it.").shows("This would replace the comment", status=422)
    assert server.sent == []
    editor.press("Add comment", text="On it.", replace=True)
    assert sent(server).keys() == {"comment"}
    assert sent(server)["comment"].endswith("On it.")


def test_an_incident_is_changed_in_what_the_person_touched_alone(opened: Opened) -> None:
    server, editor = opened(Style())
    for extra in (
        {"started_at": 1795248000},
        {"started_at": "1795248000000"},
        {"ended_at": "2026-11-20 08:00:00"},
        {"acknowledged_at": "sometime"},
        {"status": "ongoing", "ended_at": None, "acknowledged_at": None, "comment": ["a"]},
        {"monitor": {"id": "1", "name": "Shop"}, "monitor_id": None},
    ):
        server.style = Style(extra=extra)
        for page in ("/", "/wall", "/incidents", "/incidents/2"):
            assert editor.open(page).status == 200, (extra, page)
        editor.open("/incidents/2/edit").press("Save", cause="Water")
        assert sent(server) == {"cause": "Water"}, extra
        server.incidents[2]["cause"] = "It burns"
        server.sent.clear()


def test_the_actions_of_an_incident_send_one_field(opened: Opened) -> None:
    server, editor = opened(Style(times="seconds"))
    editor.open("/incidents/2").press("Acknowledge")
    assert sent(server).keys() == {"acknowledged_at"}
    editor.open("/incidents/2").press("Resolve")
    assert sent(server).keys() == {"ended_at"}


def test_an_odd_record_is_named_and_hides_no_other(opened: Opened) -> None:
    server, editor = opened(Style())
    server.raw["monitors"] = [{"id": "x", "name": "Odd shop"}, "text"]
    server.raw["incidents"] = [{"id": 9, "cause": "No start", "monitor_id": 1}]
    for page, there, odd in (
        ("/monitors", "Shop", "Odd shop"),
        ("/incidents", "It burns", "No start"),
        ("/", "Shop", "No start"),
        ("/wall", "Shop", "Odd shop"),
    ):
        editor.open(page)
        assert editor.status == 200, page
        assert there in editor.text, page
        assert odd in editor.text, page


def test_what_a_server_did_not_keep_is_said(opened: Opened) -> None:
    server, editor = opened(Style(drops=frozenset({"domain_alert_days", "pause"})),
                            domain_alert_days=None)  # fmt: skip
    editor.open("/monitors/1/edit").press("Save", domain_alert_days="7", name="New")
    assert sent(server) == {"domain_alert_days": "7", "name": "New"}
    assert "did not keep: Domain expiry." in editor.text
    editor.open("/monitors/1/edit").press("Save", name="Newer").hides("did not keep")


def test_pause_is_read_and_sent_as_the_server_takes_it(opened: Opened) -> None:
    server, editor = opened(Style())
    for pause in ("paused", "paused_at", "active", "is_paused", "status"):
        server.style = Style(pause=pause, pause_values=frozenset({"1", "0"}))
        editor.open("/monitors/1").press("Pause")
        assert sent(server) == {"pause": "1"}, pause
        assert "Shop paused." in editor.text, pause
        assert "Pause" not in buttons(editor), pause
        editor.press("Resume")
        assert sent(server) == {"pause": "0"}, pause


def test_our_own_rules_and_channels_are_not_asked_of_a_bare_server(opened: Opened) -> None:
    server, editor = opened(Style())
    editor.open("/monitors/new").hides("tcp://", "Apprise")
    editor.press("Save", url="tcp://db.test:5432").shows("web addresses alone")
    editor.press("Save", url="https://new.test/", alert_condition="url_text",
                 request_method="HEAD", **{"alerts[0][key]": "sms",
                                           "alerts[0][value]": "the night watch"})  # fmt: skip
    assert sent(server)["alerts[0][value]"] == "the night watch"
    assert server.monitors[3]["request_method"] == "HEAD"


@pytest.mark.parametrize("shows", [True, False])
def test_a_second_press_makes_no_second_monitor(opened: Opened, shows: bool) -> None:
    """This holds long after the first, if the server does not list what it has stored."""
    server, editor = opened(Style())
    if not shows:
        server.shown = lambda kind, id: {} if id > 2 else BareServer.shown(server, kind, id)  # type: ignore[method-assign]
    for written in ("record", "id", "message", "object", "text", "redirect"):
        server.style = Style(written=written)
        form, _button = editor.open("/monitors/new").form_with("Save")
        typed = dict(form.values) | {"url": f"https://{written}.test/", "name": written}
        for _press in range(2):
            editor.client.post("/monitors/new", data=typed, headers={"Origin": "http://localhost"})
        names = [monitor["name"] for monitor in server.monitors.values()]
        assert names.count(written) == 1, names


def test_a_server_that_does_not_filter_shows_no_resolved_incident_as_open(opened: Opened) -> None:
    server, editor = opened(Style())
    server.incidents[2] |= {"ended_at": "2026-11-21T09:00:00", "cause": "Long over"}
    server.add("incidents", monitor_id=1, started_at=START, cause="Still burns", ended_at=None)
    server.matches = lambda *_asked: True  # type: ignore[method-assign]
    editor.open("/wall").shows("1 incident open").hides("Long over")
    editor.open("/incidents?status=resolved").shows("Long over").hides("Still burns")


def test_the_worst_mixture_is_shown_and_changed_in_what_was_touched(opened: Opened) -> None:
    server, editor = opened(
        WORST,
        alerts={0: EMAIL, 1: {"key": "slack", "value": "https://hooks.test/1"}},
        request_headers={0: {"key": "X-One", "value": "1"}},
        maintenance_start_at=START,
        maintenance_end_at="2026-11-21T09:00:00",
        ssl_alert_days=5,
    )
    for page in ("/", "/wall", "/monitors", "/monitors/1", "/monitors/1/edit", "/monitors/1/clone",
                 "/monitors/1/delete", "/monitors/new", "/incidents", "/incidents/2",
                 "/incidents/2/edit", "/incidents/new", "/incidents/2/delete"):  # fmt: skip
        assert editor.open(page).status == 200, page
    editor.open("/monitors/1/edit").press("Save", name="New")
    assert sent(server) == {"name": "New"}
    assert "New saved." in editor.text
    assert "did not keep" not in editor.text
    row = {"alerts[2][key]": "sms", "alerts[2][value]": "+123"}
    editor.open("/monitors/1/edit").press("Add a channel").press("Save", **row)
    assert sent(server) == {
        "alerts[0][key]": "email", "alerts[0][value]": "a@b.test",
        "alerts[1][key]": "slack", "alerts[1][value]": "https://hooks.test/1", **row,
    }  # fmt: skip
    editor.open("/monitors/1").press("Pause")
    assert sent(server) == {"pause": "true"}
    editor.open("/monitors").press("Apply", ids="1", action="resume")
    assert sent(server) == {"pause": "false"}
    editor.open("/incidents/2").press("Acknowledge").press("Resolve")
    assert sent(server).keys() == {"ended_at"}
    editor.open("/incidents/2/edit").press("Save", cause="Water")
    assert sent(server) == {"cause": "Water"}
