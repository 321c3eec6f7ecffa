"""/api/v1/deliveries: messages to people, sent or failed (decision 11)."""

from __future__ import annotations

from dataclasses import asdict

from flask import Response

from app.api.envelope import record_answer
from app.api.operations import Call, operation
from app.codec import json_of
from app.forms.alert_lists import AlertTestForm
from app.forms.queries import DeliveryQueryForm

DELIVERY = "/deliveries/{id}"


@operation("GET", "/deliveries", "List deliveries", "Delivery", paged=True, query=DeliveryQueryForm)
def list_(call: Call) -> Response:
    """Messages to people, the newest first, with all attempts to send each."""
    return call.page(DeliveryQueryForm, call.store.deliveries.list)


@operation("GET", DELIVERY, "Show a delivery", "Delivery")
def show(call: Call) -> Response:
    """With the answer to each attempt; the target is masked."""
    record = call.store.deliveries.get(call.id)
    call.refuse_input()
    return record_answer(json_of(record))


@operation(
    "POST", "/alerts/test", "Send a test alert to any channels", "DeliveryIds", form=AlertTestForm
)
def test(call: Call) -> Response:
    """To the channels that are sent, stored or not. `monitor_id`: whose alerts they are."""
    fields = call.new(AlertTestForm)
    ids = call.store.channels.test(fields["alerts"], monitor_id=fields.get("monitor_id"))
    return record_answer({"deliveries": list(ids)})


@operation("GET", "/alerts/unreadable", "List monitors that alert nobody", "MonitorsNamed")
def unreadable(call: Call) -> Response:
    """Monitors whose stored alerts cannot be read."""
    monitors = call.store.channels.unreadable_alerts()
    return record_answer({"monitors": [asdict(monitor) for monitor in monitors]})


@operation("GET", "/alerts/channels", "List channels that cannot work", "ChannelSetup")
def channels(call: Call) -> Response:
    """Channels without the settings that they need to send, each with a sentence."""
    reasons = call.store.channels.not_set_up()
    return record_answer(
        {"not_set_up": [{"key": key, "value": reason} for key, reason in reasons.items()]}
    )


@operation("POST", DELIVERY + "/retry", "Send a delivery again", "Delivery", refusals=(409,))
def retry(call: Call) -> Response:
    """Makes a failed delivery pending again, and releases one that is held."""
    return record_answer(json_of(call.store.deliveries.retry(call.id)))


@operation("POST", DELIVERY + "/give-up", "Give up a pending delivery", "Delivery", refusals=(409,))
def give_up(call: Call) -> Response:
    """Sends a pending delivery no more."""
    return record_answer(json_of(call.store.deliveries.give_up(call.id)))
