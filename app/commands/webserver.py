"""gunicorn around the web application: one process, many threads."""

from __future__ import annotations

import gc
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication

from app.config import Settings

THREADS = 16
# A check on request may take a minute, and its thread with it.
TIMEOUT_SECONDS = 90
STOP_SECONDS = 8
# The longest search, percent-encoded; gunicorn's own 4094 answers before we can.
REQUEST_LINE_BYTES = 8190


def _settle(worker: object) -> None:
    """What start-up made stays for good. The garbage collector looked through all of it again
    while a long list was made, which took longer than the list.
    """
    gc.collect()
    gc.freeze()


class WebServer(BaseApplication):  # type: ignore[misc] # gunicorn ships no types
    """``fd``: an open listening socket to serve on, instead of opening ``settings.bind``."""

    def __init__(self, settings: Settings, fd: int | None = None) -> None:
        self._settings = settings
        self._bind = settings.bind if fd is None else f"fd://{fd}"
        super().__init__()

    def load_config(self) -> None:
        options: dict[str, Any] = {
            "bind": self._bind,
            "workers": 1,  # the prober, and on SQLite the one writer's lock, are shared by threads
            "worker_class": "gthread",
            "threads": THREADS,
            "timeout": TIMEOUT_SECONDS,
            "graceful_timeout": STOP_SECONDS,
            "limit_request_line": REQUEST_LINE_BYTES,
            # No access log: addresses of set-up and acknowledge links are secrets.
            "accesslog": None,
            "loglevel": "warning",
            "proc_name": "wakeful web",
            # A socket in the home directory that anybody's second instance would fight over.
            "control_socket_disable": True,
            "post_worker_init": _settle,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        """Called in the worker process, after the fork: no connection is shared with the parent."""
        from app import create_app

        return create_app(self._settings)
