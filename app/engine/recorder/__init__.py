"""The one writer of what the engine knows: results, states, incidents and the alerts they cause.

``record`` (a person's checks) and ``record_claimed`` (those of the schedule) take what checks
brought, in one transaction of their own, and ``remind`` makes one for each reminder. All the others
are called inside ``app.db.writing()``, so that a store can change a monitor's fields in the same
transaction:

    with writing() as session:
        row = session.get(MonitorRow, id)
        ...
        recorder.rewatch(session, row, changed)
        recorder.pause(session, row.id, now)

Whoever writes locks the monitor's state row first, so two processes never judge from the same past.
"""

from app.engine.recorder.incidents import (
    change_incident,
    delete_incident,
    store_incident,
)
from app.engine.recorder.monitors import forget, pause, resume, rewatch, watch, watch_from
from app.engine.recorder.reminders import remind
from app.engine.recorder.results import record, record_claimed

__all__ = [
    "change_incident",
    "delete_incident",
    "forget",
    "pause",
    "record",
    "record_claimed",
    "remind",
    "resume",
    "rewatch",
    "store_incident",
    "watch",
    "watch_from",
]
