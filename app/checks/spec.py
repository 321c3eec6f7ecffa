"""The spec of a check for a monitor that is not stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.records import CheckSpec


def spec_of(fields: Mapping[str, Any], password: str | None) -> CheckSpec:
    """The spec of a check of these monitor fields; missing ones have their defaults."""
    values = {
        name: fields[name]
        for name in CheckSpec.__dataclass_fields__
        if fields.get(name) is not None and name != "monitor_id"
    }
    user = fields.get("request_auth_username")
    if user is not None:
        values["auth"] = (user, password or "")
    values["cache_buster"] = bool(fields.get("cache_buster"))
    return CheckSpec(**values)
