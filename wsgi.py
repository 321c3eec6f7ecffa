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
    """The application cannot start. gunicorn prints the sentence and ends: in a worker because this
    is an AppImportError, with --preload because it is a RuntimeError. For another exception it
    prints a trace, and after SystemExit it starts workers for ever.
    """


def refuse_unknown() -> None:
    """Stop at the start, not at the first request, on a database of a newer version.

    A database that does not answer now may come back, so it stops nothing: /readyz reports it.
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
# Recovery mails that wait for their thread would be lost when the server stops.
atexit.register(app.extensions["wakeful.mail"].close)
