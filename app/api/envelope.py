"""The bodies around records (decision 1): one record, a page of them, a deletion, an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from flask import Response, request

from app.errors import WakefulError
from app.records import Page
from app.rules.brackets import Pairs

T = TypeVar("T")


def answer(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    # Text of a checked server may have lone surrogates, which UTF-8 cannot encode.
    return Response(
        text.encode("utf-8", "replace"), status, dict(headers or {}), mimetype="application/json"
    )


def record_answer(data: Any, status: int = 200, **headers: str) -> Response:
    return answer({"data": data, "status": status}, status, headers)


def created(data: Mapping[str, Any]) -> Response:
    """The answer 201, with the URL of the new record."""
    return record_answer(data, 201, Location=f"{request_url()}/{data['id']}")


def answer_rows(answers: Sequence[Mapping[str, Any] | WakefulError], status: int) -> Response:
    """The answer about many records: for each, the body that a request about it alone would get.
    ``status``: the status of those that are not refused.
    """
    rows = [
        problem_body(answer.status, str(answer), getattr(answer, "errors", None))
        if isinstance(answer, WakefulError)
        else {"data": answer, "status": status}
        for answer in answers
    ]
    return record_answer(rows, status if all(row["status"] == status for row in rows) else 207)


def deleted(noun: str, id: int, **more: int) -> Response:
    return answer({"id": id, "object": noun, "deleted": True, **more, "status": 200})


def paged(page: Page[T], shape: Callable[[T], Any], query: Pairs) -> Response:
    """A page of a list; ``query``: the query as sent, which the links repeat."""
    number, last = page.number, page.last_number
    first_item = (number - 1) * page.per_page + 1 if page.items else None
    url, others = request_url(), [(name, value) for name, value in query if name != "page"]

    def link(number: int) -> str:
        return f"{url}?{urlencode([*others, ('page', str(number))])}"

    return answer(
        {
            "data": [shape(item) for item in page.items],
            "links": {
                "first": link(1),
                "last": link(last),
                # Past the end, "prev" leads to the last page with records.
                "prev": link(min(number - 1, last)) if number > 1 else None,
                "next": link(number + 1) if number < last else None,
            },
            "meta": {
                "current_page": number,
                "from": first_item,
                "last_page": last,
                "path": url,
                "per_page": page.per_page,
                "to": None if first_item is None else first_item + len(page.items) - 1,
                "total": page.total,
            },
            "status": 200,
        }
    )


def problem(
    status: int,
    message: str,
    errors: Mapping[str, Sequence[str]] | None = None,
    details: Mapping[str, Any] | None = None,
    **headers: str,
) -> Response:
    """An error. ``details`` are further members of the body; ``_`` in a header's name means
    ``-``."""
    body = {**problem_body(status, message, errors), **(details or {})}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return answer(body, status, named)


def problem_body(
    status: int, message: str, errors: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    body: dict[str, Any] = {"message": message, "status": status}
    return body if errors is None else body | {"errors": errors}


def request_url() -> str:
    """This request's URL without its query, with the host that the client used."""
    return request.root_url.rstrip("/") + request.path
