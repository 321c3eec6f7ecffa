"""Places on the dashboard: listed, added, started, edited, deleted (decision 14)."""

import re
from datetime import timedelta

from sqlalchemy import update

from app.access.keys import agent_of
from app.db import places, writing
from app.db.settings import store_setting
from app.db.tables import AssignmentRow
from app.records import Monitor, Notice, PageQuery, Pair, Place, Verdict
from tests.factories import now
from tests.support.store import store_of

PAGE = "/settings/locations"
TOKEN = re.compile(r"wa_[\w-]{32}")


def make_place(app, name="oslo", **fields) -> Place:
    return store_of(app).locations.create({"name": name} | fields)


def stored(app) -> list[Place]:
    return list(store_of(app).locations.list(PageQuery()).items)


def make_monitor(app, **fields) -> Monitor:
    values = {"name": "Shop", "url": "https://shop.test/", "interval": 60} | fields
    return store_of(app).monitors.create(values)


def test_an_agent_is_added_and_its_start_command_is_shown_once(app, admin):
    assert "default" in admin.open(PAGE).text
    admin.open(f"{PAGE}/new").press("Save", name="sydney", label="Sydney", carrier="agent")
    assert admin.status == 201
    (token,) = TOKEN.findall(admin.text)
    command = rf"WAKEFUL_SERVER=http://\S+ WAKEFUL_AGENT_TOKEN={token} wakeful agent"
    assert re.search(command, admin.text)
    assert ".venv/bin/wakeful in place of wakeful" in admin.text
    with app.app_context():
        assert agent_of(token).name == "sydney"
    admin.open(PAGE).shows("Sydney sydney · Agent Never seen")
    assert token not in admin.page.text
    assert token not in admin.open(f"{PAGE}/2/edit").page.text
    admin.open(f"{PAGE}/2/token").press("Make a new token")
    (new,) = TOKEN.findall(admin.text)
    with app.app_context():
        assert (agent_of(token), agent_of(new) is None) == (None, False), "the old one has ended"
    admin.open(f"{PAGE}/new").press("Save", name="oslo", carrier="local")
    assert "WAKEFUL_LOCATION=oslo wakeful checker" in admin.open(f"{PAGE}/3/edit").text
    admin.press("Save", carrier="agent")
    assert TOKEN.findall(admin.text), "a place that becomes an agent"


def test_the_page_of_an_agents_place_has_its_command_with_a_gap_for_the_token(app, editor):
    """When the page had the button alone, people made tokens without need, and ended old ones."""
    token = make_place(app, carrier="agent").token
    text = editor.open(f"{PAGE}/2/edit").text
    command = r"WAKEFUL_SERVER=http://\S+ WAKEFUL_AGENT_TOKEN=YOUR_TOKEN wakeful agent"
    assert re.search(command, text)
    assert "The new one ends the old one at once." in text
    assert "look at the log of its agent" in text
    assert token not in editor.page.text


def test_the_place_default_says_that_the_server_itself_checks_from_it(app, editor):
    make_place(app)
    editor.open(f"{PAGE}/1/edit")
    editor.shows("wakeful serve makes the checks of this place", "there is nothing to start")
    assert "there is nothing to start" not in editor.open(f"{PAGE}/2/edit").text


def test_another_carrier_ends_an_agents_token_only_when_that_was_confirmed(app, admin):
    token = make_place(app, carrier="agent").token
    admin.open(f"{PAGE}/2/edit").press("Save", carrier="queue", label="Oslo")
    admin.shows("The token of the agent ends when you save", status=422)
    with app.app_context():
        assert agent_of(token).name == "oslo"
    admin.press("Save and end the token").shows("Oslo saved.")
    with app.app_context():
        assert agent_of(token) is None
    admin.open(f"{PAGE}/2/edit").press("Save", carrier="local")
    assert "Oslo saved." in admin.text, "there is no token to end"


def test_a_place_on_a_queue_says_after_saving_what_it_takes_to_start_it(app, admin):
    needed = (
        ".venv/bin/pip install --requirement requirements/distributed.txt",
        "openssl rand -base64 32",
        "WAKEFUL_BROKER_URL=rediss://:PASSWORD@HOST:6380/0 WAKEFUL_BATCH_KEY=THE_KEY",
        "WAKEFUL_LOCATION=oslo wakeful checker --carrier queue",
        "wakeful prober --location oslo",
        "More is in the manual: Probers over a queue",
    )
    admin.open(f"{PAGE}/new").press("Save", name="oslo", carrier="queue").shows("oslo saved.")
    assert [words for words in needed if words not in admin.text] == []
    admin.open(f"{PAGE}/2/edit")
    assert [words for words in needed if words not in admin.text] == []
    admin.press("Save", label="Oslo")
    assert "How to" not in admin.text, "it was shown when the place was made"
    assert "Checks a minute" in admin.text
    admin.open(f"{PAGE}/2/edit").press("Save", carrier="local")
    assert "wakeful prober" not in admin.open(f"{PAGE}/2/start").text
    admin.open(f"{PAGE}/2/edit").press("Save", carrier="queue")
    assert "wakeful prober --location oslo" in admin.text


def test_a_place_in_use_is_not_deleted_and_its_monitors_are_named(app, editor):
    make_place(app)
    monitor = make_monitor(app, locations=("oslo",))
    editor.open(f"{PAGE}/2/delete").shows("Monitors are checked from this place.")
    assert "Delete this place" not in editor.text, "nobody types a password for nothing"
    assert f"/monitors/{monitor.id}/edit" in editor.page.text
    store_of(app).monitors.update(monitor.id, {"locations": ("default",)})
    editor.open(f"{PAGE}/2/delete")
    store_of(app).monitors.update(monitor.id, {"locations": ("oslo",)})
    assert editor.press("Delete this place").status == 422, "somebody was faster"
    assert f"/monitors/{monitor.id}/edit" in editor.page.text
    store_of(app).monitors.update(monitor.id, {"locations": ("default",)})
    editor.open(f"{PAGE}/2/delete").press("Delete this place").shows("oslo deleted.")
    assert len(stored(app)) == 1
    editor.open(f"{PAGE}/1/delete").shows("The place default cannot be deleted")
    assert "Delete this place" not in editor.text


def test_the_list_shows_what_places_report(app, editor):
    make_place(app, label="Oslo")
    with app.app_context():
        places.store_sign(
            "oslo", now(), process="agent:oslo", version="1.4.0", clock_offset_ms=-1250,
            checks_per_minute=1200, last_check_at=now(),
        )  # fmt: skip
    editor.open(PAGE).shows("Online", "1,200 0 1.4.0 Clock: 1,250 ms behind")
    editor.open(f"{PAGE}/2/edit")
    editor.shows("State Online Last seen just now Checks a minute 1,200", "Clock 1,250 ms behind")


def test_a_silent_place_is_shown_in_the_list_and_on_every_page(app, editor):
    make_place(app)
    with app.app_context():
        ago = now() - timedelta(minutes=10)
        places.store_sign("oslo", ago, process="agent:oslo", last_check_at=ago)
        store_setting(Notice.PLACES_SILENT, "Oslo, Sydney", now())
    warning = "No results come from Oslo, Sydney. Until they do, monitors are judged without them"
    text = editor.open(PAGE).text
    assert "Silent" in text
    assert warning in text
    assert "Show the places" not in text, "this is the page"
    assert warning in editor.open("/").text
    assert f'href="{PAGE}">Show the places' in editor.page.text


def test_a_place_that_can_check_nothing_is_a_warning_in_the_list_and_on_home(app, editor):
    place = make_place(app, carrier="agent")
    make_monitor(app, locations=["default", "oslo"])
    with app.app_context():
        places.store_sign("oslo", now(), process="agent:oslo", last_check_at=now())
        with writing() as session:
            of_oslo = update(AssignmentRow).where(AssignmentRow.location_id == place.id)
            session.execute(of_oslo.values(verdict=Verdict.UNKNOWN))
    warning = (
        "The place oslo cannot check its monitor. The list of places says why. Show the places"
    )
    assert warning in editor.open("/").text
    assert f'href="{PAGE}">Show the places' in editor.page.text
    editor.open(PAGE).shows("The last check of its monitor could not be made. Cannot check")
    editor.hides(warning)
    assert "State Cannot check The last check" in editor.open(f"{PAGE}/{place.id}/edit").text


def test_the_list_names_who_learns_of_silence_and_leads_to_the_monitors_of_a_place(app, editor):
    assert "nobody is notified" not in editor.open(PAGE).text, "there is no other place"
    make_place(app)
    make_monitor(app, name="Seen from Oslo", locations=["oslo"])
    make_monitor(app, name="Seen from here")
    assert "If a place falls silent, nobody is notified." in editor.open(PAGE).text
    channels = [{"key": "webhook", "value": "https://ops.test/"}]
    fields = {"name": "Ops", "channels": [Pair(**channel) for channel in channels], "default": True}
    store_of(app).contacts.create(fields)
    editor.open(PAGE).hides("nobody is notified").shows("these contacts are notified: Ops")
    monitors = "/monitors?location=oslo"
    assert f'{monitors}">1</a>' in editor.page.text
    assert f'{monitors}">1</a>' in editor.open(f"{PAGE}/2/edit").page.text
    assert "Seen from Oslo" in editor.open(monitors).text
    assert "Seen from here" not in editor.text


def test_a_monitor_is_given_places_and_their_rule(app, editor):
    monitor = make_monitor(app)
    assert "More than half of the places" not in editor.open(f"/monitors/{monitor.id}/edit").text
    make_place(app)
    assert "More than half of the places" in editor.open(f"/monitors/{monitor.id}/edit").text
    editor.press("Save", locations=["default", "oslo"], location_rule="any")
    saved = store_of(app).monitors.get(monitor.id)
    assert (saved.locations, saved.location_rule) == (("default", "oslo"), "any")


def test_many_monitors_get_and_lose_a_place_and_change_their_rule(app, editor):
    make_place(app)
    ids = [str(make_monitor(app, name=f"Shop {number}").id) for number in range(3)]

    def apply(action, **typed):
        editor.open("/monitors").press("Apply", ids=ids, action=action, **typed)
        monitors = [store_of(app).monitors.get(int(id)) for id in ids]
        return {(monitor.locations, monitor.location_rule) for monitor in monitors}

    assert apply("place", place="oslo") == {(("default", "oslo"), "majority")}
    assert apply("place", place="oslo") == {(("default", "oslo"), "majority")}
    assert apply("rule", rule="all") == {(("default", "oslo"), "all")}
    assert apply("unplace", place="default") == {(("oslo",), "all")}
    assert apply("unplace", place="oslo") == {(("oslo",), "all")}
    assert "Shop 0 was not changed. It is checked from no other place." in editor.text
    apply("place", place="")
    assert "This field is required." in editor.text


def test_the_page_of_an_agent_says_which_secrets_it_gets(app, admin, editor):
    make_place(app, carrier="agent")
    make_monitor(app, name="Open", locations=("oslo",))
    secret = {"request_auth_username": "a", "request_auth_password": "b"}
    headers = {"request_headers": (Pair("X", "1"),)}
    make_monitor(app, name="Shop", locations=("oslo",), **headers, **secret)
    make_monitor(app, name="Elsewhere", **secret)
    for path in (f"{PAGE}/2/edit", f"{PAGE}/2/token"):
        admin.open(path).shows("Shop : request headers and password").hides("Open :", "Elsewhere")
    assert f"{PAGE}/2/token" in admin.open(f"{PAGE}/2/edit").page.text
    assert f"{PAGE}/2/token" not in editor.open(f"{PAGE}/2/edit").page.text


def test_an_editor_adds_no_agent_and_changes_no_carrier(app, editor):
    for path, carriers in ((f"{PAGE}/new", ["local", "queue"]), (f"{PAGE}/2/edit", ["local"])):
        form = editor.open(path).form_with("Save")[0]
        assert form.choices["carrier"] == carriers
        values = dict(form.values) | {"name": "oslo", "carrier": "agent"}
        assert editor.client.post(path, data=values).status_code == 422
        if path.endswith("new"):
            editor.press("Save", name="oslo", carrier="local")
    assert [place.carrier for place in stored(app)] == ["local", "local"]
    editor.open(f"{PAGE}/2/edit").press("Save", label="Oslo")
    assert stored(app)[1].label == "Oslo"
    assert editor.open(f"{PAGE}/2/token").status == 403
