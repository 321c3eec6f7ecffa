"""Where the files that are not code lie, in a checkout and in an installed wheel.

The checkout keeps `templates/` and `static/` at its top. In site-packages those names would belong
to nobody, so the wheel carries them inside the package, with an underscore (see pyproject.toml).
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _carried_or_beside(name: str) -> Path:
    carried = _PACKAGE / f"_{name}"
    return carried if carried.is_dir() else _PACKAGE.parent / name


TEMPLATES = _carried_or_beside("templates")
STATIC = _carried_or_beside("static")
MIGRATIONS = _PACKAGE / "db" / "migrations"
TRANSLATIONS = _PACKAGE / "translations"
