"""/api/v1/contacts, and channels that several monitors share (decision 13)."""

from __future__ import annotations

from flask import Response

from app.api.envelope import created, deleted, record_answer
from app.api.operations import Call, operation, register
from app.codec import json_of
from app.forms.contact import ContactDeletionForm, SharedChannelForm
from app.records.resources import CONTACTS

PATH = "/contacts/{id}"

register(CONTACTS)


@operation(
    "DELETE", PATH, "Delete a contact", "Deleted", query=ContactDeletionForm, refusals=(409,)
)
def delete(call: Call) -> Response:
    """If monitors use it, the answer is 409, with their ids in `monitors`, unless `replace_with`
    names another contact or `force` is true.
    """
    call.store.contacts.get(call.id)
    parameters = call.parameters(ContactDeletionForm)
    call.store.contacts.remove(
        call.id, replace_with=parameters["replace_with"], force=bool(parameters["force"])
    )
    return deleted("contact", call.id)


@operation("POST", PATH + "/test", "Send a test alert to a contact", "DeliveryIds", refusals=(409,))
def test(call: Call) -> Response:
    """To each channel of the contact, once, as a delivery of its own."""
    return record_answer({"deliveries": list(call.store.contacts.test(call.id))})


@operation(
    "GET",
    "/monitors/{id}/shared-channels",
    "List channels that other monitors share",
    "SharedChannels",
    name="shared_channels_list_",
)
def shared(call: Call) -> Response:
    """Channel values of this monitor that other monitors have too."""
    channels = call.store.contacts.shared(call.id)
    return record_answer({"channels": [json_of(channel) for channel in channels]})


@operation(
    "POST",
    "/contacts/from-channel",
    "Replace a channel with a contact",
    "Contact",
    status=201,
    form=SharedChannelForm,
    name="shared_channels_store",
)
def from_channel(call: Call) -> Response:
    """Makes a contact with the channel, and puts it in place of the channel in each monitor."""
    fields = call.new(SharedChannelForm)
    record = call.store.contacts.from_channel(fields["name"], fields["monitor_id"], fields["mark"])
    return created(json_of(record, masked=call.masked))
