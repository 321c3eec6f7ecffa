"""A domain's expiry by WHOIS (RFC 3912): text without a grammar, in a format for each registry."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

from app.checks.expiry.registry import NoAnswer, plausible, refuse_parent
from app.i18n import N_, _
from app.net.client import Blocked, ConnectionFailed, Network
from app.rules.suffixes import above

IANA = "whois.iana.org"
MAX_BYTES = 64 * 1024
# Limits on the parts of an answer that are parsed: a pattern reads one short line at a time, and to
# find that a text is no date takes a millisecond.
MAX_LINE = 300
MAX_DATE = 100
MAX_DATES = 30
PORT = 43

# The question for servers that do not accept the plain name.
_QUESTIONS = {
    "com": "domain {}",  # without the word, Verisign also lists name servers of that name
    "net": "domain {}",
    "jp": "{}/e",  # English labels
    "de": "-T dn {}",
}

# Labels of the expiry; the registry's come before the registrar's.
_LABELS = (
    r"registry expiry date", r"domain expiration date",
    r"expir(?:y|ation|e)[ _-]*(?:date|time|on)?", r"expires(?:[ _-]*(?:on|at|date))?",
    r"exp(?:\.|iry)? date", r"paid[ _-]till", r"renewal(?: date)?", r"domain[ _]expires",
    r"record expires(?: on)?", r"valid[ _-]?(?:until|to|ity)|validity", r"domain_datebilleduntil",
    r"registrar registration expiration date",
)  # fmt: skip
_ENDS = [
    re.compile(rf"[\s\[%*-]*+(?:{label})(?=[\s\].:])[\s\].]*+:?+(?P<value>.*)", re.I | re.S)
    for label in _LABELS
]
_UNKNOWN_DOMAIN = re.compile(
    r"[%\s]*+(?:no match|not found|no data found|no entries found|domain not found"
    r"|no object found|nothing found|the queried object does not exist"
    r"|status:\s*+(?:free|available))",
    re.I,
)
_LIMITED = re.compile(r"quota|limit exceeded|rate limit|too many (?:queries|requests)", re.I)
_NAMED = re.compile(
    r"[\s\[%*-]*+(?:domain(?:[ _-]name)?)(?=[\s\].:]|\Z)[\s\].:]*+(?P<value>\S*+)", re.I
)
_REFERRAL = re.compile(r"(?:refer|whois):\s*+(\S++)", re.I)

# The day comes first if the order is ambiguous. The format with the month first is the last one: it
# is for dates such as 08/13/2026.
_FORMATS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y. %m. %d.", "%Y%m%d", "%Y-%b-%d", "%Y-%b-%d.",
    "%d-%b-%Y", "%d %b %Y", "%d-%m-%Y", "%d/%m/%Y", "%d.%m.%Y", "%d %B %Y", "%d-%B-%Y",
    "%B %d %Y", "%b %d %Y", "%a %b %d %Y", "%d/%b/%Y", "%m/%d/%Y",
)  # fmt: skip
_TIME = re.compile(r"[T\s]+(\d{1,2}:\d{2}(?::\d{2})?)(?:\.\d+)?")
_ZONE = re.compile(
    r"^\s*(?P<zulu>Z|UTC|GMT)?\s*\(?(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d{2})?"
)


def expiry(
    domain: str, servers: Mapping[str, str] | None, deadline: float, network: Network
) -> datetime:
    """The domain's expiry by the registry, aware UTC. Raises NoAnswer.

    ``servers`` maps a top-level domain, a longer suffix such as ``uk.com``, or ``*`` to
    ``host[:port]``; None asks IANA for the server. ``deadline`` is monotonic.
    """
    tld = domain.rpartition(".")[2]
    if servers is None:
        server = _referred(ask(IANA, tld, deadline, network, own_setting=True), tld)
    else:
        suffixes = [*above(domain)[1:], "*"]
        listed_server = next((servers[suffix] for suffix in suffixes if servers.get(suffix)), None)
        if not listed_server:
            raise NoAnswer(_("no server is known for .%(tld)s.", tld=tld))
        server = listed_server
    question = _QUESTIONS.get(tld, "{}").format(domain)
    answer = ask(server, question, deadline, network, own_setting=servers is not None)
    return expiry_in(answer, domain)


def _referred(answer: str, tld: str) -> str:
    for line in _lines(answer):
        if match := _REFERRAL.fullmatch(line):
            return match[1]
    raise NoAnswer(_("no server is known for .%(tld)s.", tld=tld))


def ask(server: str, question: str, deadline: float, network: Network, *, own_setting: bool) -> str:
    """Send one question over TCP and read at most 64 KiB of answer. ``own_setting``: the server is
    from a setting, or IANA's, so the policy does not judge it. Raises NoAnswer.
    """
    host, colon, port = server.rpartition(":")
    host, number = (
        (host.strip("[]"), port)
        if colon and port.isascii() and port.isdigit()
        else (server, str(PORT))
    )
    seconds = max(0.0, deadline - time.monotonic())
    try:
        with network.connect(host, int(number), seconds, own_setting=own_setting) as tcp:
            tcp.sendall(question.encode("ascii", "replace") + b"\r\n")
            return _read(tcp, deadline)
    except Blocked as refused:
        sentence = N_("%(host)s is where Wakeful may not go: %(why)s")
        raise NoAnswer(_(sentence, host=host, why=refused)) from None
    except ConnectionFailed as fault:
        raise NoAnswer(str(fault)) from None
    except TimeoutError:
        raise NoAnswer(_("%(host)s did not answer in time.", host=host)) from None
    except OSError:
        raise NoAnswer(_("%(host)s could not be reached.", host=host)) from None


def _set_time_left(sock: socket.socket, deadline: float) -> None:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    sock.settimeout(seconds)


def _read(sock: socket.socket, deadline: float) -> str:
    data = bytearray()
    while len(data) < MAX_BYTES:
        _set_time_left(sock, deadline)
        chunk = sock.recv(8192)
        if not chunk:
            break
        data += chunk
    return data.decode("utf-8", "replace")


def _lines(text: str) -> list[str]:
    """The lines with content, each stripped and cut to the limit."""
    return [line for raw in text.splitlines() if (line := raw[:MAX_LINE].strip())]


def expiry_in(text: str, domain: str = "the domain") -> datetime:
    """The expiry in a WHOIS answer, aware UTC. Raises NoAnswer with the reason."""
    lines = _lines(text)
    refuse_parent(set(_values(lines, _NAMED)), domain)
    ends = (value for label in _ENDS for value in _values(lines, label))
    for value in islice(ends, MAX_DATES):
        moment = parse_date(value)
        if moment is not None:
            return plausible(moment)
    if any(_UNKNOWN_DOMAIN.match(line) for line in lines):
        raise NoAnswer(_("the registry does not know %(domain)s.", domain=domain))
    if _LIMITED.search(text):
        raise NoAnswer(_("the registry accepts no more queries for now."))
    raise NoAnswer(_("the answer has no expiry date."))


def _values(lines: Sequence[str], label: re.Pattern[str]) -> Iterator[str]:
    """The text after this label, or the next line if nothing is there."""
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        if match := label.match(line):
            yield match["value"].strip() or below


def parse_date(value: str) -> datetime | None:
    """A registry's date, aware UTC (without a zone it is read as UTC); None if it is not a date."""
    value = " ".join(value[:MAX_DATE].replace(",", " ").split())
    clock = _TIME.search(value)
    day, zone = (value[: clock.start()], value[clock.end() :]) if clock else (value, "")
    if clock and re.match(r"\s*(?:[A-Z]{3,4}\s+)?\d{4}\s*$", zone):  # "Fri Aug 13 12:00 GMT 2026"
        day, zone = f"{day} {zone.split()[-1]}", ""
    date = _day(day) or (None if clock else _day(" ".join(day.split()[:1])))
    if date is None:
        return None
    if clock:
        hours, minutes, *seconds = (int(part) for part in clock[1].split(":"))
        with suppress(ValueError):
            date = date.replace(hour=hours, minute=minutes, second=seconds[0] if seconds else 0)
    try:
        return date.replace(tzinfo=_zone(zone)).astimezone(UTC)
    except OverflowError:  # the first or the last day of the calendar, shifted by its zone
        return None


def _day(text: str) -> datetime | None:
    text = " ".join(text.split()).removesuffix(".")
    for form in _FORMATS:
        with suppress(ValueError):
            return datetime.strptime(text, form.removesuffix("."))  # noqa: DTZ007  (set by the caller)
    return None


def _zone(text: str) -> timezone:
    match = _ZONE.match(text)
    if not match:
        return UTC
    offset = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"] or 0))
    if offset >= timedelta(hours=24):
        return UTC
    return timezone(-offset if match["sign"] == "-" else offset)
