"""The exceptions of app/, as one tree.

    WakefulError
    ├── Invalid        the caller's input is wrong; carries a sentence for each field        (422)
    ├── NotFound       the record does not exist                                             (404)
    ├── Conflict       the input is fine but the present state forbids it                    (409)
    ├── Denied         the key or the person lacks the right                                 (403)
    ├── Unsupported    this store does not offer that (a bare remote server)                 (404)
    ├── Accepted       a remote server stored the record, but does not show it               (202)
    ├── Throttled      too many attempts; carries the seconds to wait                        (429)
    └── Unavailable    the store cannot answer now: slow, dead, rate limited or lying        (503)

Views and API handlers answer with ``status`` and ``retry_seconds``; the packages below them never
raise HTTP errors.
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar

from app.i18n import N_, _

T = TypeVar("T")

RETRY_SECONDS = 5  # where nothing names a pause
NO_SUCH = N_("There is no %(noun)s with the id %(id)s.")
CHANGED_MEANWHILE = N_("Somebody else made a change at the same moment. Try again.")


def no_such(noun: str, id: int | str) -> str:
    return _(NO_SUCH, noun=_(noun), id=id)


class WakefulError(Exception):
    """The root. ``str(error)`` is a sentence for a person, free of secrets."""

    status: ClassVar[int]

    @property
    def retry_seconds(self) -> int | None:
        """When to try again; None if waiting does not help."""
        return None


class Invalid(WakefulError):
    """Input that cannot be accepted.

    ``errors`` maps a field's name as the caller wrote it (``alerts.7.value``) to its sentences.
    """

    status = 422

    def __init__(
        self, errors: Mapping[str, Sequence[str]], message: str = N_("The data is not valid.")
    ) -> None:
        super().__init__(_(message))
        self.errors: dict[str, list[str]] = {
            name: list(sentences) for name, sentences in errors.items()
        }


class NotFound(WakefulError):
    """The record with this id does not exist. ``noun``: what it is, such as "monitor"."""

    status = 404

    def __init__(self, noun: str, id: int | str, sentence: str = NO_SUCH) -> None:
        super().__init__(_(sentence, noun=_(noun), id=id))


def existing(record: T | None, noun: str, id: int | str) -> T:
    """``record``. Raises NotFound if it is None."""
    if record is None:
        raise NotFound(noun, id)
    return record


class Conflict(WakefulError):
    """The present state forbids it.

    ``details`` goes into the API's body, such as ``open_incident_id``.
    """

    status = 409

    def __init__(self, message: str, **details: int | str | Sequence[int]) -> None:
        super().__init__(message)
        self.details = details


class Denied(WakefulError):
    """The key's scope or the person's role does not allow this."""

    status = 403


class Unsupported(WakefulError):
    """The store behind the dashboard does not offer this feature."""

    status = 404


class Unavailable(WakefulError):
    """The store cannot answer now. ``retry_after`` is in seconds if the store named one.

    ``unsent``: the data has certainly not arrived at the store. If False, it may have arrived.
    ``passes``: whether waiting may help.
    """

    status = 503

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        *,
        unsent: bool = False,
        passes: bool = True,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.unsent = unsent
        self.passes = passes

    @property
    def retry_seconds(self) -> int | None:
        return math.ceil(self.retry_after or RETRY_SECONDS) if self.passes else None


class Accepted(WakefulError):
    """The server behind the dashboard accepted a record, but does not show it. Sending it again
    would store it twice.
    """

    status = 202


class Throttled(WakefulError):
    """Too many attempts. ``retry_after`` is in whole seconds."""

    status = 429

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    @property
    def retry_seconds(self) -> int:
        return self.retry_after
