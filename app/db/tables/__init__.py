"""Every table. Migrations create them; a test holds the two together.

Times are ``Moment`` (milliseconds). Columns that hold secrets are ``Encrypted``; if one cannot
be read, it holds ``Unreadable``. ``*_folded`` columns hold the case-folded text that searches and
orders use, because SQLite's own ``lower`` knows only ASCII.
"""

from app.db.tables.access import *
from app.db.tables.columns import *
from app.db.tables.contacts import *
from app.db.tables.incidents import *
from app.db.tables.monitors import *
from app.db.tables.results import *
from app.db.tables.service import *
from app.db.tables.status_pages import *
