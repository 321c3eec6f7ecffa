"""One check from its first look-up to its end: each hop is resolved, judged by policy, pinned and
sent. And all checks of the kind http in one prober.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from app.checks.curl.exchange import Exchange, Request
from app.checks.curl.failures import is_untrusted
from app.checks.http.compose import Carried
from app.checks.http.outcome import Outcomes
from app.checks.http.trace import Hop, Trace
from app.checks.http.verdict import asks_body
from app.checks.lookup import LookUp, Resolution
from app.checks.redact import Redactor
from app.checks.tools import CheckTools, Done, OnError, guarded
from app.i18n import _
from app.net.families import routed
from app.net.policy import Policy
from app.records import MAX_REDIRECTS, Cause, CheckSpec, Warn
from app.rules.text import shortened
from app.rules.url import Target, join


class HttpCheck:
    """A running check. ``done`` is called once, on the loop; an exception goes to ``on_error``
    instead.
    """

    def __init__(
        self,
        tools: CheckTools,
        spec: CheckSpec,
        policy: Policy,
        done: Callable[[Trace], None],
        on_error: OnError,
    ) -> None:
        self._tools = tools
        self._spec = spec
        self._policy = policy
        self._done = done
        self._on_error = on_error
        self._deadline = 0.0
        self._carried = Carried(spec)
        self._visited: set[tuple[object, ...]] = set()
        self.trace = Trace(spec, datetime.now(UTC), tools.location)

    def start(self, target: Target) -> None:
        self._deadline = time.monotonic() + self._spec.timeout
        self._hop(target)

    # --- look-up and policy

    def _hop(self, target: Target) -> None:
        self.trace.hops.append(Hop(target))
        LookUp(
            self._tools,
            target,
            self._policy,
            self._deadline,
            self._spec.timeout,
            partial(self._guarded, self._resolved),
            self._on_error,
        ).start()

    def _resolved(self, resolution: Resolution) -> None:
        hop = self.trace.hops[-1]
        hop.resolved, hop.addresses = resolution.resolved, resolution.addresses
        hop.refusals, hop.dns = resolution.refusals, resolution.dns
        if resolution.failure is None:
            self._send(hop)
            return
        self.trace.failure = resolution.failure
        if resolution.refusals and len(self.trace.hops) > 1:
            before = _(
                "Redirect %(number)s leads to %(host)s.",
                number=len(self.trace.hops) - 1,
                host=hop.target.netloc,
            )
            sentence = f"{before} {resolution.failure.sentence}"
            self.trace.fail(Cause.BLOCKED_BY_POLICY, sentence)
        self._done(self.trace)

    # --- on the wire

    def _send(self, hop: Hop) -> None:
        left = max(1, int((self._deadline - time.monotonic()) * 1000))
        carried = self._carried
        if self.trace.withheld is None and (what := carried.withheld(hop.target)):
            self.trace.withheld = (hop.target.netloc, what)
        request = Request(
            target=hop.target,
            url=carried.url(hop.target),
            method=carried.method,
            headers=carried.headers(hop.target),
            body=carried.body(hop.target),
            addresses=routed(hop.addresses),
            timeout_ms=left,
            limit=self._spec.timeout,
            verify_tls=self._spec.verify_tls,
            follow_redirects=self._spec.follow_redirects,
            asks_body=asks_body(self._spec),
            refusal=self._policy.refusal,
        )
        self._tools.curls.start(request, partial(self._guarded, self._exchanged), self._on_error)

    def _exchanged(self, exchange: Exchange) -> None:
        self.trace.hops[-1].exchange = exchange
        if exchange.redirect and exchange.fault is None and not is_untrusted(exchange):
            self._follow(exchange)
        elif exchange.ip and exchange.connect > 0:
            # Not before the last hop: a dead family may take all the time that a redirect needs.
            hops = {(hop.target.ascii_host, hop.target.port): hop for hop in self.trace.hops}
            self._other_families(list(hops.values()))
        else:
            self._done(self.trace)

    def _other_families(self, hops: list[Hop]) -> None:
        if not hops:
            self._done(self.trace)
            return
        hop = hops.pop()

        def warned(warning: Warn | None) -> None:
            if warning is not None and warning not in self.trace.warnings:
                self.trace.warnings.append(warning)
            self._other_families(hops)

        if hop.exchange is None or not hop.exchange.ip or len(hop.addresses) < 2:
            warned(None)
            return
        self._tools.families.test(
            hop.addresses,
            hop.exchange.ip,
            hop.target.port,
            self._deadline,
            partial(self._guarded, warned),
        )

    # --- redirects

    def _follow(self, exchange: Exchange) -> None:
        here = self.trace.hops[-1].target
        location = _as_sent(exchange.header("location") or "")
        try:
            target = join(here, location)
        except ValueError as error:
            shown = Redactor(self._spec).text(location)
            self.trace.fail(Cause.REDIRECT_BLOCKED, _cannot_follow(here, shown, str(error)))
            self._done(self.trace)
            return
        self._visited.add(self._carried.state(here))
        self._carried.store_cookies(here, exchange.all_headers("set-cookie"))
        self._carried.apply_redirect(exchange.status)
        state = self._carried.state(target)
        taken = len(self.trace.hops)
        if state in self._visited:
            self.trace.fail(
                Cause.REDIRECT_LOOP,
                _(
                    "The redirects form a loop: number %(taken)s leads back to %(url)s.",
                    taken=taken,
                    url=target.url,
                ),
            )
        elif taken > MAX_REDIRECTS:
            self.trace.fail(
                Cause.TOO_MANY_REDIRECTS,
                _(
                    "There were more than %(max_redirects)s redirects; the next is to %(url)s.",
                    max_redirects=MAX_REDIRECTS,
                    url=target.url,
                ),
            )
        else:
            if (
                here.scheme == "https"
                and target.scheme == "http"
                and Warn.REDIRECT_DOWNGRADE not in self.trace.warnings
            ):
                self.trace.warnings.append(Warn.REDIRECT_DOWNGRADE)
            self._hop(target)
            return
        self._done(self.trace)

    def _guarded(self, step: Callable[..., None], *arguments: Any) -> None:
        guarded(self._on_error, step, *arguments)


def _as_sent(location: str) -> str:
    """Header bytes were read as Latin-1, but most non-ASCII Locations are UTF-8: decode those."""
    try:
        return location.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return location


def _cannot_follow(here: Target, location: str, why: str) -> str:
    shown = shortened(location, 100)
    shown = "".join(character if character.isprintable() else "\ufffd" for character in shown)
    sentence = _(
        "%(host)s redirects to “%(location)s”, which cannot be followed.",
        host=here.netloc,
        location=shown,
    )
    return f"{sentence} {why}"


class HttpChecks:
    def __init__(self, tools: CheckTools) -> None:
        self._tools = tools
        self.outcomes = Outcomes(tools.trust, tools.location)

    def start(
        self, spec: CheckSpec, target: Target, policy: Policy, done: Done, on_error: OnError
    ) -> None:
        def finished(trace: Trace) -> None:
            done(self.outcomes.make(trace))

        HttpCheck(self._tools, spec, policy, finished, on_error).start(target)

    def close(self) -> None:
        """Nothing: curl's transfers are dropped with curl (``CheckTools.curls``)."""
