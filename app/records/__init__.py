"""Enums, limits and frozen records for the whole of Wakeful, a module for each resource.

Nothing here imports Flask or SQLAlchemy, or reads the clock. Times are aware ``datetime`` in UTC;
names of durations end with their unit. Forms, API, OpenAPI document and templates read the choices
and limits of the API from here. The order of a record's fields is the order in its JSON.

    from app.records import Monitor    # every name may be imported from the package
"""

from app.records.access import *
from app.records.alerts import *
from app.records.assertions import *
from app.records.audit import *
from app.records.contacts import *
from app.records.incidents import *
from app.records.locations import *
from app.records.marks import *
from app.records.monitors import *
from app.records.paging import *
from app.records.pings import *
from app.records.public_pages import *
from app.records.resources import ObjectKind as ObjectKind
from app.records.resources import Resource as Resource
from app.records.results import *
from app.records.secrets import *
from app.records.status_pages import *
from app.records.windows import *
