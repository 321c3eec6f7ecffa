"""/api/v1/locations (decision 14)."""

from __future__ import annotations

from flask import Response

from app.api.envelope import record_answer
from app.api.operations import Call, operation, register
from app.codec import json_of
from app.records import Carrier, Place, Scope, needs_admin
from app.records.resources import LOCATIONS


def _check_scope(call: Call, place: Place | None) -> None:
    """Raises Denied, before the fields are judged. ``place``: the stored place."""
    sent_fields = dict(call.body.pairs())
    present = place.carrier if place else None
    if "carrier" in sent_fields and needs_admin(sent_fields["carrier"] or Carrier.LOCAL, present):
        call.require(Scope.ADMIN)


register(LOCATIONS, check=_check_scope, refusals={"delete": (409,)})


@operation(
    "POST",
    "/locations/{id}/token",
    "Make a new token for an agent",
    "Location",
    scope=Scope.ADMIN,
    refusals=(409,),
)
def token(call: Call) -> Response:
    """Needs a key of scope `admin`. The token before ends at once. A place with another carrier
    than `agent` has none: 409.
    """
    return record_answer(json_of(call.store.locations.new_token(call.id)))


@operation(
    "GET", "/monitors/{id}/locations", "Show what each place of a monitor sees", "PlacesOfMonitor"
)
def of_monitor(call: Call) -> Response:
    """The newest result of each place, as long as it counts, and its response times of 24 hours,
    in ms.
    """
    return record_answer(
        {"locations": [json_of(place) for place in call.store.locations.of_monitor(call.id)]}
    )
