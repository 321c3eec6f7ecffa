"""The words that every room speaks: enums, limits and frozen records, a module for each resource.

Nothing here knows Flask, SQLAlchemy or the clock. Times are aware ``datetime`` in UTC, durations
say their unit in the name. The enums and limits are the only place where the base API's choices are
written down; forms, API, OpenAPI document and templates read them from here. The JSON of a record
has its fields in their order here.

    from app.records import Monitor    # every name may be imported from the package
"""

from app.records.access import *
from app.records.alerts import *
from app.records.assertions import *
from app.records.audit import *
from app.records.contacts import *
from app.records.incidents import *
from app.records.locations import *
from app.records.markers import *
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
