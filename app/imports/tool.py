"""Tool: what the readers of other tools share. It turns entries into drafts, and drafts into a
reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.i18n import N_, _
from app.imports import channels
from app.imports.candidates import NO_MONITORS, Draft, NotReadable, Reading, limited, no_kind
from app.imports.values import ImportEntry, shown

Read = Callable[[Draft, ImportEntry], None]
Variables = Mapping[str, str]  # of an environment


@dataclass(frozen=True, slots=True)
class Tool:
    """``label``: an entry by its position; ``names``: the settings that may hold an entry's name.
    ``kinds``: the names of the kinds of check that Wakeful lacks. ``dropped`` and ``ignored``:
    arguments of ``Draft.drop_unread``.
    """

    source: str
    label: str = N_("Monitor %(position)s")
    names: Sequence[str] = ("name",)
    kinds: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()

    def drafts(self, entries: Sequence[Any], read: Read) -> list[Draft]:
        """``read`` copies the settings of an entry to its draft."""
        return [self.draft(number, entry, read) for number, entry in enumerate(limited(entries), 1)]

    def draft(self, number: int, record: Any, read: Read) -> Draft:
        entry = ImportEntry(record)
        draft = Draft.of_tool(_(self.label, position=number), entry.text(*self.names))
        read(draft, entry)
        draft.drop_unread(entry, self.dropped, self.ignored)
        return draft

    def refuse_kind(self, draft: Draft, kind: str) -> None:
        draft.refuse(no_kind(self.kinds.get(kind, f'"{shown(kind)}"')))

    def reading(self, drafts: Sequence[Draft], remarks: Iterable[str] = ()) -> Reading:
        if not drafts:
            raise NotReadable(NO_MONITORS)
        contacts = channels.share(drafts)
        candidates = [draft.candidate() for draft in drafts]
        return Reading(_(self.source), candidates, tuple(remarks), contacts)
