"""Maintenance windows of another server."""

from __future__ import annotations

from typing import Any

from app.codec import Odd, reader
from app.records import MaintenanceWindow, PageQuery
from app.rules.recurrence import repeat_fault
from app.stores.remote.collection import Collection


class Windows(Collection[MaintenanceWindow, PageQuery]):
    path = "/maintenance-windows"
    kind = "maintenance window"

    def read(self, data: Any) -> MaintenanceWindow:
        window = _window(data)
        if window.end_at <= window.start_at:
            raise Odd("end_at")
        if repeat_fault(window.repeat):
            raise Odd("repeat")
        return window


_window = reader(MaintenanceWindow, "maintenance window")
