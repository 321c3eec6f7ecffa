"""The language of a request: the first language of the browser that Wakeful is translated into, or
English. A folder app/translations/XX/LC_MESSAGES with a messages.mo adds a language.
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
    # Otherwise Flask-Babel would mark translations as safe HTML; see app/i18n.py.
    babel = Babel(app, configure_jinja=False, default_locale=ENGLISH, locale_selector=_wanted)
    with app.app_context():
        offered = {ENGLISH, *map(str, babel.list_translations())}
    app.config["LANGUAGES"] = sorted(offered)


def _wanted() -> str:
    offered = current_app.config["LANGUAGES"]
    return request.accept_languages.best_match(offered, ENGLISH) or ENGLISH


def tag() -> str:
    """The language of this request, for the ``lang`` attribute."""
    return _wanted().replace("_", "-")


def choose() -> None:
    """Set the language for this request."""
    i18n.choose(None if _wanted() == ENGLISH else get_translations())


def forget(_fault: BaseException | None) -> None:
    """Reset the language, because the same thread then answers the API in English."""
    i18n.choose(None)
