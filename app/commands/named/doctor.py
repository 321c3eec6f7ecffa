"""``wakeful doctor``: what is wrong with this installation."""

from __future__ import annotations

import sys

import click

from app.commands.doctor import examine
from app.commands.finding import Finding
from app.commands.opened import opened
from app.config import read
from app.i18n import _


@click.command()
def doctor() -> None:
    settings = read(make=False)
    _report(Finding(_("settings"), _("They are valid.")))
    wrong = 0
    with opened(settings) as app:
        for finding in examine(app, settings):
            wrong += finding.fault
            _report(finding)
    sys.exit(1 if wrong else 0)


def _report(finding: Finding) -> None:
    word = _("WRONG") if finding.fault else _("ok")
    click.echo(f"{word:<6} {finding.subject}: {finding.sentence}")
