"""The environment of programs that Wakeful starts. They get only the variables that they need: the
environment of Wakeful has the secret key, passwords, and secrets of other services.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_NAMES = frozenset({
    "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH",
    "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ", "VIRTUAL_ENV",
})  # fmt: skip
_LOCALE = "LC_"


def for_program(own: Mapping[str, str], *, prefix: str | None = None) -> dict[str, str]:
    """The environment for a program: the common variables, the variables that begin with
    ``prefix``, and ``own``.
    """
    prefixes = (_LOCALE, prefix) if prefix else (_LOCALE,)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in _NAMES or name.startswith(prefixes)
    }
    return inherited | dict(own)
