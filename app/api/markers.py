"""/api/v1/markers: deploys and other moments that charts show."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import created, deleted, one, paged
from app.api.operations import operation
from app.codec import json_of
from app.forms import binding
from app.forms.marker import MarkerForm
from app.forms.queries import MarkerQueryForm

MARKERS = "/markers"
MARKER = "/markers/{id}"
ANSWER = "Marker"


@operation("GET", MARKERS, "List markers", ANSWER, paged=True, query=MarkerQueryForm)
def list_(call: Call) -> Response:
    page = call.store.markers.list(binding.marker_query(call.query))
    return paged(page, json_of, call.query)


@operation("POST", MARKERS, "Create a marker", ANSWER, status=201, form=MarkerForm)
def store(call: Call) -> Response:
    return created(json_of(call.store.markers.create(call.new(MarkerForm))))


@operation("GET", MARKER, "Show a marker", ANSWER)
def show(call: Call) -> Response:
    record = call.store.markers.get(call.id)
    call.without_input()
    return one(json_of(record))


@operation("PUT PATCH", MARKER, "Update a marker", ANSWER, form=MarkerForm, update=True)
def update(call: Call) -> Response:
    fields = call.changes(MarkerForm, call.store.markers.get(call.id))
    return one(json_of(call.store.markers.update(call.id, fields)))


@operation("DELETE", MARKER, "Delete a marker", "Deleted")
def delete(call: Call) -> Response:
    call.store.markers.get(call.id)
    call.without_input()
    call.store.markers.delete(call.id)
    return deleted("marker", call.id)
