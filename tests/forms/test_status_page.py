"""The schema of status pages and posts (decisions 7 and 12)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from app.api.operations import JSON, Body
from app.errors import Invalid
from app.forms.monitor import MonitorForm
from app.forms.post import PostForm, PostUpdateForm
from app.forms.schema import FormContext, SentPairs, bind, overlay
from app.forms.status_page import StatusPageForm
from app.records import (
    MAX_GROUPS,
    MAX_PAGE_MONITORS,
    ComponentName,
    Group,
    Post,
    PostUpdate,
    StatusPage,
)
from app.rules import brackets

PAGE = StatusPage(1, "Shop", "shop", monitors=(1, 2, 3))
MANY = {f"monitors[{n}]": str(n + 1) for n in range(MAX_PAGE_MONITORS)}


def store(sent):
    return bind(StatusPageForm, list(({"name": "Shop"} | sent).items()))


def read_json(text: str) -> Any:
    return bind(StatusPageForm, Body(text.encode(), JSON).pairs())


def faulty(function, *args):
    with pytest.raises(Invalid) as caught:
        function(*args)
    return caught.value.errors


def names_of(sent):
    return sorted(faulty(store, sent))


def test_section_12_a_page_with_a_name_alone():
    assert store({}) == {
        "name": "Shop", "slug": None, "description": None, "visibility": "public",
        "password": None, "domain": None, "monitors": (), "names": (), "groups": (),
        "show_urls": False, "show_response_times": False, "auto_post_after": None, "zone": "UTC",
        "theme": "system", "accent": None, "language": "en", "home_url": None, "footer": None,
        "logo": None, "favicon": None,
    }  # fmt: skip


GOOD = [
    ({"name": "n" * 255}, {"name": "n" * 255}),
    ({"slug": "a"}, {"slug": "a"}),
    ({"slug": "a1-b2-3c"}, {"slug": "a1-b2-3c"}),
    ({"slug": "s" * 64}, {"slug": "s" * 64}),
    ({"slug": ""}, {"slug": None}),
    ({"description": "d" * 1000}, {"description": "d" * 1000}),
    ({"visibility": "unlisted"}, {"visibility": "unlisted"}),
    ({"visibility": "closed"}, {"visibility": "closed"}),
    ({"visibility": "password", "password": "p"}, {"password": "p"}),
    ({"password": "p" * 255}, {"password": "p" * 255}),
    ({"domain": "Status.Example.COM"}, {"domain": "status.example.com"}),
    ({"domain": "status.example.com."}, {"domain": "status.example.com"}),
    ({"domain": "bücher.example"}, {"domain": "xn--bcher-kva.example"}),
    ({"domain": "xn--bcher-kva.example"}, {"domain": "xn--bcher-kva.example"}),
    ({"domain": ".".join(["a" * 63] * 3 + ["b" * 61])}, {}),
    ({"domain": ""}, {"domain": None}),
    ({"monitors[7]": "2", "monitors[3]": "5", "monitors[9]": "2"}, {"monitors": (5, 2)}),
    ({"monitors": ""}, {"monitors": ()}),
    (MANY, {}),
    (
        {"monitors[0]": "1", "names[4][key]": "1", "names[4][value]": "••••"},
        {"names": (ComponentName(1, "••••"),)},  # not masked, so this is a name as any other
    ),
    ({"monitors[0]": "1", "names[0][key]": "1", "names[0][value]": "n" * 255}, {}),
    ({"names": ""}, {"names": ()}),
    (
        {"monitors[0]": "1", "monitors[1]": "2", "groups[5][name]": "B", "groups[2][name]": "A",
         "groups[5][monitors][9]": "1", "groups[5][monitors][10]": "2"},
        {"groups": (Group("A"), Group("B", (1, 2)))},
    ),
    ({"groups[0][name]": "A", "groups[0][monitors]": ""}, {"groups": (Group("A"),)}),
    ({"groups[0][name]": "g" * 255}, {"groups": (Group("g" * 255),)}),
    ({"groups": ""}, {"groups": ()}),
    ({f"groups[{n}][name]": "g" for n in range(MAX_GROUPS)}, {}),
    ({"show_urls": "true", "show_response_times": "1"}, {"show_urls": True}),
    ({"auto_post_after": "1"}, {"auto_post_after": 1}),
    ({"auto_post_after": "60"}, {"auto_post_after": 60}),
    ({"auto_post_after": ""}, {"auto_post_after": None}),
    ({"zone": "Europe/Berlin"}, {"zone": "Europe/Berlin"}),
    ({"zone": "", "theme": "", "visibility": ""}, {"zone": "UTC", "theme": "system"}),
    ({"theme": "dark"}, {"theme": "dark"}),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "expected"), GOOD)
def test_section_12_a_page_that_is_taken(sent, expected):
    assert store(sent).items() >= expected.items()


HUGE = "9" * 40
BAD = [
    ({"name": ""}, ["name"]),
    ({"name": "n" * 256}, ["name"]),
    *(({"slug": slug}, ["slug"]) for slug in
      ("A", "a_b", "-a", "a-", "a--b", "ä", "a b", "a/b", "s" * 65, "-", "\u0661")),
    ({"description": "d" * 1001}, ["description"]),
    ({"description": "a\nb"}, ["description"]),
    ({"visibility": "Public"}, ["visibility"]),
    ({"visibility": "password"}, ["password"]),
    ({"visibility": "password", "password": ""}, ["password"]),
    ({"password": "p" * 256}, ["password"]),
    *(({"domain": domain}, ["domain"]) for domain in
      ("a.example:80", "192.0.2.1", "[::1]", "::1", "0x7f.1", "127.1", "https://a.example",
       "a.example/", "a..example", ".", "-a.example", "a-.example", "a_b.example", "a b.example",
       "*.example", "user@a.example", "a.1", "a%2e.example", "１９２.0.2.1", "a" * 64 + ".example",  # noqa: RUF001
       ".".join(["a" * 63] * 4), "\udc80.example")),
    ({"monitors": "1"}, ["monitors"]),
    ({"monitors[0]": "x"}, ["monitors.0"]),
    ({"monitors[2]": HUGE}, ["monitors.2"]),
    ({"monitors[2]": "0"}, ["monitors.2"]),
    ({"monitors[0][key]": "1"}, ["monitors.0.key"]),
    (MANY | {"monitors[9999]": "9999"}, ["monitors"]),
    ({"names": "x"}, ["names"]),
    ({"names[0]": "x"}, ["names.0", "names.0.key", "names.0.value"]),
    ({"monitors[0]": "1", "names[3][key]": "1"}, ["names.3.value"]),
    ({"monitors[0]": "1", "names[3][value]": "n"}, ["names.3.key"]),
    ({"monitors[0]": "1", "names[3][key]": "1", "names[3][value]": " "}, ["names.3.value"]),
    ({"monitors[0]": "1", "names[3][key]": "1", "names[3][value]": "n" * 256}, ["names.3.value"]),
    ({"monitors[0]": "1", "names[3][key]": "x", "names[3][value]": "n"}, ["names.3.key"]),
    ({"monitors[0]": "1", "names[3][key]": "2", "names[3][value]": "n"}, ["names.3.key"]),
    ({"monitors[0]": "1", "names[0][key]": "1", "names[0][value]": "n",
      "names[1][key]": "01", "names[1][value]": "m"}, ["names.1.key"]),
    ({"names[0][key][0]": "1"}, ["names[0][key][0]"]),
    ({"groups": "x"}, ["groups"]),
    ({"groups[0]": "x"}, ["groups.0"]),
    ({"groups[0][title]": "x"}, ["groups.0.title"]),
    ({"groups[0][name][0]": "x"}, ["groups.0.name.0"]),
    ({"groups[0][name]": ""}, ["groups.0.name"]),
    ({"groups[0][name]": "g" * 256}, ["groups.0.name"]),
    ({"monitors[0]": "1", "groups[0][monitors][0]": "1"}, ["groups.0.name"]),
    ({"groups[0][name]": "A", "groups[0][monitors]": "1"}, ["groups.0.monitors"]),
    ({"groups[0][name]": "A", "groups[0][monitors][4]": "x"}, ["groups.0.monitors.4"]),
    ({"groups[0][name]": "A", "groups[0][monitors][4]": HUGE}, ["groups.0.monitors.4"]),
    ({"groups[0][name]": "A", "groups[0][monitors][4]": "1"}, ["groups.0.monitors.4"]),
    ({"monitors[0]": "1", "groups[0][name]": "A", "groups[0][monitors][0]": "1",
      "groups[7][name]": "B", "groups[7][monitors][3]": "1"}, ["groups.7.monitors.3"]),
    ({"monitors[0]": "1", "groups[0][name]": "A", "groups[0][monitors][0]": "1",
      "groups[0][monitors][1]": "1"}, ["groups.0.monitors.1"]),
    ({"monitors[0]": "1", "groups[0][name]": "A", "groups[0][monitors][0]": "1",
      "groups[0][monitors][00]": "1"}, ["groups.0.monitors.00"]),
    ({"groups[0][name]": "A", "groups[00][name]": "B"}, ["groups.0.name"]),
    ({"monitors[0]": "1", "groups[0][name]": "A", "groups[0][monitors]": "",
      "groups[0][monitors][0]": "1"}, ["groups.0.monitors"]),
    ({"groups": "", "groups[0][name]": "A"}, ["groups"]),
    ({f"groups[{n}][name]": "g" for n in range(MAX_GROUPS + 1)}, ["groups"]),
    ({"show_urls": "yes"}, ["show_urls"]),
    ({"auto_post_after": "0"}, ["auto_post_after"]),
    ({"auto_post_after": "61"}, ["auto_post_after"]),
    ({"auto_post_after": "1.5"}, ["auto_post_after"]),
    ({"zone": "Mars/Olympus"}, ["zone"]),
    ({"theme": "blue"}, ["theme"]),
    ({"state": "operational"}, ["state"]),
    ({"password_set": "true"}, ["password_set"]),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "names"), BAD)
def test_section_12_a_page_that_is_refused_names_its_faulty_fields(sent, names):
    assert names_of(sent) == names


@pytest.mark.parametrize(
    ("sent", "name", "right"),
    [
        ([("monitors", "1"), ("monitors", "2")], "monitors", "Send monitors[0]=1"),
        ([("monitors[]", "1")], "monitors[]", "Send monitors[0]=1"),
        ([("groups[][name]", "A")], "groups[][name]", "Send groups[0][name] and groups[0][mon"),
        ([("groups", "A"), ("groups", "B")], "groups", "Send groups[0][name] and groups[0][mon"),
        ([("groups[3][name]", "A"), *[("groups[3][monitors]", id) for id in "12"]],
         "groups.3.monitors", "Send groups[3][monitors][0]=1"),
    ],
)  # fmt: skip
def test_a_list_in_the_notation_of_other_programs_is_answered_with_the_right_one(sent, name, right):
    assert right in faulty(bind, StatusPageForm, [("name", "Shop"), *sent])[name][0]


def test_json_has_groups_as_a_list_of_objects():
    read = read_json(
        '{"name": "Shop", "monitors": [3, "1", 2], "names": [{"key": 1, "value": "Till"}],'
        ' "groups": [{"name": "A", "monitors": [2, "3"]}, {"name": "B", "monitors": []},'
        ' {"name": "C"}, {"name": "D", "monitors": null}]}'
    )
    assert read["monitors"] == (3, 1, 2)
    assert read["names"] == (ComponentName(1, "Till"),)
    assert read["groups"] == (Group("A", (2, 3)), Group("B"), Group("C"), Group("D"))


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        ("5", ["groups"]),
        ('"A"', ["groups"]),
        ("{}", ["groups"]),
        ('{"name": "A"}', ["groups"]),
        ("[1]", ["groups.0"]),
        ('["A"]', ["groups.0"]),
        ("[[1]]", ["groups.0"]),
        ("[{}]", ["groups.0"]),
        ("[null]", ["groups.0"]),
        ('[{"name": 5}]', ["groups.0.name"]),
        ('[{"name": ["A"]}]', ["groups.0.name"]),
        ('[{"name": {"a": 1}}]', ["groups.0.name"]),
        ('[{"name": "A", "monitors": 1}]', ["groups.0.monitors"]),
        ('[{"name": "A", "monitors": true}]', ["groups.0.monitors"]),
        ('[{"name": "A", "monitors": {"0": 1}}]', ["groups.0.monitors"]),
        ('[{"name": "A", "monitors": [[1]]}]', ["groups.0.monitors.0"]),
        ('[{"name": "A", "monitors": [{"key": 1}]}]', ["groups.0.monitors.0"]),
        ('[{"name": "A", "monitors": [true, null]}]',
         ["groups.0.monitors.0", "groups.0.monitors.1"]),
        ('[{"name": "A", "monitors": [1.5]}]', ["groups.0.monitors.0"]),
        ('[{"name": "A", "name": "B"}]', ["groups.0.name"]),
        ('[{"name": "A", "more": 1}]', ["groups.0.more"]),
    ],
)  # fmt: skip
def test_json_of_another_shape_is_refused_where_it_is_wrong(groups, names):
    errors = faulty(read_json, '{"name": "Shop", "monitors": [1], "groups": ' + groups + "}")
    assert sorted(errors) == names


def test_other_fields_refuse_lists_as_before():
    """Nesting that groups take changes no other field's sentence."""
    text = '{"request_headers": [{"key": "X-A", "value": ["b"]}], "name": ["n"]}'
    errors = faulty(bind, MonitorForm, Body(text.encode(), JSON).pairs())
    assert errors["request_headers.0.value"] == ["This field takes one value, not a list."]
    deep = [("alerts[0][key][0]", "email")]
    assert "alerts[0][key][0]" in faulty(bind, MonitorForm, deep)


def update(sent, page=PAGE):
    return overlay(StatusPageForm, page, list(sent.items()))


def test_section_2_an_update_has_only_what_was_sent():
    assert update({"name": "New"}) == {"name": "New"}
    assert update({"monitors[0]": "3"}) == {"monitors": (3,)}
    assert update({"names[0][key]": "2", "names[0][value]": "n"}) == {
        "names": (ComponentName(2, "n"),)
    }


def test_section_12_stored_names_and_groups_follow_the_monitors():
    """Only what is sent with them is held against the new monitors."""
    names, groups = (ComponentName(1, "n"),), (Group("g", (1,)),)
    page = StatusPage(1, "Shop", "shop", monitors=(1, 2), names=names, groups=groups)
    assert update({"monitors[0]": "2"}, page) == {"monitors": (2,)}
    errors = faulty(update, {"monitors[0]": "2", "groups[0][name]": "g",
                             "groups[0][monitors][0]": "1"}, page)  # fmt: skip
    assert list(errors) == ["groups.0.monitors.0"]


def test_section_12_a_stored_password_will_do():
    behind = StatusPage(1, "Shop", "shop", visibility="password", password_set=True)
    assert update({"name": "x"}, behind) == {"name": "x"}
    assert update({"password": "new"}, behind) == {"password": "new"}
    assert update({"visibility": "public", "password": ""}, behind)["password"] is None
    assert list(faulty(update, {"password": ""}, behind)) == ["password"]
    assert list(faulty(update, {"visibility": "password"}, PAGE)) == ["password"]


@pytest.mark.parametrize(
    "sent",
    [
        {"names": (ComponentName(2, "b"), ComponentName(1, "a"))},
        {"groups": (Group("A", (3, 1)), Group("B"))},
        {"monitors": (3, 1), "names": (), "groups": ()},
        {"show_urls": True, "auto_post_after": 5, "domain": None},
    ],
)
def test_what_is_written_in_brackets_is_read_back(sent):
    assert overlay(StatusPageForm, PAGE, brackets.write(sent)) == sent


def test_a_browser_leaves_rows_blank_that_it_does_not_use():
    def browser(pairs):
        form = StatusPageForm(SentPairs(pairs), record=PAGE, context=FormContext(browser=True))
        assert form.validate(), form.named_errors()
        return form.values()

    read = browser(
        [
            ("name", "Shop"), ("visibility", "public"), ("zone", "UTC"), ("theme", "system"),
            ("monitors[0]", "1"), ("monitors[1]", "2"),
            ("names[0][key]", "1"), ("names[0][value]", ""),
            ("names[1][key]", "2"), ("names[1][value]", "Two"),
            ("groups[0][name]", "A"), ("groups[0][monitors]", "1"), ("groups[0][monitors]", "2"),
            ("groups[1][name]", ""),
        ]
    )  # fmt: skip
    assert read["names"] == (ComponentName(2, "Two"),)
    assert read["groups"] == (Group("A", (1, 2)),)


# --- Posts ----------------------------------------------------------------------------------------

POST = {"title": "t", "state": "investigating", "body": "b"}
DAY = {"starts_at": "2026-06-01T00:00:00", "ends_at": "2026-06-02T00:00:00"}


def post(sent):
    return bind(PostForm, list((POST | sent).items()))


def test_section_12_a_post_with_what_is_required():
    absent = dict.fromkeys(("incident_id", "starts_at", "ends_at"))
    assert post({}) == POST | absent | {"monitors": (), "impact": ()}
    planned = post({"state": "scheduled"} | DAY)
    assert planned["starts_at"] == datetime(2026, 6, 1, tzinfo=UTC)
    assert post({"body": "b" * 10_000, "title": "t" * 255})
    assert post({"body": "a\r\nb\n\thttps://x.example"})["body"] == "a\nb\n\thttps://x.example"


@pytest.mark.parametrize(
    ("sent", "names"),
    [
        ({"title": "", "state": "", "body": ""}, ["body", "state", "title"]),
        ({"title": "t" * 256}, ["title"]),
        ({"title": "a\nb"}, ["title"]),
        ({"body": "b" * 10_001}, ["body"]),
        ({"body": "\x00"}, ["body"]),
        ({"body": " "}, ["body"]),
        ({"state": "open"}, ["state"]),
        ({"state": "scheduled"}, ["ends_at", "starts_at"]),
        ({"state": "scheduled", "starts_at": DAY["starts_at"]}, ["ends_at"]),
        ({"starts_at": DAY["ends_at"], "ends_at": DAY["starts_at"]}, ["ends_at"]),
        ({"starts_at": DAY["ends_at"], "ends_at": DAY["ends_at"]}, ["ends_at"]),
        ({"starts_at": "tomorrow"}, ["starts_at"]),
        ({"monitors": "1"}, ["monitors"]),
        ({"monitors[0]": "x"}, ["monitors.0"]),
        (
            {"monitors[0]": "1", "impact[0][key]": "1", "impact[0][value]": "down"},
            ["impact.0.value"],
        ),
        ({"monitors[0]": "1", "impact[0][key]": "2", "impact[0][value]": "none"}, ["impact.0.key"]),
        ({"incident_id": "x"}, ["incident_id"]),
        ({"updates": ""}, ["updates"]),
        ({"automatic": "true"}, ["automatic"]),
    ],
)
def test_section_12_a_post_that_is_refused_names_its_faulty_fields(sent, names):
    assert sorted(faulty(post, sent)) == names


@pytest.mark.parametrize(
    ("before", "after", "taken"),
    [
        ("investigating", "resolved", True),
        ("resolved", "monitoring", True),
        ("scheduled", "completed", True),
        ("identified", "in_progress", False),
        ("completed", "resolved", False),
    ],
)
def test_section_12_a_post_stays_in_its_family(before, after, taken):
    stored = Post(1, 1, "t", before, "b", starts_at=datetime(2026, 6, 1, tzinfo=UTC),
                  ends_at=datetime(2026, 6, 2, tzinfo=UTC))  # fmt: skip
    for form, record in ((PostForm, stored), (PostUpdateForm, PostUpdate(1, before, "b"))):
        if taken:
            assert overlay(form, record, [("state", after)]) == {"state": after}
        else:
            errors = faulty(overlay, form, record, [("state", after)])
            assert "Write another post" in errors["state"][0]


def test_an_update_needs_state_and_text():
    assert bind(PostUpdateForm, [("state", "resolved"), ("body", "b")]) == {
        "state": "resolved",
        "body": "b",
    }
    assert sorted(faulty(bind, PostUpdateForm, [])) == ["body", "state"]


def test_a_group_has_no_more_monitors_than_a_page():
    ids = list(range(1, MAX_PAGE_MONITORS + 2))
    text = json.dumps({"name": "Shop", "groups": [{"name": "A", "monitors": ids}]})
    assert list(faulty(read_json, text)) == ["groups.0.monitors"]
    fit = ids[:-1]
    sent = {"name": "Shop", "monitors": fit, "groups": [{"name": "A", "monitors": fit}]}
    assert read_json(json.dumps(sent))["groups"] == (Group("A", tuple(fit)),)
