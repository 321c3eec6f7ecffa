"""Subscribing to a status page: the form, and the links in its messages.

Programs that scan mail follow links, so a GET shows a button and only a POST changes anything. By
RFC 8058, mail programs send that POST themselves. The answer to the form does not reveal whether
the address has subscribed already.
"""

from __future__ import annotations

from collections.abc import Callable

from werkzeug.wrappers import Response

from app.errors import Invalid, NotFound, Throttled
from app.i18n import N_, OR, _, join_words
from app.pages.addresses import Visit
from app.records import Channel, StatusPage

LABELS = {Channel.EMAIL: N_("Email address"), Channel.WEBHOOK: N_("webhook URL")}
SENT = {
    Channel.EMAIL: N_(
        "We have sent a message to this address, unless it cannot be reached. Open the "
        "link in it within 48 hours to confirm."
    ),
    Channel.WEBHOOK: N_(
        "We send a POST request with a token to this URL. The subscription is "
        "confirmed when the answer contains the token."
    ),
}


def sign_up(visit: Visit) -> Response:
    if visit.request.method != "POST":
        return _form(visit, next(iter(visit.public.channels), ""), "")
    channel = visit.request.form.get("channel", "")
    target = visit.request.form.get("target", "").strip()
    address = visit.request.remote_addr
    try:
        visit.public.subscribe(visit.address.id, channel, target, address=address)
    except Invalid as fault:
        return _form(visit, channel, target, fault.errors, 422)
    except Throttled as fault:
        answer = _form(visit, channel, target, {"target": [str(fault)]}, 429)
        answer.headers["Retry-After"] = str(fault.retry_after)
        return answer
    return _message(visit, _("Almost done"), _(SENT[Channel(channel)]))


def confirm(visit: Visit) -> Response:
    return _by_token(
        visit,
        visit.public.confirm,
        _("Confirm your subscription"),
        _("Confirm"),
        _("You are subscribed"),
        _("You will receive a message for each post and update on this page."),
    )


def unsubscribe(visit: Visit) -> Response:
    return _by_token(
        visit,
        visit.public.unsubscribe,
        _("End your subscription"),
        _("Unsubscribe"),
        _("You are no longer subscribed"),
        _("You will receive no more messages from this page."),
    )


def void(visit: Visit) -> Response:
    return _message(
        visit, _("This link is not valid"), _("It was used already, or has expired."), 404
    )


def _by_token(
    visit: Visit,
    act: Callable[[str], StatusPage],
    question: str,
    button: str,
    title: str,
    text: str,
) -> Response:
    if visit.request.method != "POST":
        return visit.html("status/by_token.html", question=question, button=button)
    try:
        act(visit.token or "")
    except NotFound:
        return void(visit)
    return _message(visit, title, text)


def _form(
    visit: Visit,
    channel: str,
    target: str,
    errors: dict[str, list[str]] | None = None,
    status: int = 200,
) -> Response:
    faults = [sentence for sentences in (errors or {}).values() for sentence in sentences]
    return visit.html(
        "status/subscribe.html",
        status,
        channels=visit.public.channels,
        label=join_words((_(LABELS[Channel(name)]) for name in visit.public.channels), OR),
        channel=channel,
        target=target,
        faults=faults,
    )


def _message(visit: Visit, title: str, text: str, status: int = 200) -> Response:
    return visit.html("status/said.html", status, title=title, text=text)
