"""Messages about what expires: a certificate, a domain."""

from __future__ import annotations

from collections.abc import Callable

from app.alerts import words
from app.alerts.messages.context import Context
from app.alerts.messages.facts import Facts, address_of, name_of, told_at
from app.alerts.messages.message import Link, Message, Tone
from app.i18n import _
from app.records import Event
from app.rules.time import days_left, expiry


def _expiring(facts: Facts, context: Context, what: str) -> Message:
    extra = facts.get("extra") or {}
    when, at = "expires soon", told_at(facts)
    monitor = facts["monitor"]
    details = [("Monitor", name_of(facts)), address_of(facts)]
    advice = _("Renew it in time.")
    if extra.get("expires_at"):
        expires = words.read_moment(extra["expires_at"])
        when, extra = expiry(expires, at), {**extra, "days_left": days_left(expires, at)}
        advice = _("Renew it now.") if expires <= at else advice
        details.insert(0, ("Expires", words.clock_time(expires)))
    if host := extra.get("host"):  # differs from the URL's if that redirects
        details.insert(0, ("Host", words.shorten(str(host), 100)))
    return Message(
        event=facts["event"],
        tone=Tone.WARNING,
        title=f"{what} {when}",
        summary=_("%(advice)s This alert is not repeated for this date.", advice=advice),
        at=at,
        details=tuple(details),
        links=(Link("Monitor", f"{context.base_url}/monitors/{monitor['id']}"),),
        data={"monitor": dict(monitor), **extra},
    )


def certificate(facts: Facts, context: Context) -> Message:
    return _expiring(facts, context, _("Certificate of %(name_of)s", name_of=name_of(facts)))


def domain(facts: Facts, context: Context) -> Message:
    domain = (facts.get("extra") or {}).get("domain") or name_of(facts)
    return _expiring(
        facts, context, _("Domain %(shorten)s", shorten=words.shorten(str(domain), 80))
    )


NOTICES: dict[str, Callable[[Facts, Context], Message]] = {
    Event.CERTIFICATE_EXPIRING: certificate,
    Event.DOMAIN_EXPIRING: domain,
}
