"""Contacts of another server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlencode

from app.codec import reader
from app.codec.values import each_in
from app.records import Contact, PageQuery, SharedChannel
from app.stores import base
from app.stores.base import Extent
from app.stores.remote.collection import RemoteCollection
from app.stores.remote.deliveries import delivery_ids
from app.stores.remote.part import after_write

MAX_PAGES = 10  # with a hundred records each: more than anybody has


class RemoteContacts(RemoteCollection[Contact, PageQuery], base.Contacts):
    def remove(self, id: int, *, replace_with: str | None = None, force: bool = False) -> None:
        query = {"replace_with": replace_with} if replace_with is not None else {}
        query |= {"force": "1"} if force else {}
        address = f"{self._address(id)}?{urlencode(query)}" if query else self._address(id)
        self._write("DELETE", address, of=(self.noun, id))

    def test(self, id: int) -> tuple[int, ...]:
        answer = self._write("POST", f"{self._address(id)}/test", of=(self.noun, id))
        return self._content(answer, delivery_ids)

    def shared(self, monitor_id: int) -> Sequence[SharedChannel]:
        if self.me.extent < Extent.WHOLE:
            return ()
        return self._of_monitor(monitor_id, "shared-channels", _channels)

    def from_channel(self, name: str, monitor_id: int, mark: str) -> Contact:
        fields = {"name": name, "monitor_id": monitor_id, "mark": mark}
        answer = self._write("POST", f"{self.path}/from-channel", fields)
        with after_write():
            return self._content(answer, self.read)

    def id_of(self, value: str) -> int | None:
        contacts = self._all()
        ids = {str(contact.id): contact.id for contact in contacts}
        ids |= {contact.name.casefold(): contact.id for contact in contacts}
        return ids.get(value.strip().casefold())

    def exists(self, value: str) -> bool:
        return True  # the server refuses a name that it does not know

    def names(self) -> Sequence[str]:
        return [contact.name for contact in self._all()]

    def defaults(self) -> Sequence[str]:
        return [contact.name for contact in self._all() if contact.default]

    def _all(self) -> Sequence[Contact]:
        if self.me.extent < Extent.WHOLE:
            return ()
        return list(self.every(PageQuery(per_page=100), MAX_PAGES))


_channels = partial(each_in, "channels", reader(SharedChannel, "channel"))
