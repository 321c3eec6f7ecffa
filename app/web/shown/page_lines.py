"""The list of monitors and headings in the form of a status page.

A heading begins a group, which ends at the next heading. Monitors above the first heading are in no
group. People order monitors and groups, and put a monitor into a group, by moving lines.

The browser sends a ``line`` for each (``m17``: the monitor 17; ``g1``: a heading), in their order,
with ``group[1]`` (the heading's text) and ``own[17]`` (the name on the page). It also sends the
monitor's name and URL (``known[17]``, ``url[17]``), so that the store need not be read whenever a
line is moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from werkzeug.datastructures import MultiDict

from app.i18n import _
from app.records import MAX_GROUPS, MAX_PAGE_MONITORS, MonitorQuery, MonitorRef, StatusPage
from app.rules.text import record_id
from app.stores import current_mail
from app.web.frame import choices, servers

Form = MultiDict[str, str]

LINE, OWN, GROUP, KNOWN, URL = "line", "own", "group", "known", "url"
LINE_FIELDS = (LINE, "monitors", "names", "groups")
# The form reads more lines than a page may have, so that a person can remove some.
MAX_LINES = 2 * (MAX_PAGE_MONITORS + MAX_GROUPS)


@dataclass(frozen=True, slots=True)
class Line:
    """A monitor, or the heading of a group (``monitor`` is None). ``key`` identifies it in buttons.

    ``text``: the typed name of the monitor on the page, or the heading. ``index`` counts monitors
    and headings separately, for the ids of inputs.
    """

    key: str
    text: str
    index: int
    monitor: MonitorRef | None = None

    @property
    def name(self) -> str:
        """The name as the page shows it."""
        return self.text if self.text.strip() or not self.monitor else self.monitor.name


def of_page(page: StatusPage, refs: Mapping[int, MonitorRef]) -> list[Line]:
    """The lines of a stored page. ``refs``: its monitors by their ids."""
    names = {named.key: named.value for named in page.names}
    grouped = {id for group in page.groups for id in group.monitors}
    lines = [_monitor(id, names, refs) for id in page.monitors if id not in grouped]
    for number, group in enumerate(page.groups, 1):
        lines.append(Line(f"g{number}", group.name, 0))
        lines += [_monitor(id, names, refs) for id in group.monitors]
    return _indexed(lines)


def of_monitors(monitors: Iterable[MonitorRef]) -> list[Line]:
    return _indexed(Line(f"m{monitor.id}", "", 0, monitor) for monitor in monitors)


def lines_sent(form: Form) -> list[Line]:
    """The lines that a browser sent, without invalid ones."""
    by_key: dict[str, Line] = {}
    for key in form.getlist(LINE)[:MAX_LINES]:
        line = _line_sent(form, key)
        if line is not None:
            by_key.setdefault(key, line)
    return _indexed(by_key.values())


def form_of_lines(lines: Sequence[Line], form: Form) -> Form:
    """``form`` as the status page's schema reads it: ``monitors``, ``names`` and ``groups``."""
    pairs = [
        (name, value)
        for name, value in form.items(multi=True)
        if name.partition("[")[0] not in LINE_FIELDS
    ]
    group = ""
    for line in lines:
        if line.monitor is None:
            group = f"groups[{line.index}]"
            pairs.append((f"{group}[name]", line.text))
            continue
        id = str(line.monitor.id)
        pairs += [
            ("monitors", id),
            (f"names[{line.index}][key]", id),
            (f"names[{line.index}][value]", line.text),
        ]
        if group:
            pairs.append((f"{group}[monitors]", id))
    return MultiDict(pairs)


def monitor_ids(lines: Iterable[Line]) -> set[int]:
    return {line.monitor.id for line in lines if line.monitor is not None}


# --- Actions of the buttons -----------------------------------------------------------------------


def add(lines: Sequence[Line], monitors: Iterable[MonitorRef]) -> list[Line]:
    """Add monitors at the end that are not in the list yet."""
    present = monitor_ids(lines)
    return _indexed([*lines, *of_monitors(ref for ref in monitors if ref.id not in present)])


def add_group(lines: Sequence[Line], name: str) -> list[Line]:
    used = [int(line.key[1:]) for line in lines if line.monitor is None]
    return _indexed([*lines, Line(f"g{max(used, default=0) + 1}", name, 0)])


def remove(lines: Sequence[Line], key: str) -> list[Line]:
    """Remove a line. The monitors of a heading stay, in the group above."""
    return _indexed(line for line in lines if line.key != key)


def move(lines: Sequence[Line], key: str, step: int) -> list[Line]:
    """Move a line up (-1) or down (1); a heading with its group, past another group."""
    headings = (index for index, line in enumerate(lines) if line.monitor is None)
    by_group = key.startswith("g") and not _moves_alone(lines, key, step)
    # Monitors in no group stay above all groups.
    head = list(lines[: next(headings, len(lines))]) if by_group else []
    blocks: list[list[Line]] = []
    for line in lines[len(head) :]:
        if line.monitor is None or not by_group:
            blocks.append([])
        blocks[-1].append(line)
    keys = [block[0].key for block in blocks]
    index = keys.index(key) if key in keys else None
    if index is None or not 0 <= index + step < len(blocks):
        return list(lines)
    blocks[index], blocks[index + step] = blocks[index + step], blocks[index]
    return _indexed([*head, *(line for block in blocks for line in block)])


def _moves_alone(lines: Iterable[Line], key: str, step: int) -> bool:
    """Whether this heading moves past one monitor, which enters or leaves its group, because there
    is no other group that it could move past.
    """
    headings = [line.key for line in lines if line.monitor is None]
    return headings[:1] == [key] and (step < 0 or len(headings) == 1)


def _indexed(lines: Iterable[Line]) -> list[Line]:
    counts = {"m": 0, "g": 0}
    indexed = []
    for line in lines:
        indexed.append(replace(line, index=counts[line.key[0]]))
        counts[line.key[0]] += 1
    return indexed


def _monitor(id: int, names: Mapping[int, str], refs: Mapping[int, MonitorRef]) -> Line:
    ref = refs.get(id) or MonitorRef(id, _("Monitor %(id)s", id=id), "")
    return Line(f"m{id}", names.get(id, ""), 0, ref)


def _line_sent(form: Form, key: str) -> Line | None:
    try:
        number = record_id(key[1:])
    except ValueError:
        return None
    if key == f"g{number}":
        return Line(key, form.get(f"{GROUP}[{number}]", ""), 0)
    if key == f"m{number}":
        return Line(key, form.get(f"{OWN}[{number}]", ""), 0, sent_ref(form, number))
    return None


def sent_ref(form: Form, id: int) -> MonitorRef:
    """A monitor with the name and the URL that the form has sent."""
    name = form.get(f"{KNOWN}[{id}]") or _("Monitor %(id)s", id=id)
    return MonitorRef(id, name, form.get(f"{URL}[{id}]", ""))


def refs_of(page: StatusPage) -> Mapping[int, MonitorRef]:
    """The stored monitors of the page, by their ids."""
    query = MonitorQuery(status_page_id=page.id)
    refs = choices.refs_of(query, MAX_PAGE_MONITORS) if page.monitors else ()
    return {ref.id: ref for ref in refs}


def names_on(page: StatusPage) -> dict[int, str]:
    """The names of the monitors on the page, in their order."""
    refs, names = refs_of(page), {name.key: name.value for name in page.names}
    return {
        id: names.get(id) or (refs[id].name if id in refs else _("Monitor %(id)s", id=id))
        for id in page.monitors
    }


def sends_mail() -> bool | None:
    """Whether this installation can send email; None if another server sends it."""
    return None if servers.servers() is not None else current_mail().is_set()
