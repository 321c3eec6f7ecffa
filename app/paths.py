"""The paths of the files that are not code, in a checkout and in an installed wheel.

The checkout keeps `templates/`, `static/` and `docs/` at its top. In site-packages those names
would belong to nobody, so the wheel carries them inside the package, with an underscore (see
pyproject.toml).
"""

import os
from functools import lru_cache
from gettext import NullTranslations, translation
from pathlib import Path
from typing import BinaryIO

_PACKAGE = Path(__file__).resolve().parent


def _carried_or_beside(name: str) -> Path:
    carried = _PACKAGE / f"_{name}"
    return carried if carried.is_dir() else _PACKAGE.parent / name


def new_private_file(path: Path) -> BinaryIO:
    """A new file, open for writing, that only its owner can read. Raises FileExistsError."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def translations_of(language: str) -> NullTranslations | None:
    """The sentences in this language; None for English, and if there is no translation."""
    return _translations(TRANSLATIONS, language.replace("-", "_"))


@lru_cache(maxsize=64)
def _translations(folder: Path, language: str) -> NullTranslations | None:
    try:
        return translation("messages", folder, [language])
    except FileNotFoundError:
        return None


TEMPLATES = _carried_or_beside("templates")
STATIC = _carried_or_beside("static")
DOCS = _carried_or_beside("docs")
MIGRATIONS = _PACKAGE / "db" / "migrations"
TRANSLATIONS = _PACKAGE / "translations"
