"""Stores results and states, opens and ends incidents, and writes the alerts that they cause. No
other module does.

A function with ``session`` as its first argument is called inside ``app.db.writing()``, so that a
store can change a monitor's fields in the same transaction. The others open their own.

    with writing() as session:
        row = session.get(MonitorRow, id)
        ...
        recorder.apply_changes(session, row, fields, now)
        recorder.pause(session, row.id, now)

Code that judges a result, or changes a state or an incident, locks the monitor's state before it
reads, so two processes never judge from the same state. ``Steady`` does not: it stores the good
results of a checker that change nothing. Each change of a monitor is noted in the change feed, and
``Steady`` reads the feed in the transaction in which it stores.
"""

from app.engine.recorder.alerting import remind
from app.engine.recorder.assigned import ask
from app.engine.recorder.incidents_by_hand import (
    change_incident,
    create_incident,
    delete_incident,
    lock_incident,
)
from app.engine.recorder.late import record_late
from app.engine.recorder.monitors import (
    FIELDS_OF_RULES,
    add_monitors,
    apply_changes,
    delete_monitor,
    pause,
    resume,
    set_places,
    show_unknown,
)
from app.engine.recorder.pings import (
    add_heartbeat,
    is_web_absent,
    next_deadline,
    record_deadlines,
    record_pings,
    sign_web,
)
from app.engine.recorder.results import judge_votes_again, record, record_claimed
from app.engine.recorder.steady import Steady

__all__ = [
    "FIELDS_OF_RULES", "Steady", "add_heartbeat", "add_monitors", "apply_changes", "ask",
    "change_incident", "create_incident", "delete_incident", "delete_monitor", "is_web_absent",
    "judge_votes_again", "lock_incident", "next_deadline", "pause", "record", "record_claimed",
    "record_deadlines", "record_late", "record_pings", "remind", "resume", "set_places",
    "show_unknown", "sign_web",
]  # fmt: skip
