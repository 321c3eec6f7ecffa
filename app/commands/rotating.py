"""``wakeful secrets rotate``: encrypt everything with the new secret key, and say when the old key
can be removed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import click

from app.access import actors, audit, tokens
from app.access.tokens import ACKNOWLEDGE_SECONDS
from app.commands.opened import opened
from app.config import Settings, read
from app.db import liveness, rotation, schema, writing
from app.errors import WakefulError
from app.i18n import N_, _, _n
from app.records import Action, AuditedObject, ObjectKind

THING = AuditedObject(ObjectKind.INSTALLATION, name="secret keys")
ONE_KEY = N_(
    "There is one secret key, so nothing can be re-encrypted. Put a new key in front of it, in"
    " WAKEFUL_SECRET_KEY=NEW,OLD or as the first line of the file secret_key; restart every"
    " process; then run this again."
)
OTHERS = N_(
    "These processes run without the new key: %(names)s. They could not read what this writes."
    " Restart them with both keys, or wait a minute if they have ended. Nothing was changed."
)
WEB = N_(
    "Web servers cannot be seen from here. Each must have been restarted with both keys before the"
    " old one is removed."
)
REMOVE = N_(
    "Done: no stored value needs the old key. Remove it from WAKEFUL_SECRET_KEY or from the file"
    " secret_key, and restart every process. Then links in messages that were signed with the old"
    " key no longer work: wait %(days)s days for links to acknowledge incidents. Links to end the"
    " subscription to a status page work as long as their key is there. Backups from before need"
    " the old key: it is inside, unless they were made with --without-key."
)
NOT_DONE = N_(
    "Not done: a process goes on writing with the old key. Restart every process with both keys,"
    " then run this again. Keep the old key."
)
COUNTED = N_(
    "%(table)s: %(reencrypted)s re-encrypted, %(current)s with the new key, %(old)s with an old"
    " key, %(undecryptable)s not readable"
)
LOST = N_(
    "These values need neither key: they are damaged, or were written with a key that is not"
    " listed. If you have that key, add it at the end and run this again. wakeful doctor says how"
    " to replace them."
)


def rotate_keys(settings: Settings) -> bool:
    """Encrypt everything with the new key. Returns whether the old key can be removed and every
    value was read. Raises WakefulError if nothing was changed.
    """
    if not settings.old_keys:
        raise WakefulError(_(ONE_KEY))
    schema.require()
    schema.check_key()
    now = datetime.now(UTC)
    if processes := liveness.processes_with_other_keys(now):
        raise WakefulError(_(OTHERS, names=", ".join(processes)))
    tokens.store_hash_key(now)
    counts = rotation.rotate()
    changed = sum(count.reencrypted for count in counts)
    with writing() as session:
        audit.note(session, Action.ROTATED, THING, {"re_encrypted": (None, changed)})
    _show(counts)
    unreadable = [str(value) for value in rotation.undecryptable_values()]
    for line in unreadable:
        click.echo(line, err=True)
    if unreadable:
        click.echo(_(LOST), err=True)
    if any(count.old for count in counts):
        click.echo(_(NOT_DONE), err=True)
        return False
    click.echo(_(WEB))
    click.echo(_(REMOVE, days=ACKNOWLEDGE_SECONDS // 86400))
    return not unreadable


def _show(counts: Sequence[rotation.TableCount]) -> None:
    for count in counts:
        click.echo(_(COUNTED, **asdict(count)))
    changed = sum(count.reencrypted for count in counts)
    click.echo(_n("%(num)s value was re-encrypted.", "%(num)s values were re-encrypted.", changed))


@click.group()
def secrets() -> None:
    pass


@secrets.command(
    help=N_(
        "Encrypt all stored secrets with the first key of WAKEFUL_SECRET_KEY=NEW,OLD.\n\n"
        "Start every process with both keys first; then run this while they run. It may be run "
        "again at any time. Exit code 0: the old key can be removed. 1: it says what is left."
    )
)
def rotate() -> None:
    settings = read(make=False)
    with opened(settings), actors.acting_as(actors.by_command()):
        sys.exit(0 if rotate_keys(settings) else 1)
