"""From pairs to values for a store: ``bind`` for a new record, ``overlay`` for an update,
``query_values``, ``list_query`` and ``page_query`` for a list.

All raise ``Invalid`` with all faults at once, under the names as sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from app.errors import Invalid
from app.forms import queries
from app.forms.lists import ListField
from app.forms.schema import EITHER, UNKNOWN, FormContext, SchemaField, SchemaForm, SentPairs
from app.i18n import _
from app.records import MAX_ID, PageQuery
from app.rules.brackets import Name, Pairs, parse
from app.rules.text import shortened

# The answer stays short even if a body has ten thousand misspelt fields.
MAX_ERRORS = 50
_MAX_NAME = 100
_LAST_PAGE = MAX_ID // 1000  # page times page size must fit into the database's integers


def bind(
    form_class: type[SchemaForm], pairs: Pairs, context: FormContext | None = None
) -> dict[str, Any]:
    """Every field of a new record, defaults included. Raises Invalid."""
    return _validated(form_class, pairs, None, context).values()


def overlay(
    form_class: type[SchemaForm], record: object, pairs: Pairs, context: FormContext | None = None
) -> dict[str, Any]:
    """The sent fields of an update, validated over the whole of ``record``. Raises Invalid."""
    return _validated(form_class, pairs, record, context).values_sent()


def query_values(form_class: type[SchemaForm], pairs: Pairs) -> dict[str, Any]:
    """The parameters of a list or of another operation. Raises Invalid."""
    return dict(_queried(form_class, tuple(pair for pair in pairs if pair[1] != "")))


@lru_cache(maxsize=256)  # a page that refreshes itself asks for the same, and making a form is slow
def _queried(form_class: type[SchemaForm], pairs: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return _validated(form_class, pairs, None, None).values()


def list_query(form_class: type[queries.ListForm], pairs: Pairs, **ids: int) -> Any:
    """The query of a list. ``ids``: by name, of the records that the list belongs to."""
    values = query_values(form_class, pairs)
    if "page" in values:
        values["page"] = min(values["page"], _LAST_PAGE)
    if "from" in values:
        values["from_"] = values.pop("from")
    for name in ("monitor_id", "incident_id", "status_page_id"):
        # No record has such an id, and the database could not compare it. 0 finds nothing either.
        if values.get(name) is not None and not 1 <= values[name] <= MAX_ID:
            values[name] = 0
    return form_class.makes(**ids, **values)


def page_query(pairs: Pairs) -> PageQuery:
    """The query of a list with no parameters but those of paging."""
    query: PageQuery = list_query(queries.PageForm, pairs)
    return query


def _validated(
    form_class: type[SchemaForm], pairs: Pairs, record: object | None, context: FormContext | None
) -> SchemaForm:
    sent = SentPairs(pairs)
    form = form_class(sent, record=record, context=context)
    errors = _faulty_names(form, sent)
    form.validate()
    for name, sentences in form.named_errors().items():
        errors.setdefault(_error_key(name), sentences)
    if errors:
        raise Invalid(dict(list(errors.items())[:MAX_ERRORS]))
    return form


def _faulty_names(form: SchemaForm, sent: SentPairs) -> dict[str, list[str]]:
    """Names that the form does not have, that were sent twice, or both bare and with an index."""
    fields = {field.name: field for field in form if isinstance(field, SchemaField)}
    errors: dict[str, list[str]] = {}
    names = {raw: _field_name(parse(raw), fields) for raw in sent}
    with_index = {name.field for name in names.values() if name and name.index is not None}
    for raw, values in sent.items():
        name = names[raw]
        field = fields.get(raw.partition("[")[0])
        if field is None or field.extra:
            errors[_error_key(name.dotted if name else raw)] = [_(UNKNOWN)]
            continue
        if name is None:  # such as locations[], as other programs write lists
            errors[_error_key(raw)] = [field.how_to_send()]
            continue
        fault = field.name_fault(name)
        if fault:
            errors[_error_key(name.dotted if isinstance(field, ListField) else name.field)] = [
                fault
            ]
        elif len(values) > 1:
            errors[_error_key(name.dotted)] = [field.repeat_fault(name)]
        elif name.index is None and name.field in with_index:
            errors[name.field] = [_(EITHER, field=name.field)]
    return errors


def _field_name(name: Name | None, fields: Mapping[str, SchemaField]) -> Name | None:
    """``name``; None where it has more brackets than its field reads."""
    if name is None or name.entry is None:
        return name
    field = fields.get(name.field)
    return name if field is not None and field.nested else None


def _error_key(name: str) -> str:
    """A sent name as an error's key: cut, and without characters that JSON cannot carry."""
    short = shortened(name, _MAX_NAME)
    return short.encode("utf-8", "replace").decode()
