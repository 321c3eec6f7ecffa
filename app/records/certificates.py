"""Certificates that a target sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict


class Certificate(TypedDict):
    """What is told of a certificate."""

    subject: str | None
    issuer: str | None
    not_before: str | None
    not_after: str | None
    sha256: str | None
    names: Sequence[str]  # that it is for


@dataclass(frozen=True, slots=True)
class CertificateChain:
    """The certificates that a target sent last, its own first, as ``app.checks.http.evidence`` has
    them, with None for what could not be read.

    ``seen_at`` is None, and there are no certificates, where none is known.
    """

    seen_at: datetime | None = None
    certificates: Sequence[Certificate] = ()
