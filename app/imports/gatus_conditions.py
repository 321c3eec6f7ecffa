"""The conditions of a Gatus endpoint, such as ``[STATUS] == 200``, as fields and assertions."""

from __future__ import annotations

import math
import operator as operators
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from app.i18n import N_, _
from app.imports.candidates import DAYS_BECOME, Draft
from app.imports.values import (
    NAMES,
    alternatives,
    cut_line,
    glob_pattern,
    json_path,
    literal_pattern,
    number,
    number_text,
    record_pattern,
    seconds,
)

# In the order in which Gatus searches for them.
_OPERATORS = ("==", "!=", "<=", ">=", ">", "<")
_COMPARED = {"<": operators.lt, "<=": operators.le, ">": operators.gt, ">=": operators.ge}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPS = {"==": "=", "!=": "!=", **{sign: sign for sign in _COMPARED}}
_FUNCTION = re.compile(r"(?P<name>len|has)\((?P<of>\[BODY\][^()]*)\)")
_NAME = re.compile(r"\A((?:len|has)\(|)(\[[A-Za-z_]+\])")  # in any case
_CODES = range(100, 600)
_CODE = re.compile(r"[0-9]{1,6}")
# The units of a duration in Go; a number without a unit is in milliseconds.
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 0.001, "s": 1, "m": 60, "h": 3600}
UNREADABLE = N_("Gatus itself cannot evaluate the condition %(condition)s.")
DAY_MS = 86_400_000
FINAL_DOT = N_(
    "Gatus writes a final dot after the names of DNS. %(condition)s is read as it is meant."
)
_RECORDS = ("A", "AAAA", "CNAME", "MX", "NS", "PTR", "SRV", "TXT")  # Gatus has their values
NO_ANSWER = N_("Wakeful cannot check that a name is missing in DNS.")
_EMPTY = r'^(?:\[\s*\]|\{\s*\}|"")?$'  # an empty body, or an empty value of JSON


def add(draft: Draft, conditions: Sequence[str], *, http: bool) -> None:
    codes, dropped = set(_CODES), not conditions
    for condition in _split_conditions(draft, conditions):
        accepted = _codes_of(condition) if http else None
        left, operator, right = _parts(condition)
        if accepted is not None:
            codes &= accepted
        elif (
            not operator
            or any(f" {sign} " in right for sign in _OPERATORS)
            or left.startswith("[CONTEXT]")  # only suites have it
        ):
            draft.refuse(UNREADABLE, condition=cut_line(condition))
        elif left == "[IP]":
            draft.refuse(N_("Wakeful cannot check to which address the name of a URL leads."))
        elif left == "[CONNECTED]" and (right == "false") is (operator == "=="):
            draft.refuse(N_("Wakeful cannot check that a connection is refused."))
        elif not _condition(draft, left, operator, right):
            dropped = True
            draft.remark(
                N_("Condition on %(left)s dropped: Wakeful cannot check it."), left=cut_line(left)
            )
        else:
            dropped = dropped or left == "[DOMAIN_EXPIRATION]"  # a warning, no failure
    if not http:
        return
    if not codes:
        draft.refuse(N_("No status code meets its conditions."))
    elif len(codes) == len(_CODES) and dropped:
        # The other conditions would call every answer up.
        draft.remark(N_("Its conditions name no status code. Wakeful accepts 200-399."))
    else:
        draft.set_codes(codes)


def _split_conditions(draft: Draft, conditions: Sequence[str]) -> Iterator[str]:
    for condition in conditions:
        # Gatus calls such a check up or down forever.
        if " && " in condition or " || " in condition:
            sentence = N_("Gatus does not know && and ||. %(condition)s is read as it is meant.")
            draft.remark(sentence, condition=cut_line(condition))
        yield from condition.split(" && ")


def _codes_of(condition: str) -> set[int] | None:
    """The status codes that a condition accepts; None if it is not about the status alone."""
    codes: set[int] = set()
    for left, operator, right in map(_parts, condition.split(" || ")):
        accepted = _accepted_codes(operator, right) if left == "[STATUS]" and operator else None
        if accepted is None:
            return None
        codes |= accepted
    return codes


def _parts(condition: str) -> tuple[str, str, str]:
    """The placeholder, the operator and the value; ``200 == [STATUS]`` is turned round."""
    for operator in _OPERATORS:
        left, sign, right = condition.partition(f" {operator} ")
        if sign:
            left, right = (
                _NAME.sub(lambda name: name[1] + name[2].upper(), side.strip())
                for side in (left, right)
            )
            if right.startswith("[") and not left.startswith(("[", "len(", "has(")):
                return right, _MIRRORED.get(operator, operator), left
            return left, operator, right
    return condition.strip(), "", ""


def _accepted_codes(operator: str, right: str) -> set[int] | None:
    if right.startswith("pat(") and right.endswith(")") and operator in ("==", "!="):
        pattern = right[4:-1][:50]
        matching = {code for code in _CODES if fnmatchcase(str(code), pattern)}
        return matching if operator == "==" else set(_CODES) - matching
    codes = right[4:-1] if right.startswith("any(") and right.endswith(")") else right
    parts = [part.strip() for part in codes.split(",")]
    if not all(_CODE.fullmatch(part) for part in parts):
        return None
    values = {int(part) for part in parts}
    if operator == "==":
        return values & set(_CODES)
    if operator == "!=":
        return set(_CODES) - values
    if len(values) > 1:
        return None
    (limit,) = values
    return {code for code in _CODES if _COMPARED[operator](code, limit)}


def _condition(draft: Draft, left: str, operator: str, right: str) -> bool:
    """Turn a condition that is not on the status into fields. Returns False if Wakeful cannot check
    it.
    """
    if left == "[CONNECTED]":
        return right in ("true", "false")  # every check needs a connection anyway
    if left == "[DNS_RCODE]" and operator == "==":
        if right != "NOERROR":
            draft.refuse(NO_ANSWER)
        return True  # every check of DNS needs NOERROR anyway
    if left == "[RESPONSE_TIME]":
        return _time(draft, operator, right)
    if left == "[CERTIFICATE_EXPIRATION]" and operator in (">", ">="):
        return _certificate(draft, right)
    if left == "[DOMAIN_EXPIRATION]" and operator in (">", ">="):
        return _domain(draft, right)
    if left == "[BODY]" and draft.url.startswith("dns:"):
        return _record(draft, operator, right)
    if left == "[BODY]" and operator in ("==", "!=") and _text(draft, operator, right):
        return True
    return "[BODY]" in left and _assertion(draft, left, operator, right)


def _assertion(draft: Draft, left: str, operator: str, right: str) -> bool:
    """Turn a condition on the body, or on a value in its JSON, into an assertion. Returns whether
    that is possible, as all functions below do.
    """
    scheme = draft.url.partition(":")[0].lower()
    if left == "len([BODY])" and scheme not in ("http", "https"):
        return _length_elsewhere(draft, scheme, operator, right)
    if right.startswith("[") or scheme not in ("http", "https"):
        return False
    function = _FUNCTION.fullmatch(left)
    path = json_path((function["of"] if function else left).removeprefix("[BODY]"))
    if path is None:
        return False
    if function:
        is_length = function["name"] == "len"
        return (_length if is_length else _presence)(draft, path, operator, right)
    op, value = _OPS[operator], right
    if operator in ("==", "!="):
        op, value = _equal(operator, right)
    if not value:
        return False
    if path == "$":
        draft.add_assertion("body", op, value)
    else:
        draft.add_assertion("json", op, value, path)
    return True


def _equal(operator: str, right: str) -> tuple[str, str]:
    """The op and the value of an assertion for ``pat(...)``, ``any(...)`` or a text."""
    op = "matches" if operator == "==" else "not_matches"
    if right.startswith("pat(") and right.endswith(")"):
        return op, f"(?s)^{glob_pattern(right[4:-1])}$"
    if right.startswith("any(") and right.endswith(")"):
        return op, alternatives(part.strip() for part in right[4:-1].split(","))
    return _OPS[operator], right


def _presence(draft: Draft, path: str, operator: str, right: str) -> bool:
    if right not in ("true", "false") or operator not in ("==", "!="):
        return False
    exists = (right == "true") is (operator == "==")
    draft.add_assertion("json", "exists" if exists else "not_exists", path=path)
    return True


def _length_elsewhere(draft: Draft, scheme: str, operator: str, right: str) -> bool:
    """A condition on the length of the body, for a check that reads no page."""
    zero = (operator, right) in (("==", "0"), ("<", "1"), ("<=", "0"))
    if zero and scheme == "dns":
        draft.refuse(NO_ANSWER)
    # Every check of DNS needs an answer anyway; in Gatus, too, a ping and a port have no body.
    return zero or (scheme == "dns" and (operator, right) in ((">", "0"), (">=", "1"), ("!=", "0")))


def _length(draft: Draft, path: str, operator: str, right: str) -> bool:
    """A condition on the length of a list becomes assertions on the values at its indices. The
    length of a text can only be compared with 0.
    """
    if not _CODE.fullmatch(right):
        return False
    count = int(right) + (operator in (">", "<="))  # >= count, or < count
    if path == "$" and (operator, count) in (("==", 0), ("<", 1), ("<=", 1)):
        draft.add_assertion("body", "matches", _EMPTY)
        return True
    if (operator in (">", ">=") and count == 1) or (operator == "!=" and count == 0):
        if path == "$":
            draft.add_assertion("body", "not_empty")
        else:
            draft.add_assertion("json", "not_empty", path=path)
        return True
    if operator == "==" and count == 0:
        draft.add_assertion("json", "exists", path=path)
        draft.add_assertion("json", "empty", path=path)
        return True
    if operator == "!=" or count == 0:
        return False
    if operator in (">", ">=", "=="):
        draft.add_assertion("json", "exists", path=f"{path}[{count - 1}]")
    if operator == "==":
        draft.add_assertion("json", "not_exists", path=f"{path}[{count}]")
    if operator in ("<", "<="):
        draft.add_assertion("json", "not_exists", path=f"{path}[{count - 1}]")
    draft.remark(
        N_("%(condition)s is read as the length of a list."), condition=cut_line(f"len({path})")
    )
    return True


def _ms(text: str) -> float | None:
    ms = number(text)
    if ms is not None:
        return ms
    span = seconds(text, UNITS)
    return None if span is None else round(1000 * span, 3)


def _time(draft: Draft, operator: str, right: str) -> bool:
    """A slow answer is a failure in Gatus, so the condition becomes an assertion, not a slow
    alert.
    """
    ms = _ms(right)
    if ms is None or ms <= 0:
        return False
    draft.add_assertion("response_time", _OPS[operator], f"{ms:g}")
    return True


def _certificate(draft: Draft, right: str) -> bool:
    """Too few days are a failure in Gatus, so the condition becomes an assertion, not a warning.
    Wakeful counts whole days.
    """
    ms = _ms(right)
    if ms is None or ms < 0:
        return False
    days = ms / DAY_MS
    whole_days = math.ceil(days)
    draft.add_assertion("certificate_days", ">=", str(whole_days))
    if whole_days != days:
        label = _("Days of the certificate")
        draft.remark(DAYS_BECOME, field=label, old=number_text(days), new=whole_days)
    return True


def _domain(draft: Draft, right: str) -> bool:
    ms = _ms(right)
    if ms is None or ms < 0:
        return False
    draft.set_expiry_days("domain_alert_days", ms / DAY_MS)
    return True


def _record(draft: Draft, operator: str, right: str) -> bool:
    """A condition on the value of a DNS record. Gatus leaves out the priority of an MX record, and
    writes an SRV record as ``target:port``.
    """
    type_ = draft.url.rpartition("type=")[2]
    if operator not in ("==", "!=") or type_ not in _RECORDS:
        return False
    function, values = right[:4], [right]
    if right.endswith(")") and function in ("any(", "pat("):
        values = right[4:-1].split(",") if function == "any(" else [right[4:-1]]
    elif type_ in ("A", "AAAA"):
        draft.add_assertion("answer", _OPS[operator], right)
        return True
    write = glob_pattern if function == "pat(" else literal_pattern
    patterns = []
    for value in (value.strip() for value in values):
        name, colon, port = value.rpartition(":") if type_ == "SRV" else (value, "", "")
        name = name or port
        if type_ in NAMES and not name.endswith((".", "*")):
            draft.remark(FINAL_DOT, condition=cut_line(right))
            name = f"{name}."
        patterns.append(
            f"^[0-9]+ [0-9]+ {write(port)} {write(name)}$" if colon
            else record_pattern(type_, write(name))
        )  # fmt: skip
    op = "matches" if operator == "==" else "not_matches"
    draft.add_assertion("answer", op, "|".join(patterns))
    return True


def _text(draft: Draft, operator: str, right: str) -> bool:
    """Turn ``pat(*text*)`` into the text to find; other patterns become assertions."""
    inner = right.removeprefix("pat(*").removesuffix("*)")
    if f"pat(*{inner}*)" != right or not inner or set(inner) & set("*?[\\"):
        return False
    if "alert_text_lookup" in draft.fields:
        return False
    draft.set_text(inner, unwanted=operator != "==")
    return True
