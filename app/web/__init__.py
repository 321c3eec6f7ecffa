"""The dashboard: server-rendered pages over the current store, a blueprint file for each resource.

Views load, bind a form, act and redirect. They reach the database through a store, or through
``app.access``, and import neither the engine nor the API.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from flask import Flask, current_app, request
from flask_babel import Babel, get_translations
from flask_bootstrap import Bootstrap5
from flask_login import current_user

from app import i18n
from app.checks.kinds import KINDS, kind_of, kinds_with
from app.config import Settings
from app.forms.monitor_choices import CONDITION_LABELS
from app.forms.schema import why_not_shown
from app.i18n import ENGLISH
from app.net import icmp
from app.paths import TRANSLATIONS
from app.records import CHECK_FIELDS, MAX_NAME, PAGE_SIZES, Role, is_heartbeat, mask, words_of
from app.rules import assertions
from app.rules.channel_values import CHANNELS
from app.rules.linked import linked
from app.stores import Extent, current_store
from app.version import __version__
from app.web.frame import (
    allowing,
    assets,
    errors,
    links,
    notices,
    recent,
    repeated,
    security,
    servers,
    session,
    tags,
)
from app.web.shown import charts, checked, looks, manuals, places, times
from app.web.views import blueprints


def init_app(app: Flask) -> None:
    settings: Settings = app.extensions["wakeful.settings"]
    app.jinja_environment = assets.Environment
    links.init_app(app)
    _init_language(app)
    Bootstrap5(app)
    assets.compress_answers(app)  # first: functions that run after a request run last in, first out
    security.init_app(app, https=settings.is_https)
    session.init_app(app)
    errors.init_app(app)
    app.before_request(_before_page)
    app.after_request(repeated.store_location)
    app.teardown_request(_forget_language)
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.globals.update(
        asset=assets.asset, url_for=links.url, cached=lru_cache(maxsize=256), once=repeated.token,
        tags_in_use=tags.in_use, path=links.path, here=links.here, full_path=links.full_path,
        times=times, channel_value=looks.channel_value, ms=looks.ms, phases=checked.phase_bar,
        strip=charts.strip, looks=looks, words_of=words_of, why_not_shown=why_not_shown,
        CHECK_FIELDS=CHECK_FIELDS, masked=mask, standing=notices.standing, Role=Role,
        PAGE_SIZES=PAGE_SIZES, MAX_NAME=MAX_NAME, CHANNELS=CHANNELS,
        CONDITION_LABELS=CONDITION_LABELS, KINDS=KINDS, assertion_words=assertions.words,
        kind_of=kind_of, is_heartbeat=is_heartbeat, kinds_with=kinds_with,
        # A remote server's own dashboard shows whether that machine can ping.
        why_no_ping=str if settings.store == "remote" else icmp.why_not,
        has_several_places=places.has_several_places, RETENTION_DAYS=settings.retention_days,
        own_place=settings.location, version=__version__,
    )  # fmt: skip
    app.jinja_env.filters.update(
        ago=times.ago, at=times.at, planned=times.planned, due=times.due, expiry=times.expiry,
        short=times.short, span=times.span, percent=looks.percent, moment=times.moment,
        place=places.title, linked=linked,
    )  # fmt: skip
    app.context_processor(_shared)
    for blueprint in (*blueprints(), servers.blueprint):
        app.register_blueprint(blueprint)
    allowing.init_app(app)
    recent.init_app(app)


def _before_page() -> Any:
    """Prepare each page, in this order. The API has another order."""
    if "api" in request.blueprints:
        return None
    i18n.choose(None if _wanted() == ENGLISH else get_translations())
    security.bound_body()
    if current_app.config["WTF_CSRF_ENABLED"]:
        security.csrf.protect()
    return servers.choose_server() or repeated.answer_second()


def _shared() -> dict[str, Any]:
    """The variables that every template has."""
    # Not the proxy itself, which is slow: a page reads it some hundred times.
    user = current_user._get_current_object() if current_user.is_authenticated else None
    extent = servers.extent() if user else Extent.BARE
    return {
        "user": user,
        "theme": user.person.theme if user else "auto",
        "manual_of_page": user and manuals.of_page(request.endpoint, request.blueprint),
        "bare_store": extent == Extent.BARE,
        "whole_store": extent == Extent.WHOLE,
        "servers": servers.names() if user else (),
        "server": getattr(current_store(), "name", None) if user else None,
    }


# --- The language of a request: the first language of the browser that Wakeful is translated into,
# or English. A folder app/translations/XX/LC_MESSAGES with a messages.mo adds a language.


def _init_language(app: Flask) -> None:
    i18n.install(app.jinja_env)
    app.jinja_env.globals["language"] = language_tag
    app.config.setdefault("BABEL_TRANSLATION_DIRECTORIES", str(TRANSLATIONS))
    # Otherwise Flask-Babel would mark translations as safe HTML; see app/i18n.py.
    babel = Babel(app, configure_jinja=False, default_locale=ENGLISH, locale_selector=_wanted)
    with app.app_context():
        offered = {ENGLISH, *map(str, babel.list_translations())}
    app.config["LANGUAGES"] = sorted(offered)


def _wanted() -> str:
    offered = current_app.config["LANGUAGES"]
    return request.accept_languages.best_match(offered, ENGLISH) or ENGLISH


def language_tag() -> str:
    """The language of this request, for the ``lang`` attribute."""
    return _wanted().replace("_", "-")


def _forget_language(_fault: BaseException | None) -> None:
    """Reset the language, because the same thread then answers the API in English."""
    i18n.choose(None)
