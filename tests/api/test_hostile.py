"""Invalid input gets a clear 4xx in JSON and changes nothing (decision 1)."""

from __future__ import annotations

import json
from urllib.parse import quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import samples
from tests.api.conftest import MONITOR
from tests.samples import SAMPLES

# Hundreds of requests in a minute must not end in 429, which is a 4xx too.
pytestmark = pytest.mark.settings(rate_limit=0)

FORM, JSON = "application/x-www-form-urlencoded", "application/json"
DESCRIBED = [samples.PATHS[name] for name in SAMPLES]
TARGETS = [
    ("POST", "/monitors"),
    ("POST", "/monitors/batch"),
    ("PATCH", "/monitors/1"),
    ("POST", "/incidents"),
    ("PUT", "/incidents/1"),
    ("POST", "/maintenance-windows"),
    *(("POST", path) for path in DESCRIBED),
    *(("PATCH", f"{path}/1") for path in DESCRIBED),
    ("POST", "/checks"),
    ("POST", "/status-pages"),
    ("PATCH", "/status-pages/1"),
    ("POST", "/status-pages/1/posts"),
    ("PATCH", "/status-pages/1/posts/1"),
    ("POST", "/status-pages/1/posts/1/updates"),
    ("PATCH", "/status-pages/1/posts/1/updates/1"),
]


def deep(levels, inner='"x"'):
    return b"[" * levels + inner.encode() + b"]" * levels


HOSTILE = {
    "broken JSON": (JSON, b'{"name": '),
    "no JSON": (JSON, b"name=x"),
    "a JSON list": (JSON, b"[]"),
    "a JSON number": (JSON, b"5"),
    "JSON null": (JSON, b"null"),
    "NaN": (JSON, b'{"interval": NaN}'),
    "infinity": (JSON, b'{"interval": 1e400}'),
    "an exponent of twenty digits": (JSON, b'{"interval": 1e99999999999999999999}'),
    "a huge number": (JSON, b'{"interval": ' + b"9" * 10_000 + b"}"),
    "a huge negative number": (JSON, b'{"timeout": -' + b"9" * 10_000 + b"}"),
    "UTF-16": (JSON, '{"name": "x"}'.encode("utf-16")),
    "Latin-1 in JSON": (JSON, b'{"name": "\xe9"}'),
    "a byte-order mark": (JSON, b'\xef\xbb\xbf{"name": "x"}'),
    "a deep array": (JSON, b'{"name": ' + deep(100_000) + b"}"),
    "deep arrays without end": (JSON, b"[" * 500_000),
    "a deep object": (JSON, b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "a lone surrogate": (JSON, b'{"name": "\\ud800", "comment": "\\udfff"}'),
    "a lone surrogate as a name": (JSON, b'{"\\ud800": 1}'),
    "NUL in JSON": (JSON, b'{"name": "a\\u0000b", "comment": "\\u0000"}'),
    "an empty name": (JSON, b'{"": "x"}'),
    "a name twice": (JSON, b'{"name": "a", "name": "b", "comment": "a", "comment": "b"}'),
    "an object as a value": (JSON, b'{"name": {"key": "x"}, "comment": {}, "url": {}}'),
    "arrays of arrays": (JSON, b'{"alerts": [[["email"]]], "monitors": [[1]], "cause": [1]}'),
    "true for text": (JSON, b'{"name": true, "comment": true}'),
    "10,000 rows": (
        JSON,
        json.dumps({"alerts": [{"key": "email", "value": "a@b.example"}] * 10_000}).encode(),
    ),
    "20,001 fields": (JSON, json.dumps({f"f{n}": 1 for n in range(20_001)}).encode()),
    "10,000 fields": (FORM, "&".join(f"field{n}=x" for n in range(10_000)).encode()),
    "100,000 fields": (FORM, b"a=&" * 100_000),
    "a field 10,000 times": (FORM, b"name=x&comment=x&" * 10_000),
    "NUL in a form": (FORM, b"name=%00&comment=a%00"),
    "bad UTF-8 in a form": (FORM, b"name=%FF&comment=%FF"),
    "raw bad UTF-8 in a form": (FORM, b"name=\xff&comment=\xff"),
    "an encoded surrogate": (FORM, b"name=%ED%A0%80&comment=%ED%A0%80"),
    "control characters": (FORM, b"name=%1B&comment=%07"),
    "C1 control characters": (FORM, b"name=%C2%85&comment=%C2%9F"),
    "a huge index": (FORM, b"alerts[" + b"9" * 5000 + b"][key]=email"),
    "a negative index": (FORM, b"alerts[-1][key]=email"),
    "a deep name": (FORM, b"alerts" + b"[0]" * 10_000 + b"=x"),
    "a huge index within one": (
        FORM,
        b"groups[0][name]=x&groups[0][monitors][" + b"9" * 5000 + b"]=1&title=",
    ),
    "a deeper array": (JSON, b'{"groups": [{"name": "x", "monitors": ' + deep(40_000) + b"}]}"),
    "arrays where groups have values": (
        JSON,
        b'{"groups": [{"name": [1], "monitors": [[2]]}], "names": [{"key": [1], "value": {}}]}',
    ),
    "100 groups of 10,000 monitors": (
        JSON,
        json.dumps({"groups": [{"name": "x", "monitors": [1] * 1000}] * 100}).encode(),
    ),
    "1,000 groups": (JSON, json.dumps({"groups": [{"name": "x"}] * 1000}).encode()),
    "one group by two names": (FORM, b"groups[1][name]=x&groups[01][name]=y&title="),
    "brackets alone": (FORM, b"[]=x&][=x&[0][key]=x"),
    "a name of 100,000 characters": (FORM, b"a" * 100_000 + b"=x"),
    "a text of 1 MB": (FORM, b"name=" + b"a" * 1_000_000 + b"&cause=" + b"b" * 30_000),
    "a huge id": (FORM, b"monitor_id=" + b"9" * 10_000 + b"&name="),
    "full-width digits": (FORM, "monitor_id=１&interval=６０&name=".encode()),  # noqa: RUF001
    "a time beyond time": (FORM, b"ended_at=9999-12-31T23:59:59-23:59&name="),
    "the first time": (FORM, b"started_at=0001-01-01T00:00:00&monitor_id=1"),
    "the last time": (FORM, b"ends_at=9999-12-31T23:59:59&ended_at=9999-12-31T23:59:59"),
    "a time before time": (FORM, b"ended_at=0001-01-01T00:00:00%2B23:59&name="),
    "SQL": (FORM, b"monitor_id=1%20OR%201=1&interval=1;DROP TABLE monitors&ended_at='"),
    "a template": (FORM, b"{{7*7}}=x&${7*7}=x"),
    "prototype": (JSON, b'{"__proto__": {"admin": true}, "constructor": "x"}'),
    "a field of ours": (FORM, b"id=1&status=up&created_at=2026-01-01T00:00:00&csrf_token=x"),
    "form methods": (FORM, b"data=x&errors=x&validate=x&meta=x&record=x&context=x"),
}


@pytest.fixture
def world(api):
    """One monitor, one incident, one page with a post, and what the API returns for all of them."""
    monitor = api.monitor()
    times = {"started_at": "2026-01-01T00:00:00", "ended_at": "2026-01-02T00:00:00"}
    api.data("POST", "/incidents", data={"monitor_id": monitor["id"]} | times)
    page = {"name": "Shop", "monitors": [monitor["id"]]}
    api.data("POST", "/status-pages", json=page)
    api.data(
        "POST", "/status-pages/1/posts", json={"title": "t", "state": "identified", "body": "b"}
    )

    for name, sample in SAMPLES.items():
        api.data("POST", samples.PATHS[name], json=sample.fields)

    def snapshot():
        paths = ("/monitors", "/incidents", "/maintenance-windows", "/deliveries", "/status-pages",
                 "/status-pages/1/posts", *DESCRIBED)  # fmt: skip
        return [api.get(path)["data"] for path in paths]

    return snapshot


def refuse(api, method, path, **sent):
    answer = api(method, path, **sent)
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text[:500])
    assert answer.json["status"] == answer.status_code
    assert len(answer.data) < 20_000
    return answer


# All bodies come through one door: each is sent to a few forms, which have all shapes of fields,
# and these few to every form. Only an incident has the times and the comment that many send.
FEW = [("POST", "/monitors"), ("PUT", "/incidents/1"), ("PATCH", "/status-pages/1")]
EVERYWHERE = {"no JSON", "NUL in a form", "arrays of arrays", "a deep name", "a field of ours"}
# Each takes a second for some forms: sent to one form, which has rows and refuses other fields.
LARGE = {"10,000 rows", "20,001 fields", "10,000 fields", "100 groups of 10,000 monitors"}


# Values that PostgreSQL cannot store: NUL and surrogates in a text, and large numbers.
UNSTORABLE = {"NUL in JSON", "NUL in a form", "a lone surrogate", "a huge id", "a huge number"}


@pytest.mark.both_databases
def test_hostile_bodies_are_refused_and_change_nothing(api, world, settings):
    before = world()
    sqlite = settings.database_url.startswith("sqlite")
    for name in HOSTILE if sqlite else UNSTORABLE:
        kind, body = HOSTILE[name]
        few = FEW[:1] if name in LARGE else FEW
        for method, path in TARGETS if name in EVERYWHERE else few:
            answer = refuse(api, method, path, data=body, content_type=kind)
            assert answer.status_code == 422, (name, method, path)
            assert all(answer.json["errors"].values()), (name, method, path)
    assert world() == before


QUERIES = {
    "NUL": "%00=1", "NUL in a value": "search=%00", "bad UTF-8": "page=%FF",
    "a name 30,000 times": "page=1&" * 30_000, "a long name": "a" * 60_000 + "=1",
    "brackets": "sort[]=asc", "an operator": "search[$ne]=x",
    "a huge number": "page=" + "9" * 50_000 + "x",
}  # fmt: skip
LISTS = ["/monitors", "/incidents", "/deliveries", "/maintenance-windows", "/monitors/1/results",
         "/status-pages", "/status-pages/1/posts", "/status-pages/1/subscribers",
         "/status-pages/1/draft", *DESCRIBED]  # fmt: skip


@pytest.mark.both_databases
def test_hostile_queries_are_refused(api, world):
    for name, query in QUERIES.items():
        for path in LISTS if name == "NUL in a value" else LISTS[:1]:
            assert refuse(api, "GET", f"{path}?{query}").status_code == 422, (name, path)


@pytest.mark.both_databases
def test_a_huge_id_is_404(api):
    for digits in ("0", str(2**63 - 1), str(2**64), "1" + "0" * 5000):
        assert api("GET", f"/monitors/{digits}").status_code == 404
    for digits in (str(2**63),):
        for path in ("monitors", "incidents", "maintenance-windows", "status-pages",
                     "status-pages/1/posts", *(path[1:] for path in DESCRIBED)):  # fmt: skip
            for method in ("GET", "DELETE", "PATCH"):
                assert api(method, f"/{path}/{digits}").status_code == 404
        assert api("GET", f"/deliveries/{digits}").status_code == 404
        for path in ("posts", "posts/1", "posts/1/updates/1", "subscribers", "draft"):
            assert api("GET", f"/status-pages/{digits}/{path}").status_code == 404
        assert api("PATCH", f"/status-pages/1/posts/1/updates/{digits}").status_code == 404
        assert api("POST", f"/monitors/{digits}/check").status_code == 404


text = st.text(max_size=30)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | text
names = st.sampled_from(
    [*MONITOR, "alerts", "request_headers", "tags", "pause", "monitor_id", "started_at", "ended_at",
     "comment", "monitors", "start_at", "alerts[0][key]", "alerts[0]", "maintenance_end_at"]
) | text  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["key", "value", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    target=st.sampled_from([target for target in TARGETS if target[1] != "/checks"]),
    document=st.dictionaries(names, values, max_size=4),
    as_json=st.booleans(),
)
def test_random_input_is_either_taken_or_refused_with_a_reason(api, target, document, as_json):
    if as_json:
        sent = {"data": json.dumps(document), "content_type": JSON}
    else:
        pairs = (f"{quote_plus(name, errors='replace')}={quote_plus(str(value), errors='replace')}"
                 for name, value in document.items())  # fmt: skip
        sent = {"data": "&".join(pairs), "content_type": FORM}
    answer = api(*target, **sent)
    assert answer.status_code in (200, 201, 404, 409, 422), answer.text
    assert answer.json["status"] == answer.status_code
