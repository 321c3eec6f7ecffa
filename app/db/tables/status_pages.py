"""Status pages, what people write on them, and who subscribed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, LargeBinary, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column, object_session

from app.db import Model
from app.db.tables.columns import (
    NEVER_REUSED,
    UNSEEN,
    Id,
    Numbered,
    belongs_to,
    partial_index,
    secret,
)
from app.db.types import Bounded, Encrypted, EnteredMoment, Moment, Unreadable, Word
from app.records import (
    AUTO_POST_MINUTES,
    DEFAULT_PAGE_LANGUAGE,
    DEFAULT_PAGE_ZONE,
    PAGE_LANGUAGES,
    SUBSCRIBER_CHANNELS,
    Channel,
    PageTheme,
    PostImpact,
    PostState,
    Visibility,
)
from app.rules.colours import is_colour
from app.rules.time import is_zone

# In place of a damaged value: an open state, so that the page does not say that all is well.
State = Word(16, PostState, PostState.MONITORING)


class StatusPageRow(Numbered, Model):
    __tablename__ = "status_pages"
    __table_args__ = (Index("uq_status_pages_domain", "domain", unique=True), NEVER_REUSED)

    name: Mapped[str] = mapped_column(Text)
    slug: Mapped[str] = mapped_column(String(255), unique=True)
    description: Mapped[str | None] = mapped_column(Text)
    # In place of a damaged value: not public
    visibility: Mapped[str] = mapped_column(
        Word(16, Visibility, Visibility.CLOSED), default=Visibility.PUBLIC.value
    )
    password_hash: Mapped[str | None] = mapped_column(Text, info=secret("password"))
    # Changes with each new password, so that visitors must enter the new one
    password_turn: Mapped[int] = mapped_column(
        Bounded(0, 2**31 - 1, 0), default=0, server_default="0", info=UNSEEN
    )
    domain: Mapped[str | None] = mapped_column(String(253))
    show_urls: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    show_response_times: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    # Minutes
    auto_post_after: Mapped[int | None] = mapped_column(
        Bounded(*AUTO_POST_MINUTES, AUTO_POST_MINUTES[1], small=True)
    )
    zone: Mapped[str] = mapped_column(
        Word(64, is_zone, DEFAULT_PAGE_ZONE),
        default=DEFAULT_PAGE_ZONE,
        server_default=DEFAULT_PAGE_ZONE,
    )
    theme: Mapped[str] = mapped_column(
        Word(8, PageTheme, PageTheme.SYSTEM),
        default=PageTheme.SYSTEM.value,
        server_default=PageTheme.SYSTEM.value,
    )
    accent: Mapped[str | None] = mapped_column(Word(7, is_colour, ""))
    language: Mapped[str] = mapped_column(
        Word(8, tuple(PAGE_LANGUAGES), DEFAULT_PAGE_LANGUAGE),
        default=DEFAULT_PAGE_LANGUAGE,
        server_default=DEFAULT_PAGE_LANGUAGE,
    )
    home_url: Mapped[str | None] = mapped_column(Text)
    footer: Mapped[str | None] = mapped_column(Text)
    # Read separately, because the rest of a page is read often. The versions are hashes of the
    # images.
    logo: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True, info=UNSEEN)
    logo_version: Mapped[str | None] = mapped_column(String(16), info=secret("logo"))
    favicon: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True, info=UNSEEN)
    favicon_version: Mapped[str | None] = mapped_column(String(16), info=secret("favicon"))
    # By how much the SEQUENCE of its calendar entries is ahead of the time in seconds: an entry may
    # change twice in a second
    sequence_ahead: Mapped[int] = mapped_column(
        Bounded(0, 2**31 - 1, 0), default=0, server_default="0", info=UNSEEN
    )
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class StatusPageGroupRow(Numbered, Model):
    __tablename__ = "status_page_groups"

    status_page_id: Mapped[int] = belongs_to("status_pages", index=True)
    position: Mapped[int]
    name: Mapped[str] = mapped_column(Text)


class StatusPageMonitorRow(Model):
    """A monitor on a page: its ``position`` on the page, and ``group_position`` in its group."""

    __tablename__ = "status_page_monitors"

    status_page_id: Mapped[int] = belongs_to("status_pages", primary_key=True)
    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True, index=True)
    position: Mapped[int]
    name: Mapped[str | None] = mapped_column(Text)  # null: the monitor's own
    group_id: Mapped[int | None] = mapped_column(Id)
    group_position: Mapped[int | None]


class PostRow(Numbered, Model):
    __tablename__ = "posts"
    __table_args__ = (Index("ix_posts_page_created", "status_page_id", "created_at"), NEVER_REUSED)

    status_page_id: Mapped[int] = belongs_to("status_pages")
    title: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(State)  # that of its last update
    incident_id: Mapped[int | None] = mapped_column(
        Id, ForeignKey("incidents.id", ondelete="SET NULL"), index=True
    )
    starts_at: Mapped[datetime | None] = mapped_column(EnteredMoment)
    ends_at: Mapped[datetime | None] = mapped_column(EnteredMoment)
    automatic: Mapped[bool] = mapped_column(default=False, info=UNSEEN)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)
    corrected_at: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)


class PostMonitorRow(Model):
    __tablename__ = "post_monitors"

    post_id: Mapped[int] = belongs_to("posts", primary_key=True)
    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True, index=True)
    # null: the impact follows from the state of the post
    impact: Mapped[str | None] = mapped_column(Word(16, PostImpact, PostImpact.DEGRADED))


class PostUpdateRow(Numbered, Model):
    __tablename__ = "post_updates"
    __table_args__ = (
        partial_index("ix_post_updates_unannounced", "id", where="announced_at IS NULL"),
        NEVER_REUSED,
    )

    post_id: Mapped[int] = belongs_to("posts", index=True, info=UNSEEN)
    state: Mapped[str] = mapped_column(State)
    body: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment)
    corrected_at: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    # Since when the messages to all its subscribers are in the outbox; null: not yet
    announced_at: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    # The last subscriber whose message is in the outbox: thousands are written in batches
    announced_to: Mapped[int] = mapped_column(Id, default=0, server_default="0", info=UNSEEN)

    @property
    def title(self) -> str | None:
        """The title of its post."""
        session = object_session(self)
        post = session and session.get(PostRow, self.post_id)
        return post.title if post else None


class PostTemplateRow(Numbered, Model):
    """A template for posts that people wrote. ``app/rules/posts.py`` has the built-in ones."""

    __tablename__ = "post_templates"

    name: Mapped[str] = mapped_column(Text)
    title: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(State)
    body: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class SubscriberRow(Numbered, Model):
    """Somebody who is notified of a page's posts after they have confirmed the subscription."""

    __tablename__ = "subscribers"
    __table_args__ = (
        Index("uq_subscribers_page_digest", "status_page_id", "digest", unique=True),
        NEVER_REUSED,
    )

    status_page_id: Mapped[int] = belongs_to("status_pages")
    channel: Mapped[str] = mapped_column(Word(16, SUBSCRIBER_CHANNELS, Channel.EMAIL))
    value: Mapped[str | Unreadable] = mapped_column(Encrypted)
    digest: Mapped[str] = mapped_column(String(64))  # keyed hash of channel and value
    created_at: Mapped[datetime] = mapped_column(Moment)
    confirmed_at: Mapped[datetime | None] = mapped_column(Moment)


class CancelledEventRow(Model):
    """A calendar entry of a page whose window or post was deleted, so that calendars remove it."""

    __tablename__ = "cancelled_events"

    status_page_id: Mapped[int] = belongs_to("status_pages", primary_key=True)
    uid: Mapped[str] = mapped_column(String(128), primary_key=True)
    sequence: Mapped[int] = mapped_column(Id)
    name: Mapped[str] = mapped_column(Text)
    start_at: Mapped[datetime] = mapped_column(EnteredMoment)
    end_at: Mapped[datetime] = mapped_column(EnteredMoment)
    cancelled_at: Mapped[datetime] = mapped_column(Moment)
