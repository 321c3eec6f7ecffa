"""A refused address is allowed where it was refused, and nothing that was typed is lost."""

from __future__ import annotations

import re

import pytest

from app.access.sessions import RECENT
from app.access.settings import ALLOW_NETWORKS
from app.net.policy import Policy
from tests.factories import PASSWORD, make_monitor, make_person
from tests.support.clock import clock_of
from tests.support.store import access_of
from tests.web.visitor import Visitor, token

REFUSED = "127.0.0.1 is a loopback address (127.0.0.0/8) and not allowed."
ALLOW = "Allow 127.0.0.0/8"
closed = pytest.mark.settings(allow_networks=None, rate_limit=0)


def allowed(app) -> str | None:
    with app.app_context():
        return access_of(app).settings.get(ALLOW_NETWORKS)


# What is refused, and what an admin may allow with a click: never what a person must name.
OFFERED = {
    "127.0.0.1": "127.0.0.0/8",
    "10.1.2.3": "10.0.0.0/8",
    "192.168.1.1": "192.168.0.0/16",
    "100.64.0.1": "100.64.0.0/10",
    "::1": "::1/128",
    "fd00::5": "fc00::/7",
    "::ffff:10.0.0.1": "10.0.0.0/8",
    "169.254.169.254": None,
    "fe80::1": None,
    "fd00:ec2::254": None,
    "100.100.100.200": None,
    "::ffff:169.254.169.254": None,
    "64:ff9b::a9fe:a9fe": None,
    "0.0.0.0": None,
    "224.0.0.1": None,
    "255.255.255.255": None,
    "4000::1": None,
    "93.184.216.34": None,
}


@pytest.mark.parametrize(("address", "network"), OFFERED.items())
def test_only_networks_of_ones_own_are_offered(address, network):
    policy, refusal = Policy(), Policy().refusal(address)
    named = f"shop.test resolves to an address that is not allowed. {refusal}"
    for text in (str(refusal), named):
        offered = policy.offered(text)
        assert (offered and str(offered)) == network
    if network:
        assert Policy.parse(network).offered(str(refusal)) is None, "it is allowed meanwhile"
    # Other words around it are of another place, of a redirect, or of a stranger's server.
    elsewhere = Policy(setting="in WAKEFUL_ALLOW_NETWORKS of this agent").refusal(address)
    for text in (elsewhere, f"Redirect 1 leads to x.test. {named}", f"HTTP 400: {refusal}"):
        assert policy.offered(str(text)) is None


@closed
@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "dns://127.0.0.1:9/shop.test"])
def test_an_admin_allows_the_network_in_the_form_and_what_was_typed_stays(app, url):
    clock = clock_of(app)
    admin = Visitor(app).let_in(make_person(app, "admin"))
    clock.now += RECENT
    admin.open("/monitors/new").press("Check now", url=url, name="Shop", notes="Ask Ben")
    admin.shows(REFUSED)
    admin.press(ALLOW).shows("Confirm with your password", "Allow 127.0.0.0/8").hides("Ask Ben")
    assert allowed(app) is None, "a browser that was left open opens no network"
    admin.press("Allow a network for checks and alerts", your_password=PASSWORD)
    admin.shows("Checks and alerts may reach 127.0.0.0/8 from now on.", "This result is not saved")
    admin.hides(REFUSED, ALLOW)
    assert allowed(app) == "127.0.0.0/8"
    assert admin.press("Save").path == "/monitors/1"
    admin.shows("Shop saved.", "Ask Ben")
    admin.open("/audit").shows("Networks that checks and alerts may reach")


@closed
def test_what_is_confirmed_is_what_was_shown_also_where_a_part_was_allowed(app):
    clock = clock_of(app)
    admin = Visitor(app).let_in(make_person(app, "admin"))
    with app.app_context():
        access_of(app).settings.set(ALLOW_NETWORKS, "127.0.0.0/30")
    clock.now += RECENT
    form = token(admin.open("/monitors/new")) | {"allow": ["127.0.0.0/8", "10.0.0.0/8"]}
    page = admin.client.post("/monitors/new", data=form).text
    assert ("127.0.0.0/8" in page, "10.0.0.0/8" in page) == (True, False)
    carried = re.search('name="sealed_form"[^>]* value="([^"]+)"', page)
    form = token(admin.open("/monitors/new")) | {
        "sealed_form": carried[1],
        "your_password": PASSWORD,
    }
    admin.client.post("/monitors/new", data=form)
    assert allowed(app) == "127.0.0.0/30, 127.0.0.0/8"


@closed
def test_the_monitors_page_and_a_channel_offer_it_too(app, admin, worker):
    monitor = make_monitor(app, url="http://127.0.0.1:9/")
    admin.open(f"/monitors/{monitor.id}").shows(REFUSED, "Not checked yet")
    admin.press("Check now").shows(REFUSED)
    assert admin.press(ALLOW).hides(ALLOW).path == f"/monitors/{monitor.id}"
    with app.app_context():
        access_of(app).settings.set(ALLOW_NETWORKS, "192.168.0.0/16")
    hook = {"channels[0][key]": "webhook", "channels[0][value]": "http://127.0.0.1:9/hook"}
    admin.open("/contacts/new").press("Send test alert", name="Shop team", **hook).shows(REFUSED)
    admin.press(ALLOW).shows("Checks and alerts may reach 127.0.0.0/8").hides(REFUSED)
    assert allowed(app) == "192.168.0.0/16, 127.0.0.0/8"
    assert dict(admin.form_with("Save")[0].values)["name"] == "Shop team"


@closed
def test_others_read_whom_to_ask_and_nobody_sends_what_was_not_offered(app, editor, admin):
    editor.open("/monitors/new").press("Check now", url="http://127.0.0.1:9/")
    editor.shows(REFUSED, "Ask an admin to allow 127.0.0.0/8: admin@wakeful.test.").hides(ALLOW)
    form = {**dict(editor.form_with("Save")[0].values), "allow": "127.0.0.0/8"}
    assert editor.client.post("/monitors/new", data=form).status_code == 403
    for network in ("169.254.0.0/16", "::/0", "0.0.0.0/0", "nonsense", ""):
        form = token(admin.open("/monitors/new")) | {"allow": network}
        assert admin.client.post("/monitors/new", data=form).status_code == 403
    assert allowed(app) is None


@pytest.mark.settings(allow_networks="10.0.0.0/8", rate_limit=0)
def test_where_the_environment_sets_the_networks_the_page_says_so(admin):
    admin.open("/monitors/new").press("Check now", url="http://127.0.0.1:9/")
    admin.shows("whoever runs the server can allow it there").hides(ALLOW)
    form = token(admin) | {"allow": "127.0.0.0/8"}
    assert admin.client.post("/monitors/new", data=form).status_code == 403
