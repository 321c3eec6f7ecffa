"""Faults below HTTP and without TLS: what a connection suffers before any header arrives."""

from __future__ import annotations

import time

from tests.lab.net import Connection


def reset_at_once(connection: Connection) -> None:
    """A RST as soon as the connection is established."""
    connection.reset()


def reset_after_request(connection: Connection) -> None:
    connection.read_until(b"\r\n\r\n")
    connection.reset()


def close_at_once(connection: Connection) -> None:
    """A FIN as soon as the connection is established; uptime-bench calls it tcp_refused."""
    connection.finish()


def close_after_request(connection: Connection) -> None:
    connection.read_until(b"\r\n\r\n")
    connection.finish()


def silent(connection: Connection) -> None:
    """Takes the request and never says a word."""
    connection.wait_until_gone()


def half_a_status_line(connection: Connection) -> None:
    connection.read_until(b"\r\n\r\n")
    connection.send(b"HTTP/1.1 2")
    connection.finish()


def half_the_headers(connection: Connection) -> None:
    connection.read_until(b"\r\n\r\n")
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
    connection.finish()


def half_the_headers_then_reset(connection: Connection) -> None:
    connection.read_until(b"\r\n\r\n")
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
    connection.reset()


def ssh_banner(connection: Connection) -> None:
    """Another protocol on the web port."""
    connection.send(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
    connection.wait_until_gone(2.0)


def greeting(connection: Connection) -> None:
    """A mail server's greeting, and then it waits for us."""
    connection.send(b"220 mail.lab.test ESMTP ready\r\n")
    connection.wait_until_gone()


def greeting_in_pieces(connection: Connection) -> None:
    """The same with a pause within a character of two bytes."""
    connection.send("220 Begrüßung".encode()[:9])
    time.sleep(0.05)
    connection.send("220 Begrüßung".encode()[9:] + b" ready\r\n")
    connection.wait_until_gone()


def greeting_then_close(connection: Connection) -> None:
    connection.send(b"220 mail.lab.test closing\r\n")
    connection.finish()


def half_a_greeting_then_reset(connection: Connection) -> None:
    connection.send(b"220 ")
    connection.wait_until_read()
    connection.reset()


def late_greeting(connection: Connection) -> None:
    time.sleep(0.3)
    greeting(connection)


def long_greeting(connection: Connection) -> None:
    """1,014 bytes, ``at the end`` up to the last of the first 1,024, and ``behind`` after it."""
    connection.send(b"x" * 1014 + b"at the end" + b"behind" + b"y" * 3000)
    connection.wait_until_gone()


def binary_greeting(connection: Connection) -> None:
    """A greeting like a database's: bytes that are no text, with some among them."""
    connection.send(b"J\x00\x00\x00\x0a8.0.36\x00\xff\xf7ready\x1b[31m")
    connection.wait_until_gone()


def answer_before_request(connection: Connection) -> None:
    """A proxy that turns everybody away, before it has read what they want."""
    connection.send(b"HTTP/1.0 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")
    connection.finish()


def answer_before_body(connection: Connection) -> None:
    """413 as soon as the headers are read, then a close with most of the request unread."""
    connection.receive(100)
    connection.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nbig!")
    connection.sock.close()


HANDLERS = {
    handler.__name__: handler
    for handler in (
        reset_at_once,
        reset_after_request,
        close_at_once,
        close_after_request,
        silent,
        half_a_status_line,
        half_the_headers,
        half_the_headers_then_reset,
        ssh_banner,
        greeting,
        greeting_in_pieces,
        greeting_then_close,
        half_a_greeting_then_reset,
        late_greeting,
        long_greeting,
        binary_greeting,
        answer_before_request,
        answer_before_body,
    )
}
