"""Keys that are bound to a tag, while somebody takes the tag off."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import pytest

from tests.api.conftest import Api
from tests.factories import make_key

pytestmark = [pytest.mark.settings(rate_limit=0), pytest.mark.both_databases]

DELAY = 0.3  # s in which a request that does not have to wait is done
INCIDENT = "/incidents/{incident}"
DELIVERY = "/deliveries/{delivery}"
CHANGES = [
    ("incidents", "create", "POST", "/incidents"),
    ("incidents", "update", "PATCH", INCIDENT),
    ("deliveries", "retry", "POST", f"{DELIVERY}/retry"),
    ("deliveries", "give_up", "POST", f"{DELIVERY}/give-up"),
    ("incidents", "delete", "DELETE", INCIDENT),
]


def test_the_tag_stays_until_a_change_under_it_is_stored(app, monkeypatch):
    """It is asked in the transaction of the change, and what takes it off waits for that."""
    key = Api(app.test_client(), make_key(app, "write", tag="prod"))
    other = Api(app.test_client(), make_key(app, "write"))
    hook = {"alerts[0][key]": "webhook", "alerts[0][value]": "https://hooks.example.com/abcd"}
    made = key.monitor(tags="prod", **hook)
    (delivery,) = key.data("POST", f"/monitors/{made['id']}/test-alert")["deliveries"]
    started = {"monitor_id": str(made["id"]), "started_at": "2026-11-20T08:00:00"}
    incident = key.data("POST", "/incidents", data={**started, "ended_at": "2026-11-20T09:00:00"})
    ids = {"incident": incident["id"], "delivery": delivery}
    data = {"create": started, "update": {"comment": "Looked at"}}
    path = f"/monitors/{made['id']}"
    with ThreadPoolExecutor(1) as pool:
        for collection, name, method, template in CHANGES:
            inner = getattr(app.extensions["wakeful.store"], collection)
            asked, early = [], []

            def change(really, *args, asked=asked, early=early, **kwargs):
                asked.append(pool.submit(other, "PATCH", path, data={"tags": ""}))
                early.extend(wait(asked, DELAY).done)
                return really(*args, **kwargs)

            with monkeypatch.context() as patch:
                patch.setattr(inner, name, partial(change, getattr(inner, name)))
                answer = key(method, template.format(**ids), data=data.get(name))
            assert answer.status_code < 300, (name, answer.text)
            if collection == "deliveries":
                assert answer.json["data"]["message"] is None, "it names monitors without the tag"
            assert not early, f"{name}: the tag was taken off in the middle"
            assert asked[0].result(60).status_code == 200
            again = key(method, template.format(**ids), data=data.get(name))
            assert again.status_code == (422 if name == "create" else 404), name
            other.data("PATCH", path, data={"tags": "prod"})
