"""The oldest revision that is upgraded. A database of it has its tables, and a new one is made from
app/db/tables instead (``schema.make_tables``): so nothing is done here.

Revision ID: 0038
Revises: nothing
"""

revision = "0038"
down_revision = None


def upgrade() -> None:
    pass
