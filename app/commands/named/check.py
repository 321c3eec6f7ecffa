"""``wakeful check``: one check of a URL, now."""

from __future__ import annotations

import sys

import click

from app.checks.spec import spec_of
from app.commands.check import check_once, lines
from app.config import read
from app.errors import Invalid
from app.forms.binding import bind
from app.forms.monitor import CheckForm
from app.i18n import N_, _
from app.records import AlertCondition, RequestMethod

# The options of ``wakeful check`` that set a monitor's fields.
OPTIONS_OF = {"url": "URL", "request_method": "--method", "alert_text_lookup": "--text, --no-text"}


@click.command()
@click.argument("url")
@click.option("--method", type=click.Choice([m.value for m in RequestMethod]), default="GET")
@click.option("--timeout", type=click.IntRange(1, 60), default=30, metavar="SECONDS")
@click.option("--text", help=N_("Fail if the answer contains this text."))
@click.option("--no-text", help=N_("Fail if the answer does not contain this text."))
def check(url: str, method: str, timeout: int, text: str | None, no_text: str | None) -> None:
    if text is not None and no_text is not None:
        raise click.UsageError(_("Give --text or --no-text, not both."))
    pairs = [("url", url), ("request_method", method), ("timeout", str(timeout))]
    for condition, lookup in (
        (AlertCondition.URL_TEXT, text),
        (AlertCondition.URL_NO_TEXT, no_text),
    ):
        if lookup is not None:
            pairs += [("alert_condition", condition.value), ("alert_text_lookup", lookup)]
    try:
        spec = spec_of(bind(CheckForm, pairs), None)
    except Invalid as fault:
        # As a monitor's form would say it.
        raise click.BadParameter(
            " ".join(sentence for said in fault.errors.values() for sentence in said),
            param_hint=", ".join(OPTIONS_OF.get(name, name) for name in fault.errors),
        ) from None
    outcome = check_once(read(), spec)
    for line in lines(spec, outcome):
        click.echo(line)
    sys.exit(0 if outcome.result.is_good else 1)
