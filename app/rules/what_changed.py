"""The differences between a failing check and an earlier good one. Pure.

They come from the evidence of an incident (``app/engine/recorder/evidence.py``). Another kind of
check, an older version or another server may have written it without a part. A part that is present
has the right type: ``app/db/contents.py`` and ``app/codec/evidence.py`` validate it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from app.i18n import N_, _, _n
from app.records import Change, ChangeKind, Verdict
from app.rules.figures import in_one_unit, span
from app.rules.text import shortened

Check = Mapping[str, Any]

# The headers that are compared: a change shows another program or another kind of answer.
HEADERS = ("server", "x-powered-by", "content-type", "content-encoding", "location")
NEW_HEADERS = ("retry-after", "www-authenticate")  # shown only if new: their values always differ
PHASES = {
    "dns": N_("DNS lookup"),
    "connect": N_("connect"),
    "tls": "TLS",
    "ttfb": N_("first byte"),
    "download": N_("body"),
}
MANY_ADDRESSES = 5  # a name with so many addresses changes them often, so that is no difference
# A difference is shown if it reaches both the factor and the amount.
SLOWER_TIMES, SLOWER_MS = 2, 100
BODY_TIMES, BODY_BYTES = 2, 512
MAX_VALUE = 120  # characters
MAX_CHANGES = 10


def phase_words(
    names: Collection[str], spent: Mapping[str, int | None] | None = None
) -> dict[str, str]:
    """The labels of these phases of one check. ``spent``: ms by phase."""
    words = {name: _(PHASES[name]) for name in names}
    if "ttfb" in words and "connect" not in words:  # a ping, or a name server
        words["ttfb"] = _("answer")
    elif spent and _without_first_byte(spent):
        words["ttfb"] = _("wait for the first byte")
    return words


def _without_first_byte(spent: Mapping[str, int | None]) -> bool:
    """Whether a check ended while it waited for the first byte: it has no later phase."""
    return spent.get("ttfb") is not None and spent.get("download") is None


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A failing check and a good one. ``usual``: figures and addresses of the good checks before
    the failure, and the time of the last of them; may be empty.
    """

    failing: Check
    good: Check
    usual: Mapping[str, Any]

    @property
    def same_host(self) -> bool:
        return _host(self.failing) == _host(self.good)

    @property
    def both_answered(self) -> bool:
        return bool(self.failing.get("status_code") and self.good.get("status_code"))


def changes_of(evidence: Mapping[str, Any] | None) -> tuple[Change, ...]:
    """The changes, the most important first; none if one of the two checks is missing, or if they
    were made from different places.
    """
    pair = _pair(evidence)
    if pair is None:
        return ()
    changes = [change for rule in _RULES for change in rule(pair)]
    return tuple(changes[:MAX_CHANGES])


@dataclass(frozen=True, slots=True)
class GoodCheck:
    """The check that a failure is compared with. ``is_last``: it was the last good one before the
    failure. ``is_slow``: it was above the slow limit.
    """

    at: datetime | None
    seconds_earlier: float | None
    is_last: bool
    is_slow: bool

    def words(self, clock: Callable[[datetime], str]) -> str:
        """``good check at 15:13:01, 1 min 56 s earlier``. ``clock`` writes its time."""
        if self.at is None or self.seconds_earlier is None:
            return _("good check before it")
        sentence = (
            N_("slow check at %(time)s, %(length)s earlier")
            if self.is_slow
            else N_("last good check at %(time)s, %(length)s earlier")
            if self.is_last
            else N_("good check at %(time)s, %(length)s earlier")
        )
        return _(sentence, time=clock(self.at), length=span(self.seconds_earlier))


def compared_with(evidence: Mapping[str, Any] | None) -> GoodCheck | None:
    """The good check in the evidence. It may not be the last one: the evidence of good checks is
    stored every ten minutes, and when an answer changes.
    """
    pair = _pair(evidence)
    if pair is None:
        return None
    good, failed, last = _moment(pair.good), _moment(pair.failing), _moment(pair.usual)
    return GoodCheck(
        good,
        None if good is None or failed is None else (failed - good).total_seconds(),
        good is not None and last is not None and last <= good,
        pair.good.get("verdict") == Verdict.DEGRADED,
    )


def _pair(evidence: Mapping[str, Any] | None) -> _Comparison | None:
    checks = evidence or {}
    failing, good = checks.get("failing"), checks.get("last_good")
    # Checks of two places are not compared: each may have its own address, certificate or server.
    if not failing or not good or failing.get("location") != good.get("location"):
        return None
    return _Comparison(failing, good, checks.get("usual") or {})


# --- The rules, in the order in which their changes are shown -------------------------------------


def _address(pair: _Comparison) -> Iterator[Change]:
    often = pair.usual.get("addresses") or []
    before, now = _addresses(pair.good), _addresses(pair.failing)
    usual = {*often, *(pair.good.get("resolved") or []), *before}
    if not pair.same_host or not before or not now or len(often) >= MANY_ADDRESSES:
        return
    if not usual & {*now}:
        sentence = N_("Address %(now)s, was %(before)s")
        yield _change(ChangeKind.ADDRESS, sentence, ", ".join(before), ", ".join(now))


def _certificate(pair: _Comparison) -> Iterator[Change]:
    before, now = _leaf(pair.good), _leaf(pair.failing)
    if not pair.same_host or before is None or now is None:
        return
    if before.get("sha256") != now.get("sha256"):
        texts = _issued(before), _issued(now)
        sentence = N_("Certificate %(now)s, was %(before)s")
        yield _change(ChangeKind.CERTIFICATE, sentence, *texts)
        return
    ends, failed, good = _time(now.get("not_after")), _moment(pair.failing), _moment(pair.good)
    if ends and failed and good and good < ends <= failed:
        text = _(
            "The certificate expired %(length)s earlier",
            length=span((failed - ends).total_seconds()),
        )
        yield Change(ChangeKind.CERTIFICATE, text, now=_issued(now))


def _status(pair: _Comparison) -> Iterator[Change]:
    before, now = pair.good.get("status_code"), pair.failing.get("status_code")
    if before and now and before != now:
        sentence = N_("Status %(now)s, was %(before)s")
        yield _change(ChangeKind.STATUS, sentence, str(before), str(now))


def _redirect(pair: _Comparison) -> Iterator[Change]:
    if not _redirects_differ(pair):
        return
    before, now = _redirects(pair.good), _redirects(pair.failing)
    then = _("then")
    texts = [f", {then} ".join(path) for path in (before, now)]
    sentences = (
        N_("Redirect to %(now)s, was %(before)s"),
        N_("New redirect to %(value)s"),
        N_("Redirect removed, was to %(value)s"),
    )
    yield _changed_value(ChangeKind.REDIRECT, sentences, *texts)


def _headers(pair: _Comparison) -> Iterator[Change]:
    before, now = _header_values(pair.good), _header_values(pair.failing)
    for values in (before, now):
        if "location" in values:
            values["location"] = _plain(values["location"])
    if not pair.both_answered or not before or not now or _redirects_differ(pair):
        return
    for name in HEADERS:
        yield from _header(name, before.get(name), now.get(name))
    for name in NEW_HEADERS:
        if name not in before:
            yield from _header(name, None, now.get(name))


def _header(name: str, before: str | None, now: str | None) -> Iterator[Change]:
    if (before or "").casefold() == (now or "").casefold():
        return
    sentences = (
        N_("Header %(name)s: %(now)s, was %(before)s"),
        N_("New header %(name)s: %(value)s"),
        N_("Header %(name)s removed, was %(value)s"),
    )
    yield _changed_value(ChangeKind.HEADER, sentences, before, now, name=name)


def _body(pair: _Comparison) -> Iterator[Change]:
    if not pair.both_answered or _redirects_differ(pair):
        return
    before, now = pair.good.get("body_bytes"), pair.failing.get("body_bytes")
    if before is None or now is None or abs(before - now) < BODY_BYTES:
        return
    if max(before, now) >= BODY_TIMES * min(before, now):
        texts = [
            _n("%(num)s byte", "%(num)s bytes", size, num=f"{size:,}") for size in (before, now)
        ]
        yield _change(ChangeKind.BODY, N_("Body %(now)s, was %(before)s"), *texts)


def _slower(pair: _Comparison) -> Iterator[Change]:
    """The change of the response time, with the phase that grew by the largest amount."""
    usual = pair.usual if _duration_ms(pair.usual) is not None else pair.good
    before, now = _duration_ms(usual), _duration_ms(pair.failing)
    if before is None or now is None:
        return
    if now < SLOWER_TIMES * before or now - before < SLOWER_MS:
        return
    was, spent = _timings(usual), _timings(pair.failing)
    phase = max(spent, key=lambda name: spent[name] - was.get(name, 0), default=None)
    earlier, took, part = in_one_unit(before, now, spent[phase] if phase else 0)
    whole = took
    if phase == "ttfb" and pair.failing.get("response_time") is None and _without_first_byte(spent):
        took = _("%(time)s, of which it waited %(part)s for the first byte", time=whole, part=part)
    elif phase:
        took = _(
            "%(time)s, %(part)s of it %(phase)s",
            time=whole, part=part, phase=phase_words(spent)[phase],
        )  # fmt: skip
    sentence = (
        N_("%(took)s; usually %(before)s")
        if usual is pair.usual
        else N_("%(took)s, up from %(before)s")
    )
    yield Change(
        ChangeKind.SPEED, _(sentence, took=took, before=earlier), before=earlier, now=whole
    )


_RULES: Sequence[Callable[[_Comparison], Iterator[Change]]] = (
    _address, _certificate, _status, _redirect, _headers, _body, _slower,
)  # fmt: skip


# --- Reading --------------------------------------------------------------------------------------


def _change(kind: ChangeKind, sentence: str, before: str, now: str, **values: str) -> Change:
    before, now = _cut(before), _cut(now)
    text = _(sentence, before=before, now=now, **values)
    return Change(kind, text, before=before, now=now)


def _changed_value(
    kind: ChangeKind, sentences: Sequence[str], before: str | None, now: str | None, **values: str
) -> Change:
    """The change of a value that one of the checks may lack. ``sentences``: for a changed, a new
    and a removed value.
    """
    changed, new, removed = sentences
    if before and now:
        return _change(kind, changed, before, now, **values)
    before, now = before and _cut(before), now and _cut(now)
    text = _(new if now else removed, value=now or before, **values)
    return Change(kind, text, before=before or None, now=now or None)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return shortened(line, MAX_VALUE)


def _time(value: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo else None


def _moment(check: Mapping[str, Any]) -> datetime | None:
    return _time(check.get("checked_at"))


def _addresses(check: Check) -> list[str]:
    """The address of the connection; without a connection, all addresses of the name."""
    ip = check.get("ip")
    return [ip] if ip else check.get("resolved") or []


def _leaf(check: Check) -> Mapping[str, Any] | None:
    leaf = (check.get("tls") or [{}])[0]
    return leaf if leaf.get("sha256") else None


def _issued(certificate: Mapping[str, Any]) -> str:
    ends = _time(certificate.get("not_after"))
    issuer = certificate.get("issuer") or _("an unknown issuer")
    if ends is None:
        return _("from %(issuer)s", issuer=issuer)
    return _("from %(issuer)s, valid until %(date)s", issuer=issuer, date=f"{ends:%-d %b %Y}")


def _redirects(check: Check) -> list[str]:
    """The targets of the redirects, without their queries, which may differ each time."""
    hops = check.get("redirects") or []
    urls = (hop.get("url") if isinstance(hop, Mapping) else hop for hop in hops)
    return [_plain(url) for url in urls if url]


def _redirects_differ(pair: _Comparison) -> bool:
    """Whether the redirects differ. Redirects that the failing check did not reach do not count."""
    before, now = _redirects(pair.good), _redirects(pair.failing)
    if pair.failing.get("status_code") is None:
        before = before[: len(now)]
    return any(earlier != later for earlier, later in zip_longest(before, now))


def _host(check: Check) -> str:
    addresses = [check.get("url") or "", *_redirects(check)]
    return addresses[-1].partition("://")[2].partition("/")[0].casefold()


def _plain(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def _header_values(check: Check) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in check.get("headers") or []:
        values.setdefault(name.casefold(), value.strip())
    return values


def _timings(check: Mapping[str, Any]) -> dict[str, int]:
    timings = check.get("timings") or {}
    return {name: ms for name in PHASES if (ms := timings.get(name)) is not None}


def _duration_ms(check: Mapping[str, Any]) -> int | None:
    """The duration of a check; for a check that did not end, the sum of its phases."""
    whole = check.get("response_time")
    return whole if whole is not None else sum(_timings(check).values()) or None
