"""A person's last choices, in a cookie: the rows and the order of a list, and the common values of
imported monitors. Parameters in the address win, and are remembered too.
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
    """The query of the list ``name``, from the address, the remembered choices and ``defaults``, in
    this order. Raises Invalid for a parameter of the address.
    """
    names = {key for key, value in pairs if value}
    if "sort_by" in names:  # each order has a default direction
        names.add("sort")

    def query(choices: Mapping[str, str]) -> Any:
        more = [(key, value) for key, value in choices.items() if key not in names]
        return queries.list_query(form, [*pairs, *more])

    try:
        return query({"per_page": ROWS, **defaults, **choices_of(name)})
    except Invalid:  # the address is invalid, or the cookie is of another version
        return query({"per_page": ROWS, **defaults})


def remember(response: Response, name: str) -> Response:
    """Add a cookie with the choices in the address of this request to ``response``."""
    remembered = choices_of(name)
    in_address = {key: request.args[key] for key in REMEMBERED if request.args.get(key)}
    choices = remembered | in_address
    if "sort_by" in in_address and "sort" not in in_address:
        choices.pop("sort", None)
    if response.status_code == 200 and choices != remembered:
        keep(response, name, choices)
    return response


def keep(response: Response, name: str, choices: Mapping[str, str]) -> None:
    keep_in_browser(response, name, urlencode(choices), YEAR_SECONDS)


def choices_of(name: str) -> dict[str, str]:
    return dict(parse_qsl(request.cookies.get(kept_name(name), "")))
