"""The UID and the SEQUENCE of a calendar entry (RFC 5545). Pure.

A UID is ``SERIES@wakeful``, or ``SERIES.OCCURRENCE@wakeful`` for one occurrence of a repeated
window. The series contains the id of the page, because an entry may be cancelled on one page and
continue on another. It contains the time of creation, because two installations have the same ids.
"""

from __future__ import annotations

from datetime import UTC, datetime

from app.records import Post

# SEQUENCE has 31 bits: seconds since 1970 fit until 2038, seconds since this time until 2088.
_BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
_LARGEST = 2**31 - 1


def uid(source: str, id: int, created_at: datetime, page_id: int, occurrence: str = "") -> str:
    """``source``: ``window``, ``monitor`` (its own window) or ``post``."""
    series = f"{source}-{id}-{int(created_at.timestamp())}-page-{page_id}"
    return f"{series}.{occurrence}@wakeful" if occurrence else f"{series}@wakeful"


def uid_of_post(post: Post) -> str:
    """The UID of a post with times."""
    return uid("post", post.id, post.created_at or _BEGIN, post.status_page_id)


def series(uid: str) -> str:
    """The series of a UID, which all occurrences share."""
    return uid.partition("@")[0].partition(".")[0]


def sequence(changed_at: datetime, ahead: int = 0) -> int:
    return max(0, min(int((changed_at - _BEGIN).total_seconds()) + ahead, _LARGEST))
