"""``wakeful key``: API keys, for whoever has the server."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from app.commands.named.user import found
from app.commands.opened import access_opened
from app.i18n import N_, _
from app.records import Scope
from app.rules import text
from app.rules.time import iso


@click.group()
def key() -> None:
    pass


@key.command("create", help=N_("Create an API key and print it. It is shown only once."))
@click.argument("name")
@click.option("--scope", type=click.Choice([scope.value for scope in Scope]), required=True)
@click.option("--expires", metavar="TIME", help=N_("UTC, as 2027-01-31T00:00:00; default: never."))
@click.option("--owner", metavar="EMAIL", help=N_("Whose it is: it does at most what they may."))
@click.option(
    "--network", "networks", multiple=True, metavar="CIDR",
    help=N_("Only from this network. May be repeated."),
)  # fmt: skip
@click.option("--tag", help=N_("Only the monitors with this tag."))
def key_create(
    name: str,
    scope: str,
    expires: str | None,
    owner: str | None,
    networks: tuple[str, ...],
    tag: str | None,
) -> None:
    moment = None if expires is None else _moment(expires)
    with access_opened() as access:
        owner_id = None if owner is None else found(access, owner).id
        _key, secret = access.keys.create(
            name, scope, moment, owner_id=owner_id, networks=",".join(networks), tag=tag
        )
    click.echo(secret)


@key.command("list", help=N_("List the API keys: prefix, scope, name, state, last use, owner."))
def key_list() -> None:
    with access_opened() as access:
        keys = access.keys.all()
    now = datetime.now(UTC)
    for one in keys:
        state = _("valid")
        if one.revoked_at is not None:
            state = _("revoked")
        elif one.expires_at is not None:
            word = N_("expired %(time)s") if one.expires_at <= now else N_("until %(time)s")
            state = _(word, time=iso(one.expires_at))
        used = iso(one.last_used_at) if one.last_used_at else _("never used")
        owner = one.owner or _("no owner")
        click.echo("\t".join([one.prefix, one.scope, one.name, state, used, owner]))


@key.command("revoke", help=N_("Revoke the API key with this PREFIX."))
@click.argument("prefix")
def key_revoke(prefix: str) -> None:
    with access_opened() as access:
        access.keys.revoke(prefix)
    click.echo(_("API key %(prefix)s revoked.", prefix=prefix))


def _moment(raw: str) -> datetime:
    try:
        return text.moment(raw)
    except ValueError as fault:
        raise click.BadParameter(str(fault), param_hint="--expires") from None
