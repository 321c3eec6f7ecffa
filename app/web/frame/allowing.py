"""Allow a refused address on the page that refused it, without losing the form (decision 9).

The page offers an admin to allow the network of the address, and tells other people whom to ask.
The offer is a button of the refused form, or of a form that sends it again. Its value is the
network and the button to press afterwards: ``127.0.0.0/8 test=1``. As on the settings page, a
recent password is needed. The network is stored, and the view answers the form as if that other
button had been pressed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from flask import Flask, flash, request
from flask_login import current_user
from werkzeug.datastructures import ImmutableMultiDict, MultiDict

from app.access.settings import ALLOW_NETWORKS, allowed_networks, networks_are_locked
from app.checks.kinds import kind_of, read_url
from app.errors import Denied
from app.i18n import N_, _, join_words
from app.net.policy import Policy, Refusal
from app.records import Role
from app.stores import current_access, current_settings
from app.web.frame import recent, servers
from app.web.frame.session import NOT_ALLOWED, SAFE_METHODS

ALLOW = "allow"  # the button
# The views whose forms may have the button.
ENDPOINTS = (
    "monitors.new", "monitors.edit", "monitors.clone", "monitors.check", "monitors.test_alert",
    "contacts.new", "contacts.edit", "contacts.test", "deliveries.retry", "imports.create",
)  # fmt: skip
CHANGE = recent.GuardedChange(
    N_("Allow a network for checks and alerts"),
    shows=lambda form: [(ALLOW, MultiDict(form)[ALLOW].partition(" ")[0])],
)
ALLOWED = N_("Checks and alerts may reach %(network)s from now on.")
NEVER = N_("This network is not offered. An admin can allow it on the Settings page.")
LOCKED = N_(
    "WAKEFUL_ALLOW_NETWORKS is set in the environment: whoever runs the server can allow it there."
)
MAX_ADMINS_NAMED = 3

View = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class NetworkOffer:
    """The offer for a refused address. ``network``: this person can allow it; if it is empty,
    ``whom`` is a sentence that says who can.
    """

    network: str = ""
    whom: str = ""


def init_app(app: Flask) -> None:
    """Call it after the blueprints are registered."""
    for endpoint in ENDPOINTS:
        app.view_functions[endpoint] = _with_button(app.view_functions[endpoint])
    app.jinja_env.globals.update(offer_of=offer_of, refusal_of=refusal_of)


def offer_of(text: str | None) -> NetworkOffer | None:
    """The offer for an error ``text``; None if it is no refusal of this installation's policy."""
    if not text or servers.servers() is not None:
        return None
    network = policy().offered(text)
    if network is None:
        return None
    if networks_are_locked(current_settings()):
        return NetworkOffer(whom=_(LOCKED))
    if current_user.is_admin:
        return NetworkOffer(str(network))
    people = (person for person in current_access().people.all() if not person.disabled)
    admins = [person.label for person in people if person.role == Role.ADMIN]
    names = join_words(admins[:MAX_ADMINS_NAMED])
    sentence = _("Ask an admin to allow %(network)s: %(names)s.", network=network, names=names)
    return NetworkOffer(whom=sentence)


def refusal_of(url: str) -> Refusal | None:
    """Why the IP address in the URL of a monitor is refused, before any check; None for a host
    name, which only a check looks up.
    """
    if servers.servers() is not None or kind_of(url) is None:
        return None
    _kind, target = read_url(url)
    server = getattr(target, "server", target)  # of a DNS check: the name server
    address = server and ("127.0.0.1" if server.dns_name == "localhost" else server.address)
    return policy().refusal(address) if address else None


def _with_button(view: View) -> View:
    """A view that handles the button, and otherwise calls ``view``."""
    allow = recent.with_recent_password(_allow_and_answer(view), CHANGE)

    @wraps(view)
    def answer(**values: Any) -> Any:
        if request.method in SAFE_METHODS or request.form.keys().isdisjoint(
            (ALLOW, recent.SEALED_FORM)
        ):
            return view(**values)
        if not current_user.is_admin:
            raise Denied(_(NOT_ALLOWED[Role.ADMIN]))
        return allow(**values)

    return answer


def _allow_and_answer(view: View) -> View:
    """A view that stores the network and calls ``view`` as if the other button had been pressed."""

    @wraps(view)
    def answer(**values: Any) -> Any:
        network, _space, pressed = request.form[ALLOW].partition(" ")
        _allow(network)
        name, _equals, value = pressed.partition("=")
        fields = [pair for pair in request.form.items(multi=True) if pair[0] != ALLOW]
        request.form = ImmutableMultiDict([*fields, *([(name, value)] if name else ())])
        return view(**values)

    return answer


def _allow(text: str) -> None:
    """Add an offered network to the allowed ones. Raises Denied."""
    if servers.servers() is not None or networks_are_locked(current_settings()):
        raise Denied(_(LOCKED))
    current = policy()
    network = next((network for network in current.offerable if str(network) == text), None)
    if network is None:
        raise Denied(_(NEVER))
    if not current.opens(network):  # another page may have allowed it
        allowed = allowed_networks(current_settings()).strip()
        value = f"{allowed}, {network}" if allowed else str(network)
        current_access().settings.set(ALLOW_NETWORKS, value)
    flash(_(ALLOWED, network=network), "success")


def policy() -> Policy:
    """The present policy. With a damaged setting, it allows only public addresses, as in checks."""
    try:
        return Policy.parse(allowed_networks(current_settings()))
    except ValueError:
        return Policy()
