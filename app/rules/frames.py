"""Where an exception was raised, for the log: without its text and the values in its frames, which
may be secrets.
"""

from __future__ import annotations

import traceback
from pathlib import PurePath

MOST = 8  # frames, the innermost


def frames_of(fault: BaseException) -> str:
    """The type of an exception and the lines that led to it, the innermost last."""
    frames = traceback.extract_tb(fault.__traceback__)[-MOST:]
    lines = [f"{_short(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]
    return " > ".join([*lines, type(fault).__name__])


def place_of(fault: BaseException) -> str:
    """The type of an exception and the line that raised it."""
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    return f"{type(fault).__name__}, {PurePath(frame.filename).name}:{frame.lineno}"


def _short(name: str) -> str:
    return "/".join(PurePath(name).parts[-3:])
