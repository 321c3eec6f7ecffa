"""Maintenance windows of another server."""

from __future__ import annotations

from typing import Any

from app.codec import Odd, reader
from app.errors import Invalid
from app.i18n import _
from app.records import MaintenanceWindow, PageQuery
from app.rules.recurrence import repeat_fault
from app.stores.base import Feature, Fields
from app.stores.remote.collection import Collection


class Windows(Collection[MaintenanceWindow, PageQuery]):
    path = "/maintenance-windows"
    kind = "maintenance window"
    feature = Feature.WINDOWS

    def sent(self, fields: Fields, *, new: bool = False) -> Fields:
        if "tags" in fields and Feature.WINDOW_TAGS not in self.offers.known():
            if fields["tags"]:
                raise Invalid(
                    {"tags": [_("This server has no maintenance by tag. Update it first.")]}
                )
            fields = {name: value for name, value in fields.items() if name != "tags"}
        return super().sent(fields, new=new)

    def read(self, data: Any) -> MaintenanceWindow:
        window = _window(data)
        if window.end_at <= window.start_at:
            raise Odd("end_at")
        if repeat_fault(window.repeat):
            raise Odd("repeat")
        return window


_window = reader(MaintenanceWindow, "maintenance window")
