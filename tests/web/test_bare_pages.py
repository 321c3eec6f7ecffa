"""Every page of a dashboard over a server that is no Wakeful, in the plainest style and in the
worst mixture of styles; the requests that the pages make are read.
"""

import re
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
from werkzeug.routing.converters import NumberConverter

from tests.factories import now
from tests.support.bare_server import KEY, WORST, BareServer, Style
from tests.web.visitor import Visitor

pytestmark = pytest.mark.settings(rate_limit=0)

PATHS = re.compile(r"/api/v1/(me|(monitors|incidents)(/[0-9]+)?)")
MONITORS = 120  # so that not all names are on one page of any list
MAX_REQUESTS = 12  # over pages of 15, which only lead from one to the next
LACKING = "The server behind this dashboard"  # what pages of our own features say
# What the base API has; a page's number besides, for servers that have pages.
KNOWN = {"search", "search_by", "sort_by", "sort", "per_page", "monitor_id", "status", "page",
         "status_page_id", "cursor"}  # fmt: skip


def make_server(style: Style) -> BareServer:
    server = BareServer(style)
    for number in range(MONITORS):
        server.add("monitors", name=f"m{number:03}", url=f"http://{number}.test/", interval=60)
    for monitor, hours, ended in ((3, 50, True), (5, 30, True), (117, 3, False), (119, 2, False)):
        at = now() - timedelta(hours=hours)
        times = {"started_at": at} | ({"ended_at": at + timedelta(hours=1)} if ended else {})
        texts = {name: f"{time:%Y-%m-%dT%H:%M:%S}" for name, time in times.items()}
        server.add("incidents", monitor_id=monitor, cause=f"cause of {monitor}", **texts)
    return server


def pages(editor: Visitor) -> list[str]:
    """All pages that a link can lead to, with the id of the last monitor or incident."""
    paths = []
    for rule in editor.client.application.url_map.iter_rules():
        blueprint = rule.endpoint.partition(".")[0]
        if "GET" not in (rule.methods or ()) or blueprint in ("static", "bootstrap", "auth"):
            continue
        ids = dict.fromkeys(rule.arguments, 1)
        if "id" in ids:
            ids["id"] = MONITORS + 4 if blueprint == "incidents" else MONITORS
        if all(isinstance(converter, NumberConverter) for converter in rule._converters.values()):
            paths.append(rule.build(ids)[1])
    return sorted(paths)


@pytest.mark.parametrize("style", [Style(paging="meta"), WORST], ids=["paged", "worst"])
def test_every_page_works_over_a_server_that_is_no_wakeful(over, style):
    """A page works, or says what the server lacks, and asks for what the base API has."""
    server = make_server(style)
    editor = over((server, KEY))
    editor.open("/")
    server.requests.clear()
    editor.open("/")
    assert len(server.requests) <= 4
    assert len(set(server.requests)) == len(server.requests), "nothing is asked for twice"
    editor.shows("m002", "m004", "m116", "m118")
    assert 'href="/server"' in editor.page.text
    for lacking in ("Uptime and other statistics", "Status pages", "Checks on request"):
        assert lacking in editor.open("/server").text
    for path in pages(editor):
        server.requests.clear()
        answer = editor.client.get(path)
        assert answer.status_code in (200, 302, 403, 404), path
        if answer.status_code == 404 and not path.endswith(("/named", "/1")) and "/1" not in path:
            assert LACKING in answer.text, path
        assert len(server.requests) <= MAX_REQUESTS, path
        for line in server.requests:
            method, address = line.split()
            assert method == "GET", path
            assert PATHS.fullmatch(address.partition("?")[0]), path
            query = {name for name, _value in parse_qsl(urlsplit(address).query)}
            assert query <= KNOWN, path


WHOLE = Style(envelope="bare", paging="all", written="message", me=401)
FIFTEEN = Style(envelope="bare", paging="headers", page_size=15, written="empty", me="html")


@pytest.mark.parametrize(
    ("style", "label"),
    [(WORST, "All that match"), (WHOLE, "All 40 that match"), (FIFTEEN, "All 40 that match")],
    ids=["worst", "whole", "fifteen"],
)
def test_all_that_match_are_all_whatever_the_pages_of_the_server(over, style, label):
    server = BareServer(style)
    for number in range(40):
        server.add("monitors", name=f"m{number:02}", url=f"http://{number}.test/", interval=60)
    editor = over((server, KEY))
    assert label in editor.open("/monitors?per_page=25").text
    editor.press("Apply", ids=True, action="pause", everything=True)
    while "Pausing monitors" in editor.text:
        editor.press("Continue")
    assert "40 monitors paused." in editor.text
    assert sum(monitor["pause"] for monitor in server.monitors.values()) == 40
    editor.open("/monitors/new").press("Save", url="http://new.test/", name="New")
    assert "New saved." in editor.text
    assert len(server.monitors) == 41
