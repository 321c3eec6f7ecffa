"""Test alerts: send one to a channel, and show the answer of the service on the page.

A test goes through the outbox like every alert, so it shows how alerts will work, and it is in the
delivery log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from flask import request

from app.errors import NotFound, WakefulError
from app.forms.lists import PairList
from app.i18n import N_, _
from app.records import MAX_ALERTS, Delivery, Event
from app.rules.brackets import parse
from app.rules.text import digits
from app.stores import current_store

BUTTON = "try"  # its value: ``alerts`` tests all rows, ``alerts[3]`` one
WAIT_SECONDS = 8.0  # for the answer, because a person waits; a later answer is in the log
NOTHING = N_("Add a channel first, then send it a test.")


def send_typed(alerts: PairList, monitor_id: int | None) -> Mapping[str, Delivery]:
    """Send a test alert to the rows of a form whose button was pressed. Return the deliveries by
    the index of the row.

    A row with a fault gets no test and shows the fault. Faults of other rows are removed.
    """
    name = parse(request.form[BUTTON])
    index = name.index if name else None
    by_row = {row.index: pair for row, pair in alerts.valid_rows() if index in (None, row.index)}
    faulty = _remove_other_faults(alerts, index)
    if not by_row:
        alerts.errors = [] if faulty else [*alerts.process_errors, _(NOTHING)][:1]
        return {}
    pairs = list(dict.fromkeys(by_row.values()))
    try:
        ids = current_store().channels.test(pairs, monitor_id=monitor_id)
        deliveries = current_store().deliveries.answers(ids, WAIT_SECONDS)
        answers = dict(zip(pairs, deliveries, strict=True))
    except WakefulError as fault:
        alerts.errors = [str(fault)]
        return {}
    return {index: answers[pair] for index, pair in by_row.items()}


def _remove_other_faults(alerts: PairList, index: str | None) -> bool:
    """Remove the faults of other rows, and return whether a row to test has a fault."""
    to_test = [row for row in alerts.rows if index in (None, row.index) and not row.is_blank]
    for row in alerts.rows:
        if row not in to_test:
            row.errors.clear()
    return any(row.all_errors for row in to_test)


def send_stored(monitor_id: int, index: int | None) -> Sequence[int]:
    """Send a test alert to all channels of a monitor, or to the one at ``index``, and wait a little
    for the answers. Return the ids of the deliveries.
    """
    store = current_store()
    if index is None:
        ids = store.channels.test_all(monitor_id)
    else:
        alerts = store.monitors.get(monitor_id).alerts[index : index + 1]
        ids = store.channels.test(alerts, monitor_id=monitor_id) if alerts else ()
    store.deliveries.answers(ids, WAIT_SECONDS)
    return ids


def tests_in_address(monitor_id: int | None) -> Sequence[Delivery]:
    """The test alerts whose ids are in the address. ``monitor_id``: of this monitor alone; None: of
    no monitor.
    """
    tests = []
    for id in map(digits, request.args.get("test_alerts", "").split(",")[:MAX_ALERTS]):
        if id is not None:
            with suppress(NotFound):
                tests.append(current_store().deliveries.get(id))
    return [test for test in tests if test.monitor_id == monitor_id and test.event == Event.TEST]
