"""Wakeful monitors URLs and alerts people when they fail.

``create_app`` puts the packages of app/ together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# Each import of a module of app/ runs this module, also in an agent. So the modules that only an
# application needs are imported in the functions below.
if TYPE_CHECKING:
    from flask import Flask
    from werkzeug.wrappers import Response

    from app import config


def create_app(settings: config.Settings | None = None) -> Flask:
    """The Flask application.

    ``settings`` default to the environment's; raises ``config.SettingError``.
    """
    from app import api, config, web

    settings = settings or config.read()
    app = create_core(settings)
    web.init_app(app)
    api.init_app(app)
    _add_actors(app)
    renew(app)
    return app


def renew(app: Flask) -> None:
    """Drop all caches and counts of the application, as if the process was new: stores, status
    pages and the layers around the application are made again.
    """
    settings: config.Settings = app.extensions["wakeful.settings"]
    for name in [name for name in app.extensions if name.startswith("wakeful.")]:
        del app.extensions[name]
    app.extensions["wakeful.settings"] = settings
    if app.blueprints:  # a checker has neither stores nor pages
        from app import pages
        from app.api import reference

        _add_stores(app, settings)
        app.extensions["wakeful.reference"] = reference
        pages.init_app(app)
        _add_layers(app, settings)


def create_core(settings: config.Settings, *, small_cache: bool = False) -> Flask:
    """The application with settings and database only, for processes that load no pages, such as a
    checker. ``small_cache``: keep little of an SQLite file in memory.
    """
    from flask import Flask

    from app.config import SESSION_SECONDS
    from app.cookies import session_cookie
    from app.db import db, prepare_engine, tables  # noqa: F401 (the tables must be known first)
    from app.db.connections import CACHE_KB, SMALL_CACHE_KB, pool_options
    from app.paths import STATIC, TEMPLATES
    from app.records import MAX_FORM_BYTES

    app = Flask(
        "app",
        template_folder=str(TEMPLATES),
        static_folder=str(STATIC),
        instance_path=str(settings.instance),
    )
    app.config.update(
        SECRET_KEY=settings.secret_key,
        SECRET_KEY_FALLBACKS=list(settings.old_keys),
        # Forms that were opened before a change of the key can still be sent. The last key signs.
        WTF_CSRF_SECRET_KEY=[*reversed(settings.old_keys), settings.secret_key],
        SQLALCHEMY_DATABASE_URI=settings.database_url,
        SQLALCHEMY_ENGINE_OPTIONS=pool_options(settings.database_url),
        BOOTSTRAP_SERVE_LOCAL=True,
        PERMANENT_SESSION_LIFETIME=SESSION_SECONDS,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_NAME=session_cookie(https=settings.is_https, folder=settings.folder),
        # A late answer to another tab must not put an old cookie in place of a new one.
        SESSION_REFRESH_EACH_REQUEST=False,
        # A form that was left open overnight must still save: the token is valid with the session.
        WTF_CSRF_TIME_LIMIT=None,
        MAX_CONTENT_LENGTH=MAX_FORM_BYTES,
    )
    app.extensions["wakeful.settings"] = settings
    db.init_app(app)
    with app.app_context():
        prepare_engine(db.engine, SMALL_CACHE_KB if small_cache else CACHE_KB)
    return app


def _add_stores(app: Flask, settings: config.Settings) -> None:
    from app.access import Access
    from app.stores.local import LocalStore
    from app.stores.local.agents import LocalAgents
    from app.stores.local.heartbeats import LocalPings
    from app.stores.local.public import PublicPages
    from app.stores.mail import Mail
    from app.stores.remote import RemoteStores

    access = app.extensions["wakeful.access"] = Access()
    app.extensions["wakeful.mail"] = Mail(settings)
    if settings.store == "remote":
        network = settings.network()
        app.extensions["wakeful.store"] = RemoteStores(settings.remotes, network)
        return
    store = app.extensions["wakeful.store"] = LocalStore(settings)
    app.extensions["wakeful.public"] = PublicPages(settings)
    app.extensions["wakeful.agents"] = LocalAgents(settings, access)
    app.extensions["wakeful.pings"] = LocalPings(access, store)


def _add_layers(app: Flask, settings: config.Settings) -> None:
    """Put the layers around the application. The first one is the outermost, and sees a request
    first.
    """
    from app import api, pages
    from app.headers import Completed
    from app.hosts import Hosts
    from app.middleware import WholeBodies, surround
    from app.proxies import Proxies
    from app.web.frame.servers import ServerPaths, servers

    status_pages, remotes = pages.layer(app), servers(app)
    names = {rule.rule.split("/")[1] for rule in app.url_map.iter_rules()}
    names |= {pages.FOLDER[1:], "ping"}
    pings = app.extensions.get("wakeful.pings")
    layers = [
        # Adds headers to every answer, also to a refusal of the layers below.
        Completed(https=settings.is_https),
        # Replaces the address of the proxy by that of the client, and sets the folder.
        Proxies(settings.trusted_proxies, settings.folder, names),
        # Refuses requests for foreign hosts before any other layer reads them.
        Hosts(settings, status_pages.answers_for if status_pages else lambda host, path: False),
        # Refuses bodies that break off.
        WholeBodies(),
        # Answers for status pages from memory, without Flask and while the database is away.
        *([status_pages] if status_pages else []),
        # Answers the pings of jobs, which have no API key.
        *([api.PingAddresses(app, pings)] if pings else []),
        # Drops session cookies from requests to the API, and refuses some by their header alone.
        api.OfTheApi(),
        # Removes the name of a remote server from the path, for the routes of Flask.
        *([ServerPaths(remotes)] if remotes else []),
    ]
    surround(app, layers)


def _add_actors(app: Flask) -> None:
    """Set the actor of each request: first a visitor, whom a login or an API key replaces. The
    actor is removed at the end of the request, because a thread serves many requests.
    """
    from flask import request

    from app.access import actors

    app.before_request_funcs.setdefault(None, []).insert(
        0, lambda: actors.begin(actors.visitor(request.remote_addr))
    )
    app.after_request(_log_refusal)
    app.teardown_request(lambda _fault: actors.begin(None))


def _log_refusal(response: Response) -> Response:
    """Log refused access, and wrong keys and tokens."""
    from flask import request

    from app.access.security_log import SecurityEvent, log_refusal

    if response.status_code == 403:
        log_refusal(SecurityEvent.ACCESS_REFUSED, request.remote_addr)
    elif response.status_code == 401 and "Authorization" in request.headers:
        log_refusal(SecurityEvent.KEY_WRONG, request.remote_addr)
    return response
