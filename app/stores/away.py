"""The database error and its translation, for pages and the API, which do not import ``db``."""

from sqlalchemy.exc import SQLAlchemyError as DatabaseError

from app.db.faults import unavailable

__all__ = ["DatabaseError", "unavailable"]
