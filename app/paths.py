"""The paths of the files that are not code, in a checkout and in an installed wheel.

A checkout has `templates/`, `static/` and `docs/` at its top. In site-packages those names would be
too general, so the wheel has them inside the package, with an underscore (see pyproject.toml).
"""

import os
from functools import lru_cache
from gettext import NullTranslations, translation
from pathlib import Path
from typing import BinaryIO

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    in_wheel = _PACKAGE / f"_{name}"
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / name


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


TEMPLATES = _folder("templates")
STATIC = _folder("static")
DOCS = _folder("docs")
MIGRATIONS = _PACKAGE / "db" / "migrations"
TRANSLATIONS = _PACKAGE / "translations"
