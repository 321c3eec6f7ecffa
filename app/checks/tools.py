"""What the checks of every kind share, and what a kind provides to the prober."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import certifi

from app.net.families import Families
from app.net.loop import Loop
from app.net.policy import Policy
from app.net.resolver import Resolver
from app.records import CheckSpec, Outcome
from app.rules.url import Target

if TYPE_CHECKING:  # forms and pages need the kinds, but neither curl nor OpenSSL
    from app.checks.certificate import TrustStore
    from app.checks.curl.curls import Curls

Done = Callable[[Outcome], None]
OnError = Callable[[Exception], None]


@dataclass(frozen=True, slots=True)
class CheckTools:
    """What all checks of one prober share."""

    loop: Loop
    resolver: Resolver
    families: Families
    location: str
    curls: Curls
    trust: TrustStore


class KindChecks(Protocol):
    """The checks of one kind in one prober. Lives on the loop's thread."""

    def start(
        self, spec: CheckSpec, target: Target, policy: Policy, done: Done, on_error: OnError
    ) -> None:
        """Start a check of ``target``, the URL of ``spec`` taken apart. ``done`` is called once
        with its outcome, on the loop; if our own code raises, ``on_error`` is called instead.
        """

    def close(self) -> None:
        """Drop the checks in flight without calling ``done``."""


def guarded(on_error: OnError, step: Callable[..., None], *arguments: Any) -> None:
    """Call a step of a check. ``on_error`` gets an exception, or the check would never finish."""
    try:
        step(*arguments)
    except Exception as error:
        on_error(error)


class Bundle:
    """One file for curl. With ``extra`` it is in memory, until ``close``, and ``path`` is valid in
    this process and its forks: a killed process leaves no copy on disk. Raises OSError for a bad
    path.
    """

    def __init__(self, extra: str | None) -> None:
        self._memory: int | None = None
        self.path = certifi.where()
        if extra:
            data = Path(extra).read_bytes() + b"\n" + Path(self.path).read_bytes()
            self._memory = os.memfd_create("wakeful-ca")
            self.path = f"/proc/self/fd/{self._memory}"
            with open(self._memory, "wb", closefd=False) as file:
                file.write(data)

    def close(self) -> None:
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None
