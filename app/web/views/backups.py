"""How to back this installation up, and when that was last done. For admins."""

from __future__ import annotations

from datetime import datetime

from flask import Blueprint, current_app, render_template

from app.records import LAST_BACKUP, Role
from app.stores import current_access
from app.web.frame.session import guarded, needs

blueprint = guarded(Blueprint("backups", __name__, url_prefix="/settings/backup"))


@blueprint.get("")
@needs(Role.ADMIN)
def show() -> str:
    last = current_access().settings.get(LAST_BACKUP)
    return render_template(
        "settings/backup.html",
        last=datetime.fromisoformat(last) if last else None,
        instance=current_app.extensions["wakeful.settings"].instance,
    )
