"""A relay on loopback in front of a server: it counts bytes, and can be as slow as a long line."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable

from bench.beside import ADDRESS

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PIECE = 65_536


class Relay:
    """Connections to ``port`` go on to a port, or to a Unix socket. ``bytes`` passed, both ways.

    ``round_trip``: seconds that a question and its answer take longer, and that a connection takes
    to open. A line has as much room as it needs.
    """

    def __init__(self, to: int | str, round_trip: float = 0.0) -> None:
        self.bytes = 0
        self._to, self._round_trip = to, round_trip
        self._loop = asyncio.new_event_loop()
        self._writers: list[asyncio.StreamWriter] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, ADDRESS, 0))
        self.port: int = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        # In this thread: in the caller's, another loop may be running, as playwright's in a test.
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        passing = asyncio.all_tasks() - {asyncio.current_task()}
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        await asyncio.sleep(self._round_trip)
        try:
            there_reader, there_writer = await self._open()
        except OSError:
            writer.close()
            return
        self._writers.append(there_writer)
        await asyncio.gather(self._pass(reader, there_writer), self._pass(there_reader, writer))

    def _open(self) -> Awaitable[Streams]:
        if isinstance(self._to, str):
            return asyncio.open_unix_connection(self._to)
        return asyncio.open_connection(ADDRESS, self._to)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        due = 0.0
        while True:
            try:
                piece = await reader.read(PIECE)
            except OSError:
                piece = b""
            self.bytes += len(piece)
            # Never two at the same moment: the loop may run those in another order.
            due = max(due + 1e-6, self._loop.time() + self._round_trip / 2)
            self._loop.call_at(due, _hand_on, writer, piece)
            if not piece:
                return


def _hand_on(writer: asyncio.StreamWriter, piece: bytes) -> None:
    if piece and not writer.is_closing():
        writer.write(piece)
    elif not piece:
        writer.close()
