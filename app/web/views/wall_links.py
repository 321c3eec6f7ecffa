"""Links to the wall for a screen: made, shown once, listed, revoked; and the wall behind one."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, g, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response as Answered

from app.i18n import _
from app.records import Role, WallLink
from app.stores import current_access
from app.web.forms import WallLinkForm
from app.web.frame import fragments, links, servers
from app.web.frame.editing import Editing, confirmed
from app.web.frame.repeated import shown_once
from app.web.frame.session import guarded, needs
from app.web.shown import times
from app.web.views import wall

blueprint = guarded(Blueprint("wall_links", __name__, url_prefix="/settings/wall-links"))
public = Blueprint("screen", __name__)

Answer = str | Answered | tuple[str, int]
# The address holds a secret: no index keeps it, no other site is told it, no cache keeps the page.
HEADERS = {
    "X-Robots-Tag": "noindex, nofollow",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}


class WallLinkMaking(Editing[tuple[WallLink, str], WallLinkForm]):
    """``record``: the link and its token."""

    template = "wall_links/index.html"

    def bind(self) -> WallLinkForm:
        return WallLinkForm(data={"zone": times.zone().key, "tag": request.args.get("tag", "")})

    def save(self) -> tuple[WallLink, str]:
        form = self.form
        return current_access().wall_links.create(
            form.name.data.strip(),
            form.zone.data,
            tag=(form.tag.data or "").strip(),
            server=servers.chosen_name(),
            by=current_user.person.email,
        )

    def done(self, record: tuple[WallLink, str]) -> Answered:
        link, token = record
        address, back = links.own(f"/screen/{token}"), url_for(".index")
        return shown_once("wall_links/made.html", back, link=link, address=address)

    def context(self) -> dict[str, Any]:
        return {"links": current_access().wall_links.all()}


@blueprint.route("", methods=["GET", "POST"])
@needs(Role.ADMIN)
def index() -> Answered:
    return WallLinkMaking().answer()


@blueprint.route("/<int:id>/revoke", methods=["GET", "POST"])
@needs(Role.ADMIN)
def revoke(id: int) -> str | Answered:
    link = next((link for link in current_access().wall_links.all() if link.id == id), None)
    return confirmed(
        "wall_links/revoke.html",
        lambda: current_access().wall_links.revoke(id),
        _("Link revoked. Screens that use it stop showing the wall."),
        url_for(".index"),
        link=link,
    )


@public.get("/screen/<token>")
def show(token: str) -> Answer:
    """The wall for whoever has the link. There is no session: it opens nothing else."""
    link = current_access().wall_links.of_token(token)
    if link is None or not _chosen(link):
        answer: Answered = _void()
    else:
        g.zone = link.zone
        answer = wall.page(link.tag, link.zone, public=True)
    answer.headers.update(HEADERS)
    return answer


def _chosen(link: WallLink) -> bool:
    """Whether the server of this link is still there; it is then that of this request."""
    return servers.choose_by_name(link.server)


def _void() -> Response:
    """For a screen that is on, in place of the wall: what it showed must not stay."""
    if fragments.asked():
        return Response(render_template("wall_links/_void.html"), mimetype="text/html")
    return Response(render_template("wall_links/void.html"), 404, mimetype="text/html")
