"""Keep with each incident what ended it, and the places that saw it.

Of older incidents, the sentences in their comments tell some of the endings.

Revision ID: 0030
Revises: 0029
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

SENTENCES = {
    "silence": "saw the failure, then fell silent. The other places do not confirm it.",
    "pause": "Watching stopped: the monitor was paused.",
}


def upgrade() -> None:
    op.add_column("incidents", sa.Column("ending", sa.String(16), nullable=True))
    op.add_column("incidents", sa.Column("seen_by", sa.JSON(), nullable=True))
    incidents = sa.table(
        "incidents", *(sa.column(name) for name in ("ending", "comment", "ended_at"))
    )
    for ending, sentence in SENTENCES.items():
        op.execute(
            incidents.update()
            .where(incidents.c.ended_at.is_not(None), incidents.c.comment.like(f"%{sentence}%"))
            .values(ending=ending)
        )


def downgrade() -> None:
    op.drop_column("incidents", "seen_by")
    op.drop_column("incidents", "ending")
