"""The certificate authorities that checks trust: those of certifi, and the file of CA_BUNDLE."""

from __future__ import annotations

import os
from pathlib import Path

import certifi


class Bundle:
    """One file for curl. With ``extra`` it is in memory, until ``close``, and ``path`` is valid in
    this process and its forks: a killed process leaves no copy on disk. Raises OSError for a bad
    path.
    """

    def __init__(self, extra: str | None) -> None:
        self._memory: int | None = None
        self.path = certifi.where()
        if extra:
            data = Path(extra).read_bytes() + b"\n" + Path(self.path).read_bytes()
            self._memory = os.memfd_create("wakeful-ca")
            self.path = f"/proc/self/fd/{self._memory}"
            with open(self._memory, "wb", closefd=False) as file:
                file.write(data)

    def close(self) -> None:
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None
