"""Checks on demand."""

from __future__ import annotations

from dataclasses import replace

from app.checks.kinds import is_elsewhere, spec_of
from app.db import db
from app.db.assignments import not_checked
from app.db.types import Unreadable, readable
from app.records import CheckedNow, Outcome
from app.stores import base
from app.stores.base import Fields
from app.stores.local.part import LocalPart, found_monitor, require_monitor


class LocalChecks(LocalPart, base.Checks):
    def run(self, monitor_id: int) -> CheckedNow:
        from app.engine import now

        require_monitor(monitor_id)
        return now.check_now(monitor_id)

    def run_unsaved(self, fields: Fields, *, secrets_from: int | None = None) -> Outcome:
        from app.engine import now

        password = fields.get("request_auth_password")
        if secrets_from is not None and password is None:
            monitor = found_monitor(db.session, secrets_from)
            if not is_elsewhere(monitor, fields):
                password = monitor.request_auth_password
        spec = spec_of(fields, readable(password))
        if spec.auth is not None and isinstance(password, Unreadable):
            spec = replace(spec, fault=not_checked({"request_auth_password": password.why}))
        return now.check_fields(spec)
