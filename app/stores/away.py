"""For pages and API, which know no database: what tells them that theirs does not answer."""

from sqlalchemy.exc import SQLAlchemyError as DatabaseError

from app.db.faults import unavailable

__all__ = ["DatabaseError", "unavailable"]
