"""What a person chose last, remembered by their browser: the rows and order of a list, and what
many new monitors have in common. Parameters in the address win, and are remembered in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from flask import Response, current_app, request

from app.cookies import cookie_path
from app.errors import Invalid
from app.forms import binding
from app.forms.queries import ListForm
from app.headers import YEAR_SECONDS
from app.rules.brackets import Pairs

ORDER = ("sort_by", "sort")  # they belong together
ROWS = "25"


def list_query(form: type[ListForm], pairs: Pairs, name: str, **defaults: str) -> Any:
    """The query of the list ``name``: of the address, of what was chosen before, and of
    ``defaults``. Raises Invalid for a parameter of the address.
    """
    sent = {key for key, value in pairs if value}
    given = sent | set(ORDER) if sent.intersection(ORDER) else sent

    def query(choices: Mapping[str, str]) -> Any:
        more = [(key, value) for key, value in choices.items() if key not in given]
        return binding.list_query(form, [*pairs, *more])

    try:
        return query({"per_page": ROWS, **defaults, **choices_of(name)})
    except Invalid:  # of the address; or another version wrote the cookie
        return query({"per_page": ROWS, **defaults})


def remember(response: Response, name: str) -> Response:
    """``response``, and with it the choices in the address of this request."""
    before = choices_of(name)
    sent = {key: request.args[key] for key in ("per_page", *ORDER) if request.args.get(key)}
    kept = before if sent.keys().isdisjoint(ORDER) else {"per_page": before.get("per_page", ROWS)}
    if response.status_code == 200 and (chosen := kept | sent) != before:
        keep(response, name, chosen)
    return response


def keep(response: Response, name: str, chosen: Mapping[str, str]) -> None:
    response.set_cookie(
        _cookie(name),
        urlencode(chosen),
        max_age=YEAR_SECONDS,
        path=cookie_path(current_app),
        secure=current_app.config["SESSION_COOKIE_SECURE"],
        httponly=True,
        samesite="Lax",
    )


def choices_of(name: str) -> dict[str, str]:
    return dict(parse_qsl(request.cookies.get(_cookie(name), "")))


def _cookie(name: str) -> str:
    return f"{current_app.config['SESSION_COOKIE_NAME']}_{name}"
