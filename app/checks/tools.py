"""What the checks of every kind share, and what a kind provides to the prober."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from app.net.families import Families
from app.net.loop import Loop
from app.net.policy import Policy
from app.net.resolver import Resolver
from app.records import CheckSpec, Outcome
from app.rules.url import Target

Done = Callable[[Outcome], None]
Broken = Callable[[Exception], None]


@dataclass(frozen=True, slots=True)
class Tools:
    """What all checks of one prober share. ``ca_bundle`` is the file of all trusted authorities."""

    loop: Loop
    resolver: Resolver
    families: Families
    location: str
    ca_bundle: str
    user_agent: str


class Checks(Protocol):
    """The checks of one kind in one prober. Lives on the loop's thread."""

    def start(
        self, spec: CheckSpec, target: Target, policy: Policy, done: Done, broken: Broken
    ) -> None:
        """Start a check of ``target``, the URL of ``spec`` taken apart. ``done`` is called once
        with its outcome, on the loop; if our own code raises, ``broken`` is called instead.
        """

    def close(self) -> None:
        """Drop the checks in flight without calling ``done``."""


def guarded(broken: Broken, step: Callable[..., None], *arguments: Any) -> None:
    """Call a step of a check. An exception goes to ``broken``, or the check would never finish."""
    try:
        step(*arguments)
    except Exception as error:
        broken(error)
