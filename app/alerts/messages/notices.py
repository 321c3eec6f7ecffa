"""Messages without an incident: a test, a certificate or a domain that expires, a place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from app.alerts import words
from app.alerts.messages.incident import address_of, name_of
from app.alerts.messages.message import Facts, Message, MessageContext, MessageLink, Tone, time_of
from app.i18n import N_, _, _n
from app.records import Event
from app.rules.time import days_left, expiry

NO_RESULTS = N_("No results come from it, so it has no vote.")
ADVICE = N_("Check that its checker, prober or agent is running and reaches this server.")
FOOTER = N_("You get this message because your contact is a default contact.")


def trial(facts: Facts, context: MessageContext) -> Message:
    """The message that tests a channel."""
    monitor = facts["monitor"]
    if monitor is None:  # the channel value belongs to no monitor
        title = _("Test of an alert channel")
        link = MessageLink(_("Dashboard"), f"{context.base_url}/")
        summary = _("This is a test. Alerts arrive here.")
    else:
        title, link = _("Test: %(name)s", name=name_of(facts)), _monitor_link(facts, context)
        summary = _("This is a test. Alerts of this monitor arrive here.")
    return Message.of(
        facts,
        Tone.PLAIN,
        title,
        summary,
        details=(address_of(facts),) if monitor else (),
        links=(link,),
        data={"monitor": monitor and dict(monitor)},
    )


def _monitor_link(facts: Facts, context: MessageContext) -> MessageLink:
    return MessageLink(_("Monitor"), f"{context.base_url}/monitors/{facts['monitor']['id']}")


def _expiring(facts: Facts, context: MessageContext, what: str) -> Message:
    extra = facts.get("extra") or {}
    at = time_of(facts)
    title = _("%(what)s expires soon", what=what)
    details = [(_("Monitor"), name_of(facts)), address_of(facts)]
    advice = _("Renew it in time.")
    if extra.get("expires_at"):
        expires = datetime.fromisoformat(extra["expires_at"])
        title = f"{what} {expiry(expires, at)}"
        extra = {**extra, "days_left": days_left(expires, at)}
        advice = _("Renew it now.") if expires <= at else advice
        details.insert(0, (_("Expires"), words.clock_time(expires)))
    if host := extra.get("host"):  # not that of the URL, if the URL redirects
        details.insert(0, (_("Host"), words.shorten(str(host), 100)))
    return Message.of(
        facts,
        Tone.WARNING,
        title,
        advice + " " + _("This alert is not repeated for this date."),
        details=tuple(details),
        links=(_monitor_link(facts, context),),
        data={"monitor": dict(facts["monitor"]), **extra},
    )


def certificate(facts: Facts, context: MessageContext) -> Message:
    return _expiring(facts, context, _("Certificate of %(name)s", name=name_of(facts)))


def domain(facts: Facts, context: MessageContext) -> Message:
    domain = (facts.get("extra") or {}).get("domain") or name_of(facts)
    what = _("Domain %(domain)s", domain=words.shorten(str(domain), 80))
    return _expiring(facts, context, what)


EXPIRIES: dict[str, Callable[[Facts, MessageContext], Message]] = {
    Event.CERTIFICATE_EXPIRING: certificate,
    Event.DOMAIN_EXPIRING: domain,
}


def silent(facts: Facts, context: MessageContext) -> Message:
    """The message about a place from which no results come."""
    extra = facts["extra"]
    since = extra["since"]
    last = words.clock_time(datetime.fromisoformat(since)) if since else _("Never")
    title = _("The place %(name)s is silent", name=_place_of(extra))
    summary = f"{_(NO_RESULTS)} {_affected(extra)} {_(ADVICE)}"
    return _about_place(facts, context, Tone.WARNING, title, summary, [(_("Last result"), last)])


def online(facts: Facts, context: MessageContext) -> Message:
    extra, details = facts["extra"], []
    if extra["since"]:
        silence = time_of(facts) - datetime.fromisoformat(extra["since"])
        details = [(_("Silent for"), words.duration(silence.total_seconds()))]
    title = _("The place %(name)s is back", name=_place_of(extra))
    summary = _("Results come from it again.")
    return _about_place(facts, context, Tone.GOOD, title, summary, details)


def _about_place(
    facts: Facts,
    context: MessageContext,
    tone: Tone,
    title: str,
    summary: str,
    details: Sequence[tuple[str, str]],
) -> Message:
    return Message.of(
        facts,
        tone,
        title,
        summary,
        details=((_("Monitors"), str(facts["extra"]["monitors"])), *details),
        links=(MessageLink(_("Places"), f"{context.base_url}/settings/locations"),),
        thread=f"place-{facts['extra']['location']['id']}",
        footer=_(FOOTER),
        data=dict(facts["extra"]),
    )


def _place_of(extra: Facts) -> str:
    place = extra["location"]
    return words.shorten(place["label"] or place["name"], words.MAX_NAME_SHOWN)


def _affected(extra: Facts) -> str:
    unknown = extra["unknown"]
    if not unknown:
        return _("All its monitors are checked from other places too.")
    return _n(
        "%(num)s monitor is checked from nowhere else and is now unknown.",
        "%(num)s monitors are checked from nowhere else and are now unknown.",
        unknown,
    )
