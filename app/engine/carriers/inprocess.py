"""Checks made in this process, by its own prober."""

from __future__ import annotations

from app.access.networks import Policies
from app.config import Settings
from app.engine.carriers import Done
from app.engine.checking import make_prober
from app.records import CheckSpec


class InProcess:
    """A ``Carrier``."""

    def __init__(self, settings: Settings, policies: Policies) -> None:
        self.prober = make_prober(settings, policies.current)

    def submit(self, spec: CheckSpec, done: Done) -> None:
        self.prober.submit(spec, done)

    def close(self, timeout: float) -> None:
        self.prober.close(timeout=timeout)
