"""People and their mails are this dashboard's own, also over the API of other servers. Ctrl-K acts
on the server of the page.
"""

import re

import pytest

from app.db import db
from app.db.tables import MonitorRow
from app.web.frame.servers import slug
from tests.alerts.sinks import mail_sink
from tests.factories import PASSWORD, make_key, make_monitor
from tests.web.visitor import Visitor


@pytest.mark.settings(public_url=None)
def test_invitations_and_new_passwords_work(app, over):
    admin = over((app, make_key(app)), (app, make_key(app)), role="admin")
    dashboard = admin.client.application
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
    assert eve.press("Set password", password=PASSWORD, password_again=PASSWORD).path == "/login"
    assert Visitor(dashboard).open("/login/forgotten").status == 200


@pytest.mark.parametrize("servers", [1, 2])
def test_ctrl_k_finds_and_acts_on_the_server_of_the_page(app, over, servers):
    monitor = make_monitor(app, name="Shop", tags="\nprod\n")
    editor = over(*[(app, make_key(app))] * servers)
    names = editor.client.application.extensions["wakeful.store"].names
    root = f"/on/{slug(names[-1])}" if len(names) > 1 else ""
    assert "prod Tag" in editor.open(f"{root}/jump?q=prod").text
    editor.open(f"{root}/jump?q=pause+shop").press("Pause Shop ActionEnter").shows("Shop paused.")
    assert editor.path.startswith(root)
    with app.app_context():
        assert db.session.get(MonitorRow, monitor.id).paused
    assert "Resume Shop" in editor.open(f"{root}/jump?q=resume").text
