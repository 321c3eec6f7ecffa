"""/api/v1/locations (decisions.md 14)."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import created, deleted, one, paged
from app.api.operations import operation
from app.codec import json_of
from app.forms import binding
from app.forms.location import LocationForm
from app.forms.queries import PageForm
from app.records import Carrier, Scope, needs_admin

LOCATIONS = "/locations"
LOCATION = "/locations/{id}"
ANSWER = "Location"


@operation("GET", LOCATIONS, "List places", ANSWER, paged=True, query=PageForm)
def list_(call: Call) -> Response:
    page = call.store.locations.list(binding.page_query(call.query))
    return paged(page, json_of, call.query)


@operation("POST", LOCATIONS, "Create a place", ANSWER, status=201, form=LocationForm)
def store(call: Call) -> Response:
    _check_scope(call, None)
    return created(json_of(call.store.locations.create(call.new(LocationForm))))


@operation("GET", LOCATION, "Show a place", ANSWER)
def show(call: Call) -> Response:
    record = call.store.locations.get(call.id)
    call.without_input()
    return one(json_of(record))


@operation("PUT PATCH", LOCATION, "Update a place", ANSWER, form=LocationForm, update=True)
def update(call: Call) -> Response:
    place = call.store.locations.get(call.id)
    _check_scope(call, place.carrier)
    fields = call.changes(LocationForm, place)
    return one(json_of(call.store.locations.update(call.id, fields)))


@operation("DELETE", LOCATION, "Delete a place", "Deleted")
def delete(call: Call) -> Response:
    call.store.locations.get(call.id)
    call.without_input()
    call.store.locations.delete(call.id)
    return deleted("location", call.id)


def _check_scope(call: Call, before: str | None) -> None:
    """Raises Denied, before the fields are judged. ``before``: the carrier that the place has."""
    sent = dict(call.body.pairs())
    if "carrier" in sent and needs_admin(sent["carrier"] or Carrier.LOCAL, before):
        call.require(Scope.ADMIN)


@operation("POST", LOCATION + "/token", "Make a new token for an agent", ANSWER, scope=Scope.ADMIN)
def token(call: Call) -> Response:
    call.store.locations.get(call.id)
    call.without_input()
    return one(json_of(call.store.locations.new_token(call.id)))


@operation(
    "GET", "/monitors/{id}/locations", "Show what each place of a monitor sees", "PlacesOfMonitor"
)
def of_monitor(call: Call) -> Response:
    call.store.monitors.require(call.id)
    call.without_input()
    return one(
        {"locations": [json_of(place) for place in call.store.locations.of_monitor(call.id)]}
    )
