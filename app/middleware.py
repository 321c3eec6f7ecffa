"""The layers around the application: each gets a request before all that is inside it.

``app/__init__.py`` has the list of layers, in their order. The web server may ask about a request
before its body has come (``EARLY``): whoever can refuse it by its header alone does so, and
everybody else answers 100 ("Continue").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from flask import Flask

Environ: TypeAlias = dict[str, Any]
WsgiApp: TypeAlias = Callable[[Environ, Any], Iterable[bytes]]

EARLY = "wakeful.early"  # in the environment of a request without its body, which comes again


def continued(_environ: Environ, start_response: Any) -> Iterable[bytes]:
    """The answer to a request whose body is needed."""
    start_response("100 Continue", [])
    return []


class Layer:
    """One layer. ``inner`` is the WSGI application inside."""

    inner: WsgiApp

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        raise NotImplementedError


def surround(app: Flask, layers: Sequence[Layer]) -> None:
    """Put ``layers`` around the application, the outermost first, in place of those before."""
    vars(app).pop("wsgi_app", None)
    for layer in reversed(layers):
        layer.inner, app.wsgi_app = app.wsgi_app, layer  # type: ignore[method-assign]


class WholeBodies(Layer):
    """A client that goes away in the middle of a form must not have its first half stored.

    gunicorn says that its stream ends where the body does, and werkzeug then counts nothing; but
    the stream also ends where the connection does. Without that word, werkzeug counts against
    Content-Length and raises ``ClientDisconnected``.
    """

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        if environ.get("CONTENT_LENGTH"):
            environ.pop("wsgi.input_terminated", None)
        else:
            environ["wsgi.input"] = _Chunks(environ["wsgi.input"])
        return self.inner(environ, start_response)


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
