"""One request to the API, as its handler sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flask import current_app

from app.access.keys import require
from app.api.body import Body
from app.errors import Invalid
from app.forms import binding, queries
from app.forms.schema import Context, SchemaForm
from app.records import ApiKey, Scope
from app.rules.brackets import Pairs
from app.stores import Store, store_of_key


@dataclass
class Call:
    """``ids`` are those in the path, by name; ``query`` is the parameters as sent."""

    key: ApiKey | None
    ids: Mapping[str, int]
    body: Body
    read_query: Any  # () -> Pairs; read late: the 404 of an unknown record precedes a bad query

    @cached_property
    def store(self) -> Store:
        """As the key may see it."""
        return store_of_key(self.key)

    @property
    def id(self) -> int:
        return self.ids["id"]

    def require(self, scope: Scope) -> None:
        """Raises Denied for a key that may do less."""
        if self.key is not None:
            require(self.key, scope)

    @property
    def masked(self) -> bool:
        """A key that may only read sees secrets masked (decisions.md 3)."""
        return self.key is None or not self.key.may(Scope.WRITE)

    @cached_property
    def query(self) -> Pairs:
        """The parameters of a request without a body."""
        self._refuse(self.body.pairs())
        pairs: Pairs = self.read_query()
        return pairs

    def without_input(self) -> None:
        """Refuse body fields and parameters: this operation has none."""
        binding.query_values(queries.NoQueryForm, self.query)

    def new(self, form_class: type[SchemaForm]) -> dict[str, Any]:
        """The validated fields of a new record. Raises Invalid."""
        self._refuse(self.read_query())
        return binding.bind(form_class, self.body.pairs(), self._context())

    def changes(self, form_class: type[SchemaForm], record: object) -> dict[str, Any]:
        """The validated fields that were sent for ``record``. Raises Invalid."""
        self._refuse(self.read_query())
        return binding.overlay(form_class, record, self.body.pairs(), self._context())

    def _refuse(self, pairs: Pairs) -> None:
        """Refuse input that no form of this operation reads."""
        binding.query_values(queries.NoQueryForm, pairs)

    def _context(self) -> Context:
        settings = current_app.extensions["wakeful.settings"]
        return Context(
            now=self.store.now(),
            telegram_token_set=settings.telegram_token is not None,
            places=self.store.monitors.locations(),
            contact_known=self.store.contacts.is_known,
        )


__all__ = ["Call", "Invalid"]
