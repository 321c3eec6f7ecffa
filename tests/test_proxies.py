"""Behind proxies: whose headers name the client, and whose are ignored (decision 15)."""

from __future__ import annotations

import logging
import re
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from app.proxies import FOR, HOST, PREFIX, PROTO, Proxies, networks
from app.stores.local.subscribers import SIGN_UPS
from tests.factories import make_key
from tests.pages.made import make_page, make_shown
from tests.support.web_process import installation, web_process

TRUSTED = [ip_network("127.0.0.1"), ip_network("10.0.0.0/8"), ip_network("2001:db8::/32")]


def environment_after(peer: str, **headers: str) -> dict[str, Any]:
    """The environment of a request from ``peer`` after the proxies' headers were read."""
    environ = {"REMOTE_ADDR": peer, "HTTP_HOST": "inside:8000", "wsgi.url_scheme": "http"}
    environ |= {f"HTTP_X_FORWARDED_{name.upper()}": value for name, value in headers.items()}
    Proxies(TRUSTED).apply(environ)
    return environ


@pytest.mark.parametrize(
    ("sent", "client"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("198.51.100.7:4711", "198.51.100.7"),
        ("2400::7", "2400::7"),
        ("[2400::7]:4711", "2400::7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("198.51.100.7, 10.1.2.3", "198.51.100.7"),
        ("198.51.100.7,10.1.2.3 , 2001:db8::1", "198.51.100.7"),
        ("203.0.113.66, 198.51.100.7", "198.51.100.7"),  # the first may be made up
        ("10.9.9.9, 198.51.100.7, 10.1.2.3", "198.51.100.7"),
        ("10.9.9.9, 10.1.2.3", "10.9.9.9"),  # all are ours: the client is one of them
        ("198.51.100.7, unknown", "127.0.0.1"),  # what stands before it proves nothing
        ("198.51.100.7, _hidden, 10.1.2.3", "10.1.2.3"),
        ("", "127.0.0.1"),
        (" , ,", "127.0.0.1"),
    ],
)
def test_the_client_is_the_last_address_that_no_trusted_proxy_has(sent: str, client: str):
    assert environment_after("127.0.0.1", **{"for": sent})["REMOTE_ADDR"] == client


def test_a_network_of_ipv4_may_be_written_as_one_of_ipv6():
    assert networks("::ffff:10.0.0.0/104, ::ffff:127.0.0.1") == networks("10.0.0.0/8, 127.0.0.1")
    with pytest.raises(ValueError, match="trusts everybody"):
        networks("::ffff:0.0.0.0/96")


def test_the_manuals_proxy_sets_each_header_that_is_read():
    """nginx passes on what visitors send in a header that it does not set."""
    manual = Path(__file__).parents[1] / "docs" / "status-pages.md"
    set_there = re.findall(r"proxy_set_header (\S+) ", manual.read_text())
    read = {name.removeprefix("HTTP_").replace("_", "-") for name in (FOR, PROTO, HOST, PREFIX)}
    assert {name.upper() for name in set_there} == {"HOST", *read}


def test_a_trusted_proxy_names_scheme_and_host():
    environ = environment_after("10.1.2.3", proto="ftp, HTTPS", host="forged.example, up.example")
    assert (environ["wsgi.url_scheme"], environ["HTTP_HOST"]) == ("https", "up.example")
    assert environment_after("10.1.2.3", proto="gopher")["wsgi.url_scheme"] == "http"


@pytest.mark.parametrize(
    ("folder", "path", "prefix", "peer", "expected"),
    [
        ("/wakeful", "/wakeful/monitors", None, "127.0.0.1", ("/wakeful", "/monitors")),
        ("/wakeful", "/wakeful", None, "127.0.0.1", ("/wakeful", "/")),
        ("/wakeful", "/monitors", None, "127.0.0.1", ("/wakeful", "/monitors")),
        ("/wakeful", "/wakefully", None, "127.0.0.1", ("/wakeful", "/wakefully")),
        ("/wakeful", "/wakeful/x", None, "198.51.100.7", ("/wakeful", "/x")),
        ("/a/b", "/a/b/c", None, "127.0.0.1", ("/a/b", "/c")),
        ("/wakeful", "/x", "/wakeful/", "127.0.0.1", ("/wakeful", "/x")),
        ("/wakeful", "/wakeful/x", "/wakeful", "127.0.0.1", ("/wakeful", "/x")),
        ("", "/x", "/wakeful", "127.0.0.1", ("/wakeful", "/x")),
        ("", "/x", "/outer, /inner", "127.0.0.1", ("/inner", "/x")),
        ("", "/x", "/wakeful", "198.51.100.7", (None, "/x")),  # not of a trusted proxy
        ("", "/x", "//evil.example", "127.0.0.1", (None, "/x")),
        ("", "/x", "https://evil.example", "127.0.0.1", (None, "/x")),
        ("", "/x", "/a/../b", "127.0.0.1", (None, "/x")),
        ("", "/x", "/", "127.0.0.1", (None, "/x")),
        # A folder with the name of one of our own: a path without it could be both.
        ("/status", "/status/status/shop", None, "127.0.0.1", ("/status", "/status/shop")),
        ("/status", "/status/shop", "/status", "127.0.0.1", ("/status", "/status/shop")),
    ],
)
def test_the_folder_is_taken_from_the_path_or_from_a_proxy_that_removed_it(
    folder: str, path: str, prefix: str | None, peer: str, expected: tuple[str | None, str]
):
    environ = {"REMOTE_ADDR": peer, "PATH_INFO": path}
    if prefix is not None:
        environ["HTTP_X_FORWARDED_PREFIX"] = prefix
    Proxies(TRUSTED, folder, {"status", "monitors"}).apply(environ)
    assert (environ.get("SCRIPT_NAME"), environ["PATH_INFO"]) == expected


@pytest.mark.parametrize("peer", ["198.51.100.7", "11.0.0.1", "::1", "", "unix:"])
def test_headers_of_everybody_else_are_removed_unread(peer: str):
    environ = environment_after(
        peer, **{"for": "203.0.113.5", "proto": "https", "host": "up.example", "prefix": "/x"}
    )
    assert environ == {"REMOTE_ADDR": peer, "HTTP_HOST": "inside:8000", "wsgi.url_scheme": "http"}


def test_a_proxy_nearby_that_is_not_trusted_is_named_in_the_log_once(
    caplog: pytest.LogCaptureFixture,
):
    proxies = Proxies([])
    with caplog.at_level(logging.WARNING, "app.proxies"):
        for peer in ("93.184.216.34", "172.17.0.1", "172.17.0.1"):
            proxies.apply({"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": "203.0.113.5"})
    [line] = caplog.messages
    assert "set WAKEFUL_TRUSTED_PROXIES=172.17.0.1." in line


@pytest.mark.settings(trusted_proxies=tuple(TRUSTED))
def test_visitors_behind_a_trusted_proxy_have_limits_of_their_own(app: Flask):
    make_page(app, [make_shown(app)])

    def sign_up(visitor: str, number: int) -> int:
        hook = {"channel": "webhook", "target": f"https://hooks.example/{visitor}/{number}"}
        return (
            app.test_client()
            .post("/status/example/subscribe", data=hook, headers={"X-Forwarded-For": visitor})
            .status_code
        )

    answers = [sign_up("198.51.100.7", number) for number in range(SIGN_UPS + 1)]
    assert answers == [200] * SIGN_UPS + [429]
    assert sign_up("198.51.100.8", 0) == 200


def test_the_server_reads_headers_of_proxies_only_where_they_are_trusted(
    tmp_path: Path, sqlite_template: Path
):
    installed = installation(tmp_path, sqlite_template)
    with installed.app() as app:
        key = make_key(app)
    headers = {
        "Authorization": f"Bearer {key}",
        "X-Forwarded-For": "198.51.100.7",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "up.example",
    }
    with web_process(installed) as web:
        assert (
            web.get("/api/v1/monitors", headers=headers)
            .json()["links"]["first"]
            .startswith(f"{web.base}/api/v1/")
        )
    with web_process(installed, TRUSTED_PROXIES="127.0.0.1") as web:
        links = web.get("/api/v1/monitors", headers=headers).json()["links"]
        assert links["first"].startswith("https://up.example/api/v1/")


def test_variables_that_gunicorn_reads_change_no_path(
    tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, value in (("SCRIPT_NAME", "/other"), ("GUNICORN_CMD_ARGS", "--workers=3")):
        monkeypatch.setenv(name, value)
    with web_process(installation(tmp_path, sqlite_template)) as web:
        answer = web.get("/monitors")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/login?next=/monitors")
