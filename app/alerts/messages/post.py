"""The messages to the subscribers of a status page. They contain nothing that the page does not
show.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from app.alerts import words
from app.alerts.messages.message import Facts, Message, MessageContext, MessageLink, Tone
from app.i18n import _
from app.records import PostState
from app.rules.page_state import confirm_link, page_link, post_word, unsubscribe_link

_TONES = {
    PostState.INVESTIGATING: Tone.BAD,
    PostState.IDENTIFIED: Tone.WARNING,
    PostState.RESOLVED: Tone.GOOD,
    PostState.COMPLETED: Tone.GOOD,
}


def post(facts: Facts, context: MessageContext) -> Message:
    """The message about a new post, or about an update of a post."""
    post = facts["post"]
    state = post_word(post["state"])
    details = [(_("State"), state)]
    details += [(_("Affected"), ", ".join(post["monitors"]))] if post["monitors"] else []
    details += [
        (label, words.clock_time(datetime.fromisoformat(post[name])))
        for label, name in ((_("Begins"), "starts_at"), (_("Ends"), "ends_at"))
        if post[name]
    ]
    title = f"{state}: {words.shorten(post['title'], words.MAX_NAME_SHOWN)} ({_name(facts)})"
    message = _to_subscriber(facts, context, title, post["body"])
    return replace(
        message,
        tone=_TONES.get(post["state"], Tone.PLAIN),
        at=datetime.fromisoformat(post["created_at"]),
        details=tuple(details),
        thread=f"post-{post['id']}",
        data={**message.data, "post": dict(post)},
    )


def already_subscribed(facts: Facts, context: MessageContext) -> Message:
    """The answer to somebody who subscribes again."""
    return _to_subscriber(
        facts,
        context,
        _("You are subscribed to %(name)s", name=_name(facts)),
        _(
            "Somebody, probably you, subscribed to this status page with this address. You get"
            " its messages already, so there is nothing to do."
        ),
    )


def _to_subscriber(facts: Facts, context: MessageContext, title: str, summary: str) -> Message:
    page = _page(facts, context)
    end = unsubscribe_link(page, facts["unsubscribe"])
    return Message.of(
        facts,
        Tone.PLAIN,
        title,
        summary,
        links=(MessageLink(_("Status page"), page), MessageLink(_("Unsubscribe"), end)),
        data={"page": {"name": facts["page"]["name"], "link": page}, "unsubscribe": end},
        unsubscribe=end,
        footer=_footer(facts),
    )


def confirm(facts: Facts, context: MessageContext) -> Message:
    """The question to confirm a subscription. A webhook confirms it by sending the token back."""
    page = _page(facts, context)
    return Message.of(
        {**facts, "event": "confirm"},  # the type that webhooks get
        Tone.PLAIN,
        _("Confirm your subscription to %(name)s", name=_name(facts)),
        _(
            "Somebody, probably you, subscribed to this status page with this address. "
            "Open the link within 48 hours and confirm the subscription. "
            "If it was not you, do nothing: you get no more messages."
        ),
        links=(
            MessageLink(_("Confirm"), confirm_link(page, facts["token"])),
            MessageLink(_("Status page"), page),
        ),
        data={"page": {"name": facts["page"]["name"], "link": page}, "token": facts["token"]},
        footer=_footer(facts),
    )


def _page(facts: Facts, context: MessageContext) -> str:
    return page_link(context.base_url, facts["page"]["slug"], facts["page"]["domain"])


def _name(facts: Facts) -> str:
    return words.shorten(facts["page"]["name"], words.MAX_NAME_SHOWN)


def _footer(facts: Facts) -> str:
    return _("This address was entered on the status page of %(name)s.", name=_name(facts))
