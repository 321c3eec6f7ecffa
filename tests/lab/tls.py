"""Faults of the TLS handshake, and the wrapper that puts TLS around any other handler."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
import warnings

from tests.lab.net import Connection, Handler


def _alert(code: int) -> bytes:
    """A fatal TLS alert (RFC 8446, section 6)."""
    return b"\x15\x03\x03\x00\x02\x02" + bytes([code])


def over_tls(context: ssl.SSLContext, inner: Handler) -> Handler:
    """``inner`` on an encrypted connection."""

    def handler(connection: Connection) -> None:
        # A client that refuses our certificate ends the handshake with an alert; that is the plan.
        with contextlib.suppress(ssl.SSLError):
            # The handshake by hand: where it fails, wrap_socket() closes at once, and a client that
            # is still sending would be told so by a RST instead of the alert.
            connection.sock = context.wrap_socket(
                connection.sock, server_side=True, do_handshake_on_connect=False
            )
            connection.sock.do_handshake()
            inner(connection)

    return handler


def close_in_handshake(connection: Connection) -> None:
    """A FIN in answer to the ClientHello."""
    connection.receive()
    connection.finish()


def reset_in_handshake(connection: Connection) -> None:
    connection.receive()
    connection.reset()


def reset_before_handshake(connection: Connection) -> None:
    connection.reset()


def garbage_in_handshake(connection: Connection) -> None:
    connection.receive()
    connection.send(b"\x16\x03\x03" + b"\xff" * 300)
    connection.finish()


def plain_http(connection: Connection) -> None:
    """A web server without TLS on this port."""
    connection.receive()
    connection.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    connection.finish()


def silent_in_handshake(connection: Connection) -> None:
    connection.wait_until_gone()


def half_a_server_hello(connection: Connection) -> None:
    """The start of a record that never comes to its end."""
    connection.receive()
    connection.send(b"\x16\x03\x03\x00\x7a\x02\x00")
    connection.wait_until_gone()


def alert_handshake_failure(connection: Connection) -> None:
    connection.receive()
    connection.send(_alert(40))
    connection.finish()


def alert_protocol_version(connection: Connection) -> None:
    connection.receive()
    connection.send(_alert(70))
    connection.finish()


def alert_unrecognized_name(connection: Connection) -> None:
    connection.receive()
    connection.send(_alert(112))
    connection.finish()


HANDLERS = {
    handler.__name__: handler
    for handler in (
        close_in_handshake,
        reset_in_handshake,
        reset_before_handshake,
        garbage_in_handshake,
        plain_http,
        silent_in_handshake,
        half_a_server_hello,
        alert_handshake_failure,
        alert_protocol_version,
        alert_unrecognized_name,
    )
}


def only_version(context: ssl.SSLContext, version: ssl.TLSVersion) -> ssl.SSLContext:
    """A server that speaks this version of TLS and no other."""
    context.set_ciphers("ALL:@SECLEVEL=0")  # OpenSSL 3 allows TLS 1.0 and 1.1 only at this level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # they are old; that is the point
        context.minimum_version = version
        context.maximum_version = version
    return context


def only_rsa(context: ssl.SSLContext) -> ssl.SSLContext:
    """A server whose only cipher needs an RSA key while it has an EC one: no common cipher."""
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
    return context


# The 1024-bit group of RFC 2409, section 6.2.
_GROUP_2 = """-----BEGIN DH PARAMETERS-----
MIGHAoGBAP//////////yQ/aoiFowjTExmKLgNwc0SkCTgiKZ8x0Agu+pjsTmyJR
Sgh5jjQE3e+VGbPNOkMbMCsKbfJfFDdP4TVtbVHCReSFtXZiXn7G9ExC6aY37WsL
/1y29Aa37e44a/taiZ+lrp8kEXxLH+ZJKGZR7OZTgf//////////AgEC
-----END DH PARAMETERS-----
"""


def only_small_dh(context: ssl.SSLContext) -> ssl.SSLContext:
    """A server that agrees on keys in a group of 1024 bits alone."""
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("DHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0")
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(_GROUP_2)
        file.flush()
        context.load_dh_params(file.name)
    return context


def only_tls_1_3(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def by_name(context: ssl.SSLContext, others: ssl.SSLContext) -> ssl.SSLContext:
    """A server of many sites: ours if SNI is good.lab.test, else ``others``."""

    def named(sock: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        sock.context = context if name == "good.lab.test" else others

    others.sni_callback = named
    return others


def named_only(context: ssl.SSLContext) -> ssl.SSLContext:
    """A server that closes the connection unless SNI is good.lab.test."""

    def named(_sock: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int | None:
        return None if name == "good.lab.test" else ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    context.sni_callback = named
    return context


def client_certificate(context: ssl.SSLContext, newest: ssl.TLSVersion) -> ssl.SSLContext:
    """A server that wants a certificate of the client, which a check does not have."""
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = newest
    return context
