"""/api/v1/markers: deploys and other moments that charts show."""

from __future__ import annotations

from app.api.resource import Resource, register
from app.forms import binding
from app.forms.marker import MarkerForm
from app.forms.queries import MarkerQueryForm

MARKERS = Resource(
    name="markers",
    path="/markers",
    one="a marker",
    many="markers",
    answer="Marker",
    form=MarkerForm,
    records=lambda store: store.markers,
    about={
        "list": "The newest first.",
        "store": "Marks a moment, such as a deploy, on the charts of its monitors.",
        "show": "Returns one marker.",
        "update": "Changes what is sent.",
        "delete": "Takes the marker off the charts.",
    },
    query=MarkerQueryForm,
    read_query=binding.marker_query,
)
register(MARKERS)
