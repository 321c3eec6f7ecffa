"""/api/v1/contacts (decisions.md 13)."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response

from app.api.call import Call
from app.api.envelope import created, deleted, one, paged
from app.api.operations import operation
from app.codec import json_of
from app.forms import binding
from app.forms.contact import ContactDeletionForm, ContactForm
from app.forms.queries import PageForm
from app.records import Contact

CONTACTS = "/contacts"
CONTACT = "/contacts/{id}"


def _shape(call: Call, record: Contact) -> dict[str, Any]:
    return json_of(record, masked=call.masked)


@operation("GET", CONTACTS, "List contacts", "Contact", paged=True, query=PageForm)
def list_(call: Call) -> Response:
    page = call.store.contacts.list(binding.page_query(call.query))
    return paged(page, partial(_shape, call), call.query)


@operation("POST", CONTACTS, "Create a contact", "Contact", status=201, form=ContactForm)
def store(call: Call) -> Response:
    return created(_shape(call, call.store.contacts.create(call.new(ContactForm))))


@operation("GET", CONTACT, "Show a contact", "Contact")
def show(call: Call) -> Response:
    record = call.store.contacts.get(call.id)
    call.without_input()
    return one(_shape(call, record))


@operation("PUT PATCH", CONTACT, "Update a contact", "Contact", form=ContactForm, update=True)
def update(call: Call) -> Response:
    fields = call.changes(ContactForm, call.store.contacts.get(call.id))
    return one(_shape(call, call.store.contacts.update(call.id, fields)))


@operation("DELETE", CONTACT, "Delete a contact", "Deleted", query=ContactDeletionForm)
def delete(call: Call) -> Response:
    call.store.contacts.get(call.id)
    asked = binding.query_values(ContactDeletionForm, call.query)
    call.store.contacts.remove(
        call.id, replace_with=asked["replace_with"], force=bool(asked["force"])
    )
    return deleted("contact", call.id)


@operation("POST", CONTACT + "/test", "Send a test alert to a contact", "DeliveryIds")
def test(call: Call) -> Response:
    call.store.contacts.get(call.id)
    call.without_input()
    return one({"deliveries": list(call.store.contacts.test(call.id))})
