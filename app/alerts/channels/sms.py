"""SMS through the provider of this installation. ``app.rules.sms`` reads its setting."""

from __future__ import annotations

from urllib.parse import quote

from app.alerts import words
from app.alerts.answers import Acceptance, Answer, permanent
from app.alerts.channels.base import Outgoing, Tools, dict_of, field_of, is_good, post
from app.alerts.messages.incident import ADDRESS
from app.alerts.messages.message import Message
from app.i18n import _
from app.net.client import Response
from app.rules import masking
from app.rules.sms import Provider, parse

MAX_LINE = 110  # longer lines would only cost more
MAX_TEXT = 1_600  # Twilio refuses more
_GSM = set(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà^{}\\[~]|€"
)  # fmt: skip


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    if tools.settings.sms_url is None:
        return permanent(_("No SMS provider is set up. Set WAKEFUL_SMS_URL, then retry."))
    provider = parse(tools.settings.sms_url)
    send_by = _twilio if provider.service == "twilio" else _vonage
    return send_by(provider, outgoing, tools)


def text(message: Message) -> str:
    """The message in few words, without the monitor's address. If it is too long, its last lines
    before the links are left out.
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
    login = provider.user, provider.password
    return post(
        outgoing,
        tools,
        {"To": outgoing.value, sender: provider.sender, "Body": text(outgoing.message)},
        url=f"{provider.api}/2010-04-01/Accounts/{quote(provider.user, safe='')}/Messages.json",
        form=True,
        auth=login,
        secrets=(*login, masking.basic(*login)),
        own_setting=True,
        read=_twilio_words,
        acceptance=_twilio_acceptance,
    )


def _twilio_words(response: Response) -> str:
    body = dict_of(response)
    code = body.get("error_code")
    if response.status < 300 and body and not code:
        return f"{body.get('status', 'accepted')} {body.get('sid', '')}"
    error = field_of("error_message" if code else "message")(response)
    return f"{code} {error}" if code else error


# Tuples, because an answer may have a value there that cannot be hashed.
# https://www.twilio.com/docs/api/errors: too many requests, a full queue, a fault of Twilio.
_TWILIO_PASSING = (14107, 20429, 20500, 20503, 21611, 30001, 30022)
_TWILIO_FAILED = ("failed", "undelivered", "canceled")


def _twilio_acceptance(response: Response) -> Acceptance | None:
    """Twilio answers 201 also for a message that it cannot send; its body has the error."""
    body = dict_of(response)
    code = body.get("error_code" if is_good(response) else "code")
    if code in _TWILIO_PASSING:
        return Acceptance.RETRY
    failed = code or body.get("status") in _TWILIO_FAILED
    return Acceptance.PERMANENT if is_good(response) and failed else None


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
        form,
        url=f"{provider.api}/sms/json",
        form=True,
        secrets=(provider.user, provider.password),
        own_setting=True,
        read=_vonage_words,
        acceptance=_vonage_acceptance,
    )


def _vonage_parts(response: Response) -> list[dict[str, object]]:
    messages = dict_of(response).get("messages")
    parts = messages if isinstance(messages, list) else ()
    return [part for part in parts if isinstance(part, dict)]


def _vonage_words(response: Response) -> str:
    parts = _vonage_parts(response)
    for part in parts:
        if str(part.get("status", "0")) != "0":
            return f"status {part.get('status')} {part.get('error-text', '')}"
    ids = " ".join(str(part.get("message-id")) for part in parts)
    return f"accepted {ids}" if parts else response.words


# Throttled, internal error, too many binds: temporary. All other statuses are permanent.
_VONAGE_PASSING = frozenset({"1", "5", "10"})


def _vonage_acceptance(response: Response) -> Acceptance | None:
    """Vonage answers 200 in any case; the body has the status of each part of the message. If the
    body has none, the message counts as sent: another attempt would cost money and may repeat it.
    """
    statuses = (str(part["status"]) for part in _vonage_parts(response) if "status" in part)
    bad = next((status for status in statuses if status != "0"), None)
    if not is_good(response) or bad is None:
        return None
    return Acceptance.RETRY if bad in _VONAGE_PASSING else Acceptance.PERMANENT
