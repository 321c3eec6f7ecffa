"""The log of a failed statement: its values are hashes of passwords, and addresses of people."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.db import db

pytestmark = pytest.mark.both_databases


def test_a_failed_statement_does_not_tell_its_values(app):
    with app.app_context():
        with pytest.raises(SQLAlchemyError) as caught:
            db.session.execute(text("SELECT :value FROM nowhere"), {"value": "ada@private.example"})
        db.session.rollback()
    assert "nowhere" in str(caught.value)
    assert "private.example" not in str(caught.value)
