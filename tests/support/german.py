"""A translation into German, of the sentences that a test needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

Texts = Mapping[str | tuple[str, str], str | tuple[str, str]]


def translations(folder: Path, texts: Texts) -> Path:
    """A folder in ``folder``, as app/translations is one, with these texts by their sentences."""
    catalogue = Catalog(locale="de")
    for sentence, text in texts.items():
        catalogue.add(sentence, text)
    made = folder / "translations"
    target = made / "de" / "LC_MESSAGES"
    target.mkdir(parents=True)
    with (target / "messages.mo").open("wb") as file:
        write_mo(file, catalogue)
    return made
