"""The commands whose checks go through a queue. They need the extra ``distributed``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.config import SettingError, Settings
from app.engine.carriers import Carrier, RemoteNetwork
from app.i18n import N_, _

if TYPE_CHECKING:  # a prober has no database
    from app.access.networks import Policies

MISSING = N_(
    "Checks through a queue need Celery. Install it beside Wakeful, from a checkout of its"
    " repository: pip install --requirement requirements/distributed.txt"
)


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as fault:
        if fault.name not in ("celery", "kombu", "redis"):
            raise
        raise SettingError(_(MISSING)) from None


def queue_carrier(
    settings: Settings,
) -> tuple[Callable[[Settings, Policies], Carrier], RemoteNetwork]:
    """What makes the carrier of a checker, and the network of the probers behind it."""
    with _extra():
        from app.engine.carriers.queue.broker import needed
        from app.engine.carriers.queue.sender import QueueCarrier
    needed(settings)
    network = RemoteNetwork()

    def make(settings: Settings, _policies: Policies) -> Carrier:
        return QueueCarrier(settings, network)

    return make, network


def run_prober(settings: Settings) -> int:
    with _extra():
        from app.engine.carriers.queue.prober import run
    return run(settings)
