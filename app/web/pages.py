"""The list of blueprint modules: a new page is its file and its name here."""

from app.web import (
    acknowledge,
    deliveries,
    home,
    incidents,
    keys,
    monitors,
    people,
    profile,
    settings,
)

ALL = (home, monitors, incidents, deliveries, keys, people, profile, settings, acknowledge)
