"""A prober as the settings want it, and the policy that it judges addresses by."""

from __future__ import annotations

import logging

from app.checks.prober import Prober
from app.config import Settings
from app.db.settings import setting
from app.net.hosts import parse_servers
from app.net.policy import Policy

log = logging.getLogger(__name__)

ALLOW_NETWORKS = "allow_networks"  # the setting of that name, from the Settings page


class Policies:
    """The policy as it is now. ``current`` is quick and safe on any thread; ``refresh`` asks.

    WAKEFUL_ALLOW_NETWORKS locks it; without, what an admin set on the Settings page holds.
    """

    def __init__(self, settings: Settings) -> None:
        self._locked = settings.allow_networks is not None
        self._text = settings.allow_networks or ""
        self._policy = Policy.parse(self._text)

    def current(self) -> Policy:
        return self._policy

    def refresh(self) -> None:
        """Read the stored setting. Needs an application context."""
        if self._locked:
            return
        text = setting(ALLOW_NETWORKS) or ""
        if text == self._text:
            return
        try:
            self._policy = Policy.parse(text)
        except ValueError:
            log.exception("The stored networks cannot be read; the policy stays as it was.")
        self._text = text


def make_prober(settings: Settings, policies: Policies) -> Prober:
    """A running prober; close it. Made after a fork, never before."""
    return Prober(
        policy=policies.current,
        dns_servers=parse_servers(settings.dns_servers or ""),
        ca_bundle=settings.ca_bundle,
        location=settings.location,
    )
