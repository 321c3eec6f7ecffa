"""Sentences for the agent's log about a failed exchange with its server."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterator
from http.client import RemoteDisconnected
from typing import Any

import requests

from app.codec import MalformedData
from app.codec.sealing import Forged

# OpenSSL's names for an answer without TLS; the name depends on its version.
NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
AWAY = (502, 503, 504)  # of a proxy, if the server behind it is stopped, or too slow
TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})\b")  # a text of http.client


class AgentRefused(Exception):
    """The server refuses the agent. The text is its sentence."""


class ServerFault(Exception):
    """The server has a fault of its own. The text is its sentence."""


class Later(Exception):
    """The server, or a proxy before it, accepts no more requests now (429). ``seconds``: the wait
    that it asks for, or 0. The text is the sentence of Wakeful; empty for another server.
    """

    def __init__(self, seconds: float, sentence: str) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class Foreign(Exception):
    """The answer is not of Wakeful's API. The text is the end of a sentence."""


# The sentence of each class of fault; the first that fits counts.
_SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (AgentRefused, "The server {server} refuses the agent: {why}"),
    (ServerFault, "The server {server} has a fault: {why}"),
    (
        Later,
        "The server {server}, or a proxy before it, takes no more requests now ({why})."
        " Results are kept here for a day, and are sent later.",
    ),
    (Foreign, "The server {server} cannot be reached: {why}."),
    (
        MalformedData,
        "The agent cannot read what the server {server} answers ({why}). If their versions"
        " of Wakeful differ, run the same on both.",
    ),
    (
        Forged,
        "The server {server} has the key of another agent for this place, so this one hears of"
        " no change. Make a new token for the place on its page, and start the agent with it.",
    ),
    (requests.RequestException, "The server {server} cannot be reached: {why}."),
    (Exception, "The agent's exchange with the server {server} failed: {why}."),
)
# Any other exception is a fault of the agent or of its machine.
DESCRIBED = tuple(type_ for type_, _sentence in _SENTENCES if type_ is not Exception)


def sentence_of(server: str, fault: Exception) -> str:
    """The sentence for the log about a failed exchange with ``server``."""
    sentence = next(text for type_, text in _SENTENCES if isinstance(fault, type_))
    return sentence.format(server=server, why=_why(fault))


def _why(fault: Exception) -> str:
    if isinstance(fault, requests.RequestException):
        return _of_request(fault)
    if isinstance(fault, Later):
        return f"429: {fault}" if str(fault) else "429"
    if isinstance(fault, DESCRIBED):
        return str(fault)
    # A fault on this machine, as of its disk, or any other exception
    return (_of_system(fault) if isinstance(fault, OSError) else "") or type(fault).__name__


def _of_request(fault: requests.RequestException) -> str:
    """The reason in words. The text of the exception has memory addresses and the whole URL."""
    causes = list(_chain(fault))
    sentences = (
        words(cause) for type_, words in _WORDS for cause in causes if isinstance(cause, type_)
    )
    reason = next(filter(None, sentences), type(fault).__name__)
    by_proxy = isinstance(fault, requests.exceptions.ProxyError)
    return f"the proxy of HTTPS_PROXY: {reason}" if by_proxy else reason


def no_api(status: int) -> str:
    """The reason if something other than Wakeful has answered."""
    if status in AWAY:
        return f"a proxy before it answers {status}: Wakeful may be stopped there, or too slow"
    return f"what answers there is not Wakeful's API (status {status})"


def _chain(fault: BaseException) -> Iterator[BaseException]:
    """The fault and its causes: requests wraps those of urllib3, and that those of the system."""
    causes: list[BaseException] = []
    waiting: list[Any] = [fault]
    while waiting:
        cause = waiting.pop(0)
        if isinstance(cause, BaseException) and cause not in causes:
            causes.append(cause)
            yield cause
            reason = getattr(cause, "reason", None)
            waiting += [reason, *cause.args, cause.__cause__, cause.__context__]


def _of_tls(fault: ssl.SSLError) -> str:
    if fault.reason in NO_TLS:
        return "this port speaks no TLS"
    return f"TLS failed ({fault.reason or 'the connection was closed'})"


def _of_system(fault: OSError) -> str:
    if isinstance(fault, requests.RequestException):
        return ""
    refused = TUNNEL.match(str(fault))
    return f"it answers {refused[1]}" if refused else (fault.strerror or "").lower()


# The first that fits counts: the most specific come first.
_WORDS: tuple[tuple[type[BaseException], Callable[[Any], str]], ...] = (
    (socket.gaierror, lambda _fault: "its name is not found"),
    (
        ssl.SSLCertVerificationError,
        lambda fault: f"its certificate is not trusted ({fault.verify_message})",
    ),
    (ssl.SSLError, _of_tls),
    (requests.ConnectTimeout, lambda _fault: "no connection in time"),
    (requests.Timeout, lambda _fault: "no answer in time"),
    (ConnectionRefusedError, lambda _fault: "connection refused"),
    (RemoteDisconnected, lambda _fault: "it closed the connection without an answer"),
    (OSError, _of_system),
)
