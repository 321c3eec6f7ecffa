"""The front of a status page, the list of public pages, and the question for a password."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from werkzeug.wrappers import Response

from app.i18n import N_, _
from app.pages import routes
from app.pages.bars import KeptBars
from app.pages.place import HTML, Place
from app.pages.words import Times, linked
from app.records import (
    ENDED_STATES,
    MAINTENANCE_STATES,
    Component,
    ComponentState,
    PostState,
    PublicPage,
    PublicWindow,
    StatusPage,
)
from app.rules.events import uid_of_post
from app.rules.figures import percent, span
from app.rules.page_state import COMPONENT, PAGE, POST
from app.rules.time import zone_of
from app.stores.public import Address

BARS = KeptBars()
WRONG = N_("The password is wrong.")
COUNTED = {
    ComponentState.OUTAGE: N_("%(count)s of %(total)s down"),
    ComponentState.DEGRADED: N_("%(count)s of %(total)s degraded"),
    ComponentState.MAINTENANCE: N_("%(count)s of %(total)s maintenance"),
    ComponentState.UNKNOWN: N_("%(count)s of %(total)s unknown"),
}
FIRST_PLANS = 10  # windows that are shown; the calendar has all


@dataclass(frozen=True, slots=True)
class Section:
    """Monitors under one heading; None: without one."""

    name: str | None
    components: Sequence[Component]


def page(page: PublicPage, place: Place, template: str = "status/front.html") -> bytes:
    announced = [post for post in page.posts if post.state == PostState.SCHEDULED]
    return html(
        template,
        page.page,
        place,
        made_at=page.made_at,
        state=PAGE[page.state],
        sections=sections(page.components),
        open_posts=[p for p in page.posts if p.state not in ENDED_STATES and p not in announced],
        announced=announced,
        past_posts=[post for post in page.posts if post.state in ENDED_STATES],
        running=[one for one in plans(page) if one.start_at <= page.made_at][:FIRST_PLANS],
        coming=[one for one in plans(page) if one.start_at > page.made_at][:FIRST_PLANS],
        component_names=names_of(page.components),
        others=_others(page.components),
    )


def sections(components: Sequence[Component]) -> list[Section]:
    return [Section(name, list(ones)) for name, ones in groupby(components, lambda one: one.group)]


def plans(page: PublicPage) -> list[PublicWindow]:
    """Maintenance windows; those of posts are shown as posts."""
    posted = {uid_of_post(post) for post in page.posts if post.state in MAINTENANCE_STATES}
    return [one for one in page.windows if not one.cancelled and one.uid not in posted]


def names_of(components: Sequence[Component]) -> Mapping[int, str]:
    return {component.id: component.name for component in components}


def _others(components: Sequence[Component]) -> str:
    """What the sentence on the whole does not say: how many are not as they should be."""
    counts = [
        (sum(one.state == state for one in components), sentence)
        for state, sentence in COUNTED.items()
    ]
    total = len(components)
    told = [_(sentence, count=count, total=total) for count, sentence in counts if count]
    return ", ".join(told)


def listed(pages: Sequence[StatusPage], place: Place) -> bytes:
    return (
        place.templates.get_template("status/list.html").render(place=place, pages=pages).encode()
    )


def password(
    address: Address, place: Place, status: int = 200, fault: str | None = None
) -> Response:
    body = place.templates.get_template("status/password.html").render(
        place=place, theme=address.theme, fault=fault
    )
    return Response(body, status, content_type=HTML)


def html(template: str, page: StatusPage, place: Place, **values: Any) -> bytes:
    """A page of a status page, with all that its templates share."""
    shared = {
        "page": page,
        "theme": page.theme,
        "place": place,
        "times": Times(zone_of(page.zone)),
        "looks": COMPONENT,
        "post_looks": POST,
        "bars": BARS.of,
        "percent": percent,
        "span": span,
        "linked": linked,
        "offered": {*(one.name for one in routes.SHOWN), *(one.name for one in routes.ASKED)},
    }
    return place.templates.get_template(template).render(shared | values).encode()
