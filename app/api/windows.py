"""/api/v1/maintenance-windows (decisions.md 11)."""

from __future__ import annotations

from app.api.resource import Resource, register
from app.forms.window import WindowForm

WINDOWS = Resource(
    name="windows",
    path="/maintenance-windows",
    one="a maintenance window",
    many="maintenance windows",
    answer="MaintenanceWindow",
    form=WindowForm,
    records=lambda store: store.windows,
    about={
        "list": "Windows for one monitor, set on the monitor itself, are not among them.",
        "store": "During a window, checks continue, but no incident opens and nobody is alerted.",
        "show": "Returns the window as it was stored, with the time of its first occurrence.",
        "update": "Changes what is sent. A change counts for the occurrence that is on.",
        "delete": "Ends the window, also while it is on. Past figures keep leaving its time out.",
    },
)
register(WINDOWS)
