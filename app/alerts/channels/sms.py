"""SMS through the provider that is set once for the instance (``app.rules.sms`` says how it is
written).
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from app.alerts import words
from app.alerts.channels import answer
from app.alerts.channels.answer import Answer, Verdict
from app.alerts.channels.base import Outgoing, Tools, dict_of, field_of, post
from app.alerts.channels.setup import NO_SMS_PROVIDER
from app.alerts.messages import ADDRESS, Message
from app.i18n import _
from app.net.client import Response
from app.rules import masking
from app.rules.sms import Provider, parse

MAX_LINE = 110  # longer lines would only cost more
MAX_TEXT = 1_600  # Twilio refuses more
_GSM = set(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà^{}\\[~]|€"
)  # fmt: skip


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    if tools.settings.sms_url is None:
        return answer.permanent(_(NO_SMS_PROVIDER))
    provider = parse(tools.settings.sms_url)
    return _PROVIDERS[provider.kind](provider, outgoing, tools)


def text(message: Message) -> str:
    """The message in few words, without the monitor's address. What is too long is cut at its
    end; the links stay.
    """
    address = _(ADDRESS)
    facts = [message.summary]
    facts += [f"{label}: {value}" for label, value in message.details if label != address]
    facts += [item.text for item in message.items]
    lines = [message.title, *(words.shorten(fact, MAX_LINE) for fact in facts)]
    links = [f"{link.label}: {link.url}" for link in message.links]
    while len("\n".join([*lines, *links])) > MAX_TEXT and len(lines) > 1:
        lines.pop()
    return "\n".join([*lines, *links])


def _twilio(provider: Provider, outgoing: Outgoing, tools: Tools) -> Answer:
    sender = "MessagingServiceSid" if provider.sender.startswith("MG") else "From"
    return post(
        outgoing,
        tools,
        f"{provider.api}/2010-04-01/Accounts/{quote(provider.user, safe='')}/Messages.json",
        {"To": outgoing.value, sender: provider.sender, "Body": text(outgoing.message)},
        auth=(provider.user, provider.password),
        secrets=(
            provider.user,
            provider.password,
            masking.basic(provider.user, provider.password),
        ),
        own_setting=True,
        read=_twilio_said,
        judge=_twilio_verdict,
    )


def _twilio_said(response: Response) -> str:
    body = dict_of(response)
    if response.status < 300 and body and not body.get("error_code"):
        return f"{body.get('status', 'accepted')} {body.get('sid', '')}"
    error = field_of("error_message" if body.get("error_code") else "message")(response)
    return f"{body['error_code']} {error}" if body.get("error_code") else error


# Tuples, because an answer may have anything there, also what cannot be hashed.
# https://www.twilio.com/docs/api/errors: too many at once, a full queue, a fault of theirs.
_TWILIO_PASSING = (14107, 20429, 20500, 20503, 21611, 30001, 30022)
_TWILIO_FAILED = ("failed", "undelivered", "canceled")


def _twilio_verdict(response: Response) -> Verdict:
    """Twilio takes a message with 201 that it already knows it cannot send."""
    verdict, body = answer.judge_status(response.status), dict_of(response)
    if verdict is Verdict.DELIVERED:
        if body.get("error_code") in _TWILIO_PASSING:
            return Verdict.RETRY
        failed = body.get("error_code") or body.get("status") in _TWILIO_FAILED
        return Verdict.PERMANENT if failed else verdict
    return Verdict.RETRY if body.get("code") in _TWILIO_PASSING else verdict


def _vonage(provider: Provider, outgoing: Outgoing, tools: Tools) -> Answer:
    body = text(outgoing.message)
    form = {
        "api_key": provider.user,
        "api_secret": provider.password,
        "from": provider.sender.removeprefix("+"),
        "to": outgoing.value.removeprefix("+"),
        "text": body,
        "type": "text" if set(body) <= _GSM else "unicode",
    }
    return post(
        outgoing,
        tools,
        f"{provider.api}/sms/json",
        form,
        secrets=(provider.user, provider.password),
        own_setting=True,
        read=_vonage_said,
        judge=_vonage_verdict,
    )


def _vonage_parts(response: Response) -> list[dict[str, object]]:
    messages = dict_of(response).get("messages")
    return (
        [part for part in messages if isinstance(part, dict)] if isinstance(messages, list) else []
    )


def _vonage_said(response: Response) -> str:
    for part in _vonage_parts(response):
        if str(part.get("status", "0")) != "0":
            return f"status {part.get('status')} {part.get('error-text', '')}"
    ids = [str(part.get("message-id")) for part in _vonage_parts(response)]
    return f"accepted {' '.join(ids)}" if ids else response.words


# Throttled, internal error, too many binds: temporary. All other statuses are permanent.
_VONAGE_PASSING = frozenset({"1", "5", "10"})


def _vonage_verdict(response: Response) -> Verdict:
    """Vonage answers 200 in any case; what became of the message is in the body. A body that says
    nothing of it leaves the status: to send once more would cost, and may repeat the message.
    """
    verdict = answer.judge_status(response.status)
    statuses = [str(part["status"]) for part in _vonage_parts(response) if "status" in part]
    bad = [status for status in statuses if status != "0"]
    if verdict is not Verdict.DELIVERED or not bad:
        return verdict
    return Verdict.RETRY if bad[0] in _VONAGE_PASSING else Verdict.PERMANENT


_PROVIDERS: dict[str, Callable[[Provider, Outgoing, Tools], Answer]] = {
    "twilio": _twilio,
    "vonage": _vonage,
}
