"""Lets one curl handle speak with old servers, for a monitor that does not verify the certificate.

Versions and weak keys are options of pycurl. Servers without secure renegotiation (RFC 5746) are an
option of OpenSSL alone, which curl leaves to a callback (CURLOPT_SSL_CTX_FUNCTION) that pycurl
does not offer, and pycurl's wheels read no OPENSSL_CONF. So the callback is set by curl's own
function, on the handle within pycurl's object. An object that is laid out otherwise is left alone.
"""

from __future__ import annotations

import ctypes
import logging
from functools import cache
from typing import Any

import pycurl

log = logging.getLogger(__name__)

# SHA-1, and keys of 512 bits and more; still no cipher that shows no certificate or hides nothing.
CIPHERS = "DEFAULT:!aNULL:!eNULL:@SECLEVEL=0"

_SSL_CTX_FUNCTION = 20_108  # CURLOPT_SSL_CTX_FUNCTION
_LEGACY_SERVER_CONNECT = 0x4  # SSL_OP_LEGACY_SERVER_CONNECT
_POINTER = ctypes.sizeof(ctypes.c_void_p)
# pycurl's object: the head of every object, __dict__, __weakref__, the handle.
_HANDLE = object.__basicsize__ + 2 * _POINTER
_MAGIC = 0xC0DEDBAD  # a handle of curl begins with this

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def allow(curl: pycurl.Curl) -> None:
    """Accept old servers on this handle, until it is reset."""
    curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_0)
    curl.setopt(pycurl.SSL_CIPHER_LIST, CIPHERS)
    if (functions := _functions()) is None:
        return
    set_option, allow_legacy = functions
    handle = ctypes.c_void_p.from_address(id(curl) + _HANDLE).value
    if not handle or ctypes.c_uint.from_address(handle).value != _MAGIC:
        log.warning("Servers without secure renegotiation cannot be checked: pycurl has changed.")
        return
    set_option(handle, _SSL_CTX_FUNCTION, allow_legacy)


@cache
def _functions() -> tuple[Any, Any] | None:
    """curl's function that sets an option, and the callback; None where curl has no OpenSSL."""
    try:
        # Names are looked up in the libraries that pycurl itself is linked to.
        library = ctypes.CDLL(getattr(pycurl, "_pycurl", pycurl).__file__)
        set_option, set_options = library.curl_easy_setopt, library.SSL_CTX_set_options
    except (OSError, AttributeError):
        log.warning("Servers without secure renegotiation cannot be checked: curl has no OpenSSL.")
        return None
    set_option.argtypes = [ctypes.c_void_p, ctypes.c_int]  # the third argument is variadic
    set_options.argtypes, set_options.restype = [ctypes.c_void_p, ctypes.c_uint64], ctypes.c_uint64

    def allow_legacy(_curl: int, context: int, _data: int) -> int:
        set_options(context, _LEGACY_SERVER_CONNECT)
        return 0

    return set_option, _Callback(allow_legacy)
