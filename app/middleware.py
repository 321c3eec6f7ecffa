"""Bodies that end too soon are never taken for whole ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class WholeBodies:
    """A client that goes away in the middle of a form must not have its first half stored.

    gunicorn says that its stream ends where the body does, and werkzeug then counts nothing; but
    the stream also ends where the connection does. Without that word, werkzeug counts against
    Content-Length and raises ``ClientDisconnected``.
    """

    def __init__(self, wsgi_app: Any) -> None:
        self.wsgi_app = wsgi_app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ.get("CONTENT_LENGTH"):
            environ.pop("wsgi.input_terminated", None)
        else:
            environ["wsgi.input"] = _Chunks(environ["wsgi.input"])
        answer: Iterable[bytes] = self.wsgi_app(environ, start_response)
        return answer


class _Chunks:
    """A body without a length. Every server has errors of its own for chunks that are none or break
    off; the framework would take them for faults of ours.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        try:
            data: bytes = self._stream.read(size)
        except Exception:
            from werkzeug.exceptions import ClientDisconnected

            raise ClientDisconnected from None
        return data
