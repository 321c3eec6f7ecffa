"""Translate a remote server's answers into errors of ``app/errors.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.errors import (
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Unsupported,
    WakefulError,
)
from app.i18n import N_, _
from app.rules.text import one_line
from app.stores.remote.connection import Answer, Connection

MAX_SENTENCE = 300
MAX_ERRORS = 100


def refuse(
    connection: Connection,
    answer: Answer,
    *,
    kind: str | None = None,
    id: int | str | None = None,
    feature: str | None = None,
) -> None:
    """Raise what an answer that is no success means; return when it is one.

    ``kind`` and ``id``: the record that was asked for, which a 404 then says does not exist.
    ``feature``: what the server may not offer at all, which a 404 or 405 says otherwise.
    """
    if 200 <= answer.status < 300:
        return
    raise _error(connection, answer, kind, id, feature)


def _error(
    connection: Connection,
    answer: Answer,
    kind: str | None,
    id: int | str | None,
    feature: str | None,
) -> WakefulError:
    message, status = _message(answer.body), answer.status
    if status == 401:
        return Denied(
            _(
                "The server %(server)s does not accept this dashboard's API key. An admin can set "
                "another one with WAKEFUL_REMOTE_KEY.",
                server=connection.name,
            )
        )
    if status == 403:
        return Denied(
            message
            or _(
                "This dashboard's API key may not do this on the server %(server)s.",
                server=connection.name,
            )
        )
    if status == 404 and kind is not None and id is not None:
        return NotFound(kind, id)
    if status in (404, 405) and feature is not None:
        return Unsupported(
            _(
                "The server %(server)s does not offer this: %(feature)s.",
                server=connection.name,
                feature=feature,
            )
        )
    if status == 404:
        return connection.unavailable(
            N_("The server %(server)s has no /api/v1 at the address in WAKEFUL_REMOTE_URL."),
            unsent=True,
        )
    if status == 409:
        return Conflict(message or _("The current state does not allow this."), **_details(answer))
    if status in (400, 413, 422):
        return Invalid(_errors(answer.body), message or _("The server did not accept the data."))
    if status == 429:
        return connection.unavailable(
            N_(
                "The server %(server)s has had too many requests from this dashboard. Wait a"
                " moment and try again."
            ),
            answer.retry_after,
            unsent=True,
        )
    if status == 503 and message is not None:  # such as which place has brought no result
        said = N_("The server %(server)s answers: %(message)s")
        return connection.unavailable(said, answer.retry_after, message=message)
    if status >= 500:
        return connection.unavailable(
            N_("The server %(server)s failed with an internal error."), answer.retry_after
        )
    sentence = N_("The server %(server)s sent an unexpected answer (%(status)s).")
    return connection.unavailable(sentence, status=status)


def sentence(value: Any) -> str | None:
    """A text of theirs that can be shown: one line, of a bounded length; None for anything else."""
    if not isinstance(value, str):
        return None
    return one_line(value, MAX_SENTENCE) or None


def _message(body: Any) -> str | None:
    return sentence(body.get("message")) if isinstance(body, Mapping) else None


def _details(answer: Answer) -> dict[str, Any]:
    body = answer.body if isinstance(answer.body, Mapping) else {}
    id, monitors = body.get("open_incident_id"), body.get("monitors")
    found: dict[str, Any] = {"open_incident_id": id} if _is_id(id) else {}
    if isinstance(monitors, list):
        found["monitors"] = [one for one in monitors if _is_id(one)]
    return found


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _errors(body: Any) -> dict[str, list[str]]:
    errors = body.get("errors") if isinstance(body, Mapping) else None
    if not isinstance(errors, Mapping):
        return {}
    found: dict[str, list[str]] = {}
    for name, said in list(errors.items())[:MAX_ERRORS]:
        sentences = said if isinstance(said, list) else [said]
        shown = [text for one in sentences[:10] if (text := sentence(one)) is not None]
        if shown:
            found[str(name)] = shown
    return found
