"""SMS through the provider that is set once for the instance (``app.rules.sms`` says how it is
written).
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from app.alerts import words
from app.alerts.channels import answer
from app.alerts.channels.answer import Answer
from app.alerts.channels.base import Outgoing, Tools, field_of, post
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
    )


def _twilio_said(response: Response) -> str:
    body = response.body
    if response.status < 300 and isinstance(body, dict):
        return f"{body.get('status', 'accepted')} {body.get('sid', '')}"
    return field_of("message")(response)


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
    secrets = (provider.user, provider.password)
    url = f"{provider.api}/sms/json"
    found: list[Response] = []

    def said(response: Response) -> str:
        found.append(response)
        return _vonage_said(response)

    got = post(outgoing, tools, url, form, secrets=secrets, own_setting=True, read=said)
    return _vonage_verdict(got, found[0], secrets, outgoing) if found and got.ok else got


def _vonage_parts(response: Response) -> list[dict[str, object]]:
    body = response.body
    messages = body.get("messages") if isinstance(body, dict) else None
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


def _vonage_verdict(
    got: Answer, response: Response, secrets: tuple[str, ...], outgoing: Outgoing
) -> Answer:
    """Vonage answers 200 in any case; what became of the message is in the body. A body that says
    nothing of it leaves the status: to send once more would cost, and may repeat the message.
    """
    statuses = [str(part["status"]) for part in _vonage_parts(response) if "status" in part]
    bad = [status for status in statuses if status != "0"]
    if not bad:
        return got
    said = masking.clean(_vonage_said(response), secrets)
    if bad[0] in _VONAGE_PASSING:
        pause = answer.retry_after(response.headers, response.body, outgoing.now)
        return answer.retry(said, pause)
    return answer.permanent(said)


_PROVIDERS: dict[str, Callable[[Provider, Outgoing, Tools], Answer]] = {
    "twilio": _twilio,
    "vonage": _vonage,
}
