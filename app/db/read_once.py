"""What a transaction has read, so that it need not read that again.

A page asks several parts of the store, and each of them needs the maintenance windows and the row
of the monitor. Nothing is kept longer than the transaction, so the next request sees what others
have written.
"""

from __future__ import annotations

from typing import Any

from app.db import db, is_writing

_ONCE = "once"


def kept() -> dict[str, Any]:
    """Where to keep what is read, by a name; empty again in the next transaction. A writer keeps
    nothing: what it has read may change before its transaction ends.
    """
    if is_writing():
        return {}
    session = db.session()
    transaction = session.get_transaction() or session.begin()
    of, found = session.info.get(_ONCE, (None, {}))
    if of is not transaction:
        found = {}
        session.info[_ONCE] = transaction, found
    return found  # type: ignore[no-any-return]
