"""Candidates: the entries of a file in one form for all sources, before they become monitors."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import unquote

from app.i18n import N_, _
from app.imports.values import (
    ImportEntry,
    cut_line,
    duration_text,
    header_rows,
    number_text,
    string,
)
from app.records import (
    ALERT_DAYS,
    CHECK_EVERY_SECONDS,
    CONFIRMATIONS,
    DEFAULT_HEARTBEAT_INTERVAL,
    GRACE_SECONDS,
    HEARTBEAT_URL,
    MAX_NOTES,
    MAX_REDIRECTS,
    MAX_TAG,
    PERIOD_SECONDS,
    PING_COUNT,
    REMIND_AFTER_MINUTES,
    SLOW_AFTER_MS,
    TIMEOUT_SECONDS,
    AlertCondition,
    Assertion,
    Pair,
    interval_fields,
)
from app.rules.suffixes import registrable_domain

# The names of the formats by the value of ``--format``.
FORMATS = {
    "csv": N_("Lines or CSV"),
    "kuma": N_("Uptime Kuma: backup or list of monitors (JSON), or kuma.db"),
    "uptimerobot": N_("UptimeRobot: CSV, or JSON of the API"),
    "betterstack": N_("Better Stack: JSON of /api/v2/monitors, or CSV"),
    "healthchecks": N_("healthchecks: JSON of /api/v3/checks/"),
    "gatus": N_("Gatus: configuration or ConfigMap (YAML)"),
    "upptime": N_("Upptime: .upptimerc.yml"),
    "kuvasz": N_("Kuvasz: monitors (YAML)"),
    "checkmate": N_("Checkmate: monitors (JSON)"),
    "file_sd": N_("Prometheus: targets for file_sd (JSON or YAML)"),
}
MAX_CANDIDATES = 10_000
MAX_REMARKS = 30
MAX_ROWS = 100  # tags, headers, alerts: more than a monitor has
MAX_TAG_READ = 1_000
# The numbers of a monitor: the label, the bounds, and how remarks write a value.
NUMBERS: Mapping[str, tuple[str, tuple[int, int], Callable[[float], str]]] = {
    "period": (N_("Expected every"), PERIOD_SECONDS, duration_text),
    "grace": (N_("Grace"), GRACE_SECONDS, duration_text),
    "timeout": (N_("Time limit"), TIMEOUT_SECONDS, duration_text),
    "confirmations": (N_("Rechecks"), CONFIRMATIONS, number_text),
    "ping_count": (N_("Pings"), PING_COUNT, number_text),
    "remind_after": (
        N_("Reminder every"), REMIND_AFTER_MINUTES, lambda minutes: duration_text(60 * minutes),
    ),
    "slow_after": (N_("Slow after"), SLOW_AFTER_MS, "{:g} ms".format),
}  # fmt: skip
EXPIRIES = {"ssl_alert_days": N_("Certificate expiry"), "domain_alert_days": N_("Domain expiry")}
# Wakeful warns once. Other tools warn on several days before something expires.
WARN_DAYS = 14
SLOW_ALERTS = N_("A slow response alerts when it is slow for %(minutes)s minutes.")
SLOW_MINUTES = 5  # other tools alert at the first slow response
RECHECK_PAUSE = N_(
    "The pause of %(pause)s between rechecks is dropped: WAKEFUL_CONFIRM_SECONDS sets one for all"
    " monitors."
)
BECOMES = N_("%(field)s: %(old)s becomes %(new)s.")
DAYS_BECOME = N_("%(field)s: %(old)s days becomes %(new)s.")
UNKNOWN_SETTING = N_('Setting "%(name)s" dropped: Wakeful does not have it.')
NO_CODES = N_("Its status codes cannot be read.")
NO_MONITORS = N_("The file has no monitors.")


class NotReadable(ValueError):
    """The file as a whole cannot be read. ``str(fault)`` is a sentence that repeats no value of the
    file. ``line``: the line of the first error, if it is known.
    """

    def __init__(self, sentence: str, /, *, line: int | None = None, **values: Any) -> None:
        position = " " + _("The first error is in line %(line)s.", line=line) if line else ""
        super().__init__(_(sentence, **values) + position)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry of a file that may become a monitor. ``fields`` has the monitor's other fields by
    name: text, or tuples of ``str``, ``Pair`` or ``Assertion``; some are secrets. ``refusal`` says
    why the entry cannot become a monitor; it is empty if it can.
    """

    position: str  # in the file, such as "Line 3"
    name: str
    url: str
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    remarks: Sequence[str] = ()
    refusal: str = ""
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a file. ``remarks`` are about the whole file. ``contacts``: the contacts to
    create, each with its channels; several monitors of the file share such a contact.
    """

    source: str
    candidates: Sequence[Candidate]
    remarks: Sequence[str] = ()
    contacts: Mapping[str, Sequence[Pair]] = field(default_factory=dict, repr=False)


def no_kind(kind: str) -> str:
    """The refusal of a kind of check that Wakeful lacks. ``kind``: its name for people."""
    return _("Wakeful has no %(kind)s checks yet.", kind=_(kind))


E = TypeVar("E")


def limited(entries: Sequence[E]) -> Sequence[E]:
    """Return ``entries``, or raise NotReadable if there are too many."""
    if len(entries) > MAX_CANDIDATES:
        sentence = N_("The file has more than %(most)s entries. Split it.")
        raise NotReadable(sentence, most=f"{MAX_CANDIDATES:,}")
    return entries


@dataclass(frozen=True, slots=True, eq=False)
class Notification:
    """The channels of a notification of another tool, with remarks. Each notification is read once,
    because ten thousand monitors may name it.
    """

    name: str = ""
    channels: Sequence[Pair] = field(default=(), repr=False)
    remarks: Sequence[str] = ()


@dataclass(slots=True)
class Draft:
    """A candidate that is being built from the fields of an entry."""

    position: str
    name: str
    url: str = ""
    fields: dict[str, Any] = field(default_factory=dict, repr=False)
    remarks: list[str] = field(default_factory=list)
    refusal: str = ""
    paused: bool = False
    notifications: list[Notification] = field(default_factory=list, repr=False)
    _rows: set[tuple[str, str, str]] = field(default_factory=set, repr=False)

    @classmethod
    def of_tool(cls, position: str, name: str) -> Draft:
        """A draft without a certificate warning, which is off by default in other tools."""
        return cls(position, name, fields={"ssl_alert_days": ""})

    def remark(self, sentence: str, /, **values: Any) -> None:
        """Add a remark. ``sentence``: what is dropped or changed."""
        if len(self.remarks) == MAX_REMARKS:
            sentence, values = N_("There are more changes."), {}
        if (remark := _(sentence, **values)) not in self.remarks:
            self.remarks.append(remark)

    def refuse(self, sentence: str, /, **values: Any) -> None:
        self.refusal = self.refusal or _(sentence, **values)

    def drop_unread(
        self, entry: ImportEntry, sentences: Mapping[str, str], ignored: Collection[str] = ()
    ) -> None:
        """Add a remark for each setting of ``entry`` that was not read. ``sentences``: the remarks
        by setting, for settings that need another than the usual one. ``ignored``: the prefixes of
        settings that get no remark, because they change no check and no alert.
        """
        prefixes = tuple(ignored)
        for key in entry.unread():
            if key in sentences:
                self.remark(sentences[key])
            elif not key.startswith(prefixes):
                self.remark(UNKNOWN_SETTING, name=cut_line(key))

    def notify(self, notification: Notification) -> None:
        self.notifications.append(notification)
        for sentence in notification.remarks:
            self.remark(sentence)

    def set_interval(self, seconds: float | None, text: object = None) -> None:
        """Set the interval. Without ``seconds``, refuse the entry if the file has a ``text`` for
        it, which cannot be read.
        """
        if seconds is None or seconds <= 0:
            if string(text):
                sentence = N_('The interval "%(value)s" cannot be read.')
                self.refuse(sentence, value=cut_line(string(text)))
            return
        shortest, longest = CHECK_EVERY_SECONDS
        within = round(min(max(seconds, shortest), longest))
        self.fields |= {name: str(value) for name, value in interval_fields(within).items()}
        if within != seconds:
            self.remark(
                BECOMES, field=_("Interval"), old=duration_text(seconds), new=duration_text(within)
            )

    def make_heartbeat(self, token: str, period: float | None, grace: float | None) -> None:
        """Make the entry a heartbeat monitor. ``token``: the secret of the ping URL that its job
        calls.
        """
        self.url = HEARTBEAT_URL
        self.name = self.name or self.position  # never the token: everybody sees a name
        self.fields["interval"] = str(DEFAULT_HEARTBEAT_INTERVAL)
        if token:
            self.fields["heartbeat_token"] = token
        self.set_number("period", period)
        self.set_number("grace", grace)

    def set_confirmations(self, count: float | None, pause: float | None = None) -> None:
        """Set the confirmations. ``pause``: seconds between them in the other tool; Wakeful drops
        it.
        """
        self.set_number("confirmations", count)
        if count and count > 0 and pause:
            self.remark(RECHECK_PAUSE, pause=duration_text(pause))

    def keep_first(self, what: str, values: Sequence[str]) -> str:
        """Return the first of ``values``, or an empty text. If there are more, add a remark that
        they are dropped.
        """
        if len(values) > 1:
            sentence = N_("%(what)s: %(first)s is kept, the others are dropped.")
            self.remark(sentence, what=_(what), first=cut_line(values[0]))
        return values[0] if values else ""

    def set_slow_after(self, ms: float | None) -> None:
        if ms is not None:
            self.set_number("slow_after", ms)
            self.fields["slow_alert_after"] = str(SLOW_MINUTES)
            self.remark(SLOW_ALERTS, minutes=SLOW_MINUTES)

    def set_number(self, name: str, value: float | None) -> None:
        """Set a field of ``NUMBERS`` to the number within its bounds that is nearest to
        ``value``.
        """
        if value is None:
            return
        label, bounds, text_of = NUMBERS[name]
        number = round(min(max(value, bounds[0]), bounds[1]))
        self.fields[name] = str(number)
        if number != value:
            self.remark(BECOMES, field=_(label), old=text_of(value), new=text_of(number))

    def set_expiry_days(self, name: str, days: float | None) -> None:
        """Set a field of ``EXPIRIES`` to the least value of ``ALERT_DAYS`` that is not below
        ``days``; to the greatest if all are.
        """
        if days is None or days < 0:
            return
        alert_days = min((limit for limit in ALERT_DAYS if limit >= days), default=ALERT_DAYS[-1])
        self.fields[name] = str(alert_days)
        if alert_days != days:
            self.remark(DAYS_BECOME, field=_(EXPIRIES[name]), old=number_text(days), new=alert_days)

    def set_warning(self, name: str) -> None:
        """Set a field of ``EXPIRIES`` for which the file names no days."""
        self.fields[name] = str(WARN_DAYS)
        sentence = N_("%(field)s: one alert, %(days)s days before.")
        self.remark(sentence, field=_(EXPIRIES[name]), days=WARN_DAYS)

    def set_domain_warning(self, address: str) -> None:
        """Set the warning of the domain's expiry, unless the host has no domain, such as an IP
        address. ``address``: a host or a URL.
        """
        _scheme, slashes, after_scheme = without_login(address)[0].partition("://")
        authority = re.split("[/?#]", after_scheme if slashes else address, maxsplit=1)[0]
        if registrable_domain(authority.partition(":")[0]):
            self.set_warning("domain_alert_days")

    def set_switch(self, name: str, *, on: bool) -> None:
        """Set ``follow_redirects`` or ``verify_tls``."""
        self.fields[name] = "true" if on else "false"

    def set_notes(self, text: str) -> None:
        if text.strip():
            self.fields["notes"] = text[:MAX_NOTES]
        if len(text) > MAX_NOTES:
            self.remark(N_("Notes: the first %(most)s characters are kept."), most=f"{MAX_NOTES:,}")

    def set_redirects(self, limit: float | None) -> None:
        """``limit``: how many redirects the other tool follows, if the file says so."""
        self.set_switch("follow_redirects", on=limit != 0)
        if limit and limit != MAX_REDIRECTS:
            sentence = N_("At most %(most)s redirects: Wakeful follows up to %(ours)s.")
            self.remark(sentence, most=number_text(limit), ours=MAX_REDIRECTS)

    def set_request(
        self, entry: ImportEntry, method: str, headers: str = "", body: str = ""
    ) -> None:
        """Set the method, headers and body. ``method``, ``headers`` and ``body`` are the names of
        the settings in ``entry``; spaces separate alternative names.
        """
        if text := entry.text(*method.split()):
            self.fields["request_method"] = text.upper()
        self.set_headers(entry.get(*headers.split()))
        if text := entry.text(*body.split()):
            self.set_body(text)

    def set_headers(self, value: object) -> None:
        """Set the headers of the request from a value that ``header_rows`` reads."""
        rows = header_rows(value)
        if rows is None:
            self.refuse(N_("The request headers cannot be read."))
        for name, text in rows or ():
            self.add_pair("request_headers", name, text)

    def set_statuses(self, codes: Iterable[object]) -> None:
        """Set the accepted codes from ``200``, ``"200-299"`` or ``"2xx"``. The form validates
        them.
        """
        texts = filter(None, (string(code).strip() for code in codes))
        ranges = [re.sub(r"^(.)xx$", r"\g<1>00-\g<1>99", text, flags=re.I) for text in texts]
        if ranges:
            self.fields["accepted_statuses"] = ",".join(ranges)

    def set_codes(self, codes: Iterable[int]) -> None:
        """Set the accepted codes, written as ranges."""
        ranges: list[list[int]] = []
        for code in sorted(codes):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
        self.set_statuses(f"{low}" if low == high else f"{low}-{high}" for low, high in ranges)

    def set_text(self, lookup: str, *, unwanted: bool = False) -> None:
        """Set the text to find. ``unwanted``: alert while the text is there."""
        condition = AlertCondition.URL_TEXT if unwanted else AlertCondition.URL_NO_TEXT
        self.fields |= {"alert_condition": condition.value, "alert_text_lookup": lookup}

    def add_assertion(self, source: str, op: str, value: str = "", path: str = "") -> None:
        """Add an assertion. ``path``: a JSON path."""
        rows = self.fields.get("assertions", ())
        if len(rows) < MAX_ROWS:
            row = Assertion(source, path or None, op, value or None)
            self.fields["assertions"] = tuple(dict.fromkeys((*rows, row)))

    def add_tags(self, tags: Iterable[str]) -> None:
        shortened = list(self.fields.get("tags", ()))
        for tag in islice(tags, MAX_ROWS):
            short = " ".join(tag[:MAX_TAG_READ].replace(",", " ").split())
            if len(short) > MAX_TAG:
                sentence = N_('The tag "%(tag)s" is cut to %(most)s characters.')
                self.remark(sentence, tag=cut_line(short), most=MAX_TAG)
                short = short[:MAX_TAG].strip()
            if short and short not in shortened:
                shortened.append(short)
        if shortened:
            self.fields["tags"] = tuple(shortened)

    def add_pair(self, name: str, key: str, value: str) -> None:
        """Add a row to ``request_headers`` or ``alerts``, unless it is there."""
        rows, row = self.fields.get(name, ()), (name, key, value)
        if len(rows) < MAX_ROWS and row not in self._rows:
            self._rows.add(row)
            self.fields[name] = (*rows, Pair(key, value))

    def set_body(self, text: str, content_type: str = "") -> None:
        """Set the request body. ``content_type``: the header that the other tool sends if the
        monitor has none.
        """
        self.fields["request_body"] = text
        headers = self.fields.get("request_headers", ())
        if content_type and not any(pair.key.lower() == "content-type" for pair in headers):
            self.add_pair("request_headers", "Content-Type", content_type)

    def set_login(self, user: str, password: str) -> None:
        self.fields["request_auth_username"] = user
        if password:
            self.fields["request_auth_password"] = password

    def set_basic(self, user: str, password: str) -> None:
        """Set the login of a monitor that uses Basic authentication, even if the file lacks it."""
        if not user:
            self.refuse(N_("The file lacks the user name of its Basic authentication."))
        elif not password:
            self.remark(N_("The file lacks the password of its Basic authentication. Add it."))
        self.set_login(user, password)

    def finish(self) -> Candidate:
        """The candidate, with the login of the URL moved to its fields."""
        url, user, password = without_login(self.url)
        if user or password:
            self.remark(N_("The user name and password move from the URL to their own fields."))
            self.set_login(user, password)
        name, remarks = self.name.strip(), tuple(self.remarks)
        return Candidate(self.position, name, url, self.fields, remarks, self.refusal, self.paused)


def without_login(url: str) -> tuple[str, str, str]:
    """``url`` without its user name and password, the user name, and the password."""
    scheme, slashes, after_scheme = url.strip().partition("://")
    authority = re.split("[/?#]", after_scheme, maxsplit=1)[0]
    login, at, host = authority.rpartition("@")
    if not slashes or not at:
        return url.strip(), "", ""
    user, _colon, password = login.partition(":")
    path = after_scheme.removeprefix(authority)
    return f"{scheme}://{host}{path}", unquote(user), unquote(password)


def host_and_port(host: str, port: object, scheme: str = "tcp") -> str:
    host = host.strip()
    if not string(port) and host.count(":") == 1:
        return f"{scheme}://{host}"
    return f"{scheme}://{_bracketed(host)}:{string(port)}"


def ping_url(host: str) -> str:
    """``host``: an address, a name, or a URL with the host to ping."""
    bare = host.strip().partition("://")[2] or host.strip()
    return f"ping://{_bracketed(bare.partition('/')[0])}"


def dns_url(name: str, type_: str, server: str = "", port: object = "") -> str:
    """``type_``: the type of the records; ``server``: empty for the resolver of the machine."""
    host = _bracketed(server.strip())
    if host:
        host = f"//{host}:{string(port)}/" if string(port) else f"//{host}/"
    return f"dns:{host}{name.strip()}?type={type_.strip().upper() or 'A'}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
