"""The weekly tasks of people take few actions: the fields that a person fills in, and the links and
buttons that they press, without a script.
"""

import re

from app.records import MonitorQuery, Pair
from tests.support.store import store_of
from tests.web.visitor import Visitor

TEAMS = ("Shop team", "Office", "Night shift")


class Counting:
    """A visitor whose fields and clicks are counted. A click needs its link on the page."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        self.fields = self.clicks = 0

    @property
    def actions(self) -> int:
        return self.fields + self.clicks

    def click(self, label: str) -> None:
        links = re.findall(r'<a [^>]*?href="([^"]+)"[^>]*>(.*?)</a>', self.visitor.page.text, re.S)
        named = [href for href, inner in links if label in re.sub(r"<[^>]+>", "", inner)]
        assert named, f"no link {label!r} on {self.visitor.path}"
        self.clicks += 1
        self.visitor.open(named[0].replace("&amp;", "&"))
        assert self.visitor.status == 200

    def press(self, button: str, **typed: object) -> None:
        self.fields += len(typed)
        self.clicks += 1
        self.visitor.press(button, **typed)
        assert self.visitor.status == 200, self.visitor.text


def test_a_bare_host_becomes_a_monitor_with_a_tested_alert_in_three_fields_and_three_clicks(
    app, editor, sink, worker
):
    person = Counting(editor.open("/"))
    person.click("Add your first monitor")
    row = {"alerts[0][key]": "slack", "alerts[0][value]": f"{sink.url}/hook"}
    person.press("Send test alert", url="shop.example.com", **row)
    assert "Delivered. HTTP 200" in editor.text
    person.press("Save")
    assert editor.path == "/monitors/1"
    stored = store_of(app).monitors.get(1)
    assert (stored.name, stored.url) == ("shop.example.com", "https://shop.example.com")
    assert stored.ssl_alert_days == 14
    assert (person.fields, person.clicks) == (3, 3)


def test_sixty_monitors_of_three_teams_take_25_actions_and_a_changed_hook_one_edit(app, editor):
    person = Counting(editor.open("/contacts"))
    for team in TEAMS:
        person.click("New contact")
        hook = f"https://hooks.slack.com/services/T0/B0/{team.replace(' ', '')}0000"
        row = {"channels[0][key]": "slack", "channels[0][value]": hook}
        person.press("Save", name=team, **row)
        person.click("Contacts")
    person.click("Monitors")
    person.click("Add many")
    lines = [f"Page {n}, shop{n}.example.com, prod, {TEAMS[n % 3]}" for n in range(60)]
    person.press("Preview", urls="\n".join(lines))
    person.press("Create 60 monitors")
    assert "60 monitors created" in editor.text
    assert person.actions <= 25, person.actions

    edit = Counting(editor.open("/contacts/1/edit"))
    edit.press("Save", **{"channels[0][value]": "https://hooks.slack.com/services/T0/B0/new45678"})
    assert edit.fields == 1
    monitors = store_of(app).monitors.list(MonitorQuery(per_page=100)).items
    changed = store_of(app).contacts.get(1)
    assert {monitor.name: monitor.alerts for monitor in monitors} == {
        f"Page {n}": (Pair("contact", TEAMS[n % 3]),) for n in range(60)
    }
    assert changed.monitors == 20
