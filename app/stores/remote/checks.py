"""Checks on demand by another server."""

from __future__ import annotations

from app.codec import reader
from app.records import CheckedNow, Outcome
from app.stores import base
from app.stores.base import Fields
from app.stores.remote.connection import CHECK_SECONDS
from app.stores.remote.monitors import refuse_hidden_password
from app.stores.remote.part import RemotePart
from app.stores.remote.results import read

read_answer = reader(CheckedNow, "the result")


class RemoteChecks(RemotePart, base.Checks):
    def run(self, monitor_id: int) -> CheckedNow:
        path = f"/monitors/{monitor_id}/check"
        answer = self._write("POST", path, monitor_id=monitor_id, seconds=CHECK_SECONDS)
        return self._content(answer, read_answer)

    def run_unsaved(self, fields: Fields, *, secrets_from: int | None = None) -> Outcome:
        refuse_hidden_password(self.store.monitors, fields, secrets_from)
        sent = {name: value for name, value in fields.items() if value not in (None, ())}
        answer = self._write("POST", "/checks", sent, seconds=CHECK_SECONDS)
        return Outcome(self._content(answer, read))
