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
    at = told_at(facts)
    title = _("%(what)s expires soon", what=what)
    monitor = facts["monitor"]
    details = [(_("Monitor"), name_of(facts)), address_of(facts)]
    advice = _("Renew it in time.")
    if extra.get("expires_at"):
        expires = words.read_moment(extra["expires_at"])
        title = f"{what} {expiry(expires, at)}"
        extra = {**extra, "days_left": days_left(expires, at)}
        advice = _("Renew it now.") if expires <= at else advice
        details.insert(0, (_("Expires"), words.clock_time(expires)))
    if host := extra.get("host"):  # differs from the URL's if that redirects
        details.insert(0, (_("Host"), words.shorten(str(host), 100)))
    return Message(
        event=facts["event"],
        tone=Tone.WARNING,
        title=title,
        summary=advice + " " + _("This alert is not repeated for this date."),
        at=at,
        details=tuple(details),
        links=(Link(_("Monitor"), f"{context.base_url}/monitors/{monitor['id']}"),),
        data={"monitor": dict(monitor), **extra},
    )


def certificate(facts: Facts, context: Context) -> Message:
    return _expiring(facts, context, _("Certificate of %(name)s", name=name_of(facts)))


def domain(facts: Facts, context: Context) -> Message:
    domain = (facts.get("extra") or {}).get("domain") or name_of(facts)
    what = _("Domain %(domain)s", domain=words.shorten(str(domain), 80))
    return _expiring(facts, context, what)


NOTICES: dict[str, Callable[[Facts, Context], Message]] = {
    Event.CERTIFICATE_EXPIRING: certificate,
    Event.DOMAIN_EXPIRING: domain,
}
