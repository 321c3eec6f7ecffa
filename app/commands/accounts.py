"""``wakeful user``, ``wakeful key`` and ``wakeful webhook-secret``: people, keys and the secret of
webhooks, for the operator of the server. They work while nobody can log in.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from app.access.webhook_secret import webhook_secret as secret_of
from app.commands.opened import access_opened, typed_line
from app.config import read
from app.db import db
from app.errors import WakefulError
from app.i18n import N_, _
from app.records import Person, Role, Scope
from app.rules import text
from app.rules.time import iso

if TYPE_CHECKING:
    from app.access import Access

UNKNOWN = N_("No account has the email address %(email)s. To see all: wakeful user list")
FACTOR_RESET = N_(
    "The second factor was removed on the server, by command. Your password alone logs you in."
)
NO_FACTOR = N_("%(email)s has no second factor. Nothing was changed.")
REMOVED = N_("Second factor of %(email)s removed. Their password alone logs them in.")
NOT_NOTIFIED = N_("They could not be notified by email: %(fault)s Tell them yourself.")
DIFFERENT = N_("The two passwords are different. Nothing was changed.")


@click.group()
def user() -> None:
    pass


@user.command(
    "create",
    help=N_("Create an account. The password is read from standard input or prompted for."),
)
@click.argument("email")
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True)
def create(email: str, role: str) -> None:
    password = typed_line(_("Password"), twice=True)
    with access_opened() as access:
        access.people.create(email, password, role)
    click.echo(_("%(email)s can log in as %(role)s.", email=email, role=role))


@user.command(
    "list", help=N_("List the people: email, role, access, second factor, last login (UTC).")
)
def list_() -> None:
    with access_opened() as access:
        people = access.people.all()
    for person in people:
        state = _("disabled") if person.disabled else _("enabled")
        factor = _("second factor") if person.second_factor else _("password only")
        login = iso(person.last_login_at) if person.last_login_at else _("never logged in")
        click.echo("\t".join([person.email, person.role, state, factor, login]))


@user.command(
    "password",
    help=N_(
        "Set the password of EMAIL, and log them out everywhere.\n\n"
        "The password is prompted for twice, or read from the first two lines of standard input."
    ),
)
@click.argument("email")
def password(email: str) -> None:
    with access_opened() as access:
        person = _person(access, email)
        db.session.rollback()  # PostgreSQL would end the transaction while somebody types
        new = typed_line(_("New password"))
        if typed_line(_("Repeat the password")) != new:
            raise WakefulError(_(DIFFERENT))
        access.people.change_password(person.id, new)
    click.echo(_("Password of %(email)s changed. They are logged out.", email=person.email))


@user.command("disable", help=N_("Take EMAIL's access away, and log them out everywhere."))
@click.argument("email")
def disable(email: str) -> None:
    person = _changed(email, lambda access, id: access.people.update(id, {"disabled": True}))
    click.echo(_("%(email)s cannot log in any more.", email=person.email))


@user.command("enable", help=N_("Give EMAIL access again."))
@click.argument("email")
def enable(email: str) -> None:
    person = _changed(email, lambda access, id: access.people.update(id, {"disabled": False}))
    click.echo(_("%(email)s can log in again.", email=person.email))


@user.command(
    "reset",
    help=N_(
        "Remove the second factor of EMAIL, for somebody who has lost it. The password stays.\n\n"
        "They are notified by email, if it is set up."
    ),
)
@click.argument("email")
def reset(email: str) -> None:
    with access_opened() as access:
        person = _person(access, email)
        if not person.second_factor:
            click.echo(_(NO_FACTOR, email=person.email))
            return
        access.factors.reset(person.id)
        click.echo(_(REMOVED, email=person.email))
        _notify(person)


def _notify(person: Person) -> None:
    """Mail the person, so that they notice a reset that they did not ask for."""
    from app.stores.mail import Mail

    mail = Mail(read())
    if not mail.is_set():
        click.echo(_("Email is not set up, so tell them yourself."))
        return
    answer = mail.send_second_factor(person.email, FACTOR_RESET)
    if answer.ok:
        click.echo(_("They were notified by email."))
    else:
        click.echo(_(NOT_NOTIFIED, fault=answer.answer), err=True)


def _changed(email: str, change: Callable[[Access, int], Person]) -> Person:
    with access_opened() as access:
        return change(access, _person(access, email).id)


def _person(access: Access, email: str) -> Person:
    person = access.people.by_email(email)
    if person is None:
        raise WakefulError(_(UNKNOWN, email=email))
    return person


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
@click.option(
    "--own",
    "own_secret",
    metavar="KEY",
    help=N_("For the scope ping: a key that jobs have already."),
)
@click.option("--tag", help=N_("Only the monitors with this tag. Leave empty for all."))
def key_create(
    name: str,
    scope: str,
    expires: str | None,
    owner: str | None,
    networks: tuple[str, ...],
    tag: str | None,
    own_secret: str | None,
) -> None:
    moment = None if expires is None else _moment(expires)
    with access_opened() as access:
        owner_id = None if owner is None else _person(access, owner).id
        _key, secret = access.keys.create(
            name,
            scope,
            moment,
            owner_id=owner_id,
            networks=",".join(networks),
            tag=tag,
            own_secret=own_secret,
        )
    click.echo(secret)


@key.command("list", help=N_("List the API keys: prefix, scope, name, state, last use, owner."))
def key_list() -> None:
    with access_opened() as access:
        keys = access.keys.all()
    now = datetime.now(UTC)
    for key in keys:
        state = _("valid")
        if key.revoked_at is not None:
            state = _("revoked")
        elif key.expires_at is not None:
            word = N_("expired %(time)s") if key.expires_at <= now else N_("until %(time)s")
            state = _(word, time=iso(key.expires_at))
        used = iso(key.last_used_at) if key.last_used_at else _("never used")
        owner = key.owner or _("no owner")
        click.echo("\t".join([key.prefix, key.scope, key.name, state, used, owner]))


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


@click.command()
def webhook_secret() -> None:
    with access_opened() as access:
        click.echo(secret_of(read(), access.settings))
