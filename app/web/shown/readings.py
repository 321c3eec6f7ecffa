"""What a chart says of each of its moments, for the line that a pointer or the keyboard reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from app.i18n import _
from app.web.shown.charts import milliseconds
from app.web.shown.monitor_rows import lasted

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)

Bucket = Mapping[str, Any]


def of(buckets: Sequence[Bucket], say: Callable[[datetime], str]) -> str:
    """A sentence for each bucket, as JSON for the page's script. ``say`` formats its moment."""
    sentences = [
        f"{say(datetime.fromisoformat(bucket['start']))}: {', '.join(_facts(bucket))}"
        for bucket in buckets
    ]
    return json.dumps(sentences, ensure_ascii=False, separators=(",", ":"))


def form(seconds: int, length: timedelta) -> str:
    """The format of a moment: a day where buckets are days, else as short as is clear."""
    if seconds >= DAY.total_seconds():
        return "%a %-d %b %Y"
    return "%H:%M" if length <= DAY + MINUTE * 60 else "%a %-d %b, %H:%M"


def _facts(bucket: Bucket) -> Iterator[str]:
    if bucket["response_time"] is not None:
        yield milliseconds(bucket["response_time"])
        if bucket["p95"] is not None and bucket["checks"] != 1:
            yield f"p95 {milliseconds(bucket['p95'])}"
    for state in ("down", "maintenance", "unknown"):
        if bucket[state]:
            yield lasted(state, bucket[state])
    if bucket["response_time"] is None and not (bucket["down"] or bucket["maintenance"]):
        yield _("no response time") if bucket["checks"] else _("no check")
