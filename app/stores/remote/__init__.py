"""Stores over the /api/v1 of other servers. One of them is chosen for each request."""

from __future__ import annotations

from collections.abc import Sequence

from flask import g

from app.net.client import Network
from app.net.hosts import SystemNames
from app.net.policy import Policy
from app.stores.remote.connection import RemoteConnection
from app.stores.remote.store import RemoteStore

__all__ = ["RemoteStore", "RemoteStores", "remote_store"]


def remote_store(url: str, key: str, network: Network | None = None) -> RemoteStore:
    """The store of the server at ``url`` (without /api/v1), opened with ``key``. ``network``: the
    system's name servers and authorities by default.
    """
    network = network or Network(Policy(), SystemNames())
    return RemoteStore(RemoteConnection(url, key, network))


class RemoteStores:
    """All servers of the settings. ``app.stores.current_store`` asks for the ``chosen`` one."""

    def __init__(self, remotes: Sequence[tuple[str, str]], network: Network | None = None) -> None:
        self.stores = [remote_store(url, key, network) for url, key in remotes]

    @property
    def names(self) -> list[str]:
        """The names of the servers, in the order of the settings."""
        return [store.name for store in self.stores]

    def choose(self, index: int) -> None:
        """Use the server at ``index`` for this request; without such a server, the first one."""
        g.wakeful_remote = index if 0 <= index < len(self.stores) else 0

    @property
    def chosen_index(self) -> int:
        return int(g.get("wakeful_remote", 0))

    @property
    def chosen(self) -> RemoteStore:
        return self.stores[self.chosen_index]
