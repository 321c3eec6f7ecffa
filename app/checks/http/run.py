"""One check from its first look-up to its end: hop by hop, each one resolved, judged by policy,
pinned and sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from app.checks.http.compose import Carried
from app.checks.http.curls import Curls
from app.checks.http.story import Hop, Story
from app.checks.http.verdict import is_spoilt
from app.checks.http.wire import Request, Seen
from app.checks.redact import Redactor
from app.net.families import Families, routed
from app.net.loop import Loop, Timer
from app.net.policy import Policy, Refusal
from app.net.resolver import Resolved, Resolver
from app.records import MAX_REDIRECTS, Cause, CheckSpec, Warn
from app.rules.url import Target, join, parse_url


class Tools:
    """What every run of one prober shares."""

    def __init__(
        self, loop: Loop, resolver: Resolver, curls: Curls, families: Families, location: str
    ) -> None:
        self.loop = loop
        self.resolver = resolver
        self.curls = curls
        self.families = families
        self.location = location


class Run:
    """A check under way. ``done`` is called once, on the loop; an exception goes to ``broken``
    instead.
    """

    def __init__(
        self,
        tools: Tools,
        spec: CheckSpec,
        policy: Policy,
        done: Callable[[Story], None],
        broken: Callable[[Exception], None],
    ) -> None:
        self._tools = tools
        self._spec = spec
        self._policy = policy
        self._done = done
        self._broken = broken
        self._deadline = 0.0
        self._carried = Carried(spec)
        self._visited: set[tuple[object, ...]] = set()
        self._asked = 0.0  # when the present look-up began
        self._timer: Timer | None = None
        self._forget: Callable[[], None] | None = None
        self.story = Story(spec, datetime.now(UTC), tools.location)

    def start(self) -> None:
        self._deadline = time.monotonic() + self._spec.timeout
        try:
            target = parse_url(self._spec.url)
        except ValueError as error:
            self.story.fail(Cause.CHECK_ERROR, f"The URL cannot be checked. {error}")
            self._done(self.story)
            return
        self._hop(target)

    # --- look-up and policy

    def _hop(self, target: Target) -> None:
        self.story.hops.append(Hop(target))
        if target.address is not None:
            self._resolved(Resolved(target.ascii_host, (target.address,)))
            return
        known = self._tools.resolver.known(target.ascii_host)
        if known is not None:
            self.story.hops[-1].dns = 0.0
            self._resolved(known)
            return
        self._asked = time.monotonic()
        self._timer = self._tools.loop.call_at(
            self._deadline, partial(self._guarded, self._no_answer)
        )
        self._forget = self._tools.resolver.lookup(
            target.ascii_host, partial(self._guarded, self._answered)
        )

    def _answered(self, resolved: Resolved) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.story.hops[-1].dns = time.monotonic() - self._asked
        self._resolved(resolved)

    def _no_answer(self) -> None:
        hop = self.story.hops[-1]
        resolved = self._tools.resolver.so_far(hop.target.ascii_host, self._spec.timeout)
        if self._forget is not None:
            self._forget()
        hop.dns = time.monotonic() - self._asked
        self._resolved(resolved)

    def _resolved(self, resolved: Resolved) -> None:
        if resolved.cause is not None:
            self.story.fail(resolved.cause, resolved.sentence)
            self._done(self.story)
            return
        hop = self.story.hops[-1]
        hop.resolved = resolved.addresses
        opened: list[str] = []
        refused: list[Refusal] = []
        for address in resolved.addresses:
            refusal = self._policy.refusal(address)
            if refusal is None:
                opened.append(address)
            else:
                refused.append(refusal)
        hop.addresses, hop.refusals = tuple(opened), tuple(refused)
        if opened:
            self._send(hop)
        else:
            self.story.fail(Cause.BLOCKED_BY_POLICY, self._blocked(hop))
            self._done(self.story)

    def _blocked(self, hop: Hop) -> str:
        refusal = hop.refusals[0]
        sentence = refusal.sentence
        if hop.target.address is None:
            sentence = f"{hop.target.ascii_host} resolves to a closed address. {sentence}"
        if len(self.story.hops) > 1:
            sentence = (
                f"Redirect {len(self.story.hops) - 1} leads to {hop.target.netloc}. {sentence}"
            )
        return sentence

    # --- on the wire

    def _send(self, hop: Hop) -> None:
        left = max(1, int((self._deadline - time.monotonic()) * 1000))
        carried = self._carried
        request = Request(
            target=hop.target,
            url=carried.url(hop.target),
            method=carried.method,
            headers=carried.headers(hop.target),
            body=carried.body,
            addresses=routed(hop.addresses),
            timeout_ms=left,
            limit=self._spec.timeout,
            verify_tls=self._spec.verify_tls,
            follow_redirects=self._spec.follow_redirects,
            refusal=self._policy.refusal,
        )
        self._tools.curls.start(request, partial(self._guarded, self._seen), self._broken)

    def _seen(self, seen: Seen) -> None:
        self.story.hops[-1].seen = seen
        if seen.redirect and seen.fault is None and not is_spoilt(seen):
            self._follow(seen)
        elif seen.ip and seen.connect > 0:
            # Only now: a dead family may take all the time that a redirect would have needed.
            hops = {(hop.target.ascii_host, hop.target.port): hop for hop in self.story.hops}
            self._other_families(list(hops.values()))
        else:
            self._done(self.story)

    def _other_families(self, hops: list[Hop]) -> None:
        if not hops:
            self._done(self.story)
            return
        hop = hops.pop()

        def told(warning: Warn | None) -> None:
            if warning is not None and warning not in self.story.warnings:
                self.story.warnings.append(warning)
            self._other_families(hops)

        if hop.seen is None or not hop.seen.ip or len(hop.addresses) < 2:
            told(None)
            return
        self._tools.families.judge(
            hop.addresses,
            hop.seen.ip,
            hop.target.port,
            self._deadline,
            partial(self._guarded, told),
        )

    # --- redirects

    def _follow(self, seen: Seen) -> None:
        here = self.story.hops[-1].target
        location = _as_sent(seen.header("location") or "")
        try:
            target = join(here, location)
        except ValueError as error:
            shown = Redactor(self._spec).text(location)
            self.story.fail(Cause.REDIRECT_BLOCKED, _cannot_follow(here, shown, str(error)))
            self._done(self.story)
            return
        self._visited.add(self._carried.state(here))
        self._carried.remember(here, seen.all_headers("set-cookie"))
        self._carried.redirected(seen.status, target.origin != here.origin)
        state = self._carried.state(target)
        taken = len(self.story.hops)
        if state in self._visited:
            self.story.fail(
                Cause.REDIRECT_LOOP,
                f"The redirects go in a circle: number {taken} leads back to {target.url}.",
            )
        elif taken > MAX_REDIRECTS:
            self.story.fail(
                Cause.TOO_MANY_REDIRECTS,
                f"There were more than {MAX_REDIRECTS} redirects; the next is to {target.url}.",
            )
        else:
            if (
                here.scheme == "https"
                and target.scheme == "http"
                and Warn.REDIRECT_DOWNGRADE not in self.story.warnings
            ):
                self.story.warnings.append(Warn.REDIRECT_DOWNGRADE)
            self._hop(target)
            return
        self._done(self.story)

    def _guarded(self, step: Callable[..., None], *arguments: Any) -> None:
        try:
            step(*arguments)
        except Exception as error:
            self._broken(error)


def _as_sent(location: str) -> str:
    """Header bytes were read as Latin-1; a Location in UTF-8, as most are that are not ASCII, is
    read as that.
    """
    try:
        return location.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return location


def _cannot_follow(here: Target, location: str, why: str) -> str:
    shown = location if len(location) <= 100 else location[:99] + "…"
    shown = "".join(character if character.isprintable() else "\ufffd" for character in shown)
    return f"{here.netloc} redirects to “{shown}”, which cannot be followed. {why}"
