"""Links to the wall for a screen: made, shown once, listed, revoked; and the wall behind one."""

from __future__ import annotations

from flask import Blueprint, Response, flash, g, redirect, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response as Answered

from app.errors import Invalid
from app.i18n import _
from app.records import Role, WallLink
from app.stores import current_access
from app.web.forms import WallLinkForm
from app.web.frame import fragments, links, servers
from app.web.frame.editing import DeleteForm, show_errors
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


@blueprint.route("", methods=["GET", "POST"])
@needs(Role.ADMIN)
def index() -> Answer:
    form = WallLinkForm(data={"zone": times.zone().key, "tag": request.args.get("tag", "")})
    if form.validate_on_submit():
        try:
            link, token = _made(form)
        except Invalid as fault:
            show_errors(form, fault)
        else:
            address = links.own(f"/screen/{token}")
            return shown_once("wall_links/made.html", url_for(".index"), link=link, address=address)
    page = render_template(
        "wall_links/index.html",
        form=form,
        links=current_access().wall_links.all(),
    )
    return page, 422 if form.is_submitted() else 200


def _made(form: WallLinkForm) -> tuple[WallLink, str]:
    return current_access().wall_links.create(
        form.name.data.strip(),
        form.zone.data,
        tag=(form.tag.data or "").strip(),
        server=servers.chosen_name(),
        by=current_user.person.email,
    )


@blueprint.route("/<int:id>/revoke", methods=["GET", "POST"])
@needs(Role.ADMIN)
def revoke(id: int) -> Answer:
    link = next((one for one in current_access().wall_links.all() if one.id == id), None)
    form = DeleteForm()
    if form.validate_on_submit():
        current_access().wall_links.revoke(id)
        flash(_("Link revoked. Screens that use it stop showing the wall."), "success")
        return redirect(url_for(".index"))
    return render_template("wall_links/revoke.html", link=link, form=form)


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
