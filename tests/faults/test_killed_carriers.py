"""Everything that makes checks, in processes of their own, on PostgreSQL and Redis: each is killed
in turn, the agent is cut off, and no result is lost or made twice.

Three places watch the same monitors: ``default`` (a checker), ``eu`` (two checkers and two probers
over the queue) and ``oslo`` (an agent). KILLS_SECONDS, KILLS_MONITORS and KILLS_INTERVAL say how
much; `make kills` takes three minutes.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import cycle, pairwise

import pytest
import sqlalchemy as sa
import trustme

from app import create_app
from app.access.keys import give_token
from app.config import Settings
from app.db import db, schema, writing
from app.db.tables import IncidentRow, MonitorRow, PlaceRow, ResultRow
from app.db.types import from_ms
from app.engine.schedule import last_scheduled
from tests.conftest import SECRET_KEY
from tests.factories import make_monitor
from tests.support import command
from tests.support.loopback import serving
from tests.support.postgres import own_server
from tests.support.redis import Redis

SECONDS = float(os.environ.get("KILLS_SECONDS", "40"))
MONITORS = int(os.environ.get("KILLS_MONITORS", "60"))
INTERVAL = int(os.environ.get("KILLS_INTERVAL", "10"))
TIMEOUT, CONFIRM = 5, 2
LATE = timedelta(seconds=30)
PAUSE = 4.0  # between two kills
SECRET = "hunter2-in-the-clear"
BATCH_KEY = base64.b64encode(os.urandom(32)).decode()


class Target:
    """Answers 200 over HTTP and HTTPS, on a thread of its own."""

    def __init__(self, certificate: trustme.LeafCert) -> None:
        self.loop = asyncio.new_event_loop()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(self.tls)
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=[ready])
        self.thread.start()
        ready.wait()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        self.servers = [self.loop.run_until_complete(self._start(tls)) for tls in (None, self.tls)]
        self.http, self.https = (server.sockets[0].getsockname()[1] for server in self.servers)
        ready.set()
        self.loop.run_forever()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def _start(self, tls: ssl.SSLContext | None) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024, ssl=tls)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            await writer.drain()
        except (OSError, EOFError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def close(self) -> None:
        def stop() -> None:
            for server in self.servers:
                server.close()
            self.loop.call_later(0.1, self.loop.stop)

        self.loop.call_soon_threadsafe(stop)
        self.thread.join()


class Gate:
    """The server as the agent reaches it."""

    def __init__(self, app):
        self.app, self.cut = app, False

    def __call__(self, environ, start_response):
        if self.cut:
            start_response("502 Bad Gateway", [("Content-Length", "0")])
            return []
        return self.app(environ, start_response)


class Part:
    """A process that is killed and started again."""

    def __init__(self, words, environ, ends):
        self.words, self.environ = words, environ
        self.start()
        ends.callback(self.end)

    def start(self):
        self.process = command.start(command.be, *self.words, environ=self.environ)

    def kill(self):
        self.process.kill()
        self.process.join()

    def end(self):
        self.process.terminate()
        self.process.join(30)
        self.kill()


def add_places(app):
    """Their row ids, and the agent's token."""
    now = datetime.now(UTC)
    with app.app_context(), writing() as session:
        eu = PlaceRow(name="eu", carrier="queue", created_at=now)
        oslo = PlaceRow(name="oslo", carrier="agent", created_at=now)
        session.add_all([eu, oslo])
        token = give_token(oslo)
        session.flush()
        return [1, eu.id, oslo.id], token


@pytest.mark.more
@pytest.mark.postgres
@pytest.mark.timeout(SECONDS + 300)
def test_kills_and_cuts_lose_no_result_make_none_twice_and_cause_no_incident(tmp_path):
    authority = trustme.CA()
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(trusted))
    with ExitStack() as ends:
        server = ends.enter_context(own_server())
        redis = Redis(tmp_path / "redis")
        redis.start()
        ends.callback(redis.close)
        target = Target(authority.issue_cert("127.0.0.1"))
        ends.callback(target.close)
        settings = Settings(
            instance=tmp_path,
            database_url=server.url(server.create()),
            secret_key=SECRET_KEY,
            confirm_seconds=CONFIRM,
            allow_networks="loopback",
            canaries="",
        )
        app = create_app(settings)
        ends.callback(lambda: _dispose(app))
        with app.app_context():
            schema.upgrade()
        places, token = add_places(app)
        monitors = add_monitors(app, target, places)
        gate = Gate(app)
        url = ends.enter_context(serving(gate))
        common = {
            "PATH": os.environ["PATH"],
            "WAKEFUL_ALLOW_NETWORKS": "loopback",
            "WAKEFUL_CANARIES": "",
        }
        queue = {"WAKEFUL_BROKER_URL": redis.url, "WAKEFUL_BATCH_KEY": BATCH_KEY}
        database = {
            "WAKEFUL_DATABASE_URL": settings.database_url,
            "WAKEFUL_INSTANCE": str(tmp_path),
            "WAKEFUL_SECRET_KEY": SECRET_KEY,
            "WAKEFUL_CONFIRM_SECONDS": str(CONFIRM),
        }
        trust = {"WAKEFUL_CA_BUNDLE": str(trusted)}
        checker = common | database | queue | trust
        prober = common | queue | trust | {"WAKEFUL_INSTANCE": str(tmp_path / "none")}
        # The agent does not trust the authority: two targets fail from its place alone.
        agent = common | {
            "WAKEFUL_SERVER": url,
            "WAKEFUL_AGENT_TOKEN": token,
            "WAKEFUL_INSTANCE": str(tmp_path / "agent"),
        }
        overqueue = ["checker", "--carrier", "queue"]
        parts = [
            Part(["checker"], checker, ends),
            Part(overqueue, checker | {"WAKEFUL_LOCATION": "eu"}, ends),
            Part(overqueue, checker | {"WAKEFUL_LOCATION": "eu"}, ends),
            Part(["prober", "--location", "eu"], prober, ends),
            Part(["prober", "--location", "eu"], prober, ends),
        ]
        # The agent comes last: as long as it is the only place that has a vote, it is the majority.
        await_results(app, monitors, places[:2])
        parts.append(Part(["agent"], agent, ends))
        await_results(app, monitors, places)
        began = datetime.now(UTC)
        kills = harass(parts, redis, server, gate)
        time.sleep(INTERVAL + 2)  # the last kill's checks come back
        ended = datetime.now(UTC)
        for part in parts:
            part.process.terminate()  # all at once: each may take seconds
        for secret in (SECRET, f":{target.http}/"):
            assert secret.encode() not in kills
        assert kills, "the broker was read while batches were on it"
        problems = judge(app, monitors, places, began, ended)
        assert not problems, "\n".join(problems[:20])
        only_from_one_place(app, monitors)


def add_monitors(app, target, places):
    """Healthy ones, and two whose certificate one place of three does not trust."""
    common = {
        "interval": INTERVAL,
        "timeout": TIMEOUT,
        "confirmations": 1,
        "places": places,
        "request_headers": [["X-Token", SECRET]],
    }
    healthy = [
        make_monitor(app, url=f"http://127.0.0.1:{target.http}/{number}", **common).id
        for number in range(MONITORS - 2)
    ]
    https = f"https://127.0.0.1:{target.https}/"
    most = make_monitor(app, url=https, name="majority", location_rule="majority", **common).id
    https_monitor = make_monitor(app, url=https, name="any", location_rule="any", **common).id
    return {"healthy": healthy, "majority": most, "any": https_monitor}


def await_results(app, monitors, places):
    """Until each monitor has a result from each place."""
    wanted = (len(monitors["healthy"]) + 2) * len(places)
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        with app.app_context():
            pairs = sa.select(ResultRow.monitor_id, ResultRow.location_id).distinct()
            pairs_with_results = len(db.session.execute(pairs).all())
            db.session.remove()
        if pairs_with_results == wanted:
            return
        time.sleep(0.5)
    raise AssertionError(
        f"{pairs_with_results} of {wanted} monitors and places had a result in time."
    )


def harass(parts, redis, server, gate):
    """Kill each in turn, cut the agent off; returns what was seen on the broker."""
    until = time.monotonic() + SECONDS
    cut_from, cut_to = until - 0.7 * SECONDS, until - 0.35 * SECONDS
    received = b""
    steps = cycle([*parts, "redis", "postgres"])
    while time.monotonic() < until:
        gate.cut = cut_from <= time.monotonic() < cut_to
        step = next(steps)
        if step == "redis":
            redis.kill()
            time.sleep(0.5)
            redis.start()
        elif step == "postgres":
            server.stop()  # at once, as a crash
            server.start()
        else:
            step.kill()
            step.start()
        before = time.monotonic()
        while time.monotonic() - before < PAUSE:
            received += redis.everything()
            gate.cut = cut_from <= time.monotonic() < cut_to
            time.sleep(0.1)
    gate.cut = False
    return received


def judge(app, monitors, places, began, ended):
    """The faults in the results between the two times."""
    problems = []
    with app.app_context():
        rows = db.session.execute(
            sa.select(ResultRow.monitor_id, ResultRow.location_id, ResultRow.at).order_by(
                ResultRow.at
            )
        ).all()
        incidents = db.session.execute(
            sa.select(IncidentRow.cause, MonitorRow.name).join(
                MonitorRow, MonitorRow.id == IncidentRow.monitor_id
            )
        ).all()
        db.session.remove()
    times = defaultdict(list)
    for row in rows:
        times[row.monitor_id, row.location_id].append(from_ms(row.at))
    allowed = timedelta(seconds=INTERVAL) + LATE
    for monitor_id in monitors["healthy"]:
        for place in places:
            checked = times[monitor_id, place]
            scheduled = [last_scheduled(monitor_id, INTERVAL, at) for at in checked]
            # The very first check is due at once, at a scheduled time that is already over.
            twice = len(scheduled[1:]) - len(set(scheduled[1:]))
            if twice:
                problems.append(
                    f"monitor {monitor_id} in place {place}: {twice} scheduled checks made twice"
                )
            longest = max(later - earlier for earlier, later in pairwise([*checked, ended]))
            if longest > allowed:
                problems.append(f"monitor {monitor_id} in place {place}: alone for {longest}")
    problems += [f"false: {row}" for row in incidents if row.name not in ("any", "majority")]
    return problems


def only_from_one_place(app, monitors):
    """A target that fails from one place of three opens an incident under ``any``, and none under
    ``majority``. While that place is cut off for longer than two intervals, it has no vote
    (decision 14): the incident ends, and another one begins afterwards.
    """
    with app.app_context():
        ids = db.session.scalars(sa.select(IncidentRow.monitor_id)).all()
        db.session.remove()
    assert set(ids) == {monitors["any"]}
    assert len(ids) <= 2


def _dispose(app):
    with app.app_context():
        db.session.remove()
        db.engine.dispose()
