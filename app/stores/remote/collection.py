"""The base class for the records of another server, the same for every resource.

A resource says its path, what a record of it is called, how one is read, and, where a bare server
has none, the feature; it overrides what its server does in another way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

from app.codec import Odd
from app.records import Page
from app.rules import brackets
from app.stores import base
from app.stores.base import Feature, Fields
from app.stores.remote.connection import Answer
from app.stores.remote.part import Of, Part, parameters, stored


class _Identified(Protocol):
    @property
    def id(self) -> int: ...


Record = TypeVar("Record", bound=_Identified)
Query = TypeVar("Query")


class Readable(Part, base.Readable[Record, Query]):
    path: ClassVar[str]  # below /api/v1
    kind: ClassVar[str]  # the name of a record in error messages
    feature: ClassVar[Feature | None] = None

    @abstractmethod
    def read(self, data: Any) -> Record:
        """The record in this JSON. Raises Odd."""

    def parameters(self, query: Query) -> brackets.Pairs:
        """The query in the form that the server expects."""
        return parameters(query)

    def complete(self, records: Sequence[Record]) -> Sequence[Record]:
        """These records, with missing data added if another resource has it."""
        return records

    def list(self, query: Query) -> Page[Record]:
        sent = self.parameters(query)
        page = self._page(self.path, query, self.read, sent=sent, of=self._of())
        return replace(page, items=self.complete(page.items))

    def get(self, id: int) -> Record:
        answer = self._read(self._address(id), kind=self.kind, id=id)
        return self._same(id, self._whole(answer))

    def _address(self, id: int) -> str:
        return f"{self.path}/{id}"

    def _of(self) -> Of | None:
        return None if self.feature is None else (self.feature, None)

    def _whole(self, answer: Answer) -> Record:
        return self.complete([self._record(answer, self.read)])[0]

    def _same(self, id: int, record: Record) -> Record:
        """``record`` is to have the id that stands in the address: with another one, what a person
        changes next would be changed on another record.
        """
        if record.id != id:
            raise self._not_understood(Odd("id"))
        return record


class Collection(Readable[Record, Query], base.Collection[Record, Query]):
    def sent(self, fields: Fields, *, new: bool = False) -> Fields:
        """The fields to send; for a new record, empty ones are left out."""
        return {name: value for name, value in fields.items() if not (new and value in (None, ()))}

    def created_unseen(self, fields: Fields) -> Record:
        """The record that was just stored, from a server that did not send it back."""
        raise self._not_understood(Odd(self.kind))

    def create(self, fields: Fields) -> Record:
        answer = self._write("POST", self.path, self.sent(fields, new=True), of=self._of())
        with stored():
            return self.created_unseen(fields) if answer.body is None else self._whole(answer)

    def update(self, id: int, fields: Fields) -> Record:
        known = self.sent(fields)
        if not known:
            return self.get(id)
        answer = self._write("PATCH", self._address(id), known, kind=self.kind, id=id)
        with stored():
            return self.get(id) if answer.body is None else self._same(id, self._whole(answer))

    def delete(self, id: int) -> None:
        self._write("DELETE", self._address(id), kind=self.kind, id=id)
