"""API keys: made, shown once, changed, handed over, revoked. For editors, because a key can do what
an editor can. An editor manages their own keys, an admin those of everybody.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from flask import request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.access.keys import manages
from app.errors import Denied
from app.i18n import _
from app.records import ApiKey, Role, Scope
from app.stores import current_access
from app.web.forms import KeyEditForm, KeyForm
from app.web.frame.editing import Editing, confirmed
from app.web.frame.repeated import shown_once
from app.web.frame.session import Answer, guarded, needs
from app.web.shown import times

blueprint = guarded("keys", __name__, "/keys", Role.EDITOR)


class KeyMaking(Editing[tuple[ApiKey, str], KeyForm]):
    """``record``: the key and its secret."""

    template, by_tag = "keys/index.html", "tag"

    def bind(self) -> KeyForm:
        form = KeyForm(zone=times.zone())
        if not current_user.is_admin:
            form.scope.leave_out(Scope.ADMIN)
        return form

    def save(self) -> tuple[ApiKey, str]:
        form = self.form
        return current_access().keys.create(
            form.name.data,
            form.scope.data,
            form.expires_at.data,
            owner_id=current_user.person.id,
            networks=form.networks.data or "",
            tag=form.tag.data,
            own_secret=form.own_secret.data or None,
        )

    def finish(self, record: tuple[ApiKey, str]) -> Response:
        key, secret = record
        return shown_once("keys/made.html", url_for(".index"), key=key, secret=secret)

    def context(self) -> dict[str, Any]:
        person = current_user.person
        return {"keys": current_access().keys.all(), "manages": partial(manages, person)}


class KeyEditing(Editing[ApiKey, KeyEditForm]):
    """``id`` is the prefix of the key."""

    template, subject = "keys/edit.html", "key"

    def load(self) -> ApiKey:
        return _managed(self.id)

    def stand_in(self, id: str) -> ApiKey:
        return ApiKey(0, id, request.form.get("name", id), Scope.READ, times.now())

    def bind(self) -> KeyEditForm:
        return KeyEditForm(zone=times.zone(), record=self.details)

    @property
    def details(self) -> SimpleNamespace:
        """The fields of the key that its form shows."""
        key = self.record or self.load()
        networks = ", ".join(key.networks)
        return SimpleNamespace(name=key.name, expires_at=key.expires_at, networks=networks)

    def save(self) -> ApiKey:
        changed = vars(self.details) | self.form.fields()
        changed["networks"] = changed["networks"] or ""
        return current_access().keys.change(self.id, **changed)


KeyMaking.register(blueprint, index="")
KeyEditing.register(blueprint, edit="/<prefix>")


@blueprint.route("/<prefix>/adopt", methods=["GET", "POST"])
@needs(Role.ADMIN)
def adopt(prefix: str) -> Answer:
    """Become the owner of somebody else's key, or of one that has no owner."""
    key = current_access().keys.get(prefix)
    return confirmed(
        "keys/adopt.html",
        lambda: current_access().keys.adopt(prefix, current_user.person.id),
        _("The key “%(name)s” is yours now. It does at most what you may do.", name=key.name),
        url_for(".index"),
        key=key,
    )


@blueprint.route("/<prefix>/revoke", methods=["GET", "POST"])
def revoke(prefix: str) -> Answer:
    key = _managed(prefix)
    return confirmed(
        "keys/revoke.html",
        lambda: current_access().keys.revoke(prefix),
        _("Key revoked. Programs that use it get an error from now on."),
        url_for(".index"),
        key=key,
    )


def _managed(prefix: str) -> ApiKey:
    """Raises NotFound, and Denied for a key of somebody else."""
    key = current_access().keys.get(prefix)
    if not manages(current_user.person, key):
        raise Denied(_("This is somebody else's key. Only its owner and admins can change it."))
    return key
