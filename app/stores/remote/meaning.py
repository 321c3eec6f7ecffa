"""Translate the answers of a remote server into errors of ``app/errors.py``, with the server's
sentences.

Servers explain a fault in many forms: ``message``, ``error`` or ``detail`` as text or object;
``errors`` by field, as a list of sentences or of objects that name a field; RFC 7807; or the fields
themselves, as Django REST does. ``explanation_of`` reads all of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from app.codec.foreign import snake_case
from app.codec.values import flag
from app.errors import Conflict, Denied, Invalid, NotFound, WakefulError
from app.i18n import N_, _
from app.records import Incident, Monitor
from app.rules.text import one_line
from app.stores.remote.connection import RemoteConnection, ServerAnswer

MAX_SENTENCE = 300
MAX_ERRORS = 100
MAX_DEEP = 4
# In this order, because ``error`` and ``title`` often have only the name of the status.
MESSAGES = ("message", "detail", "msg", "error_description", "errorMessage", "defaultMessage",
            "reason", "description", "error", "title")  # fmt: skip
LISTS = ("errors", "fields", "params", "details", "violations", "invalid-params", "invalid_params",
         "invalidParams", "validation_errors", "validationErrors", "field_errors", "fieldErrors",
         "issues")  # fmt: skip
FIELDS = ("field", "name", "param", "path", "property", "propertyPath", "attribute", "key", "loc",
          "pointer")  # fmt: skip
NO_FIELD = ("non_field_errors", "__all__", "base", "_", "body", "query", "data", "attributes")
OUR_FIELDS = {column.name for record in (Monitor, Incident) for column in fields(record)}
OUR_FIELDS = (OUR_FIELDS | {"pause"}) - {"status", "id"}  # these may be of the answer itself
NOT_ACCEPTED = N_("The server did not accept the data.")
FAILURES = frozenset({"error", "fail", "failed", "failure"})
RecordId = tuple[str, int]  # the noun of a record, and its id
REFUSED = (400, 402, 406, 411, 412, 413, 414, 415, 422, 428, 431)


@dataclass(slots=True)
class Explanation:
    """A server's messages about a fault: general messages, and messages by the field of a form."""

    general: list[str] = field(default_factory=list)
    by_field: dict[str, list[str]] = field(default_factory=dict)

    @property
    def message(self) -> str | None:
        return " ".join(dict.fromkeys(self.general))[:MAX_SENTENCE] or None

    def note(self, text: Any, name: str = "") -> None:
        sentence = one_line(text, MAX_SENTENCE) if isinstance(text, str) else ""
        if not sentence or max(len(self.by_field), len(self.general)) > MAX_ERRORS:
            return
        (self.by_field.setdefault(name, []) if name else self.general).append(sentence)


def raise_if_refused(
    connection: RemoteConnection, answer: ServerAnswer, of: RecordId | None = None
) -> None:
    """Raise the error of an answer that is no success. ``of``: the requested record; a 404 means
    that it does not exist.
    """
    if not answer.is_success:
        raise _error(connection, answer, of)


def _error(connection: RemoteConnection, answer: ServerAnswer, of: RecordId | None) -> WakefulError:
    explanation, status = explanation_of(answer), answer.status
    message = explanation.message
    if status == 401:
        return Denied(_(WRONG_KEY, server=connection.name))
    if status == 403:
        return Denied(message or _(NOT_ALLOWED, server=connection.name))
    if status in (404, 410) and of is not None:
        return NotFound(*of)
    if status == 409 and not explanation.by_field:
        return Conflict(message or _("The current state does not allow this."), **_details(answer))
    if status in (409, *REFUSED):
        return Invalid(explanation.by_field, message or _(NOT_ACCEPTED))
    if status == 404:
        return connection.unavailable(NO_API, unsent=True)
    if status == 429:
        return connection.unavailable(TOO_MANY, answer.retry_after, unsent=True)
    if 300 <= status < 400:
        return connection.unavailable(REDIRECTED, unsent=answer.was_turned_away)
    if status != 500 and message is not None:  # for example, which place has brought no result
        return connection.unavailable(
            ANSWERS, answer.retry_after, unsent=status < 500, message=message
        )
    if status >= 500:
        return connection.unavailable(FAILED, answer.retry_after)
    return connection.unavailable(UNEXPECTED, unsent=status >= 400, status=status)


NO_API = N_("The server %(server)s has no /api/v1 at the address in WAKEFUL_REMOTE_URL.")
REDIRECTED = N_("The server %(server)s redirects to another address instead of answering.")
FAILED = N_("The server %(server)s failed with an internal error.")
UNEXPECTED = N_("The server %(server)s sent an unexpected answer (%(status)s).")
WRONG_KEY = N_(
    "The server %(server)s does not accept this dashboard's API key. An admin can set another one"
    " with WAKEFUL_REMOTE_KEY."
)
NOT_ALLOWED = N_("This dashboard's API key may not do this on the server %(server)s.")
TOO_MANY = N_(
    "The server %(server)s has had too many requests from this dashboard. Wait a moment and try"
    " again."
)
ANSWERS = N_("The server %(server)s answers: %(message)s")


def says_failure(body: Any) -> bool:
    """Whether an answer with a status of success says that a write failed. A body with an id is a
    record: its ``status: failed`` is that of the monitor, not of the request.
    """
    if not isinstance(body, Mapping):
        return False
    others = [value for name, value in body.items() if name not in (*MESSAGES, *LISTS)]
    inside = [value for value in others if isinstance(value, Mapping)]
    if any("id" in inner for inner in (body, *inside)):
        return False
    if any(flag(body.get(name)) is False for name in ("success", "ok")):
        return True
    status = body.get("status", body.get("result"))
    return isinstance(status, str) and status.strip().lower() in FAILURES


# --- What a server says ---------------------------------------------------------------------------


def explanation_of(answer: ServerAnswer) -> Explanation:
    explanation = Explanation()
    if answer.text:
        explanation.note(answer.text)
    _read(answer.body, explanation)
    return explanation


def _read(body: Any, explanation: Explanation, depth: int = 0) -> None:
    if depth > MAX_DEEP:
        return
    if isinstance(body, str):
        explanation.note(body)
    elif isinstance(body, list):
        for entry in body[:MAX_ERRORS]:
            _read_entry(entry, explanation, "", depth)
    elif isinstance(body, Mapping):
        for name in LISTS:
            _read_fields(body.get(name), explanation, "", depth)
        messages = [body[name] for name in MESSAGES if body.get(name)]
        explanation.note(next((text for text in messages if isinstance(text, str)), None))
        for message in messages:
            if isinstance(message, Mapping | list):
                _read(message, explanation, depth + 1)
        for name, value in body.items():  # the fields themselves
            if name in MESSAGES or name in LISTS:
                continue
            if name == "data" and isinstance(value, Mapping):
                _read(value, explanation, depth + 1)
            elif isinstance(value, list) or _path(name).partition(".")[0] in OUR_FIELDS:
                _read_fields({name: value}, explanation, "", depth)


def _read_fields(value: Any, explanation: Explanation, prefix: str, depth: int) -> None:
    """Read sentences by field, or a list of entries (``_read_entry``). ``prefix``: the path of the
    field that contains them.
    """
    if depth > MAX_DEEP:
        return
    if isinstance(value, Mapping):
        text = next((value[key] for key in MESSAGES if isinstance(value.get(key), str)), None)
        if prefix and text is not None:
            explanation.note(text, prefix)
            return
        for name, inner in list(value.items())[:MAX_ERRORS]:
            _read_fields(inner, explanation, _joined(prefix, str(name)), depth + 1)
    elif isinstance(value, list):
        for entry in value[:10] if prefix else value[:MAX_ERRORS]:
            _read_entry(entry, explanation, prefix, depth)
    else:
        explanation.note(value, prefix)


def _read_entry(entry: Any, explanation: Explanation, prefix: str, depth: int) -> None:
    """Read a sentence, or an object that names a field."""
    if not isinstance(entry, Mapping):
        explanation.note(entry, prefix)
        return
    source = entry.get("source")
    named = [*(entry.get(name) for name in FIELDS)]
    if isinstance(source, Mapping):
        named += [source.get("pointer"), source.get("parameter")]
    name = next((path for path in map(_path, named) if path), "")
    text = next((entry[key] for key in MESSAGES if isinstance(entry.get(key), str)), None)
    if text is None and isinstance(entry.get("constraints"), Mapping):
        text = next(iter(entry["constraints"].values()), None)
    if text is None and not name:
        if prefix:
            _read_fields(entry, explanation, prefix, depth + 1)
        else:
            _read(entry, explanation, depth + 1)
        return
    explanation.note(text or entry.get("code"), _joined(prefix, name))


def _path(value: Any) -> str:
    """The path of a field: ``alerts.0.value`` for ``["body", "alerts", 0, "value"]``, for
    ``/data/attributes/alerts/0/value`` and for ``alerts[0][value]``.
    """
    parts = re.split(r"[./\[\]#$]+", value) if isinstance(value, str) else value
    if not isinstance(parts, list):
        return ""
    parts = [str(step) for step in parts if isinstance(step, str | int)]
    while parts and (not parts[0] or parts[0] in NO_FIELD):
        parts = parts[1:]
    return ".".join(snake_case(part) for part in parts[:4] if part)


def _joined(prefix: str, name: str) -> str:
    path = _path(name)
    return f"{prefix}.{path}" if prefix and path else prefix or path


def _details(answer: ServerAnswer) -> dict[str, Any]:
    body = answer.body if isinstance(answer.body, Mapping) else {}
    id, monitors = body.get("open_incident_id"), body.get("monitors")
    details: dict[str, Any] = {"open_incident_id": id} if _is_id(id) else {}
    if isinstance(monitors, list):
        details["monitors"] = [monitor_id for monitor_id in monitors if _is_id(monitor_id)]
    return details


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
