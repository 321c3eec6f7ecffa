"""Lines and CSV: a URL alone, ``name, URL, tags, contact``, or a header row with known names in any
order. This includes the CSV of UptimeRobot and Better Stack.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence

from app.i18n import N_, _, _n
from app.imports import uptimerobot
from app.imports.candidates import (
    MAX_CANDIDATES,
    Candidate,
    Draft,
    NotReadable,
    Reading,
    dns_url,
    host_and_port,
    no_kind,
    ping_url,
)
from app.imports.values import MIN_MILLISECONDS, cut_line, number, seconds, truth
from app.records import CONTACT, DEFAULT_SSL_ALERT_DAYS

MAX_CELL = 100_000
# A few lines without a URL are refused one by one. With more of them, the file is not a list.
MAX_LINES_WITHOUT_URL = 10
NO_LIST = N_(
    "Wakeful does not know this file: most of its lines have no URL. It reads one monitor a line,"
    " CSV, and the exports of other tools."
)
# The other names of a column, in lower case with single spaces.
COLUMNS = {
    "url": "url, address, link, url/ip, url / ip, host, hostname, website, site, endpoint",
    "name": "name, friendly name, title, monitor, monitor name, pronounceable name",
    "tags": "tags, tag, labels",
    "contact": "contact, contacts",
    "interval": "interval, check every, frequency, check frequency, interval (seconds)",
    "type": "type, monitor type",
    "port": "port",
    "keyword": "keyword, keyword value, required keyword",
    "keyword type": "keyword type",
    "timeout": "timeout, time limit, monitor timeout, request timeout",
    "accepted_statuses": "accepted statuses, accepted status codes, expected status codes,"
    " status codes",
    "request_method": "request method, method, http method",
    "request_auth_username": "request auth username, http username, auth username",
    "request_auth_password": "request auth password, http password, auth password",
    "follow_redirects": "follow redirects",
    "verify_tls": "verify tls, verify ssl",
    "confirmations": "confirmations",
    "slow_after": "slow after",
    "slow_alert_after": "slow alert after",
    "ssl_alert_days": "ssl alert days, certificate expiry",
    "domain_alert_days": "domain alert days, domain expiry",
    "alert_condition": "alert condition",
    "alert_text_lookup": "alert text lookup",
    "notes": "notes, note, description, runbook",
    "paused": "paused",
    "active": "active, enabled",
    "paused at": "paused at",
    "status": "status",
}
# Columns that are copied to the field of the same name, which the form validates.
COPIED_COLUMNS = (
    "accepted_statuses", "request_method", "request_auth_username", "request_auth_password",
    "confirmations", "slow_after", "slow_alert_after", "ssl_alert_days", "domain_alert_days",
    "alert_condition", "alert_text_lookup", "notes",
)  # fmt: skip
CHECKMATE = "matchmethod"  # only Checkmate's CSV has this column; its interval is in milliseconds
SWITCHES = ("follow_redirects", "verify_tls")
_COLUMN_OF = {name: column for column, names in COLUMNS.items() for name in names.split(", ")}
_KINDS = {
    "": "http", "http": "http", "https": "http", "http(s)": "http", "status": "http",
    "expected_status_code": "http", "1": "http", "keyword": "keyword", "2": "keyword",
    "port": "port", "tcp": "port", "4": "port", "keyword_absence": "absence",
    "ping": "ping", "icmp": "ping", "3": "ping", "dns": "dns", "tls": "tls",
}  # fmt: skip
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]{0,30}://|dns:|heartbeat:)")
_HOST = re.compile(
    r"(?:[^\s/,@]{1,253}\.[^\s/,]{1,253}|localhost(?::[0-9]{1,5})?|[^\s/,@]{1,253}:[0-9]{1,5})"
    r"(?:/\S*)?"
)


def read(text: str) -> Reading:
    header, delimiter = _header(text)
    if header:
        return _with_header(text, delimiter)
    stripped = enumerate(map(_without_markup, text.splitlines()), 1)
    lines = [(line_number, line) for line_number, line in stripped if line]
    if len(lines) > MAX_CANDIDATES:
        sentence = N_("At most %(most)s lines are read at a time. Split the list.")
        raise NotReadable(sentence, most=f"{MAX_CANDIDATES:,}")
    rows = [(line_number, cells(line)) for line_number, line in lines]
    without_url = sum(not any(map(_is_url, row)) for _line_number, row in rows)
    if not rows or (without_url > MAX_LINES_WITHOUT_URL and 2 * without_url > len(rows)):
        raise NotReadable(NO_LIST)
    return Reading(
        _("Lines"),
        [
            _draft(_("Line %(position)s", position=line_number), row).finish()
            for line_number, row in rows
        ],
    )


def _without_markup(line: str) -> str:
    """A line without a comment, and without the bullet or number of a list."""
    line = line.strip()
    if line.startswith("#"):
        return ""
    content, sign, comment = line.rpartition(" # ")
    if sign and not set(comment) & set(",;\t") and "://" not in comment:
        line = content.strip()
    first, _space, item = line.partition(" ")
    is_number = first[:-1].isdigit() and first[-1:] in (".", ")")
    return item.strip() if item and (is_number or first in ("-", "*", "+", "•")) else line


def _header(text: str) -> tuple[bool, str]:
    """Whether the first line names columns, and what separates them."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max("\t,;", key=first.count)
    names = [_normal(cell) for cell in _row(first, delimiter)]
    columns = [_COLUMN_OF.get(name) for name in names]
    return "url" in columns and not _URL.search(first), delimiter


def _normal(cell: str) -> str:
    return " ".join(cell.strip().lstrip("\ufeff").replace("_", " ").lower().split())


def _row(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line[:MAX_CELL]], delimiter=delimiter, skipinitialspace=True), [])


# --- With a header row ---------------------------------------------------------------------------


def _with_header(text: str, delimiter: str) -> Reading:
    rows = _rows(text, delimiter)
    _line_number, names = next(rows)
    columns = [_COLUMN_OF.get(_normal(name)) for name in names]
    milliseconds = CHECKMATE in map(_normal, names)
    candidates: list[Candidate] = []
    for line_number, row in rows:
        if len(candidates) >= MAX_CANDIDATES:
            sentence = N_("At most %(most)s rows are read. Split the file.")
            raise NotReadable(sentence, most=f"{MAX_CANDIDATES:,}")
        # If two columns have the same meaning, the first with a value counts.
        values: dict[str, str] = {}
        for column, cell in zip(columns, row, strict=False):
            if column and cell.strip():
                values.setdefault(column, cell.strip())
        if milliseconds and (interval := number(values.get("interval"))):
            values["interval"] = f"{interval / 1000:g}"
        candidates.append(_candidate_of_row(line_number, values, len(row) > len(columns)))
    if not candidates:
        raise NotReadable(N_("The file has a header row but no data."))
    return Reading("CSV", candidates, _ignored_columns(names, columns))


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the number of its last line."""
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error:
        sentence = _(
            "Line %(line)s cannot be read as CSV: a quote may be missing.", line=reader.line_num
        )
        raise NotReadable(sentence) from None


def _ignored_columns(names: Sequence[str], columns: Sequence[str | None]) -> tuple[str, ...]:
    pairs = zip(names, columns, strict=True)
    unknown = [cut_line(name) for name, column in pairs if not column and name.strip()]
    if not unknown:
        return ()
    names, more = ", ".join(unknown[:8]), len(unknown) - 8
    if more > 0:
        sentence = _n(
            "Ignored columns: %(names)s and %(num)s more.",
            "Ignored columns: %(names)s and %(num)s more.",
            more,
            names=names,
        )
        return (sentence,)
    return (_("Ignored columns: %(names)s.", names=names),)


def _candidate_of_row(line_number: int, values: Mapping[str, str], too_long: bool) -> Candidate:
    draft = Draft(
        _("Line %(position)s", position=line_number), values.get("name", ""), values.get("url", "")
    )
    if too_long:
        draft.refuse(
            N_("The line has more cells than the header. Put quotes around a value with commas.")
        )
    if not draft.url:
        draft.refuse(N_("The line has no URL."))
    _kind(draft, values)
    if "interval" in values:
        if interval := seconds(values["interval"]):
            draft.set_interval(interval)
        else:
            draft.fields["interval"] = values["interval"]
    if "timeout" in values:
        if (limit := number(values["timeout"])) is None:
            draft.fields["timeout"] = values["timeout"]
        else:
            draft.set_number("timeout", limit / 1000 if limit >= MIN_MILLISECONDS else limit)
    for name in COPIED_COLUMNS:
        if name in values:
            draft.fields[name] = values[name]
    for name in SWITCHES:
        if name in values:
            word = values[name].lower()
            draft.fields[name] = {"yes": "true", "no": "false"}.get(word, word)
    if "request_method" in draft.fields:
        draft.fields["request_method"] = draft.fields["request_method"].upper()
    _tags_and_contacts(draft, values.get("tags", ""), values.get("contact", ""))
    draft.paused = (
        truth(values.get("paused", ""))
        or "paused at" in values
        or not truth(values.get("active", "yes"))
        or values.get("status", "").lower() in ("paused", "disabled", "inactive")
    )
    _warn_of_certificate(draft)
    return draft.finish()


def _kind(draft: Draft, values: Mapping[str, str]) -> None:
    raw = values.get("type", "").lower()
    kind = _KINDS.get(raw)
    if raw == "status":  # of Better Stack
        draft.fields.setdefault("accepted_statuses", "200-299")
    if kind is None:
        draft.refuse(no_kind(f'"{cut_line(raw)}"'))
    elif kind == "port" and not draft.url.startswith("tcp://"):
        draft.url = host_and_port(draft.url, values.get("port", ""))
    elif kind == "tls" and not draft.url.startswith("tls://"):
        draft.url = host_and_port(draft.url, values.get("port", ""), "tls")
    elif kind == "ping":
        draft.url = ping_url(draft.url)
    elif kind == "dns" and not draft.url.startswith("dns:"):
        draft.url = dns_url(draft.url.partition("://")[2] or draft.url, "A")
    elif kind in ("keyword", "absence") and "keyword" not in values:
        draft.refuse(N_("The line has no text to find."))
    elif "keyword" in values:
        type_ = "exists" if kind == "absence" else values.get("keyword type", "")
        uptimerobot.keyword(draft, type_, values["keyword"])


# --- Lines without a header ----------------------------------------------------------------------


def cells(line: str) -> list[str]:
    """``[name, URL, tags, contact]`` of a line. In a line with a URL and a space, a name
    follows.
    """
    line = line.strip()
    if is_named_url(line):
        name, _colon, url = line.partition(": ")
        return [name.strip(), url.strip()]
    if "\t" not in line and _URL.match(line):
        url, _space, name = line.partition(" ")
        return [name.strip().strip(","), url.rstrip(",")]
    delimiter = "\t" if "\t" in line else ("," if "," in line else ";")
    row = [cell.strip() for cell in _row(line, delimiter)]
    if len(row) == 1:
        url, _space, name = row[0].partition(" ")
        # The form refuses a line with a name before the URL and no comma between them.
        return [name.strip(), url] if _HOST.fullmatch(url) else ["", row[0]]
    if _URL.match(row[0]) or (_HOST.fullmatch(row[0]) and not _is_url(row[1])):
        return [row[1], row[0], *row[2:]]
    start = next((index for index, cell in enumerate(row) if index and _URL.match(cell)), 1)
    return [", ".join(row[:start]), *_url_and_rest(row[start:], line)]


def is_named_url(line: str) -> bool:
    """Whether a line is like ``Shop: https://shop.example.com``. ``url: https://...`` is YAML."""
    name, _colon, url = line.partition(": ")
    fits = name and "," not in name and name.lstrip("- ").lower() != "url"
    return bool(fits and _URL.match(url.strip())) and " " not in url.strip()


def _is_url(cell: str) -> bool:
    return bool(_URL.match(cell) or _HOST.fullmatch(cell))


def _url_and_rest(row: list[str], line: str) -> list[str]:
    """Split at commas with a space after them: another comma belongs to the query of the URL."""
    if len(row) == 1 or "?" not in row[0] or '"' in line or "\t" in line:
        return row
    return [cell.strip() for cell in line[line.index(row[0]) :].split(", ")]


def _draft(label: str, row: Sequence[str]) -> Draft:
    name, url, tags, contact, *more = (*row, "", "", "", "")[: max(4, len(row))]
    draft = Draft(label, name.strip(), url.strip())
    if any(more):
        draft.refuse(
            N_(
                "The line has more than name, URL, tags and contact."
                " Put quotes around a value with commas."
            )
        )
    _tags_and_contacts(draft, tags, contact)
    _warn_of_certificate(draft)
    return draft


def _warn_of_certificate(draft: Draft) -> None:
    """Set the certificate warning to the default of a new monitor, unless a column has it."""
    if not _URL.match(draft.url) or draft.url.lower().startswith("https://"):
        draft.fields.setdefault("ssl_alert_days", str(DEFAULT_SSL_ALERT_DAYS))


def _tags_and_contacts(draft: Draft, tags: str, contacts: str) -> None:
    draft.add_tags(tags.replace(";", ",").split(","))
    for contact in contacts.replace(";", ",").split(","):
        if contact.strip():
            draft.add_pair("alerts", CONTACT, contact.strip())
