"""The parents of a monitor, through the API (decision 20)."""

import pytest

from app.engine import recorder
from app.records import AuditQuery
from app.stores import current_access
from tests.api.conftest import Api
from tests.factories import make_key, make_outcome, now


@pytest.fixture
def chain(api):
    """A server behind a switch behind a router."""
    router = api.monitor(name="Router")
    switch = api.monitor(name="Switch", **{"depends_on[0]": str(router["id"])})
    server = api.monitor(name="Server", confirmations="0", **{"depends_on[4]": str(switch["id"])})
    return router, switch, server


def test_a_monitor_names_what_it_is_reached_through(api, chain):
    router, switch, server = chain
    assert (router["depends_on"], server["depends_on"]) == ([], [switch["id"]])
    path = f"/monitors/{server['id']}"
    both = [switch["id"], router["id"]]
    assert api.data("PATCH", path, json={"depends_on": both})["depends_on"] == both, "in order"
    assert api.data("PATCH", path, data={"name": "Web"})["depends_on"] == both
    api("DELETE", f"/monitors/{switch['id']}")
    assert api.get(path)["data"]["depends_on"] == [router["id"]], "taken out with the parent"
    assert api.data("PATCH", path, data={"depends_on": ""})["depends_on"] == []
    assert api.data("PUT", path, json={"depends_on": None})["depends_on"] == []


def test_itself_a_circle_and_unknown_monitors_are_refused(api, chain):
    router, switch, server = (monitor["id"] for monitor in chain)

    def refused(id, *parents):
        return api.errors("PATCH", f"/monitors/{id}", json={"depends_on": parents})

    assert "itself" in refused(router, router)["depends_on.0"][0]
    assert "itself reached through this one" in refused(router, switch)["depends_on.0"][0]
    assert refused(router, server).keys() == {"depends_on.0"}, "through another"
    assert refused(server, router, 999).keys() == {"depends_on.1"}
    for id in (999, 2**70):  # whichever part refuses it
        for sparse in ({"depends_on[4]": str(id)}, {"depends_on[4]": str(id), "name": "New"}):
            errors = api.errors("PATCH", f"/monitors/{server}", data=sparse)
            assert errors == {"depends_on.4": [f"There is no monitor with the id {id}."]}
    assert refused(server, *range(1, 12)).keys() == {"depends_on"}, "ten at most"
    new = {"name": "New", "url": "https://x.test/", "interval": 60, "depends_on": [999]}
    assert api.errors("POST", "/monitors", json=new).keys() == {"depends_on.0"}
    assert api.get(f"/monitors/{server}")["data"]["depends_on"] == [switch]


def test_a_key_does_not_choose_parents_that_it_may_not_see(app, api):
    hidden = api.monitor(name="Hidden")["id"]
    own = api.monitor(name="Own", tags="shop")["id"]
    bound = Api(app.test_client(), make_key(app, tag="shop"))
    fields = {"name": "New", "url": "https://x.test/", "interval": 60, "tags": "shop"}
    for parent, kept in ((hidden, False), (own, True)):
        answer = bound("POST", "/monitors", json=fields | {"depends_on": [parent]})
        assert (answer.status_code == 201) == kept, answer.text
        answer = bound("PATCH", f"/monitors/{own}", json={"depends_on": [hidden]})
        assert answer.json["errors"].keys() == {"depends_on.0"}
        answer = bound(
            "POST", "/monitors/batch", json={"monitors": [fields | {"depends_on": [parent]}]}
        )
        assert (answer.json["data"][0]["status"] == 201) == kept, answer.text


@pytest.mark.both_databases
def test_the_list_has_a_filter_for_what_is_reached_through_a_monitor(app, api, chain):
    router, switch, server = (monitor["id"] for monitor in chain)
    tagged = api.monitor(name="Own", tags="shop", **{"depends_on[0]": str(router)})["id"]

    def below(id, api=api):
        return [monitor["id"] for monitor in api.get("/monitors", depends_on=str(id))["data"]]

    assert (below(router), below(switch), below(server)) == ([tagged, switch], [server], [])
    assert below(999) == below(2**70) == []
    assert api.get("/overview", depends_on=str(router))["data"]["pending"] == 2
    assert "depends_on" in api("GET", "/monitors?depends_on=x").json["errors"]
    bound = Api(app.test_client(), make_key(app, tag="shop"))
    assert below(router, bound) == [], "it may not see the router"


def test_a_bound_key_reads_no_names_of_parents_without_its_tag(app, api):
    router = api.monitor(name="Secret router", confirmations="0")["id"]
    child = api.monitor(name="Own", tags="shop", **{"depends_on[0]": str(router)})["id"]
    with app.app_context():
        for id in (router, child):
            recorder.record([(id, make_outcome("down", now()))], now())
    bound = Api(app.test_client(), make_key(app, tag="shop"))
    answer = bound("GET", f"/monitors/{child}")
    monitor = answer.json["data"]
    assert (monitor["status"], monitor["depends_on"]) == ("unreachable", [])
    assert monitor["behind_id"] is None
    assert "Secret" not in answer.text + bound("GET", "/monitors").text


@pytest.mark.both_databases
def test_a_monitor_behind_another_is_unreachable_and_the_incident_lists_it(app, api, chain):
    router, _switch, server = (monitor["id"] for monitor in chain)
    with app.app_context():
        for id in (server, router, router, router, server):
            recorder.record([(id, make_outcome("down", now()))], now())
    monitor = api.get(f"/monitors/{server}")["data"]
    assert (monitor["status"], monitor["cause_code"]) == ("unreachable", "unreachable")
    assert "Router" in monitor["cause"]
    assert monitor["behind_id"] == router
    (incident,) = api.get("/incidents")["data"]
    assert (incident["monitor_id"], incident["affected"]) == (router, [server])
    result = api.get(f"/monitors/{server}/results")["data"][0]
    assert (result["verdict"], result["cause_code"]) == ("down", "connection_refused")
    assert api.get("/monitors", state="unreachable")["data"][0]["id"] == server
    statistics = api.get(f"/monitors/{server}/statistics", range="24h")["data"]
    assert statistics["uptime"] is None, "neither up nor down"


def test_the_audit_log_names_what_a_monitor_was_and_is_reached_through(app, api, chain):
    router, switch, server = (monitor["id"] for monitor in chain)
    api.data("PATCH", f"/monitors/{server}", json={"depends_on": [router]})
    with app.app_context():
        entries = list(current_access().audit.lines(AuditQuery()))
    changes = [entry.changes for entry in entries if "depends_on" in (entry.changes or {})]
    assert changes[0]["depends_on"] == {"old": [switch], "new": [router]}
