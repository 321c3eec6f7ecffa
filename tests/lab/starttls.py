"""Servers that speak their own protocol before TLS, or refuse to start it."""

from __future__ import annotations

import ssl
import struct

from tests.lab.net import Connection, Handler
from tests.lab.tls import over_tls


def _smtp(connection: Connection, refuses: bool) -> bool:
    connection.send(b"220-mail.lab.test ESMTP\r\n")
    connection.send(b"220 ready\r\n")  # the greeting ends in its last line
    assert connection.read_until(b"\r\n").startswith(b"EHLO ")
    if refuses:
        connection.send(b"250-mail.lab.test\r\n250 SIZE 1000\r\n")
        return False
    connection.send(b"250-mail.lab.test\r\n250-starttls\r\n250 SIZE 1000\r\n")
    assert connection.read_until(b"\r\n") == b"STARTTLS\r\n"
    connection.send(b"220 go ahead\r\n")
    return True


def _imap(connection: Connection, refuses: bool) -> bool:
    connection.send(b"* OK [CAPABILITY IMAP4rev1 STARTTLS] ready\r\n")
    assert connection.read_until(b"\r\n") == b"a STARTTLS\r\n"
    connection.send(b"* CAPABILITY IMAP4rev1\r\n")
    connection.send(b"a NO not here\r\n" if refuses else b"a OK begin\r\n")
    return not refuses


def _pop3(connection: Connection, refuses: bool) -> bool:
    connection.send(b"+OK ready\r\n")
    assert connection.read_until(b"\r\n") == b"STLS\r\n"
    connection.send(b"-ERR no\r\n" if refuses else b"+OK\r\n")
    return not refuses


def _ftp(connection: Connection, refuses: bool) -> bool:
    connection.send(b"220-Welcome\r\n 220 is no end\r\n220 ready\r\n")
    assert connection.read_until(b"\r\n") == b"AUTH TLS\r\n"
    connection.send(b"502 Not implemented\r\n" if refuses else b"234 Proceed\r\n")
    return not refuses


def _ldap(connection: Connection, refuses: bool) -> bool:
    """The lengths have four bytes, as Active Directory writes them."""
    assert connection.receive()[:6] == b"\x30\x1d\x02\x01\x01\x77"
    code = b"\x02" if refuses else b"\x00"
    answer = b"\x02\x01\x01\x78\x84\x00\x00\x00\x07\x0a\x01" + code + b"\x04\x00\x04\x00"
    connection.send(b"\x30\x84" + struct.pack(">I", len(answer)) + answer[:5])
    connection.send(answer[5:])
    return not refuses


def _xmpp(connection: Connection, refuses: bool) -> bool:
    assert b"to='good.lab.test'" in connection.read_until(b"streams'>")
    connection.send(b"<?xml version='1.0'?><stream:stream id='1' version='1.0'><stream:features>")
    offer = b"" if refuses else b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    connection.send(offer + b"<mechanisms/></stream:features>")
    if not refuses:
        connection.read_until(b"/>")
        connection.send(b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
    return not refuses


def _postgres(connection: Connection, refuses: bool) -> bool:
    assert connection.receive() == struct.pack(">II", 8, 80877103)
    connection.send(b"N" if refuses else b"S")
    return not refuses


def _mysql(connection: Connection, refuses: bool) -> bool:
    capabilities = struct.pack("<H", 0xF7FF if refuses else 0xFFFF)
    greeting = b"\x0a8.0.36\x00" + bytes(12) + b"\x00" + capabilities + bytes(30)
    connection.send(struct.pack("<I", len(greeting))[:3] + b"\x00" + greeting)
    if not refuses:
        header = connection.sock.recv(36)
        assert header[:4] == b"\x20\x00\x00\x01"
        assert struct.unpack("<I", header[4:8])[0] & 0x0800
    return not refuses


PROTOCOLS = {
    talk.__name__[1:]: talk for talk in (_smtp, _imap, _pop3, _ftp, _ldap, _xmpp, _postgres, _mysql)
}


def serving(protocol: str, context: ssl.SSLContext, *, refuses: bool) -> Handler:
    """A server that starts TLS, or says that it does not."""
    talk, secure = PROTOCOLS[protocol], over_tls(context, Connection.wait_until_gone)

    def handler(connection: Connection) -> None:
        if talk(connection, refuses):
            secure(connection)
        else:
            connection.wait_until_gone()

    return handler
