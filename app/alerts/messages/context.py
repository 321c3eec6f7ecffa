"""What a message needs besides its facts: the address for links, and what else is down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Context:
    """What a message needs besides its facts.

    ``base_url`` begins every link. ``acknowledge_token`` makes a token for an incident.
    ``others_down`` are the names of the monitors that are down now, by id.
    """

    base_url: str
    acknowledge_token: Callable[[int], str]
    others_down: Mapping[int, str] = field(default_factory=dict)

    def incident_url(self, incident_id: int) -> str:
        return f"{self.base_url}/incidents/{incident_id}"

    def acknowledge_url(self, incident_id: int) -> str:
        return f"{self.base_url}/acknowledge/{self.acknowledge_token(incident_id)}"


def base_url(public_url: str | None, bind: str) -> str:
    """Where links lead: PUBLIC_URL, else the address that the server listens on."""
    if public_url:
        return public_url.rstrip("/")
    host, _, port = bind.rpartition(":")
    # 0.0.0.0 is where a server listens, not where a browser goes.
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    return f"http://{host}" if port == "80" else f"http://{host}:{port}"
