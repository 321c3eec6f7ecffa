"""The layers around the application: each gets a request before the layers inside it.

``app/__init__.py`` has the list of layers, in their order. The web server may pass on a request
before its body has arrived (``EARLY``). A layer that can refuse it by its header does so; otherwise
the answer is 100 ("Continue").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from flask import Flask

Environ: TypeAlias = dict[str, Any]
WsgiApp: TypeAlias = Callable[[Environ, Any], Iterable[bytes]]

EARLY = "wakeful.early"  # marks a request without its body, which is passed on again with it


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
    """Put ``layers`` around the application, the outermost first, in place of its present ones."""
    vars(app).pop("wsgi_app", None)
    for layer in reversed(layers):
        layer.inner, app.wsgi_app = app.wsgi_app, layer  # type: ignore[method-assign]


class WholeBodies(Layer):
    """Refuses a body that breaks off, so that half a form is not stored.

    gunicorn declares that its stream ends with the body (``wsgi.input_terminated``), and werkzeug
    then does not count the bytes. But the stream also ends if the connection breaks. Without that
    declaration, werkzeug compares with Content-Length and raises ``ClientDisconnected``.
    """

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        if environ.get("CONTENT_LENGTH"):
            environ.pop("wsgi.input_terminated", None)
        else:
            environ["wsgi.input"] = _Chunks(environ["wsgi.input"])
        return self.inner(environ, start_response)


class _Chunks:
    """A body without a length. For malformed or missing chunks, each server raises different
    errors, which the framework would take for faults of the application.
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
