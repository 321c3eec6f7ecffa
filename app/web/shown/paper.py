"""A report as a PDF file, if WeasyPrint is installed: ``pip install weasyprint``.

WeasyPrint needs Pango from the system. Without them, the page has no link to the file, and people
can print it from the browser.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flask import current_app, render_template

from app.errors import Unsupported
from app.i18n import N_, _
from app.web.shown.report import INCIDENTS_SHOWN, Report

LACKING = N_(
    "This installation cannot make PDF files. Print the page from your browser, or install"
    " WeasyPrint and Pango on the server."
)


def available() -> bool:
    """Whether the library is installed. It is imported for the first file, because it is large."""
    return find_spec("weasyprint") is not None


def pdf(report: Report, made_by: str) -> bytes:
    """Raises Unsupported."""
    try:
        import weasyprint
    except (ImportError, OSError):  # OSError: Pango is missing
        raise Unsupported(_(LACKING)) from None
    sheet = Path(str(current_app.static_folder)) / "css/pages/paper.css"
    page = render_template(
        "reports/paper.html",
        report=report,
        made_by=made_by,
        most_incidents=INCIDENTS_SHOWN,
        style=sheet.read_text("utf-8"),
    )
    made: bytes = weasyprint.HTML(string=page, url_fetcher=_nothing).write_pdf()
    return made


def _nothing(url: str, *_args: object, **_kwargs: object) -> Any:
    """Refuse every request: a text in the page must not make the server load anything."""
    raise RuntimeError(f"A report loads nothing, and not {url}.")


# A spreadsheet runs a cell that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def plain(text: str) -> str:
    """Text that no spreadsheet reads as a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
