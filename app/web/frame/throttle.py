"""The answer to somebody who tried too often: when the next try is possible, for people and for
programs.
"""

from __future__ import annotations

from werkzeug.wrappers import Response

from app.errors import Throttled
from app.i18n import _
from app.web.shown import times


def sentence(fault: Throttled) -> str:
    wait = _("The next one is possible in %(span)s.", span=times.span(fault.retry_after))
    return f"{fault} {wait}"


def answer(page: str, fault: Throttled) -> Response:
    headers = {"Retry-After": str(fault.retry_after)}
    return Response(page, 429, headers, content_type="text/html; charset=utf-8")
