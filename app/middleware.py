"""What stands around the application: each layer sees a request before all that is inside it.

``app/__init__.py`` has the list of layers, in their order. The web server may ask twice about one
request: for an answer from the header alone (``before_body``), and for the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from flask import Flask

Environ: TypeAlias = dict[str, Any]
WsgiApp: TypeAlias = Callable[[Environ, Any], Any]
Early: TypeAlias = Callable[[Environ], Any]  # a response, or None where the body is needed


class Layer:
    """One layer; it leaves alone what it does not override."""

    def before(self, answer: WsgiApp) -> WsgiApp:
        """``answer``, the WSGI application inside, with this layer before it."""
        return answer

    def before_body(self, answer: Early) -> Early:
        """``answer``, which answers from the header alone, with this layer before it."""
        return answer


def surround(app: Flask, layers: Sequence[Layer], early: Early) -> None:
    """Put ``layers`` around the application, the outermost first."""
    for layer in reversed(layers):
        app.wsgi_app = layer.before(app.wsgi_app)  # type: ignore[method-assign,assignment]
        early = layer.before_body(early)
    app.extensions["wakeful.before_body"] = early


class WholeBodies(Layer):
    """A client that goes away in the middle of a form must not have its first half stored.

    gunicorn says that its stream ends where the body does, and werkzeug then counts nothing; but
    the stream also ends where the connection does. Without that word, werkzeug counts against
    Content-Length and raises ``ClientDisconnected``.
    """

    def before(self, answer: WsgiApp) -> WsgiApp:
        def answer_whole(environ: Environ, start_response: Any) -> Iterable[bytes]:
            if environ.get("CONTENT_LENGTH"):
                environ.pop("wsgi.input_terminated", None)
            else:
                environ["wsgi.input"] = _Chunks(environ["wsgi.input"])
            answered: Iterable[bytes] = answer(environ, start_response)
            return answered

        return answer_whole


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
