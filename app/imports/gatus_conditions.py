"""The conditions of a Gatus endpoint, such as ``[STATUS] == 200``, as a monitor's fields."""

from __future__ import annotations

import operator as operators
import re
from collections.abc import Iterable, Sequence

from app.i18n import N_, _
from app.imports.candidates import NO_TEXT_FOUND, TEXT_FOUND, Draft, seconds, shown

# As Gatus splits them: placeholder, operator, value, with spaces around the operator.
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
_COMPARED = {"<": operators.lt, "<=": operators.le, ">": operators.gt, ">=": operators.ge}
_CODES = range(100, 600)
_CODE = re.compile(r"[0-9]{3}")


def add(draft: Draft, conditions: Sequence[str], *, http: bool) -> None:
    codes = set(_CODES)
    for condition in conditions:
        left, operator, right = _parts(condition)
        if not operator:
            draft.remark(_dropped(left))
        elif left == "[STATUS]" and http and (accepted := _accepted(operator, right)) is not None:
            codes &= accepted
        elif not _one(draft, left, operator, right):
            draft.remark(_dropped(left))
    if http:
        if codes:
            draft.fields["accepted_statuses"] = _ranges(sorted(codes))
        else:
            draft.refuse(_("No status code meets its conditions."))


def _dropped(left: str) -> str:
    return _("Condition on %(left)s dropped: Wakeful cannot check it.", left=shown(left))


def _parts(condition: str) -> tuple[str, str, str]:
    for operator in _OPERATORS:
        left, found, right = condition.partition(f" {operator} ")
        if found:
            return left.strip(), operator, right.strip()
    return condition.strip(), "", ""


def _accepted(operator: str, right: str) -> set[int] | None:
    named = right.removeprefix("any(").removesuffix(")") if right.startswith("any(") else right
    parts = [part.strip() for part in named.split(",")]
    if not all(_CODE.fullmatch(part) for part in parts):
        return None
    values = {int(part) for part in parts}
    one = min(values)
    if operator == "==":
        return values
    if operator == "!=":
        return set(_CODES) - values
    if len(values) > 1:
        return None
    return {code for code in _CODES if _COMPARED[operator](code, one)}


def _ranges(codes: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in ranges)


def _one(draft: Draft, left: str, operator: str, right: str) -> bool:
    """Whether a condition that is not on the status has become a field."""
    if left == "[CONNECTED]":
        return operator == "==" and right == "true"  # what every check asks first
    if left == "[RESPONSE_TIME]" and operator in ("<", "<="):
        return _slow(draft, right)
    if left == "[CERTIFICATE_EXPIRATION]" and operator in (">", ">="):
        return _expiry(draft, "ssl_alert_days", N_("Certificate expiry"), right)
    if left == "[DOMAIN_EXPIRATION]" and operator in (">", ">="):
        return _expiry(draft, "domain_alert_days", N_("Domain expiry"), right)
    if left == "[BODY]" and operator in ("==", "!="):
        return _text(draft, operator, right)
    return False


def _slow(draft: Draft, right: str) -> bool:
    ms = seconds(right)
    if ms is None:
        return False
    draft.slow_after(ms)
    draft.remark(_("A slow response shows as degraded and opens no incident."))
    return True


def _expiry(draft: Draft, name: str, label: str, right: str) -> bool:
    span = seconds(right)
    if span is None:
        return False
    draft.expiry(name, label, span / 86_400)
    return True


def _text(draft: Draft, operator: str, right: str) -> bool:
    """``pat(*text*)`` alone: other patterns are no search for a text."""
    inner = right.removeprefix("pat(*").removesuffix("*)")
    whole = f"pat(*{inner}*)" == right
    if not whole or not inner or "*" in inner or "alert_text_lookup" in draft.fields:
        return False
    draft.text(NO_TEXT_FOUND if operator == "==" else TEXT_FOUND, inner)
    return True
