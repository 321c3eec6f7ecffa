"""Error pages: each says what happened and what to do next."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, flash, g, redirect, render_template, request, url_for
from flask_login import current_user
from flask_wtf.csrf import CSRFError
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response
from wtforms import Form
from wtforms.fields.core import UnboundField

from app.errors import Accepted, Conflict, Invalid, Unavailable, WakefulError
from app.forms import browser
from app.forms.browser import BrowserForm
from app.forms.fields import Switch, WordChoice
from app.forms.schema import UNKNOWN
from app.i18n import N_, _
from app.stores import DatabaseError, unavailable
from app.web import forms
from app.web.frame import servers
from app.web.frame.security import UPLOADS
from app.web.frame.session import SAFE_METHODS, LoggedOut, database_is_away
from app.web.frame.store_errors import outlook, pause_sentence

log = logging.getLogger(__name__)
Answer = tuple[str, int, dict[str, str]]

TITLES = {
    400: N_("Request not understood"),
    403: N_("Not allowed"),
    404: N_("Not found"),
    405: N_("This page does not accept that request"),
    409: N_("That is not possible now"),
    413: N_("That is too large"),
    415: N_("This form cannot be read"),
    422: N_("Not accepted"),
    429: N_("Too many requests"),
    500: N_("Something went wrong here"),
    503: N_("The server behind this dashboard cannot be used now"),
}
SENTENCES = {
    404: N_("Nothing exists at this address. It was deleted, or the address is wrong."),
    405: N_("Go back and use the buttons on the page."),
    413: N_("The request is larger than Wakeful accepts."),
    415: N_("Go back and use the buttons on the page."),
}
LARGE_FILE = N_(
    "The dashboard takes files of up to 4 MB. Import a larger one on the server with"
    " the command: wakeful import FILE"
)
TOO_OLD = N_(
    "This page is from before you logged in. Nothing was changed. "
    "Send the form once more, or go back and reload the page."
)
LOGGED_OUT = N_(
    "You are logged out, so nothing was changed. Log in (this opens another tab), then come back "
    "to this page and send it again."
)
DATABASE = N_("The database cannot be used now")
# The lists in which a record will appear that the server accepted without showing it yet.
LISTS = {"monitors": "monitors.index", "incidents": "incidents.index"}
# Parts of the names of fields that no page shows or sends again.
SECRETS = ("password", "secret", "second_code", "recovery_code", "credential")
NEVER_SHOWN_AGAIN = ("csrf_token", *SECRETS)
# Hidden fields and buttons of forms: sent again, and not shown among what people typed.
CONTROL_FIELDS = frozenset({
    "shown", "sealed", "sealed_form", "username", "once", "back", "rest", "sure", "done", "failed",
    "add", "remove", "pick", "do", "find", "search", "preview", "check", "slow_alerts",
})  # fmt: skip


def init_app(app: Flask) -> None:
    app.register_error_handler(WakefulError, _wakeful_error)
    app.register_error_handler(DatabaseError, _database)
    app.register_error_handler(CSRFError, _csrf)
    app.register_error_handler(LoggedOut, _logged_out)
    for code in (400, 403, 404, 405, 413, 415, 429):
        app.register_error_handler(code, _http)
    app.register_error_handler(500, _crash)
    app.log_exception = _log_crash  # type: ignore[method-assign]


def _log_crash(exc_info: Any) -> None:
    """Log the fault as Flask does, but without the path, which is a secret for set-up, acknowledge
    and wall links.
    """
    log.error("Exception in %s %s", request.method, request.endpoint, exc_info=exc_info)


def _database(fault: Exception) -> Answer | Response:
    # The error page must not query the database: PostgreSQL also refuses every statement after a
    # failed one.
    g.database_is_away = True
    error = unavailable(fault)
    if error is None:
        raise fault
    log.warning("%s %s: %s", request.method, request.endpoint, error)
    return _wakeful_error(error)


def _wakeful_error(fault: WakefulError) -> Answer | Response:
    if isinstance(fault, Accepted):
        flash(str(fault), "warning")
        return redirect(url_for(LISTS.get(request.blueprint or "", "home.show")))
    details: dict[str, Any] = {}
    sentence = str(fault)
    if isinstance(fault, Invalid):
        if request.method in SAFE_METHODS and fault.errors:
            unknown = [name for name, sentences in fault.errors.items() if _(UNKNOWN) in sentences]
            names = ", ".join(unknown or fault.errors)
            sentence = (
                _("This link has an unknown parameter: %(names)s.", names=names)
                if unknown
                else _("This link has an invalid value: %(names)s.", names=names)
            )
        details["errors"] = _other_errors(sentence, fault.errors)
    if isinstance(fault, Conflict):
        details["open_incident_id"] = fault.details.get("open_incident_id")
    if request.method not in SAFE_METHODS and current_user.is_authenticated:
        details["fields"] = sent_fields()
    title = ""
    if isinstance(fault, Unavailable):
        title = DATABASE if database_is_away() else ""
        servers.assume_bare()
        details["outlook"] = pause_sentence(fault)
        if request.method not in SAFE_METHODS:
            details["outlook"] = outlook(fault)
            details["again"] = current_user.is_authenticated and _can_be_repeated()
    seconds = fault.retry_seconds
    headers = {} if seconds is None else {"Retry-After": str(seconds)}
    return _page(fault.status, sentence, title, **details), fault.status, headers


def _other_errors(sentence: str, errors: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """``errors`` without ``sentence``, which the page shows already."""
    others = {name: [line for line in lines if line != sentence] for name, lines in errors.items()}
    return {name: lines for name, lines in others.items() if lines}


def _can_be_repeated() -> bool:
    """Whether the page can send the form again. A form with a password cannot, because the page
    must not contain the password.
    """
    return not any(
        value and any(word in name for word in SECRETS) for name, value in request.form.items()
    )


def sent_fields() -> list[tuple[str, str]]:
    """The fields of the form in this request, without its secrets."""
    return [
        (name, value)
        for name, value in request.form.items(multi=True)
        if value and not any(word in name for word in NEVER_SHOWN_AGAIN)
    ]


def _csrf(fault: CSRFError) -> tuple[str, int]:
    if not current_user.is_authenticated:
        return _logged_out(fault)
    return _not_taken(TITLES[400], TOO_OLD)


def _logged_out(_fault: Exception) -> tuple[str, int]:
    return _not_taken(N_("You are logged out"), LOGGED_OUT, login=True)


def _not_taken(title: str, sentence: str, *, login: bool = False) -> tuple[str, int]:
    # If another site's page has sent it, there is no button to send it again.
    is_same_site = urlsplit(request.headers.get("Origin", "")).netloc == request.host
    again = is_same_site and _can_be_repeated()
    return _page(400, sentence, title, fields=sent_fields(), again=again, login=login), 400


def _http(fault: HTTPException) -> tuple[str, int]:
    status = fault.code or 500
    if status == 413 and request.endpoint in UPLOADS:
        return _page(status, LARGE_FILE), status
    return _page(status, SENTENCES.get(status, fault.description or "")), status


def _crash(_fault: HTTPException) -> tuple[str, int]:
    number = secrets.token_hex(4)
    log.error("request %s failed: %s %s", number, request.method, request.endpoint)
    sentence = _(
        "This is a bug in Wakeful. The log has the details under %(number)s.", number=number
    )
    return _page(500, sentence), 500


def _page(status: int, sentence: str, title: str = "", **details: Any) -> str:
    context = {
        "title": _(title or TITLES.get(status, N_("Something went wrong"))),
        "sentence": _(sentence),
        "status": status,
        "label_of": label_of,
        "typed": [pair for pair in details.get("fields") or () if pair[0] not in CONTROL_FIELDS],
        "errors": {},
        "outlook": None,
        "open_incident_id": None,
        "again": False,
        "login": False,
        **details,
    }
    try:
        return render_template("errors/error.html", **context)
    except DatabaseError:  # the person and the notices could not be read
        g.database_is_away = True
        return render_template("errors/error.html", **context)


# --- Labels of inputs and choices, for pages that show what was typed without its form ------------


def label_of(name: str) -> str:
    """``Alerts, row 1: Channel`` for ``alerts[0][key]``; an unknown name becomes words."""
    base, brackets = name.partition("[")[::2]
    field = _fields().get(base)
    sources = [field.kwargs.get("label"), *field.args[:1]] if field else []
    label = _(next(filter(None, sources), base.replace("_", " ").capitalize()))
    number, column = brackets.rstrip("]").partition("][")[::2]
    if number.isdecimal() and len(number) < 4:
        label = _("%(field)s, row %(number)s", field=label, number=int(number) + 1)
    labels = (field.kwargs.get("labels") if field else None) or {}
    return f"{label}: {_(labels[column])}" if column in labels else label


def is_box(name: str) -> bool:
    """Whether the input is a checkbox."""
    field = _fields().get(name)
    return field is not None and issubclass(field.field_class, Switch)


def choice_of(name: str, value: str) -> str:
    """The label of a choice, such as ``Viewer: read only`` for ``viewer``; ``value`` itself if it
    is none of the choices.
    """
    label = _choices().get(name, {}).get(value)
    return value if label is None else _(label)


@cache
def _fields() -> dict[str, UnboundField[Any]]:
    return dict(_all_fields())


@cache
def _choices() -> dict[str, dict[str, str]]:
    """The labels of choices by field and value. Several forms may have a field of the same name."""
    choices: dict[str, dict[str, str]] = {}
    for name, field in _all_fields():
        labels = field.args[1] if len(field.args) > 1 else None
        if issubclass(field.field_class, WordChoice) and isinstance(labels, Mapping):
            choices.setdefault(name, {}).update(labels)
    return choices


def _all_fields() -> Iterator[tuple[str, UnboundField[Any]]]:
    for form in (*_subclasses_of(BrowserForm), *vars(forms).values(), *vars(browser).values()):
        if isinstance(form, type) and issubclass(form, Form):
            for name in dir(form):
                field = None if name.startswith("_") else getattr(form, name)
                if isinstance(field, UnboundField):
                    yield name, field


def _subclasses_of(form: type[Form]) -> Iterator[type[Form]]:
    """All subclasses of a form, also indirect ones."""
    for subclass in form.__subclasses__():
        yield subclass
        yield from _subclasses_of(subclass)
