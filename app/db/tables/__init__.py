"""All tables. Migrations bring existing databases to them; a test compares the two.

Times are ``Moment`` (milliseconds). Secrets are ``Encrypted``; a value that cannot be read becomes
``Unreadable``. ``*_folded`` columns have the case-folded text for searches and orders, because
``lower`` of SQLite folds only ASCII.
"""

from app.db.tables.access import *
from app.db.tables.columns import *
from app.db.tables.contacts import *
from app.db.tables.incidents import *
from app.db.tables.monitors import *
from app.db.tables.results import *
from app.db.tables.service import *
from app.db.tables.status_pages import *
