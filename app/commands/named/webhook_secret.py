"""``wakeful webhook-secret``: what webhooks are signed with."""

from __future__ import annotations

import click

from app.access.webhook_secret import webhook_secret as secret_of
from app.commands.opened import access_opened
from app.config import read


@click.command()
def webhook_secret() -> None:
    with access_opened() as access:
        click.echo(secret_of(read(), access.settings))
