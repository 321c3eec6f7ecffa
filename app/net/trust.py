"""The certificate authorities that checks trust: those of certifi, and the file of CA_BUNDLE."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import certifi


class Bundle:
    """One file for curl. With ``extra`` it is a temporary file, which ``close`` removes. Raises
    OSError for a bad path.
    """

    def __init__(self, extra: str | None) -> None:
        self._temporary: str | None = None
        self.path = certifi.where()
        if extra:
            data = Path(extra).read_bytes() + b"\n" + Path(self.path).read_bytes()
            fd, self.path = tempfile.mkstemp(prefix="wakeful-ca-", suffix=".pem")
            self._temporary = self.path
            with os.fdopen(fd, "wb") as file:
                file.write(data)

    def close(self) -> None:
        if self._temporary is not None:
            Path(self._temporary).unlink(missing_ok=True)
            self._temporary = None
