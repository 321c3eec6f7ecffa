"""What a template gets for a name or an attribute that does not exist.

By default, Jinja shows nothing in its place, so nobody would notice that a renamed field is
missing. ``Missing`` logs a line, once for each name, and shows nothing: an incident's page must not
fail at night because of one figure. In tests it raises.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from types import FrameType
from typing import ClassVar

from jinja2 import Undefined

from app.lasting import Lasting

log = Lasting(logging.getLogger(__name__))


class Missing(Undefined):
    """The tests ``is defined`` and ``default`` work; printing, testing or comparing is a fault."""

    strict: ClassVar[bool] = False  # tests set it

    def _report(self) -> None:
        if self.strict:
            self._fail_with_undefined_error()
        message = self._undefined_message
        name = _template_name(sys._getframe())
        log.error("The template %s: %s.", name, message, topic=(name, message))

    def __str__(self) -> str:
        self._report()
        return ""

    def __bool__(self) -> bool:
        self._report()
        return False

    def __iter__(self) -> Iterator[object]:
        self._report()
        return iter(())

    def __len__(self) -> int:
        self._report()
        return 0

    def __eq__(self, other: object) -> bool:
        self._report()
        return isinstance(other, Missing)

    def __hash__(self) -> int:
        self._report()
        return hash(Missing)


def _template_name(frame: FrameType | None) -> str:
    """The template whose compiled code runs."""
    while frame is not None and "debug_info" not in frame.f_globals:
        frame = frame.f_back
    return str(frame.f_globals["name"]) if frame else "unknown"
