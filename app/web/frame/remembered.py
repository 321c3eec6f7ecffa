"""What a person chose last, remembered by their browser: the rows and order of a list, and what
many new monitors have in common. Parameters in the address win, and are remembered in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from flask import Response, request

from app.cookies import keep_in_browser, kept_name
from app.errors import Invalid
from app.forms import queries
from app.forms.queries import ListForm
from app.headers import YEAR_SECONDS
from app.rules.brackets import Pairs

REMEMBERED = ("per_page", "sort_by", "sort")
ROWS = "25"


def list_query(form: type[ListForm], pairs: Pairs, name: str, **defaults: str) -> Any:
    """The query of the list ``name``: of the address, of what was chosen before, and of
    ``defaults``. Raises Invalid for a parameter of the address.
    """
    given = {key for key, value in pairs if value}
    if "sort_by" in given:  # which begins with its own direction
        given.add("sort")

    def query(choices: Mapping[str, str]) -> Any:
        more = [(key, value) for key, value in choices.items() if key not in given]
        return queries.list_query(form, [*pairs, *more])

    try:
        return query({"per_page": ROWS, **defaults, **choices_of(name)})
    except Invalid:  # of the address; or another version wrote the cookie
        return query({"per_page": ROWS, **defaults})


def remember(response: Response, name: str) -> Response:
    """``response``, and with it the choices in the address of this request."""
    before = choices_of(name)
    sent = {key: request.args[key] for key in REMEMBERED if request.args.get(key)}
    chosen = before | sent
    if "sort_by" in sent and "sort" not in sent:
        chosen.pop("sort", None)
    if response.status_code == 200 and chosen != before:
        keep(response, name, chosen)
    return response


def keep(response: Response, name: str, chosen: Mapping[str, str]) -> None:
    keep_in_browser(response, name, urlencode(chosen), YEAR_SECONDS)


def choices_of(name: str) -> dict[str, str]:
    return dict(parse_qsl(request.cookies.get(kept_name(name), "")))
