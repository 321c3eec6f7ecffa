"""People and their mails are this dashboard's own, also over the API of other servers. What Ctrl-K
does is done on the server of the page.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import pytest

from app import create_app
from app.db import db
from app.db.tables import MonitorRow
from app.web.frame.servers import slug
from tests.alerts.sinks import mail_sink
from tests.factories import PASSWORD, make_key, make_monitor, make_person
from tests.support.loopback import serving
from tests.web.visitor import Visitor

pytestmark = pytest.mark.sqlite


@pytest.fixture(params=[1, 2])
def dashboard(request, app, settings, sqlite_template, tmp_path):
    """A dashboard over one server, or over two at different addresses."""
    own = tmp_path / "dashboard.db"
    shutil.copyfile(sqlite_template, own)
    key = make_key(app)
    with serving(app) as one, serving(app) as two:
        there = replace(
            settings,
            database_url=f"sqlite:///{own}",
            store="remote",
            remotes=((one, key), (two, key))[: request.param],
            public_url=None,
        )
        made = create_app(there)
        made.testing = True
        yield made
        with made.app_context():
            db.engine.dispose()


def test_invitations_and_new_passwords_work(dashboard):
    admin = Visitor(dashboard).log_in(make_person(dashboard, "admin").email)
    with mail_sink() as mail:
        admin.open("/settings/email").press(
            "Save", host="127.0.0.1", port=mail.port, tls="offered", sender="a@example.com"
        )
        admin.open("/people/invite").press("Send invitation", email="eve@example.org")
        assert "Wakeful emailed the invitation to eve@example.org." in admin.text
    link = re.search(r"http://localhost(/invitation/[\w-]+)<", admin.page.text)[1]
    eve = Visitor(dashboard).open(link)
    eve.press("Create account", password=PASSWORD, password_again=PASSWORD)
    assert "Account created." in eve.text
    admin.open("/people/2").press("Create a link")
    link = re.search(r"http://localhost(/new-password/[\w-]+)<", admin.page.text)[1]
    eve = Visitor(dashboard).open(link)
    eve.press("Set password", password=PASSWORD, password_again=PASSWORD)
    assert eve.path == "/login"
    assert Visitor(dashboard).open("/login/forgotten").status == 200


def test_ctrl_k_finds_and_acts_on_the_server_of_the_page(app, dashboard):
    monitor = make_monitor(app, name="Shop", tags="\nprod\n")
    editor = Visitor(dashboard).log_in(make_person(dashboard, "editor").email)
    names = dashboard.extensions["wakeful.store"].names
    root = f"/on/{slug(names[-1])}" if len(names) > 1 else ""
    assert "prod Tag" in editor.open(f"{root}/jump?q=prod").text
    editor.open(f"{root}/jump?q=pause+shop").press("Pause Shop ActionEnter")
    assert "Shop paused." in editor.text
    assert editor.path.startswith(root)
    with app.app_context():
        assert db.session.get(MonitorRow, monitor.id).paused
    assert "Resume Shop" in editor.open(f"{root}/jump?q=resume").text
