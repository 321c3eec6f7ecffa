"""Candidate: the form that every import source is read into, and how it becomes a monitor."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import unquote

from app.i18n import N_, _
from app.imports.values import ImportEntry, header_rows, plain, shown, span, string
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

# The formats by the word of ``--format``, each with its name for people.
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
# Wakeful warns on one day: the one to take from tools that warn on several days.
WARN_DAYS = 14
SLOW_ALERTS = N_("A slow response alerts when it is slow for %(minutes)s minutes.")
SLOW_MINUTES = 5  # other tools alert to a single slow response
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
    file. ``line``: of the first error, if that is known.
    """

    def __init__(self, sentence: str, /, *, line: int | None = None, **values: Any) -> None:
        position = " " + _("The first error is in line %(line)s.", line=line) if line else ""
        super().__init__(_(sentence, **values) + position)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A monitor to be. ``fields`` has the monitor's other fields by name: text, or tuples of
    ``str`` or ``Pair``. They may hold secrets. ``refusal`` says why there can be no such monitor.
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
    """The content of a file. ``remarks`` are about all of it. ``contacts``: the channels of those
    that its monitors name and that are to be made of notifications which several of them share.
    """

    source: str
    candidates: Sequence[Candidate]
    remarks: Sequence[str] = ()
    contacts: Mapping[str, Sequence[Pair]] = field(default_factory=dict, repr=False)


def no_kind(kind: str) -> str:
    """``kind``: what the other tool checks, in its words."""
    return _("Wakeful has no %(kind)s checks yet.", kind=_(kind))


E = TypeVar("E")


def limited(entries: Sequence[E]) -> Sequence[E]:
    """``entries``, none of which was read yet. Raises NotReadable if there are too many."""
    if len(entries) > MAX_CANDIDATES:
        sentence = N_("The file has more than %(most)s entries. Split it.")
        raise NotReadable(sentence, most=f"{MAX_CANDIDATES:,}")
    return entries


@dataclass(frozen=True, slots=True, eq=False)
class Notification:
    """The channels of a notification of another tool, and what to say of it. It is read once,
    because ten thousand monitors may name it.
    """

    name: str = ""
    channels: Sequence[Pair] = field(default=(), repr=False)
    remarks: Sequence[str] = ()


@dataclass(slots=True)
class Draft:
    """A candidate while a source's fields are read, one after the other."""

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
        """A draft for a tool whose warning of a certificate is a switch, off by default."""
        return cls(position, name, fields={"ssl_alert_days": ""})

    def remark(self, sentence: str, /, **values: Any) -> None:
        """Every remark is made here. ``sentence``: what is dropped or changed."""
        if len(self.remarks) == MAX_REMARKS:
            sentence, values = N_("There are more changes."), {}
        if (remark := _(sentence, **values)) not in self.remarks:
            self.remarks.append(remark)

    def refuse(self, sentence: str, /, **values: Any) -> None:
        self.refusal = self.refusal or _(sentence, **values)

    def drop_rest(
        self, entry: ImportEntry, sentences: Mapping[str, str], ignored: Collection[str] = ()
    ) -> None:
        """Remark on each setting of ``entry`` that nobody has read. ``sentences``: of settings that
        people know. ``ignored``: beginnings of the names of settings whose loss changes no check
        and no alert, on which nothing is remarked.
        """
        beginnings = tuple(ignored)
        for key in entry.unread():
            if key in sentences:
                self.remark(sentences[key])
            elif not key.startswith(beginnings):
                self.remark(UNKNOWN_SETTING, name=shown(key))

    def notify(self, notification: Notification) -> None:
        self.notifications.append(notification)
        for sentence in notification.remarks:
            self.remark(sentence)

    def interval(self, seconds: float | None, given: object = None) -> None:
        """``given``: what the file says."""
        if seconds is None or seconds <= 0:
            if string(given):
                sentence = N_('The interval "%(value)s" cannot be read.')
                self.refuse(sentence, value=shown(string(given)))
            return
        least, most = CHECK_EVERY_SECONDS
        chosen = round(min(max(seconds, least), most))
        self.fields |= {name: str(value) for name, value in interval_fields(chosen).items()}
        if chosen != seconds:
            self.remark(BECOMES, field=_("Interval"), old=span(seconds), new=span(chosen))

    def heartbeat(self, token: str, period: float | None, grace: float | None) -> None:
        """A monitor that is called. ``token``: the secret of its ping URL, which jobs have."""
        self.url = HEARTBEAT_URL
        self.name = self.name or self.position  # never the token, which names show to everybody
        self.fields["interval"] = str(DEFAULT_HEARTBEAT_INTERVAL)
        if token:
            self.fields["heartbeat_token"] = token
        self._bounded("period", N_("Expected every"), period, PERIOD_SECONDS, span)
        self._bounded("grace", N_("Grace"), grace, GRACE_SECONDS, span)

    def timeout(self, seconds: float | None) -> None:
        self._bounded("timeout", N_("Time limit"), seconds, TIMEOUT_SECONDS, span)

    def confirmations(self, count: float | None, pause: float | None = None) -> None:
        """``pause``: seconds between confirmations in the other tool."""
        self._bounded("confirmations", N_("Rechecks"), count, CONFIRMATIONS, plain)
        if count and count > 0 and pause:
            self.remark(RECHECK_PAUSE, pause=span(pause))

    def pings(self, count: float | None) -> None:
        self._bounded("ping_count", N_("Pings"), count, PING_COUNT, plain)

    def first_of(self, what: str, values: Sequence[str]) -> str:
        """The first of several, if Wakeful has room for one; empty for none."""
        if len(values) > 1:
            sentence = N_("%(what)s: %(first)s is kept, the others are dropped.")
            self.remark(sentence, what=_(what), first=shown(values[0]))
        return values[0] if values else ""

    def remind_after(self, minutes: float | None) -> None:
        if minutes:
            label = N_("Reminder every")
            self._bounded("remind_after", label, minutes, REMIND_AFTER_MINUTES, span, 60)

    def slow_after(self, ms: float | None) -> None:
        if ms is not None:
            self._bounded("slow_after", N_("Slow after"), ms, SLOW_AFTER_MS, "{:g} ms".format)
            self.fields["slow_alert_after"] = str(SLOW_MINUTES)
            self.remark(SLOW_ALERTS, minutes=SLOW_MINUTES)

    def _bounded(
        self,
        name: str,
        label: str,
        value: float | None,
        bounds: tuple[int, int],
        show: Callable[[float], str],
        unit: int = 1,
    ) -> None:
        """``show`` writes the value times ``unit`` for people."""
        if value is None:
            return
        number = round(min(max(value, bounds[0]), bounds[1]))
        self.fields[name] = str(number)
        if number != value:
            old, new = show(value * unit), show(number * unit)
            self.remark(BECOMES, field=_(label), old=old, new=new)

    def expiry(self, name: str, label: str, days: float | None) -> None:
        """``name``: ``ssl_alert_days`` or ``domain_alert_days``."""
        if days is None or days < 0:
            return
        chosen = min((limit for limit in ALERT_DAYS if limit >= days), default=ALERT_DAYS[-1])
        self.fields[name] = str(chosen)
        if chosen != days:
            self.remark(DAYS_BECOME, field=_(label), old=plain(days), new=chosen)

    def warn(self, name: str, what: str) -> None:
        """A warning of expiry that the other tool repeats on days that the file does not name."""
        self.fields[name] = str(WARN_DAYS)
        sentence = N_("%(what)s: once, %(days)s days before it expires.")
        self.remark(sentence, what=_(what), days=WARN_DAYS)

    def warn_of_domain(self, address: str) -> None:
        """``address``: a host or a URL. An IP address has no domain, nor has ``localhost``."""
        _scheme, slashes, rest = without_login(address)[0].partition("://")
        authority = re.split("[/?#]", rest if slashes else address, maxsplit=1)[0]
        if registrable_domain(authority.partition(":")[0]):
            self.warn("domain_alert_days", N_("Domain warning"))

    def switch(self, name: str, *, on: bool) -> None:
        """``follow_redirects`` or ``verify_tls``."""
        self.fields[name] = "true" if on else "false"

    def notes(self, text: str) -> None:
        if text.strip():
            self.fields["notes"] = text[:MAX_NOTES]
        if len(text) > MAX_NOTES:
            self.remark(N_("Notes: the first %(most)s characters are kept."), most=f"{MAX_NOTES:,}")

    def redirects(self, most: float | None) -> None:
        """``most``: how many the other tool follows, if it says so."""
        self.switch("follow_redirects", on=most != 0)
        if most and most != MAX_REDIRECTS:
            sentence = N_("At most %(most)s redirects: Wakeful follows up to %(ours)s.")
            self.remark(sentence, most=plain(most), ours=MAX_REDIRECTS)

    def request(self, entry: ImportEntry, method: str, headers: str = "", body: str = "") -> None:
        """Method, headers and body, by their names in ``entry`` (several with spaces)."""
        if text := entry.text(*method.split()):
            self.fields["request_method"] = text.upper()
        self.headers(entry.get(*headers.split()))
        if text := entry.text(*body.split()):
            self.body(text)

    def headers(self, value: object) -> None:
        """The headers of the request, in any of the forms of ``header_rows``."""
        rows = header_rows(value)
        if rows is None:
            self.refuse(N_("The request headers cannot be read."))
        for name, text in rows or ():
            self.pair("request_headers", name, text)

    def statuses(self, codes: Iterable[object]) -> None:
        """``200``, ``"200-299"`` and ``"2xx"``; the form says what is wrong with others."""
        texts = filter(None, (string(code).strip() for code in codes))
        ranges = [re.sub(r"^(.)xx$", r"\g<1>00-\g<1>99", text, flags=re.I) for text in texts]
        if ranges:
            self.fields["accepted_statuses"] = ",".join(ranges)

    def codes(self, codes: Iterable[int]) -> None:
        """Single codes, as ranges."""
        ranges: list[list[int]] = []
        for code in sorted(codes):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
        self.statuses(f"{low}" if low == high else f"{low}-{high}" for low, high in ranges)

    def text(self, lookup: str, *, unwanted: bool = False) -> None:
        """``unwanted``: the alert is raised while the text is there."""
        condition = AlertCondition.URL_TEXT if unwanted else AlertCondition.URL_NO_TEXT
        self.fields |= {"alert_condition": condition.value, "alert_text_lookup": lookup}

    def assertion(self, source: str, op: str, value: str = "", path: str = "") -> None:
        """``path``: in JSON."""
        rows = self.fields.get("assertions", ())
        if len(rows) < MAX_ROWS:
            row = Assertion(source, path or None, op, value or None)
            self.fields["assertions"] = tuple(dict.fromkeys((*rows, row)))

    def tags(self, tags: Iterable[str]) -> None:
        kept = list(self.fields.get("tags", ()))
        for tag in islice(tags, MAX_ROWS):
            short = " ".join(tag[:MAX_TAG_READ].replace(",", " ").split())
            if len(short) > MAX_TAG:
                sentence = N_('The tag "%(tag)s" is cut to %(most)s characters.')
                self.remark(sentence, tag=shown(short), most=MAX_TAG)
                short = short[:MAX_TAG].strip()
            if short and short not in kept:
                kept.append(short)
        if kept:
            self.fields["tags"] = tuple(kept)

    def pair(self, name: str, key: str, value: str) -> None:
        """A row of ``request_headers`` or ``alerts``, each once."""
        rows, row = self.fields.get(name, ()), (name, key, value)
        if len(rows) < MAX_ROWS and row not in self._rows:
            self._rows.add(row)
            self.fields[name] = (*rows, Pair(key, value))

    def body(self, text: str, content_type: str = "") -> None:
        """``content_type``: what the other tool sends unless a header says another."""
        self.fields["request_body"] = text
        headers = self.fields.get("request_headers", ())
        if content_type and not any(pair.key.lower() == "content-type" for pair in headers):
            self.pair("request_headers", "Content-Type", content_type)

    def login(self, user: str, password: str) -> None:
        self.fields["request_auth_username"] = user
        if password:
            self.fields["request_auth_password"] = password

    def basic(self, user: str, password: str) -> None:
        """Set if the other tool says that it uses Basic authentication."""
        if not user:
            self.refuse(N_("The file lacks the user name of its Basic authentication."))
        elif not password:
            self.remark(N_("The file lacks the password of its Basic authentication. Add it."))
        self.login(user, password)

    def done(self) -> Candidate:
        url, user, password = without_login(self.url)
        if user or password:
            self.remark(N_("The user name and password move from the URL to their own fields."))
            self.login(user, password)
        name, remarks = self.name.strip(), tuple(self.remarks)
        return Candidate(self.position, name, url, self.fields, remarks, self.refusal, self.paused)


def without_login(url: str) -> tuple[str, str, str]:
    """``url`` without its user name and password, the user name, and the password."""
    scheme, slashes, rest = url.strip().partition("://")
    ends = [offset for sign in "/?#" if (offset := rest.find(sign)) >= 0]
    end = min(ends, default=len(rest))
    login, at, host = rest[:end].rpartition("@")
    if not slashes or not at:
        return url.strip(), "", ""
    user, _colon, password = login.partition(":")
    return f"{scheme}://{host}{rest[end:]}", unquote(user), unquote(password)


def host_and_port(host: str, port: object, scheme: str = "tcp") -> str:
    host = host.strip()
    if not string(port) and host.count(":") == 1:
        return f"{scheme}://{host}"
    return f"{scheme}://{_bracketed(host)}:{string(port)}"


def ping_url(host: str) -> str:
    """``host``: an address, a name, or a URL whose host is pinged."""
    bare = host.strip().partition("://")[2] or host.strip()
    return f"ping://{_bracketed(bare.partition('/')[0])}"


def dns_url(name: str, type_: str, server: str = "", port: object = "") -> str:
    """``type_``: of the records; ``server``: empty for those of the installation."""
    bare = _bracketed(server.strip())
    asked = f"//{bare}:{string(port)}/" if string(port) and bare else f"//{bare}/" if bare else ""
    return f"dns:{asked}{name.strip()}?type={type_.strip().upper() or 'A'}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
