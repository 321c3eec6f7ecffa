"""The conditions of a Gatus endpoint, such as ``[STATUS] == 200``, as a monitor's fields."""

from __future__ import annotations

import operator as operators
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from app.i18n import N_, _
from app.imports.candidates import NO_TEXT_FOUND, TEXT_FOUND, Draft
from app.imports.values import number, seconds, shown

# In the order in which Gatus looks for them, with spaces around them.
_OPERATORS = ("==", "!=", "<=", ">=", ">", "<")
_COMPARED = {"<": operators.lt, "<=": operators.le, ">": operators.gt, ">=": operators.ge}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CODES = range(100, 600)
_CODE = re.compile(r"[0-9]{1,6}")
# A span as Go reads it; a number alone is in milliseconds.
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 0.001, "s": 1, "m": 60, "h": 3600}
ANY_STATUS = N_("Its conditions name no status code. Wakeful accepts 200-399.")
NEVER = N_("The condition %(condition)s is never true, in Gatus too.")


def add(draft: Draft, conditions: Sequence[str], *, http: bool) -> None:
    codes, dropped = set(_CODES), not conditions
    for condition in conditions:
        left, operator, right = _parts(condition)
        if not operator or any(f" {sign} " in right for sign in _OPERATORS):
            draft.refuse(_(NEVER, condition=shown(condition)))
        elif left == "[CONNECTED]" and (right == "false") is (operator == "=="):
            draft.refuse(_("Wakeful cannot check that a connection is refused."))
        elif left == "[STATUS]" and http and (accepted := _accepted(operator, right)) is not None:
            codes &= accepted
        elif not _condition(draft, left, operator, right):
            dropped = True
            draft.remark(
                _("Condition on %(left)s dropped: Wakeful cannot check it.", left=shown(left))
            )
        else:
            dropped = dropped or left not in ("[CONNECTED]", "[BODY]")  # a warning, no failure
    if not http:
        return
    if not codes:
        draft.refuse(_("No status code meets its conditions."))
    elif len(codes) == len(_CODES) and dropped:
        # What is left would call every answer up.
        draft.remark(_(ANY_STATUS))
    else:
        draft.codes(codes)


def _parts(condition: str) -> tuple[str, str, str]:
    """The placeholder first; ``200 == [STATUS]`` is turned round."""
    for operator in _OPERATORS:
        left, sign, right = condition.partition(f" {operator} ")
        if sign:
            left, right = left.strip(), right.strip()
            if right.startswith("[") and not left.startswith(("[", "len(", "has(")):
                return right, _MIRRORED.get(operator, operator), left
            return left, operator, right
    return condition.strip(), "", ""


def _accepted(operator: str, right: str) -> set[int] | None:
    if right.startswith("pat(") and right.endswith(")") and operator in ("==", "!="):
        pattern = right[4:-1][:50]
        matching = {code for code in _CODES if fnmatchcase(str(code), pattern)}
        return matching if operator == "==" else set(_CODES) - matching
    named = right[4:-1] if right.startswith("any(") and right.endswith(")") else right
    parts = [part.strip() for part in named.split(",")]
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
    """Whether a condition that is not on the status has become a field."""
    if left == "[CONNECTED]":
        return right in ("true", "false")  # what every check asks first
    if left == "[DNS_RCODE]" and operator == "==":
        if right != "NOERROR":
            draft.refuse(_("Wakeful cannot check that a name is missing in DNS."))
        return True  # what every check of DNS asks first
    if left == "[RESPONSE_TIME]" and operator in ("<", "<="):
        return _slow(draft, right)
    if left == "[CERTIFICATE_EXPIRATION]" and operator in (">", ">="):
        return _expiry(draft, "ssl_alert_days", N_("Certificate expiry"), right)
    if left == "[DOMAIN_EXPIRATION]" and operator in (">", ">="):
        return _expiry(draft, "domain_alert_days", N_("Domain expiry"), right)
    if left == "[BODY]" and operator in ("==", "!="):
        return _text(draft, operator, right)
    return False


def _ms(text: str) -> float | None:
    plain = number(text)
    if plain is not None:
        return plain
    span = seconds(text, UNITS)
    return None if span is None else round(1000 * span, 3)


def _slow(draft: Draft, right: str) -> bool:
    ms = _ms(right)
    if ms is None or ms <= 0:
        return False
    draft.slow_after(ms)
    return True


def _expiry(draft: Draft, name: str, label: str, right: str) -> bool:
    ms = _ms(right)
    if ms is None or ms < 0:
        return False
    draft.expiry(name, label, ms / 86_400_000)
    return True


def _text(draft: Draft, operator: str, right: str) -> bool:
    """``pat(*text*)`` alone: other patterns are no search for a text."""
    inner = right.removeprefix("pat(*").removesuffix("*)")
    # A record is short: its whole text is looked for, too.
    whole = f"pat(*{inner}*)" == right or (inner == right and draft.url.startswith("dns:"))
    if not whole or not inner or set(inner) & set("*?[\\") or "alert_text_lookup" in draft.fields:
        return False
    draft.text(NO_TEXT_FOUND if operator == "==" else TEXT_FOUND, inner)
    return True
