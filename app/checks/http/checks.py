"""One check from its first look-up to its end: each hop is resolved, judged by policy, pinned and
sent.
"""

from __future__ import annotations

import time
from typing import Any

from app.checks.curl.exchange import Exchange, Request
from app.checks.curl.failures import is_untrusted
from app.checks.http.compose import ChainContents
from app.checks.http.outcome import make_outcome
from app.checks.http.trace import Hop, Trace
from app.checks.http.verdict import asks_body
from app.checks.redact import Redactor
from app.checks.running import Resolution, RunningCheck
from app.i18n import N_, _
from app.net.race import routed
from app.records import MAX_REDIRECTS, Cause, Warn
from app.rules.text import shortened
from app.rules.url import Target, join


class HttpCheck(RunningCheck):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._contents = ChainContents(self.spec)
        self._visited: set[tuple[object, ...]] = set()
        self.trace = Trace(self.spec, self.checked_at, self.tools.location)

    def begin(self) -> None:
        self._hop(self.target)

    def cancel(self) -> None:
        """Nothing: closing ``CheckTools.transfers`` drops what is in flight."""

    def _finish(self) -> None:
        self.on_done(make_outcome(self.trace, self.tools.trust, self.good))

    def _hop(self, target: Target) -> None:
        self.trace.hops.append(Hop(target))
        self.look_up(target, self._resolved)

    def _resolved(self, resolution: Resolution) -> None:
        hop = self.trace.hops[-1]
        hop.resolution = resolution
        if resolution.failure is None:
            self._send(hop)
            return
        self.trace.failure = resolution.failure
        if resolution.refusals and len(self.trace.hops) > 1:
            number, host = len(self.trace.hops) - 1, hop.target.netloc
            redirect = _("Redirect %(number)s leads to %(host)s.", number=number, host=host)
            sentence = f"{redirect} {resolution.failure.sentence}"
            self.trace.fail(Cause.BLOCKED_BY_POLICY, sentence)
        self._finish()

    # --- on the wire

    def _send(self, hop: Hop) -> None:
        remaining_ms = max(1, int((self.deadline - time.monotonic()) * 1000))
        contents = self._contents
        if self.trace.withheld is None and (parts := contents.withheld(hop.target)):
            self.trace.withheld = (hop.target.netloc, parts)
        request = Request(
            target=hop.target,
            url=contents.url(hop.target),
            method=contents.method,
            headers=contents.headers(hop.target),
            body=contents.body(hop.target),
            addresses=routed(hop.resolution.addresses),
            timeout_ms=remaining_ms,
            limit=self.spec.timeout,
            verify_tls=self.spec.verify_tls,
            follow_redirects=self.spec.follow_redirects,
            asks_body=asks_body(self.spec),
            refusal=self.policy.refusal,
        )
        self.tools.transfers.start(request, self.guard(self._exchanged), self.on_error)

    def _exchanged(self, exchange: Exchange) -> None:
        self.trace.hops[-1].exchange = exchange
        if exchange.redirect and exchange.fault is None and not is_untrusted(exchange):
            self._follow(exchange)
        elif exchange.ip and exchange.connect > 0:
            # The other families are tested last: a dead one may take all the time that the rest of
            # the chain needs.
            hops = {(hop.target.ascii_host, hop.target.port): hop for hop in self.trace.hops}
            self._other_families(list(hops.values()))
        else:
            self._finish()

    def _other_families(self, hops: list[Hop]) -> None:
        if not hops:
            self._finish()
            return
        hop = hops.pop()

        def warned(warning: Warn | None) -> None:
            if warning is not None:
                self._warn(warning)
            self._other_families(hops)

        if hop.exchange is None or not hop.exchange.ip or len(hop.resolution.addresses) < 2:
            warned(None)
            return
        addresses, ip = hop.resolution.addresses, hop.exchange.ip
        self.tools.families.test(addresses, ip, hop.target.port, self.deadline, self.guard(warned))

    def _warn(self, warning: Warn) -> None:
        if warning not in self.trace.warnings:
            self.trace.warnings.append(warning)

    # --- redirects

    def _follow(self, exchange: Exchange) -> None:
        source = self.trace.hops[-1].target
        location = _as_sent(exchange.header("location") or "")
        try:
            target = join(source, location)
        except ValueError as error:
            masked = Redactor(self.spec).text(location)
            self.trace.fail(Cause.REDIRECT_BLOCKED, _cannot_follow(source, masked, str(error)))
            self._finish()
            return
        self._visited.add(self._contents.state(source))
        self._contents.store_cookies(source, exchange.all_headers("set-cookie"))
        self._contents.apply_redirect(exchange.status)
        state = self._contents.state(target)
        count = len(self.trace.hops)
        if state in self._visited:
            sentence = N_("The redirects form a loop: number %(taken)s leads back to %(url)s.")
            self.trace.fail(Cause.REDIRECT_LOOP, _(sentence, taken=count, url=target.url))
        elif count > MAX_REDIRECTS:
            sentence = N_("There were more than %(most)s redirects; the next is to %(url)s.")
            values = {"most": MAX_REDIRECTS, "url": target.url}
            self.trace.fail(Cause.TOO_MANY_REDIRECTS, _(sentence, **values))
        else:
            if (source.scheme, target.scheme) == ("https", "http"):
                self._warn(Warn.REDIRECT_DOWNGRADE)
            self._hop(target)
            return
        self._finish()


def _as_sent(location: str) -> str:
    """A Location header as its server meant it: header bytes are read as Latin-1, but most that are
    not ASCII are UTF-8.
    """
    try:
        return location.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return location


def _cannot_follow(source: Target, location: str, why: str) -> str:
    beginning = shortened(location, 100)
    beginning = "".join(c if c.isprintable() else "\ufffd" for c in beginning)
    sentence = N_("%(host)s redirects to “%(location)s”, which cannot be followed.")
    return f"{_(sentence, host=source.netloc, location=beginning)} {why}"
