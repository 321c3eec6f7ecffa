"""gunicorn's lines in the log about requests that it refuses.

Each quotes what was sent, up to 64 KB, and anybody may send such requests without end. So a line is
cut, and a minute has few of them: nobody fills the disk.
"""

from __future__ import annotations

import logging

from app.access.security_log import A_MINUTE, Bound

BEGINS = "Invalid request from ip="
MOST_CHARACTERS = 300


class Few(logging.Filter):
    """For gunicorn's logger. Other lines pass as they are."""

    def __init__(self, bound: Bound | None = None) -> None:
        super().__init__()
        self._bound = bound or Bound(A_MINUTE)

    def filter(self, record: logging.LogRecord) -> bool:
        line = record.getMessage()
        if not line.startswith(BEGINS):
            return True
        within, left_out = self._bound.take(BEGINS)
        if len(line) > MOST_CHARACTERS:
            line = f"{line[:MOST_CHARACTERS]}…"
        if left_out:
            line += f" (left out before: {left_out[BEGINS]})"
        record.msg, record.args = line, None
        return within
