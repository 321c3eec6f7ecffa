"""Post templates: posts to start from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from app.records.marks import Id, Mark
from app.records.status_pages import PostState

MAX_TEMPLATE_NAME = 80


@dataclass(frozen=True, slots=True)
class PostTemplate:
    """A post to start from, for every status page. No two have names that differ in case alone."""

    id: Id
    name: str
    title: str
    state: Annotated[str, PostState]
    body: str
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
