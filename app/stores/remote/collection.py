"""The base classes for the records of another server.

The description of a resource has its path, the name of a record, and the type of its records. A
resource with further operations, or with an operation that differs, has a subclass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from app.codec import MalformedData, reader
from app.codec.values import record_id
from app.errors import Accepted, NotFound, Unavailable
from app.i18n import N_, _
from app.records import Page, Resource
from app.stores import base
from app.stores.base import Fields, Query, Record, Store
from app.stores.remote import envelope
from app.stores.remote.connection import RemoteConnection, ServerAnswer
from app.stores.remote.meaning import ANSWERS, explanation_of
from app.stores.remote.part import Me, RemotePart, after_write

NOT_SHOWN = N_("The server %(server)s accepted it, and does not show it yet.")


class RemoteReadable(RemotePart, base.Readable[Record, Query]):
    """``readers``: functions that read single fields, if their types do not say how."""

    def __init__(
        self,
        resource: Resource,
        store: Store,
        connection: RemoteConnection,
        me: Me,
        **readers: Callable[[Any], Any],
    ) -> None:
        super().__init__(store, connection, me)
        self.path, self.noun = resource.path, resource.singular
        self._has_name = resource.named_by == "name"
        self._reader = reader(cast("type[Record]", resource.record), resource.singular, **readers)

    def read(self, data: Any) -> Record:
        """The record in this JSON. Raises MalformedData."""
        record = self._reader(data)
        if self._has_name and not cast(Any, record).name:
            raise MalformedData("name")
        return record

    def complete(self, records: Sequence[Record]) -> Sequence[Record]:
        """Add missing data to these records, if another resource has it."""
        return records

    def list(self, query: Query) -> Page[Record]:
        page = self._page(self.path, query, self.read)
        return replace(page, items=self.complete(page.items))

    def get(self, id: int) -> Record:
        return self._record_in(id, self._read(self._address(id), of=(self.noun, id)))

    def _address(self, id: int) -> str:
        return f"{self.path}/{id}"

    def _record_in(self, id: int | None, answer: ServerAnswer) -> Record:
        """The record in an answer. A record with another id than the address is refused: the next
        change would go to another record.
        """
        try:
            record = self.read(envelope.record(answer.body, self.noun))
            if id is not None and cast(Any, record).id != id:
                raise MalformedData("id")
        except MalformedData as fault:
            raise self._not_understood(fault, answer) from None
        return self.complete([record])[0]


class RemoteCollection(RemoteReadable[Record, Query], base.Collection[Record, Query]):
    """A write to a bare server has succeeded if its status says so: the record is read again, not
    taken from the body.
    """

    def sent(self, fields: Fields, *, new: bool = False) -> Fields:
        """The fields to send. For a new record, empty fields are left out."""
        return {name: value for name, value in fields.items() if not (new and value in (None, ()))}

    def newest(self, fields: Fields) -> int | None:
        """The id of the record that was just stored with these fields; None if it is unknown."""
        return None

    def create(self, fields: Fields) -> Record:
        sent_fields = self.sent(fields, new=True)
        answer = self._write("POST", self.path, sent_fields)
        if self.me.is_wakeful:
            with after_write():
                return self._record_in(None, answer)
        try:
            id = self._id_of(answer) or self.newest(fields)
            if id is not None:
                return self.get(id)
        except (NotFound, Unavailable):
            pass  # the record is stored, even if it cannot be read back
        server = self.connection.name
        sentence = _(NOT_SHOWN, server=server)
        if (message := explanation_of(answer).message) is not None:
            sentence += " " + _(ANSWERS, server=server, message=message)
        raise Accepted(sentence)

    def update(self, id: int, fields: Fields) -> Record:
        sent_fields = self.sent(fields)
        if not sent_fields:
            return self.get(id)
        answer = self._write("PATCH", self._address(id), sent_fields, of=(self.noun, id))
        if self.me.is_wakeful:
            with after_write():
                return self._record_in(id, answer)
        try:
            return self.get(id)
        except (NotFound, Unavailable):
            raise Accepted(_(NOT_SHOWN, server=self.connection.name)) from None

    def delete(self, id: int) -> None:
        self._write("DELETE", self._address(id), of=(self.noun, id))

    def _id_of(self, answer: ServerAnswer) -> int | None:
        """The id of a stored record, in the answer's body or its ``Location``."""
        body = envelope.record(answer.body, self.noun)
        if isinstance(body, Mapping):
            named = (body.get(name) for name in ("id", f"{self.noun}_id", f"{self.noun}Id"))
            if (id := next(filter(None, map(record_id, named)), None)) is not None:
                return id
        return record_id(body) or answer.id
