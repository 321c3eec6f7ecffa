"""The entry for gunicorn: ``gunicorn wsgi:app``."""

import atexit
import sys

from gunicorn.errors import AppImportError
from sqlalchemy.exc import SQLAlchemyError

from app import create_app
from app.db import db, schema
from app.db.faults import is_server_away
from app.engine.deadlines import start_signs_of_web
from app.errors import WakefulError


class Refused(AppImportError, RuntimeError):  # type: ignore[misc]
    """gunicorn prints the sentence and ends: of the first kind in a worker, of the second where it
    preloads. Of any other it prints a trace, and SystemExit makes it start workers for ever.
    """


def refuse_unknown() -> None:
    """Stop at the start, not at the first request, on a database of a newer version.

    A database that does not answer now is for /readyz to tell: it may come back.
    """
    with app.app_context():
        try:
            schema.refuse_unknown()
        except SQLAlchemyError as fault:
            if is_server_away(fault):
                schema.refuse_until_current()
        db.engine.dispose()  # no connection may be shared with the workers of a gunicorn --preload


app = create_app()
try:
    refuse_unknown()
except WakefulError as fault:
    if "gunicorn.arbiter" in sys.modules:
        raise Refused(str(fault)) from None
    sys.exit(str(fault))
if app.extensions["wakeful.settings"].store == "local":
    start_signs_of_web(app)
# Recovery links that wait for their thread would be lost at a stop.
atexit.register(app.extensions["wakeful.mail"].close)
