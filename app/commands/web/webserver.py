"""gunicorn's worker around the web application: one process, one event loop, some threads."""

from __future__ import annotations

import gc
import logging
import os
import resource
import sys
from contextlib import suppress
from typing import Any, NoReturn

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.sock import create_sockets

from app.commands import watchdog
from app.commands.web.webworker import Limits, WebWorker
from app.config import Settings
from app.db import schema
from app.slots import THREADS

STOP_SECONDS = 8
# Enough for the longest search, percent-encoded. With its default of 4094, gunicorn would refuse
# the request before the application can.
REQUEST_LINE_BYTES = 8190
OTHER_FILES = 500  # for the database, and for checks on request


def _settle(worker: object) -> None:
    """Exclude the objects of the start from garbage collection: while a long list was rendered,
    scanning them took longer than the list.
    """
    gc.collect()
    gc.freeze()


def _connections(wanted_max: int) -> int:
    """How many connections may be open at once: ``wanted_max``, or fewer if the limit on files is
    low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted_max + OTHER_FILES
    if soft < needed and soft != resource.RLIM_INFINITY:
        soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    files = needed if soft == resource.RLIM_INFINITY else soft
    return max(THREADS + 1, min(wanted_max, files - OTHER_FILES))


class WebServer(BaseApplication):  # type: ignore[misc] # gunicorn ships no types
    """``fd``: an open listening socket to serve on; by default one is opened on ``settings.bind``.
    ``database_is_away``: the database does not answer yet.
    """

    def __init__(
        self,
        settings: Settings,
        fd: int | None = None,
        limits: Limits | None = None,
        *,
        database_is_away: bool = False,
    ) -> None:
        self._database_is_away = database_is_away
        self.limits = limits or Limits()
        self._settings = settings
        self.folder = settings.folder
        self._bind = settings.bind if fd is None else f"fd://{fd}"
        super().__init__()

    def load_config(self) -> None:
        # PUBLIC_URL has the folder. With this variable, gunicorn would answer 500 to each path
        # outside of the folder that it names.
        os.environ.pop("SCRIPT_NAME", None)
        # Without this variable, gunicorn passes files on as a whole (``SendBuffer.sendfile``).
        os.environ.pop("SENDFILE", None)
        options: dict[str, Any] = {
            "bind": self._bind,
            "workers": 1,  # not the number in the variable WEB_CONCURRENCY
            "threads": THREADS,
            "worker_connections": _connections(self.limits.connections),
            "graceful_timeout": STOP_SECONDS,
            "limit_request_line": REQUEST_LINE_BYTES,
            # No access log: the addresses of set-up and acknowledge links are secret.
            "accesslog": None,
            # TRUSTED_PROXIES names the proxies to trust: by default, gunicorn trusts this machine.
            "forwarded_allow_ips": "",
            "loglevel": "warning",
            "post_worker_init": _settle,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def run(self) -> NoReturn:
        """Serve in this process until a signal. gunicorn's arbiter, a second process of 30 MB that
        restarts a worker, is not used: ``wakeful serve`` or the service manager restarts this
        process. There is only one worker: its threads share the prober and, on SQLite, the lock of
        the single writer.
        """
        log = self.cfg.logger_class(self.cfg)
        sockets = create_sockets(self.cfg, log)
        worker = WebWorker(1, os.getppid(), sockets, self, timeout=0, cfg=self.cfg, log=log)
        with suppress(SystemExit), watchdog.watching("web server") as worker.on_turn:
            worker.init_process()  # raises SystemExit for Ctrl-C
        mail = self.callable and self.callable.extensions.get("wakeful.mail")
        if mail is not None:
            mail.close()
        # Not sys.exit: that would wait for requests that have not ended in STOP_SECONDS.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)

    def load(self) -> Flask:
        from app import create_app
        from app.engine.deadlines import start_signs_of_web

        app = create_app(self._settings)
        if self._settings.store == "local":
            start_signs_of_web(app)
        if self._database_is_away:
            with app.app_context():
                schema.refuse_until_current()
        return app
