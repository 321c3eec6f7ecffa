"""API keys that are bound to a tag, to networks, or by what their owner may do."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from app.access.keys import allowed_from
from app.api.blueprint import TAG_PATHS
from app.api.operations import PATHS
from app.errors import NotFound
from app.records import ApiKey, Role
from app.stores import current_access
from app.stores.local.bound import BoundStore
from tests import samples
from tests.api.conftest import MONITOR, Api
from tests.factories import make_delivery, make_incident, make_key, make_monitor, make_person, now
from tests.support.store import store_of

pytestmark = pytest.mark.settings(rate_limit=0)

CANARY = "othersecretname"
DENIED = "bound to the tag prod"
# The operations without a monitor in their path that a bound key may use.
OPEN = {"GET /me", "GET /overview", "GET /monitors", "GET /incidents", "GET /deliveries"}


def bound(app, **fields):
    return Api(app.test_client(), make_key(app, "write", **{"tag": "prod", **fields}))


@pytest.fixture
def others(app, api):
    """Records of all kinds that are not of the tag, with a name that must be seen nowhere: their
    ids in the paths of the operations.
    """
    contact = api.data(
        "POST", "/contacts", data={"name": CANARY, "channels[0][key]": "webhook",
                                   "channels[0][value]": f"https://{CANARY}.example/"},
    )  # fmt: skip
    monitor = api.monitor(
        name=CANARY, url=f"http://{CANARY}.example/", tags="production",
        **{"alerts[0][key]": "contact", "alerts[0][value]": CANARY},
    )  # fmt: skip
    incident = api.data(
        "POST", "/incidents",
        data={"monitor_id": str(monitor["id"]), "started_at": "2026-11-20T08:00:00",
              "cause": CANARY},
    )  # fmt: skip
    page = api.data(
        "POST", "/status-pages", data={"name": CANARY, "monitors[0]": str(monitor["id"])}
    )
    post = api.data(
        "POST", f"/status-pages/{page['id']}/posts",
        data={"title": CANARY, "state": "investigating", "body": CANARY},
    )  # fmt: skip
    times = {"start_at": "2027-01-01T00:00:00", "end_at": "2027-01-01T01:00:00"}
    api.data("POST", "/maintenance-windows", data={"name": CANARY, **times})
    for name, sample in samples.SAMPLES.items():
        api.data("POST", samples.PATHS[name], data=sample.fields | {"name": CANARY})
    api.data("POST", "/locations", data={"name": CANARY, "label": CANARY})
    return {"monitor": monitor["id"], "incident": incident["id"], "contact": contact["id"],
            "page": page["id"], "post": post["id"]}  # fmt: skip


def operations():
    for path in PATHS.values():
        if not path.public:
            for method in path.operations:
                yield method, path.template


def test_no_operation_shows_or_changes_what_is_not_of_the_tag(app, api, others):
    key = bound(app)
    for method, template in operations():
        # The records of ``others`` have the number 1, its place has 2.
        for id in (1, 2) if template.startswith("/locations/{") else (1,):
            path = re.sub(r"\{\w+\}", str(id), template)
            answer = key(method, path, data={} if method != "GET" else None)
            where = f"{method} {path}: {answer.text}"
            assert CANARY not in answer.text, where
            if not template.startswith(TAG_PATHS):
                assert answer.status_code == 403, where
                assert DENIED in answer.json["message"]
            elif "{" in template:
                assert answer.status_code in (403, 404), where
            elif f"{method} {template}" not in OPEN:
                assert answer.status_code == 422, where
    everything = [api.get(f"/{kind}") for kind in ("monitors", "incidents", "contacts", "markers")]
    assert all(CANARY in str(body["data"]) for body in everything)


def test_lists_counts_and_searches_have_the_monitors_of_the_tag_alone(app, api, others):
    mine = api.monitor(name="Shop", tags="prod,shop")
    api.monitor(name="Prefix", tags="prod-eu")
    api.monitor(name="Capital", tags="Prod")
    make_incident(app, make_monitor(app, name="Mine too", tags="\nprod\n"), started_at=now())
    key = bound(app)
    names = {record["name"] for record in key.get("/monitors", per_page=100)["data"]}
    assert names == {"Shop", "Mine too"}
    assert key.get("/monitors", search=CANARY)["data"] == []
    assert key.get("/monitors", search=CANARY, search_by="url")["data"] == []
    assert key.get("/monitors", tag="production")["data"] == []
    assert [record["id"] for record in key.get("/monitors", tag="shop")["data"]] == [mine["id"]]
    assert len(key.get("/monitors", sort_by="state", per_page=100)["data"]) == 2
    assert key.get("/monitors", sort_by="state")["meta"]["total"] == 2
    assert sum(key.get("/overview")["data"].values()) == 2
    assert sum(key.get("/overview", search=CANARY)["data"].values()) == 0
    assert len(key.get("/incidents")["data"]) == 1
    for query in ({"monitor_id": others["monitor"]}, {"search": CANARY, "search_by": "cause"}):
        assert key.get("/incidents", **query)["data"] == []
    assert key.get("/deliveries")["data"] == []


def test_the_tag_can_neither_be_taken_off_nor_left_out(app, api):
    key = bound(app)
    assert key.errors("POST", "/monitors", data=MONITOR).keys() == {"tags"}
    assert key.errors("POST", "/monitors", data=MONITOR | {"tags": "other"}).keys() == {"tags"}
    made = key.monitor(tags="prod,shop")
    path = f"/monitors/{made['id']}"
    for tags in ("", "shop", "Prod", "prod2"):
        assert "must include it" in key.errors("PATCH", path, data={"tags": tags})["tags"][0]
    changed = key.data("PATCH", path, data={"tags": "prod", "name": "Renamed"})
    assert (changed["tags"], changed["name"]) == (["prod"], "Renamed")
    assert key.data("PATCH", path, data={"interval": "300"})["interval"] == 300
    incident = key.data(
        "POST",
        "/incidents",
        data={"monitor_id": str(made["id"]), "started_at": "2026-11-20T08:00:00"},
    )
    key.data("PATCH", f"/incidents/{incident['id']}", data={"comment": "Looked at"})
    for more in ("results", "statistics", "certificates", "locations"):
        assert key("GET", f"{path}/{more}").status_code == 200, more
    assert key("DELETE", path).status_code == 200
    # Removing the tag from the monitor takes the monitor from the key.
    taken = api.monitor(tags="prod")
    api.data("PATCH", f"/monitors/{taken['id']}", data={"tags": ""})
    assert key("GET", f"/monitors/{taken['id']}").status_code == 404


def test_a_monitor_whose_tag_is_taken_off_at_the_same_moment_is_not_deleted_then(app, monkeypatch):
    key, other = bound(app), Api(app.test_client(), make_key(app, "write"))
    made = key.monitor(tags="prod")
    path = f"/monitors/{made['id']}"
    monitors = app.extensions["wakeful.store"].monitors
    really = monitors.delete
    with ThreadPoolExecutor(1) as pool:
        asked = []

        def delete(id):
            asked.append(pool.submit(other, "PATCH", path, data={"tags": ""}))
            wait(asked, 0.5)  # it has to wait for this transaction
            really(id)

        monkeypatch.setattr(monitors, "delete", delete)
        assert key("DELETE", path).status_code == 200
        assert asked[0].result(60).status_code == 404, "it was deleted first"


def test_a_bound_key_names_only_contacts_of_its_monitors(app, api, others):
    key = bound(app)
    for value in (CANARY, str(others["contact"])):
        contact = {"alerts[0][key]": "contact", "alerts[0][value]": value}
        answer = key("POST", "/monitors", data=MONITOR | {"tags": "prod"} | contact)
        assert answer.status_code == 422
        missing = key("POST", "/monitors", data=MONITOR | {"tags": "prod"} | contact | {
            "alerts[0][value]": "nobody"})  # fmt: skip
        errors = [
            re.sub(f"{value}|nobody", "", str(response.json["errors"]))
            for response in (answer, missing)
        ]
        assert errors[0] == errors[1]
    own = api.monitor(tags="prod", **{"alerts[0][key]": "contact", "alerts[0][value]": CANARY})
    again = {"alerts[0][key]": "contact", "alerts[0][value]": CANARY}
    key.data("PATCH", f"/monitors/{own['id']}", data=again)


def test_me_says_whose_the_key_is_and_what_it_is_bound_to(app, api):
    owner = make_person(app, "editor")
    key = bound(app, owner_id=owner.id, networks="127.0.0.0/8, ::1")
    answer = key.get("/me")["data"]
    assert answer["owner"] == owner.email
    assert answer["networks"] == ["127.0.0.0/8", "::1/128"]
    assert answer["tag"] == "prod"
    assert "overview" in answer["features"]
    assert "contacts" not in answer["features"]
    answer = api.get("/me")["data"]
    assert (answer["owner"], answer["networks"], answer["tag"]) == (None, [], None)
    assert "contacts" in answer["features"]


def test_a_key_does_at_most_what_its_owner_may_do_now(app):
    make_person(app, "admin")
    owner = make_person(app, "editor")
    key = Api(app.test_client(), make_key(app, "write", owner_id=owner.id))
    made = key.monitor()

    def change(**fields):
        with app.app_context():
            current_access().people.update(owner.id, fields)

    change(role=Role.VIEWER)
    assert key.get("/me")["data"]["scope"] == "read"
    answer = key("PATCH", f"/monitors/{made['id']}", data={"interval": "300"})
    assert (answer.status_code, "read-only" in answer.json["message"]) == (403, True)
    change(role=Role.EDITOR, disabled=True)
    assert key("GET", "/monitors").status_code == 401
    change(disabled=False)
    assert key.data("PATCH", f"/monitors/{made['id']}", data={"interval": "300"})["interval"] == 300
    with app.app_context():
        current_access().people.delete(owner.id)
    assert key("GET", "/monitors").status_code == 401


@pytest.mark.settings(rate_limit=60)
def test_a_key_of_networks_answers_from_there_alone(app):
    secret = make_key(app, "write", networks="10.0.0.0/8,::ffff:192.0.2.0/120,2001:db8::/32")
    key = Api(app.test_client(), secret)

    def status(address):
        return key("GET", "/monitors", environ_base={"REMOTE_ADDR": address}).status_code

    for near in ("10.1.2.3", "::ffff:10.1.2.3", "192.0.2.255", "::ffff:192.0.2.7", "2001:db8::1"):
        assert status(near) == 200, near
    for far in ("11.0.0.1", "192.0.3.0", "::ffff:11.0.0.1", "2001:db9::1", "", "unix"):
        assert status(far) == 403, far
    answer = key("GET", "/monitors", environ_base={"REMOTE_ADDR": "11.0.0.1"})
    assert "11.0.0.1 is in none of them" in answer.json["message"]
    elsewhere = {"environ_base": {"REMOTE_ADDR": "11.0.0.1"}}
    answer = key("DELETE", "/monitors", **elsewhere)
    assert answer.status_code == 405, "405 precedes 403 (1)"
    assert "X-RateLimit-Limit" not in answer.headers, "who stole it uses nothing of it up"


def test_a_key_without_networks_is_used_from_anywhere():
    assert allowed_from(ApiKey(1, "x", "x", "read", now()), None)


def test_no_answer_about_a_delivery_has_its_text_which_names_other_monitors(app, api):
    mine = make_monitor(app, tags="\nprod\n")
    facts = {"sent": f"Also down: {CANARY}"}
    ids = [
        make_delivery(app, monitor_id=mine.id, status=status, facts=facts)
        for status in ("failed", "pending")
    ]
    assert CANARY in api.data("GET", f"/deliveries/{ids[0]}")["message"]
    for method, path in (
        ("GET", f"/deliveries/{ids[0]}"),
        ("POST", f"/deliveries/{ids[0]}/retry"),
        ("POST", f"/deliveries/{ids[1]}/give-up"),
    ):
        assert bound(app).data(method, path)["message"] is None, path


def test_a_bound_store_takes_the_arguments_that_every_store_takes(app, api):
    id = api.monitor(tags="prod")["id"]
    with app.app_context():
        results = BoundStore(store_of(app), "prod").results
        assert results.statistics(id, "24h", response=False)["range"] == "24h"


def test_a_bound_store_takes_no_password_from_a_monitor_without_the_tag(app, api):
    other = api.monitor(request_auth_username="ada", request_auth_password="hidden one")["id"]
    fields = {"name": "x", "url": "http://x.test/", "interval": 60, "tags": ["prod"]}
    fields |= {"request_auth_username": "ada", "request_auth_password": None}
    with app.app_context(), pytest.raises(NotFound):
        BoundStore(store_of(app), "prod").monitors.create(fields, secrets_from=other)
