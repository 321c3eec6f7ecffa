"""Keep the secrets of the environment out of the output of a command.

Drivers, brokers and servers repeat in their errors what they were sent, such as a URL with its
password, and libraries log that. So the secrets are masked in the standard streams, through which
all output passes.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO
from urllib.parse import parse_qsl, urlsplit

from app.config import PREFIX
from app.records import MASK
from app.rules.masking import secrets_in_url, spellings

MIN_SECRET = 8  # a shorter secret, such as "wakeful", would be masked in ordinary words
VALUES = (
    "AGENT_TOKEN", "BATCH_KEY", "METRICS_TOKEN", "REMOTE_KEY", "SECRET_KEY", "TELEGRAM_TOKEN",
)  # fmt: skip
WITH_PASSWORD = ("BROKER_URL", "DATABASE_URL", "SMTP_URL", "SMS_URL")
PROXIES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")  # also in lower case; an agent honours them
PRINTED = "WEBHOOK_SECRET"  # ``wakeful webhook-secret`` prints it


def mask_streams(environ: Mapping[str, str] = os.environ) -> None:
    """Mask the output of this process, and of processes that it forks, from now on."""
    secrets = [*_secrets(environ)]
    webhook_secret = environ.get(PREFIX + PRINTED, "").strip()
    sys.stdout = _masked(sys.stdout, secrets)
    sys.stderr = _masked(
        sys.stderr, [*secrets, webhook_secret, webhook_secret.removeprefix("whsec_")]
    )


def _secrets(environ: Mapping[str, str]) -> Iterator[str]:
    yield environ.get("PGPASSWORD", "")  # libpq reads it
    for name in VALUES:
        for part in environ.get(PREFIX + name, "").split(","):
            yield part.strip()
            yield part.strip().partition(":")[2]  # of a bot's token
    for name in WITH_PASSWORD:
        yield from _passwords(environ.get(PREFIX + name, "").strip())
    for name in PROXIES:
        yield from _passwords(environ.get(name, "").strip())
        yield from _passwords(environ.get(name.lower(), "").strip())
    heartbeat = environ.get(PREFIX + "HEARTBEAT_URL", "").strip()
    yield from secrets_in_url(heartbeat) if heartbeat else ()


def _passwords(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
    except ValueError:  # a wrong setting: the error that ends the start does not show it
        return
    yield parts.password or ""
    yield from (value for name, value in parse_qsl(parts.query) if "pass" in name)


def _masked(stream: TextIO, secrets: Iterable[str]) -> Any:
    patterns = spellings(secrets, shortest=MIN_SECRET)
    return _Masked(stream, patterns) if patterns and not isinstance(stream, _Masked) else stream


class _Masked:
    """A text stream that masks secrets in what is written to it. Other methods and attributes are
    those of ``stream``.
    """

    def __init__(self, stream: TextIO, patterns: list[re.Pattern[str]]) -> None:
        self._stream, self._patterns = stream, patterns

    def write(self, text: str) -> int:
        for pattern in self._patterns:
            text = pattern.sub(MASK, text)
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
