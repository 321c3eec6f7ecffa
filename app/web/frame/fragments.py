"""Parts of pages that refresh themselves. A script requests the page's own URL with a header; the
answer is the part alone, with an ETag.

Relative times are left out of the ETag, because the script keeps them current. So an unchanged page
is answered with an empty 304.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from flask import Response, render_template, request

HEADER = "X-Fragment"
_AGING = re.compile(r"(<time [^<>]*data-ago[^<>]*>)[^<]*|(data-since=[^<>]*>)[^<]*")
_TOKEN = re.compile(r'name="csrf_token"[^<>]*>')


def is_fragment() -> bool:
    """Whether the script requests only the part."""
    return request.headers.get(HEADER) == "live"


def page(template: str, part: str, **context: Any) -> Response:
    """The page ``template``; for the script only ``part``, which the page includes."""
    if not is_fragment():
        answer = Response(render_template(template, **context), mimetype="text/html")
        answer.vary.add(HEADER)
        return answer
    text = render_template(part, **context)
    answer = Response(text, mimetype="text/html")
    answer.vary.add(HEADER)
    lasting = _TOKEN.sub("", _AGING.sub(r"\1\2", text))
    answer.set_etag(hashlib.sha256(lasting.encode()).hexdigest()[:20])
    answer.make_conditional(request)
    return answer
