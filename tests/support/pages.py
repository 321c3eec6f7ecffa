"""Status pages, posts and subscribers as rows, for tests that need no more of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from flask import Flask
from sqlalchemy import select

from app.access.tokens import target_digest
from app.alerts.subscribers import announce
from app.db import db, writing
from app.db.tables import (
    DeliveryRow,
    MonitorRow,
    PostMonitorRow,
    PostRow,
    PostUpdateRow,
    StatusPageMonitorRow,
    StatusPageRow,
    SubscriberRow,
)
from tests.support.clock import Clock


class Pages:
    """``clock``: the time of what is written without one of its own."""

    def __init__(self, app: Flask, clock: Clock | None = None) -> None:
        self.app, self.clock = app, clock or Clock()

    def page(
        self,
        *monitors: MonitorRow,
        now: datetime | None = None,
        names: Sequence[str | None] = (),
        **fields: Any,
    ) -> int:
        """A page that shows these monitors, under these names."""
        now = now or self.clock.now
        values = {"name": "Example", "slug": "example", "created_at": now, "updated_at": now}
        with self.app.app_context(), writing() as session:
            page = StatusPageRow(**values | fields)
            session.add(page)
            session.flush()
            for place, monitor in enumerate(monitors):
                name = names[place] if place < len(names) else None
                session.add(
                    StatusPageMonitorRow(
                        status_page_id=page.id, monitor_id=monitor.id, position=place, name=name
                    )
                )
            return page.id

    def subscriber(
        self,
        page: int,
        channel: str,
        value: str,
        *,
        now: datetime | None = None,
        confirmed: bool = True,
    ) -> int:
        now = now or self.clock.now
        with self.app.app_context(), writing() as session:
            row = SubscriberRow(
                status_page_id=page,
                channel=channel,
                value=value,
                digest=target_digest(channel, value),
                created_at=now,
                confirmed_at=now if confirmed else None,
            )
            session.add(row)
            session.flush()
            return row.id

    def post(
        self, page: int, *, now: datetime | None = None, body: str = "We look.", **fields: Any
    ) -> int:
        """A post with its first update, as a person writes it."""
        now = now or self.clock.now
        values = {"title": "Trouble", "state": "investigating", "automatic": False} | fields
        with self.app.app_context(), writing() as session:
            post = PostRow(status_page_id=page, created_at=now, updated_at=now, **values)
            session.add(post)
            session.flush()
            self._update(session, post, values["state"], body, now)
            return post.id

    def update(self, post: int, state: str, body: str, *, now: datetime | None = None) -> None:
        """What a person adds."""
        with self.app.app_context(), writing() as session:
            row = session.get_one(PostRow, post)
            row.state = state
            self._update(session, row, state, body, now or self.clock.now)

    def _update(self, session: Any, post: PostRow, state: str, body: str, now: datetime) -> None:
        row = PostUpdateRow(post_id=post.id, state=state, body=body, created_at=now)
        session.add(row)
        announce(session, row, now)

    def posts(self) -> list[PostRow]:
        return self._all(PostRow)

    def updates(self) -> list[tuple[int, str]]:
        return [(row.post_id, row.state) for row in self._all(PostUpdateRow)]

    def monitors_of(self, post: int) -> set[int]:
        with self.app.app_context():
            query = select(PostMonitorRow.monitor_id).where(PostMonitorRow.post_id == post)
            return set(db.session.scalars(query))

    def subscribers(self) -> list[SubscriberRow]:
        return self._all(SubscriberRow)

    def messages(self) -> list[DeliveryRow]:
        return [row for row in self._all(DeliveryRow) if row.subscriber_id is not None]

    def _all(self, table: Any) -> list[Any]:
        with self.app.app_context():
            rows = list(db.session.scalars(select(table).order_by(table.id)))
            db.session.expunge_all()
            return rows
