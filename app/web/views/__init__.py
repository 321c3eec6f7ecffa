"""The list of blueprint modules: a new page is its file and its name here."""

from app.web.frame import servers
from app.web.views import (
    acknowledge,
    bulk,
    checks,
    deliveries,
    home,
    incidents,
    jump,
    keys,
    monitors,
    people,
    profile,
    reports,
    settings,
    wall,
    windows,
)

ALL = (
    wall,
    home,
    bulk,
    monitors,
    checks,
    incidents,
    windows,
    deliveries,
    reports,
    keys,
    people,
    profile,
    settings,
    acknowledge,
    jump,
    servers,
)
