"""Assertions about an answer (decision 19): what may be said, what holds, what it costs."""

import json

import pytest

from app.records import BODY_CAP_BYTES, Assertion
from app.rules.assertions import AnswerParts, WorkBudget, evaluate, faults, unevaluated


def row(source, property=None, op="=", value=None):
    return Assertion(source, property, op, value)


def judged(assertion, body="", *, headers=(), cut=False, work=None, **single):
    """Whether an assertion holds, what the answer has there, and the sentence."""
    single = {name: str(value) for name, value in single.items()}
    answer = AnswerParts(single, headers, lambda _is_json: body, cut=cut, work=work or WorkBudget())
    (checked,), sentence = evaluate([assertion], answer)
    return checked.ok, checked.found, sentence


DOCUMENT = json.dumps(
    {
        "status": "degraded", "queue": 12, "ratio": 0.5, "on": True, "nothing": None, "none": [],
        "version": "1.10", "items": [{"n": 1, "s": "a"}, {"n": 2, "s": "b"}], "token": "abcdefgh",
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "op", "value", "ok"),
    [
        ("$.status", "=", "degraded", True),
        ("$.status", "!=", "degraded", False),
        ("$.queue", "=", "12.0", True),
        ("$.queue", "<", "100", True),
        ("$.queue", ">=", "12.5", False),
        ("$.ratio", "=", "5e-1", True),
        ("$.on", "=", "true", True),
        ("$.on", ">", "0", False),
        ("$.nothing", "=", "null", True),
        ("$.nothing", "empty", None, True),
        ("$.none", "not_empty", None, False),
        ("$.none", "exists", None, True),
        ("$.version", "=", "1.1", False),  # a text, though it could be a number
        ("$.version", "<", "2", True),
        ("$.status", ">", "100", False),  # "degraded" is not above 100
        ("$.status", ">", "alive", True),
        ("$.status", "matches", "grad", True),  # it searches
        ("$.items[*].s", "=", "b", True),  # one of several
        ("$.items[*].n", "<", "2", True),
        ("$.items[*].n", "!=", "2", False),  # all of them
        ("$.items[*].n", "not_matches", "^[3-9]$", True),
        ("$.items[?@.n > 1].s", "=", "b", True),
        ("$.items[?match(@.s, 'a|c')].n", "=", "1", True),
        ("$.items", "contains", '"n":2', True),
        ("$.gone", "=", "x", False),
        ("$.gone", "<", "1", False),
        ("$.gone", "contains", "x", False),
        ("$.gone", "!=", "x", True),
        ("$.gone", "not_contains", "x", True),
        ("$.gone", "not_matches", "x", True),
        ("$.gone", "exists", None, False),
        ("$.gone", "not_exists", None, True),
        ("$.gone", "empty", None, True),
        ("$.gone", "not_empty", None, False),
    ],
)
def test_a_path_finds_values_and_the_op_decides(path, op, value, ok):
    assert judged(row("json", path, op, value), DOCUMENT)[0] is ok


@pytest.mark.parametrize(
    ("assertion", "ok", "found_text"),
    [
        (row("status", op="=", value="200"), True, "200"),
        (row("status", op="<", value="200"), False, "200"),
        (row("size", op=">", value="1e1"), True, "2048"),
        (row("response_time", op="<=", value="812"), True, "812"),
        (row("certificate_days", op=">", value="14"), False, None),
        (row("url", op="matches", value="^https://[a-z.]+/$"), True, "https://shop.test/"),
        (row("header", "x-CACHE", "=", "hit"), True, "miss, hit"),
        (row("header", "X-Cache", "!=", "hit"), False, "miss, hit"),
        (row("header", "X-Gone", "not_exists"), True, None),
        (row("body", op="=", value="42"), True, "42 "),
        (row("body", op="matches", value="^4"), True, "42 "),
    ],
)
def test_each_source_has_its_values(assertion, ok, found_text):
    headers = [("X-Cache", "miss"), ("X-Cache", "hit")]
    parts = {"status": 200, "size": 2048, "response_time": 812, "url": "https://shop.test/"}
    assert judged(assertion, "42\n", headers=headers, **parts)[:2] == (ok, found_text)


@pytest.mark.parametrize(
    ("assertion", "sentence"),
    [
        (row("json", "$.status", "=", "ok"), 'status is "degraded", expected "ok"'),
        (row("json", "$.items[*].n", ">", "2"), '$.items[*].n is "1, 2", expected more than "2"'),
        (row("json", "$.a.gone", "=", "ok"), 'a.gone is missing, expected "ok"'),
        (row("json", "$.gone", "exists"), "gone is missing"),
        (row("json", "$.none", "not_empty"), "none is empty"),
        (row("header", "X-A", "exists"), "Header X-A is missing"),
        (row("status", op="=", value="201"), 'Status code is "200", expected "201"'),
        (row("json", "$.token", "=", "the real token"), 'token is "••••", expected "••••oken"'),
    ],
)
def test_the_cause_says_what_is_there_and_what_is_expected(assertion, sentence):
    assert judged(assertion, DOCUMENT, status=200) == (
        False,
        judged(assertion, DOCUMENT, status=200)[1],
        sentence,
    )


def test_the_first_that_fails_names_the_cause_and_all_are_judged():
    rows = [row("status", op="=", value=str(code)) for code in (200, 201, 202)]
    checked, sentence = evaluate(rows, AnswerParts({"status": "200"}))
    assert [each.ok for each in checked] == [True, False, False]
    assert sentence == 'Status code is "200", expected "201"'


def test_what_looks_secret_is_masked_where_it_is_shown():
    shown = unevaluated([row("json", "$.access_token", "=", "a long secret value")])[0]
    assert (shown.value, shown.found, shown.ok) == ("••••alue", None, None)
    for assertion in (row("body", op="exists"), row("json", "$", "exists")):
        assert "abcdefgh" not in judged(assertion, DOCUMENT)[1]


@pytest.mark.parametrize("body", ["", "<html>", "NaN", "{'a': 1}", '{"a": 1} x', "[1, Infinity]"])
def test_a_body_that_is_no_json_fails_with_that_sentence(body):
    assert judged(row("json", "$.a", "!=", "1"), body) == (False, None, "a: the body is not JSON")


@pytest.mark.parametrize(
    ("assertion", "ok"),
    [
        (row("json", "$.status", "=", "x"), None),
        (row("body", op="contains", value="degraded"), True),
        (row("body", op="contains", value="zzz"), None),
        (row("body", op="not_contains", value="degraded"), False),
        (row("body", op="not_matches", value="zzz"), None),
        (row("body", op="=", value="x"), False),
        (row("size", op=">", value="1000"), True),
        (row("size", op="<", value="1000"), False),
        (row("size", op="<", value="9000000"), None),
        (row("size", op="!=", value="1000"), True),
        (row("status", op="=", value="201"), False),
    ],
)
def test_of_a_body_that_was_cut_only_what_the_rest_cannot_change_is_judged(assertion, ok):
    assert judged(assertion, DOCUMENT, cut=True, status=200, size=BODY_CAP_BYTES)[0] is ok


@pytest.mark.parametrize(
    ("document", "path", "op", "value", "ok"),
    [
        ('{"a": 1, "a": 2}', "$.a", "=", "2", True),  # of equal names, the last
        ('{"a": %s}' % ("9" * 5_000), "$.a", ">", "1e4000", True),
        ('{"a": 12345678901234567891}', "$.a", "=", "12345678901234567890", False),
        ('{"a": 0.30000000000000004}', "$.a", "=", "0.3", False),
        ('{"a": 1.50}', "$.a", "=", "1.5", True),
        ('{"a": 1e400}', "$.a", "<", "2e400", True),
        ('{"a": 1e99999999999999999999}', "$.a", ">", "1", False),
        ('{"a": -0}', "$.a", "=", "0", True),
        *(
            (f'{{"a":{spelling}}}', path, op, value, True)
            for number in ("0.10", "1e400", "-1E-2", "1.0", "-0", "9" * 5_000)
            for spelling in (f"[{number}]", f'{{"n":{number},"m":[{number},"é",true,null]}}')
            for path, op, value in (("$.a", "=", spelling), ("$", "contains", spelling))
        ),
        ('{"a": "\\ud800"}', "$.a", "matches", "^.$", True),
        ('{"a": "\\u0000x"}', "$.a", "contains", "x", True),
        ('{"": 5}', "$['']", "=", "5", True),
        ('"only a text"', "$", "=", "only a text", True),
    ],
)
def test_odd_json_is_compared_as_it_is_written(document, path, op, value, ok):
    assert judged(row("json", path, op, value), document)[0] is ok


DEEP = "[" * 90 + "1" + "]" * 90
WIDE = "[" + ",".join(["[]"] * 60_000) + "]"
LONG = '{"big": "%s", "list": [%s]}' % ("a" * 500_000, ",".join(['{"k":1}'] * 5_000))  # noqa: UP031
TWICE = "$" + "[0,0]" * 40


@pytest.mark.parametrize(
    ("document", "path", "value"),
    [
        ("[" * 100_000, "$", "1"),
        ("[" * 900 + "1" + "]" * 900, "$..*", "1"),
        (DEEP, TWICE, "1"),
        (DEEP, "$..*..*..*..*", "x"),
        (WIDE, "$..*..*", "x"),
        (WIDE, "$[?$..*]", "x"),
        (WIDE, "$[?@..[?@..[?@..*]]]", "x"),
        (LONG, "$.list[?search($.big, '(a|b)*c')]", "x"),
    ],
)  # fmt: skip
def test_what_a_path_visits_is_counted_and_ends(document, path, value):
    """The budget of work stands for the time, which a busy machine cannot keep."""
    ok, _shown, sentence = judged(row("json", path, "=", value), document, work=WorkBudget(10_000))
    assert ok is False
    assert "too large" in sentence or "too deeply" in sentence


def test_a_body_of_digits_is_read_in_one_pass():
    """A pattern that backtracks would take an hour here."""
    assert judged(row("body", op=">", value="5"), "9" * 1_000_000 + "x")[0] is False


def test_what_a_pattern_costs_is_counted_over_all_assertions():
    slow = row("body", op="not_matches", value="(?:[^a]{20}){20}z")
    answer = AnswerParts({}, (), lambda _is_json: "b" * BODY_CAP_BYTES)
    checked, sentence = evaluate([slow] * 20, answer)
    assert checked[0].ok is False
    assert "too large" in sentence


@pytest.mark.parametrize(
    ("assertion", "part"),
    [
        (row("cookies", op="=", value="x"), "source"),
        (row("status", op="==", value="1"), "op"),
        (row("status", "x", "=", "1"), "property"),
        (row("header", None, "exists"), "property"),
        (row("header", "a b", "exists"), "property"),
        (row("json", None, "exists"), "property"),
        (row("json", "status", "exists"), "property"),
        (row("json", "$.a[", "exists"), "property"),
        (row("json", "$[?match(@.a, '(')]", "exists"), "property"),
        (row("json", "$[?match(@.a, $.pattern)]", "exists"), "property"),
        (row("json", "$[?@ == $.a]", "exists"), "property"),
        (row("json", "$" + ".a" * 200, "exists"), "property"),
        (row("json", "$[?" + "(" * 120 + "@" + ")" * 120 + "]", "exists"), None),
        (row("status", op="="), "value"),
        (row("status", op="<", value="2xx"), "value"),
        (row("status", op="matches", value="^2"), None),
        (row("body", op="matches", value="("), "value"),
        (row("body", op="matches", value=r"(a)\1"), "value"),
        (row("body", op="matches", value="(?=a)"), "value"),
        (row("body", op="matches", value="a{1001}"), "value"),
        (row("body", op="matches", value="(?:a{100}){100}"), "value"),
        (row("body", op="matches", value="(a+)+$"), None),
        (row("body", op="matches", value="\ud800"), "value"),
        (row("body", op="contains", value="x" * 2_049), "value"),
        (row("body", op="empty", value="x"), "value"),
        (row("json", "$.items[?@.n == 1 && match(@.s, 'a.*')]", "not_empty"), None),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_refused_by_the_part(assertion, part):
    assert list(faults(assertion)) == ([part] if part else [])
