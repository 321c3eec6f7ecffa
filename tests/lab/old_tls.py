"""A TLS 1.2 server that says nothing of secure renegotiation (RFC 5746), as old appliances do.

No library can be asked not to: this is the least that makes a handshake (RSA key exchange,
AES-128-GCM, RFC 5246 and 5288) and answers one request.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from tests.lab.net import Connection, Handler

_VERSION = b"\x03\x03"
_RSA_WITH_AES_128_GCM_SHA256 = b"\x00\x9c"
_CHANGE, _ALERT, _HANDSHAKE, _DATA = 20, 21, 22, 23
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def without_secure_renegotiation(pem: bytes) -> Handler:
    """``pem`` is an RSA key and its certificate."""
    key = load_pem_private_key(pem, None)
    assert isinstance(key, rsa.RSAPrivateKey)
    certificate = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)

    def handler(connection: Connection) -> None:
        hello = _receive(connection, _HANDSHAKE)
        client, server = hello[6:38], os.urandom(32)
        flight = (
            _message(2, _VERSION + server + b"\0" + _RSA_WITH_AES_128_GCM_SHA256 + b"\0")
            + _message(11, _sized(_sized(certificate)))
            + _message(14, b"")
        )
        _send(connection, _HANDSHAKE, flight)
        exchange = _receive(connection, _HANDSHAKE)
        secret = key.decrypt(exchange[6:], padding.PKCS1v15())
        master = _prf(secret, b"master secret" + client + server, 48)
        keys = _prf(master, b"key expansion" + server + client, 40)
        read, write = AESGCM(keys[:16]), AESGCM(keys[16:32])
        _receive(connection, _CHANGE)
        number = 0

        def receive(kind: int) -> bytes:
            nonlocal number
            data = _receive(connection, kind)
            about = struct.pack("!QB2sH", number, kind, _VERSION, len(data) - 24)
            number += 1
            return read.decrypt(keys[32:36] + data[:8], data[8:], about)

        def send(kind: int, data: bytes, number: int) -> None:
            about = struct.pack("!QB2sH", number, kind, _VERSION, len(data))
            nonce = struct.pack("!Q", number)
            _send(connection, kind, nonce + write.encrypt(keys[36:40] + nonce, data, about))

        finished = receive(_HANDSHAKE)
        digest = hashlib.sha256(hello + flight + exchange + finished).digest()
        _send(connection, _CHANGE, b"\x01")
        send(_HANDSHAKE, _message(20, _prf(master, b"server finished" + digest, 12)), 0)
        receive(_DATA)
        send(_DATA, _ANSWER, 1)
        send(_ALERT, b"\x01\x00", 2)

    return handler


def _message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + _sized(body)


def _sized(data: bytes) -> bytes:
    return struct.pack("!I", len(data))[1:] + data


def _send(connection: Connection, kind: int, data: bytes) -> None:
    connection.send(struct.pack("!B2sH", kind, _VERSION, len(data)) + data)


def _receive(connection: Connection, kind: int) -> bytes:
    """The content of the next record."""
    head = _exactly(connection, 5)
    if head[0] != kind:
        raise ConnectionError("The client ended the handshake.")
    return _exactly(connection, int.from_bytes(head[3:], "big"))


def _exactly(connection: Connection, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.receive(size - len(data))
        if not piece:
            raise ConnectionError("The client is gone.")
        data += piece
    return data


def _prf(secret: bytes, seed: bytes, size: int) -> bytes:
    data, step = b"", seed
    while len(data) < size:
        step = hmac.digest(secret, step, "sha256")
        data += hmac.digest(secret, step + seed, "sha256")
    return data[:size]
