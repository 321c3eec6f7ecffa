"""Monthly reports by email.

Revision ID: 0016
Revises: 0015
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "report_mails",
        sa.Column("id", ID, nullable=False),
        sa.Column("contact_id", ID, nullable=False),
        sa.Column("tag", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["contact_id"],
            ["contacts.id"],
            name=op.f("fk_report_mails_contact_id_contacts"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report_mails")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_report_mails_contact_id"), "report_mails", ["contact_id"])
    op.create_table(
        "report_mails_sent",
        sa.Column("report_mail_id", ID, nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["report_mail_id"],
            ["report_mails.id"],
            name=op.f("fk_report_mails_sent_report_mail_id_report_mails"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("report_mail_id", "month", name=op.f("pk_report_mails_sent")),
    )


def downgrade() -> None:
    op.drop_table("report_mails_sent")
    op.drop_index(op.f("ix_report_mails_contact_id"), table_name="report_mails")
    op.drop_table("report_mails")
