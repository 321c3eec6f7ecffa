"""``wakeful check URL``: one check, shown phase by phase."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from datetime import UTC, datetime

import click
from sqlalchemy.exc import SQLAlchemyError

from app import create_core
from app.access.settings import Policies
from app.checks.kinds import Kind, kind_of, spec_of
from app.config import Settings, read
from app.db import db, schema
from app.engine.checking import make_prober
from app.errors import Invalid
from app.forms.monitor import CheckForm
from app.forms.schema import bind
from app.i18n import N_, _, _n
from app.records import PHASES, AlertCondition, CheckSpec, Outcome, RequestMethod, Timings
from app.rules.time import days_left
from app.rules.what_changed import phase_words


def check_once(settings: Settings, spec: CheckSpec) -> Outcome:
    """Check with the network policy of this installation. If its database cannot be read, the
    policy of the settings is used.
    """
    policies = Policies(settings)
    app = create_core(settings)
    with app.app_context():
        try:
            if schema.stored_revision() is not None:
                policies.refresh()
        except SQLAlchemyError:
            db.session.rollback()
        finally:
            db.engine.dispose()
    prober = make_prober(settings, policies.current)
    try:
        return prober.check(spec)
    finally:
        prober.close()


def lines(spec: CheckSpec, outcome: Outcome) -> Iterator[str]:
    """The outcome of a check as lines of text."""
    result = outcome.result
    kind = kind_of(spec.url)
    yield f"{spec.request_method} {spec.url}" if _has(kind, "request_method") else spec.url
    yield _line(_("Verdict"), str(result.verdict))
    if result.cause:
        yield _line(_("Cause"), f"{result.cause} ({result.cause_code})")
    if result.status_code is not None:
        yield _line(_("Status"), str(result.status_code))
    for url in result.redirects:
        yield _line(_("Redirect"), url)
    if result.ip:
        version = f" (HTTP/{result.http_version})" if result.http_version else ""
        yield _line(_("Address"), f"{result.ip}{version}")
    yield from _phases(result.timings, kind.phases if kind else PHASES)
    if result.response_time is not None:
        yield _line(_("Total"), f"{result.response_time} ms")
    if outcome.ssl_expires_at is not None:
        days = days_left(outcome.ssl_expires_at, datetime.now(UTC))
        until = _n(
            "until %(date)s (%(num)s day)",
            "until %(date)s (%(num)s days)",
            days,
            date=f"{outcome.ssl_expires_at:%Y-%m-%d}",
        )
        yield _line(_("Certificate"), until)
    if outcome.matched:
        yield _line(_("Found"), outcome.matched)
    for warning in result.warnings:
        yield _line(_("Warning"), warning)


def _has(kind: Kind | None, field: str) -> bool:
    return kind is not None and field in kind.fields


def _phases(timings: Timings, phases: Collection[str]) -> Iterator[str]:
    spent = {name: getattr(timings, name) for name in phases}
    for name, words in phase_words(phases, spent).items():
        ms = "-" if spent[name] is None else f"{spent[name]} ms"
        yield _line(words[0].upper() + words[1:], ms)


def _line(name: str, value: str) -> str:
    return f"  {name:<12} {value}"


# The options of ``wakeful check`` that set a monitor's fields.
OPTIONS_OF = {"url": "URL", "request_method": "--method", "alert_text_lookup": "--text, --no-text"}


@click.command()
@click.argument("url")
@click.option(
    "--method", type=click.Choice([method.value for method in RequestMethod]), default="GET"
)
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
        # The sentences that a monitor's form would show.
        raise click.BadParameter(
            " ".join(sentence for sentences in fault.errors.values() for sentence in sentences),
            param_hint=", ".join(OPTIONS_OF.get(name, name) for name in fault.errors),
        ) from None
    outcome = check_once(read(), spec)
    for line in lines(spec, outcome):
        click.echo(line)
    sys.exit(0 if outcome.result.is_good else 1)
