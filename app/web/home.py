"""Home: is anything down now?"""

from __future__ import annotations

from flask import Blueprint, render_template

from app.records import IncidentQuery, IncidentSortBy, IncidentStatus
from app.stores import Feature, current_store
from app.web.session import guarded

blueprint = guarded(Blueprint("home", __name__))


@blueprint.get("/")
def show() -> str:
    store = current_store()
    open_now = [
        incident
        for status in (IncidentStatus.UNRESOLVED, IncidentStatus.ACKNOWLEDGED)
        for incident in store.incidents(
            IncidentQuery(status=status, sort_by=IncidentSortBy.STARTED_AT, per_page=50)
        ).items
    ]
    recent = store.incidents(IncidentQuery(status=IncidentStatus.RESOLVED)).items
    counters = store.overview() if Feature.OVERVIEW in store.offers else None
    return render_template("home/show.html", open_now=open_now, recent=recent, counters=counters)
