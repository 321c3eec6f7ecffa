"""The preview in the dashboard's editor is the public page itself, without scripts and links."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from flask import Flask

from app.pages import front
from app.pages.addresses import PageContext
from app.records import PublicDay, PublicPage
from tests.pages.a_page import NOW, page, with_text

TEXT = '<a href="x"> & <script> https://a.example'
SCRIPT = re.compile(r'<script type="module" src="[^"]+"></script>')


def static(name: str) -> str:
    return f"/static/{name}"


def drawn(shown: PublicPage) -> PublicPage:
    """Components with days, which the front page draws."""
    days = [PublicDay(NOW.date() - timedelta(days=n), 100.0) for n in reversed(range(90))]
    return replace(
        shown, components=[replace(component, days=days) for component in shown.components]
    )


def public(app: Flask, shown: PublicPage) -> str:
    context = PageContext(templates=app.jinja_env, static=static, up="", front="")
    return front.front_page(shown, context).decode()


@pytest.mark.parametrize("shown", [drawn(page()), drawn(with_text(TEXT))])
def test_the_preview_is_the_public_page_without_scripts_and_links(
    app: Flask, shown: PublicPage
) -> None:
    made = front.preview(app.jinja_env, shown, static=static)
    assert "<script" not in made
    assert ' href="' not in made.partition("<body")[2].replace('<use href="', "")
    assert made.replace(" data-href=", " href=") == SCRIPT.sub("", public(app, shown))
    assert SCRIPT.search(public(app, shown)), "as people get it, it has a script"
