"""Channels that several monitors have, and contacts in place of them (decisions.md 13)."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import created, one
from app.api.operations import operation
from app.codec import json_of
from app.forms.shared_channel import SharedChannelForm


@operation(
    "GET",
    "/monitors/{id}/shared-channels",
    "List channels that other monitors share",
    "SharedChannels",
)
def list_(call: Call) -> Response:
    """Channel values of this monitor that other monitors have too."""
    call.store.monitors.require(call.id)
    call.without_input()
    found = call.store.contacts.shared(call.id)
    return one({"channels": [json_of(channel) for channel in found]})


@operation(
    "POST",
    "/contacts/from-channel",
    "Replace a channel with a contact",
    "Contact",
    status=201,
    form=SharedChannelForm,
)
def store(call: Call) -> Response:
    """Makes a contact with the channel, and puts it in place of the channel in each monitor."""
    fields = call.new(SharedChannelForm)
    record = call.store.contacts.from_channel(fields["name"], fields["monitor_id"], fields["mark"])
    return created(json_of(record, masked=call.masked))
