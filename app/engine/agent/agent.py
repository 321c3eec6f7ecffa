"""The agent's loop: starts due checks, buffers their results, and applies the server's answers.

It has the same schedule and prober as a checker. The server judges the results, and its answers say
which checks to repeat. The networks that checks may reach are a setting of this machine, which no
server can extend.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.codec.packing import pack
from app.codec.specs import read_spec
from app.codec.values import Json, MalformedData, moment, must, object_, record_id, whole
from app.config import PREFIX, SettingError, Settings
from app.engine import schedule
from app.engine.agent.buffer import Buffer, InUse, MadeResult
from app.engine.agent.link import AssignedNews, Clock, Greeted, ServerLink, StandingsNews
from app.engine.carriers import Finished
from app.engine.checking import (
    MIN_PAUSE_SECONDS,
    STEP_SECONDS,
    STOP_SECONDS,
    PlannedLoop,
    make_prober,
    own_canaries,
    own_policy,
)
from app.engine.plan import Job, Plan
from app.engine.schedule import Standing
from app.i18n import _
from app.lasting import Lasting
from app.records import Cause, Result

log = logging.getLogger(__name__)

MAX_PAUSE_SECONDS = 1.0
CLEAN_SECONDS = 600.0
MAX_INTERVAL = 366 * 86_400  # seconds
EARLIEST = datetime.min.replace(tzinfo=UTC)


class Agent:
    """Checks the monitors of its place until it is stopped. Raises SettingError."""

    def __init__(self, settings: Settings) -> None:
        for name, value in (("SERVER", settings.server), ("AGENT_TOKEN", settings.agent_token)):
            if value is None:
                raise SettingError(
                    _(
                        "%(name)s is missing. A place's start command has it: Settings, Places, the"
                        " place, Make a new token. It is shown only once.",
                        name=PREFIX + name,
                    )
                )
        self.settings = settings
        self._clock, folder = Clock(), settings.instance
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._buffer = Buffer(folder)
        except InUse:
            raise SettingError(
                _(
                    "%(name)s is wrong: another agent works in %(folder)s. Give each agent a folder"
                    " and a place of its own.",
                    name=f"{PREFIX}INSTANCE",
                    folder=folder,
                )
            ) from None
        except OSError as fault:
            raise SettingError(
                f"{PREFIX}INSTANCE is wrong: {folder} cannot be used as a folder"
                f" ({fault.strerror})."
            ) from None
        self._policy = own_policy(settings, "this agent")
        self._plan = Plan(timedelta(seconds=settings.confirm_seconds))
        self.checks = PlannedLoop(own_canaries(settings), self._plan, self._clock.now)
        self._jobs: dict[int, Job] = {}
        self._started_at: dict[int, datetime] = {}  # the start of the last check, by monitor
        self._last_checks = self._buffer.last_checks()  # by monitor: its version, and the time
        self._offset = self._clock.offset
        self.checks.per_minute(time.monotonic())  # the count starts now
        self._clean_at = 0.0
        self._refused_checks = RefusedChecks()
        self._log = Lasting(log)
        self._link = ServerLink(
            settings.server or "",
            settings.agent_token or "",
            folder,
            self._buffer,
            self._clock,
            network=settings.network(),
            wake=self.checks.wake,
            figures=self._figures,
        )

    def run(self, stop: threading.Event) -> None:
        self.checks.carrier = make_prober(self.settings, self._policy)
        self._link.start()
        try:
            self.checks.run(self._turn, self._keep, stop)
        finally:
            self._link.close(STOP_SECONDS)

    # --- one turn

    def _turn(self) -> None:
        self._take_news()
        self._notice_step()
        now = self._clock.now()
        self._started_at |= {job.monitor_id: now for job in self.checks.start_due()}
        until_due = self.checks.until_due()
        pause = MAX_PAUSE_SECONDS if until_due is None else min(MAX_PAUSE_SECONDS, until_due)
        self._keep(self.checks.collect(max(MIN_PAUSE_SECONDS, pause)))
        if self.checks.network_changed:
            self.checks.follow_network()
        if time.monotonic() - self._clean_at > CLEAN_SECONDS:
            self._clean_at = time.monotonic()
            if dropped := self._buffer.delete_old(self._clock.now()):
                log.warning("%d results were older than a day and are dropped.", dropped)

    def _notice_step(self) -> None:
        offset = self._clock.offset
        if abs(offset - self._offset) > timedelta(seconds=STEP_SECONDS):
            ahead = -offset.total_seconds()
            log.warning("This machine's clock differs from the server's by %+.1f s.", ahead)
        self._offset = offset
        self.checks.notice_step()  # of the corrected time

    # --- results

    def _keep(self, finished: list[Finished]) -> None:
        """Put results into the buffer, and schedule the next checks of their monitors."""
        made_results, now = [], self._clock.now()
        for claim, outcome in finished:
            job = self._jobs.get(claim.monitor_id)
            if job is None or job.standing.generation != claim.generation:
                continue  # the monitor was changed meanwhile
            # Not before its start by our clock: if the offset of the server's clock was measured
            # again since, the check would seem to belong to the previous scheduled time.
            started = self._started_at.get(claim.monitor_id, EARLIEST)
            at = max(started, self._clock.corrected(outcome.result.checked_at))
            if at > now + timedelta(seconds=STEP_SECONDS):  # a clock was set back meanwhile
                at = now
            dated = replace(outcome, result=replace(outcome.result, checked_at=at))
            body = {"made_for": claim.generation, "outcome": pack(dated)}
            made_results.append(MadeResult(claim.monitor_id, claim.generation, at, body))
            self._plan.end(claim, _standing_after(job, dated.result), now)
        if made_results:
            results = [(claim.monitor_id, outcome.result) for claim, outcome in finished]
            self._refused_checks.note(results, self._jobs.keys())
            self._buffer.add(made_results)
            self._last_checks |= {made.monitor_id: (made.version, made.at) for made in made_results}
            self._link.send_soon()

    def _figures(self) -> Mapping[str, Any]:
        """The agent's report on itself, which each request with results has. Called on the link's
        thread.
        """
        return {"checks_per_minute": self.checks.per_minute(time.monotonic())}

    # --- answers of the server

    def _take_news(self) -> None:
        while not self._link.news.empty():
            news = self._link.news.get()
            if isinstance(news, Greeted):
                log.info("Checking for the place %s.", news.location)
                self._plan.set_confirm_delay(news.confirm, self._clock.now())
            elif isinstance(news, AssignedNews):
                self._assign(news)
            else:
                self._update_standings(news)

    def _assign(self, news: AssignedNews) -> None:
        now = self._clock.now()
        assigned: set[int] = set()
        malformed: list[str] = []
        for item in news.assigned:
            try:
                job = self._job(item)
            except MalformedData as fault:
                malformed.append(str(fault))
                continue
            assigned.add(job.monitor_id)
            self._jobs[job.monitor_id] = job
            self._plan.put(job, now)
        self._note_malformed(malformed, whole=news.is_whole)
        dropped = (self._jobs.keys() - assigned) if news.is_whole else set(news.removed)
        self._plan.drop(dropped)
        for monitor_id in dropped:
            for by_monitor in (self._jobs, self._last_checks, self._started_at):
                by_monitor.pop(monitor_id, None)

    def _note_malformed(self, malformed: list[str], *, whole: bool) -> None:
        """Log once that monitors cannot be read: a server may send the same each second."""
        fields = ", ".join(sorted({*malformed}))
        if malformed:
            self._log.error(
                "%d monitors that the server sent cannot be read and are not checked (%s).",
                len(malformed),
                fields,
                cause=fields,
            )
        elif whole:
            self._log.end()

    def _job(self, item: Json) -> Job:
        """Read a monitor, and check its values: one that the schedule cannot use would end the
        agent at each start. Raises MalformedData.
        """
        spec = read_spec(item.get("spec"))
        monitor_id = must(record_id(spec.monitor_id), "monitor_id")
        version = must(whole(item.get("version")), "version")
        interval = must(whole(item.get("interval")), "interval")
        if not 1 <= interval <= MAX_INTERVAL:
            raise MalformedData("interval")
        standing = _standing(object_(item.get("standing"), "standing"), version)
        checked_version, at = self._last_checks.get(monitor_id, (version, None))
        if at is not None and checked_version == version and _is_later(at, standing):
            # The result of a later check is on its way to the server.
            scheduled_at = schedule.last_scheduled(monitor_id, interval, at)
            standing = replace(standing, scheduled_at=scheduled_at, checked_at=at)
        return Job(monitor_id, spec, interval, 0, 0, standing)

    def _update_standings(self, news: StandingsNews) -> None:
        now = self._clock.now()
        for number, standing in news.standings.items():
            job = self._jobs.get(number)
            if standing is None:
                self._link.reload()  # the monitor has changed, and its result was dropped
            elif job is not None:
                since = moment(standing.get("unconfirmed_at"))
                job.standing = replace(job.standing, unconfirmed_at=since)
                self._plan.put(job, now)


def _is_later(at: datetime, standing: Standing) -> bool:
    """Whether this agent's check at ``at`` is later than the server's ``standing`` of the monitor.
    It is not if the standing has a check and no scheduled time: then a check is due at once.
    """
    if standing.scheduled_at is None:
        return standing.checked_at is None
    return standing.checked_at is None or at > standing.checked_at


def _standing_after(job: Job, result: Result) -> Standing:
    at, blind = result.checked_at, result.cause_code == Cause.NETWORK_DOWN
    scheduled_at = schedule.last_scheduled(job.monitor_id, job.interval, at)
    return replace(job.standing, scheduled_at=scheduled_at, checked_at=at, blind=blind)


def _standing(standing: Json, generation: int) -> Standing:
    return Standing(
        generation,
        moment(standing.get("slot")),
        moment(standing.get("checked_at")),
        moment(standing.get("unconfirmed_at")),
        standing.get("blind") is True,
        moment(standing.get("asked_at")),
    )


class RefusedChecks:
    """The monitors whose last check the policy refused. Without a line in the log, an agent that
    may reach none of its targets would seem to work.
    """

    def __init__(self) -> None:
        self._refused: set[int] = set()
        self._log = Lasting(log)

    def note(self, results: Sequence[tuple[int, Result]], monitors: Collection[int]) -> None:
        """Note results, each with the id of its monitor, and log once if the last checks of all
        ``monitors`` of the agent were refused.
        """
        for id, result in results:
            if result.was_made:
                self._refused.discard(id)
            else:
                self._refused.add(id)
        self._refused.intersection_update(monitors)
        all_refused = bool(self._refused) and len(self._refused) == len(monitors)
        if all_refused and results:
            self._log.warning(
                "WAKEFUL_ALLOW_NETWORKS of this agent allows no check of its monitors (%d). The"
                " last one: %s",
                len(monitors),
                results[-1][1].cause,
                cause=True,
            )
        elif not all_refused:
            self._log.end()
