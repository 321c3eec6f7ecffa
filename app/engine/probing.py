"""Create a prober from the settings."""

from __future__ import annotations

from collections.abc import Callable

from app.checks.prober import Prober
from app.config import Settings
from app.net.policy import Policy


def make_prober(settings: Settings, policy: Callable[[], Policy]) -> Prober:
    """A running prober, which the caller closes. Call it after a fork, never before."""
    return Prober(
        policy=policy,
        dns_servers=settings.name_servers,
        ca_bundle=settings.ca_bundle,
        location=settings.location,
    )
