"""The identity of a calendar entry (RFC 5545): its UID, and the SEQUENCE that grows. Pure.

A UID is ``SERIES@wakeful``, or ``SERIES.OCCURRENCE@wakeful`` for one occurrence of what repeats.
The series names the page too: what is cancelled on one page may continue on another. The moment of
creation tells the entries of two installations apart, which count their ids alike.
"""

from __future__ import annotations

from datetime import UTC, datetime

from app.records import Post

# SEQUENCE has 31 bits: seconds since 1970 no longer fit in 2038, these do until 2088.
_BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
_LARGEST = 2**31 - 1


def uid(kind: str, id: int, created_at: datetime, page_id: int, occurrence: str = "") -> str:
    """``kind``: ``window``, ``monitor`` (its own window) or ``post``."""
    series = f"{kind}-{id}-{int(created_at.timestamp())}-page-{page_id}"
    return f"{series}.{occurrence}@wakeful" if occurrence else f"{series}@wakeful"


def uid_of_post(post: Post) -> str:
    """The UID of a post with times."""
    return uid("post", post.id, post.created_at or _BEGIN, post.status_page_id)


def series(uid: str) -> str:
    """What all occurrences of the same thing have in common."""
    return uid.partition("@")[0].partition(".")[0]


def sequence(changed_at: datetime, ahead: int = 0) -> int:
    return max(0, min(int((changed_at - _BEGIN).total_seconds()) + ahead, _LARGEST))
