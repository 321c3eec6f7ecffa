"""The language of a request: of those that there is a translation into, the one that the browser
asks for first.

English needs none. A folder app/translations/XX/LC_MESSAGES with a messages.mo adds a language.
"""

from __future__ import annotations

from flask import Flask, current_app, request
from flask_babel import Babel, get_translations

from app import i18n
from app.i18n import ENGLISH
from app.paths import TRANSLATIONS


def init_app(app: Flask) -> None:
    i18n.install(app.jinja_env)
    app.jinja_env.globals["language"] = tag
    app.config.setdefault("BABEL_TRANSLATION_DIRECTORIES", str(TRANSLATIONS))
    # Flask-Babel would mark what ``_`` returns as safe; see app/i18n.py.
    babel = Babel(app, configure_jinja=False, default_locale=ENGLISH, locale_selector=_wanted)
    with app.app_context():
        offered = {ENGLISH, *map(str, babel.list_translations())}
    app.config["LANGUAGES"] = sorted(offered)


def _wanted() -> str:
    offered = current_app.config["LANGUAGES"]
    return request.accept_languages.best_match(offered, ENGLISH) or ENGLISH


def tag() -> str:
    """The language of this request as the ``lang`` of a page says it."""
    return _wanted().replace("_", "-")


def choose() -> None:
    """For each request: a thread serves many people, one after the other."""
    i18n.choose(None if _wanted() == ENGLISH else get_translations())


def forget(_fault: BaseException | None) -> None:
    """The API and the public status pages answer on the same thread, in English."""
    i18n.choose(None)
