"""Lets one curl handle speak with old servers, for a monitor that does not verify the certificate.

Versions and weak keys are options of pycurl. Servers without secure renegotiation (RFC 5746) are an
option of OpenSSL alone, which curl leaves to a callback (CURLOPT_SSL_CTX_FUNCTION) that pycurl does
not offer, and pycurl's wheels read no OPENSSL_CONF. So the callback is set by curl's own function,
on the handle within pycurl's object. If pycurl or curl are built otherwise, such servers cannot be
checked, and nothing else changes.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Callable
from functools import cache

import pycurl

log = logging.getLogger(__name__)

# SHA-1, and keys of 512 bits and more; still no cipher that shows no certificate or hides nothing.
CIPHERS = "DEFAULT:!aNULL:!eNULL:@SECLEVEL=0"

_SSL_CTX_FUNCTION = 20_108  # CURLOPT_SSL_CTX_FUNCTION
_LEGACY_SERVER_CONNECT = 0x4  # SSL_OP_LEGACY_SERVER_CONNECT
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_MAGIC = (0xC0DEDBAD).to_bytes(4, sys.byteorder)  # a handle of curl begins with this

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def allow(curl: pycurl.Curl) -> None:
    """Accept old servers on this handle, until it is reset."""
    curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_0)
    curl.setopt(pycurl.SSL_CIPHER_LIST, CIPHERS)
    if (setter := _setter()) is not None:
        setter(curl)


@cache
def _setter() -> Callable[[pycurl.Curl], None] | None:
    """The function that sets the callback on a handle; None if that cannot be done."""
    try:
        # Names are looked up in the libraries that pycurl itself is linked to.
        library = ctypes.CDLL(getattr(pycurl, "_pycurl", pycurl).__file__)
        set_option, set_options = library.curl_easy_setopt, library.SSL_CTX_set_options
        # Another TLS library would give the callback an object of its own, which is not OpenSSL's.
        is_openssl = str(pycurl.version_info()[5]).startswith("OpenSSL/")
        offset = _handle_offset(pycurl.Curl()) if is_openssl else None
    except (OSError, AttributeError):
        offset = None
    if offset is None:
        log.warning("Servers without secure renegotiation cannot be checked with this pycurl.")
        return None
    set_option.argtypes = [ctypes.c_void_p, ctypes.c_int]  # the third argument is variadic
    set_options.argtypes, set_options.restype = [ctypes.c_void_p, ctypes.c_uint64], ctypes.c_uint64

    def allow_legacy(_curl: int, context: int, _data: int) -> int:
        set_options(context, _LEGACY_SERVER_CONNECT)
        return 0

    callback = _Callback(allow_legacy)

    def setter(curl: pycurl.Curl) -> None:
        handle = ctypes.c_void_p.from_address(id(curl) + offset).value
        set_option(handle, _SSL_CTX_FUNCTION, callback)

    return setter


def _handle_offset(curl: object) -> int | None:
    """The offset of curl's handle in pycurl's object: behind its __dict__ and its weak references.
    None if something else is in memory there.
    """
    kind = type(curl)
    offset = max(kind.__dictoffset__, kind.__weakrefoffset__) + _POINTER
    if offset < object.__basicsize__ + _POINTER or offset + _POINTER > kind.__basicsize__:
        return None
    handle = ctypes.c_void_p.from_address(id(curl) + offset).value
    return offset if handle and _bytes_at(handle, len(_MAGIC)) == _MAGIC else None


def _bytes_at(address: int, size: int) -> bytes:
    """The bytes at this address, or nothing: the kernel refuses an unmapped address, of which
    Python would die.
    """
    reader, writer = os.pipe()
    try:
        write = ctypes.CDLL(None).write
        write.argtypes, write.restype = (
            [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t],
            ctypes.c_ssize_t,
        )
        return os.read(reader, size) if write(writer, address, size) == size else b""
    finally:
        os.close(reader)
        os.close(writer)
