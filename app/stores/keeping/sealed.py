"""A stream of bytes, encrypted with a passphrase: libsodium's secretstream (XChaCha20-Poly1305)
under a key that Argon2id makes of the passphrase.

The format: MAGIC, 16 bytes of salt, 24 bytes of the stream's header, then chunks of CHUNK bytes,
each 17 bytes longer than its content. The last chunk is marked, so a file that was cut is noticed.
"""

from __future__ import annotations

import io
from typing import BinaryIO

from nacl import bindings, exceptions, pwhash, utils

from app.errors import WakefulError
from app.i18n import _

MAGIC = b"wakeful backup, encrypted, 1\n"
CHUNK = 64 * 1024
ADDED = bindings.crypto_secretstream_xchacha20poly1305_ABYTES
HEADER = bindings.crypto_secretstream_xchacha20poly1305_HEADERBYTES
MORE = bindings.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE
LAST = bindings.crypto_secretstream_xchacha20poly1305_TAG_FINAL
SALT = pwhash.argon2id.SALTBYTES
# A key takes half a second to make, with little memory: a small server goes on checking meanwhile.
PASSES, MEMORY = 6, 64 * 1024 * 1024


def _key(passphrase: str, salt: bytes) -> bytes:
    return pwhash.argon2id.kdf(
        bindings.crypto_secretstream_xchacha20poly1305_KEYBYTES,
        passphrase.encode(),
        salt,
        opslimit=PASSES,
        memlimit=MEMORY,
    )


class Sealer(io.RawIOBase):
    """Encrypts what is written to it into ``file``. ``close`` writes the last chunk."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        self._file = file
        self._waiting = bytearray()
        self._state = bindings.crypto_secretstream_xchacha20poly1305_state()
        salt = utils.random(SALT)
        header = bindings.crypto_secretstream_xchacha20poly1305_init_push(
            self._state, _key(passphrase, salt)
        )
        file.write(MAGIC + salt + header)

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        added = bytes(data)  # type: ignore[call-overload]
        self._waiting += added
        while len(self._waiting) > CHUNK:
            self._push(bytes(self._waiting[:CHUNK]), MORE)
            del self._waiting[:CHUNK]
        return len(added)

    def _push(self, content: bytes, tag: int) -> None:
        self._file.write(
            bindings.crypto_secretstream_xchacha20poly1305_push(self._state, content, tag=tag)
        )

    def close(self) -> None:
        if not self.closed:
            self._push(bytes(self._waiting), LAST)
        super().close()


class Opener(io.RawIOBase):
    """Decrypts ``file``, whose position is after MAGIC. Raises WakefulError for a wrong passphrase,
    and for a file that was changed or cut.
    """

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        self._file = file
        self._content = b""
        self._ended = False
        self._state = bindings.crypto_secretstream_xchacha20poly1305_state()
        salt, header = file.read(SALT), file.read(HEADER)
        if len(header) < HEADER:
            raise WakefulError(_("The backup is incomplete: its end is missing."))
        bindings.crypto_secretstream_xchacha20poly1305_init_pull(
            self._state, header, _key(passphrase, salt)
        )
        self._first = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(buffer)  # type: ignore[arg-type]
        while not self._content and not self._ended:
            self._content = self._next()
        taken, self._content = self._content[: len(target)], self._content[len(target) :]
        target[: len(taken)] = taken
        return len(taken)

    def _next(self) -> bytes:
        sealed = self._file.read(CHUNK + ADDED)
        if not sealed:
            raise WakefulError(_("The backup is incomplete: its end is missing."))
        try:
            content, tag = bindings.crypto_secretstream_xchacha20poly1305_pull(self._state, sealed)
        except (exceptions.CryptoError, ValueError, RuntimeError):
            raise WakefulError(
                _("The passphrase is wrong, or the backup was damaged.")
                if self._first
                else _("The backup is damaged or incomplete.")
            ) from None
        self._first = False
        self._ended = tag == LAST
        return bytes(content)
