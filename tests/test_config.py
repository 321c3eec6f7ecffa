"""Settings: right values are read, wrong ones stop the start with a sentence that names them."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from pathlib import Path

import pytest

from app.config import SettingError, read

WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PROXIES = (ip_network("127.0.0.1"), ip_network("10.0.0.0/8"))
HOSTS = ("up.example.org", "xn--bcher-kva.example", "::1")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"WAKEFUL_INSTANCE": str(tmp_path)}


def test_without_settings_there_is_an_embedded_database_and_a_key_of_its_own(environ, tmp_path):
    settings = read(environ)
    assert settings.database_url == f"sqlite:///{tmp_path / 'wakeful.db'}"
    assert settings.bind == "127.0.0.1:8000"
    assert settings.allow_networks is None, "the Settings page decides"
    assert settings.secret_key == (tmp_path / "secret_key").read_text()
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert read(environ).secret_key == settings.secret_key


def test_processes_that_start_together_keep_one_secret_key(environ):
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: read(environ).secret_key, range(32)))
    assert len(keys) == 1


@pytest.mark.parametrize("content", [b"", b"\n", b"\x91\xff" * 16])
@pytest.mark.parametrize("make", [True, False])
def test_a_file_without_a_usable_secret_key_is_refused_by_its_name(
    environ, tmp_path, content, make
):
    path = tmp_path / "secret_key"
    path.write_bytes(content)
    with pytest.raises(SettingError, match="/secret_key is wrong: it is "):
        read(environ, make=make)


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("DATABASE_URL", "postgresql://u@h/d", "database_url", "postgresql+psycopg://u@h/d"),
        ("BIND", "[::1]:80", "bind", "[::1]:80"),
        ("BIND", "0.0.0.0:0", "bind", "0.0.0.0:0"),
        ("ALLOW_NETWORKS", "", "allow_networks", ""),
        ("ALLOW_NETWORKS", "private, 169.254.1.0/24", "allow_networks", "private, 169.254.1.0/24"),
        ("SUBSCRIBER_NETWORKS", "10.1.0.0/16", "subscriber_networks", "10.1.0.0/16"),
        ("TRUSTED_PROXIES", "127.0.0.1, 10.0.0.7/8", "trusted_proxies", PROXIES),
        ("ALLOWED_HOSTS", "UP.example.org, bücher.example,::1", "allowed_hosts", HOSTS),
        ("ALLOWED_HOSTS", "*", "allowed_hosts", ("*",)),
        ("TRUSTED_PROXIES", "::1", "trusted_proxies", (ip_network("::1"),)),
        ("CANARIES", "", "canaries", ""),
        ("RATE_LIMIT", "0", "rate_limit", 0),
        ("CONFIRM_SECONDS", "0.2", "confirm_seconds", 0.2),
        ("PUBLIC_URL", "https://up.example.org/", "public_url", "https://up.example.org"),
        ("PUBLIC_URL", "HTTPS://Up.test.:443/Up/", "public_url", "https://up.test/Up"),
        ("PUBLIC_URL", "https://bücher.test:8443", "public_url", "https://xn--bcher-kva.test:8443"),
        ("PUBLIC_URL", "http://[::1]:80", "public_url", "http://[::1]"),
        ("WEBHOOK_SECRET", WHSEC, "webhook_secret", WHSEC),
        *(
            (name, value, name.lower(), value)
            for name, value in (
                ("SMTP_URL", "smtps://a:b@mail.example.org"),
                ("SMTP_URL", "smtp://a@b.example:p%23%2F%40:x@[::1]:2525?tls=required"),
                ("SMTP_URL", "smtp://mail?from=Wakeful%20<alerts@example.com>"),
                ("SMTP_URL", "smtp://mail?from=Wakeful <alerts@example.com>&tls="),
                ("SMS_URL", "twilio://AC1:t/o#k@+15550100"),
                ("SMS_URL", "vonage://KEY:SECRET@Wakeful?api=https://eu.example/x"),
                ("PUBLIC_URL", "https://x.test:8443/wakeful"),
                ("PUBLIC_URL", "https://x.test/~me/wakeful-2"),
                ("BROKER_URL", "rediss://:password@redis.example.org:6380/0"),
                ("BROKER_URL", "rediss://localhost/?ssl_cert_reqs=required"),
                ("CANARIES", "one.example:443,[::1]:853"),
            )
        ),
        ("TELEGRAM_API", "", "telegram_api", "https://api.telegram.org"),
    ],
)
def test_a_right_value_is_read(environ, name, value, field, expected):
    assert getattr(read(environ | {f"WAKEFUL_{name}": value}), field) == expected


# The sentences by the setting. Also what a later reader would refuse, and bytes that are not UTF-8,
# as Python puts them into the environment.
WRONG = {
    "DATABASE_URL": ["mysql://root:hunter2@h/d", "hunter2", "postgresql://me:hunter2@h:99999/d",
        "postgresql://me:hunter2@h:port/d", "postgresql://me:hunter2@h/d?sslmod=require",
        "postgresql+asyncpg://me:hunter2@h/d", "postgres://me:hunter2@h/d",
        "sqlite://hunter2/wakeful.db", "sqlite+aiosqlite:///wakeful.db",
        "postgresql://u:hunter2@h/d?sslmode=yes",
        "postgresql://u:hunter2@h/d?target_session_attrs=any,primary",
        "postgresql://u:hunter2@h/d?connect_timeout=soon", "sqlite:///wakeful.db?mode=ro",
        "sqlite://", "sqlite:///:memory:", "sqlite:///file:hunter2?mode=memory&uri=true"],
    "SECRET_KEY": ["hunter2"],
    "BIND": ["8000", "127.0.0.1:65536", "127.0.0.1:٨٠", "::1:8000", "a:80:8000",
        "http://localhost:8000", "local host:8000", ":8000"],
    "STORE": ["cloud", "remote"],
    "LOCATION": ["a b", "deleted"],
    "SMTP_URL": ["http://user:hunter2@mail", "smtp://me:hunter2#b/c@h", "smtp://me:25/hunter2@h",
        "smtp://me:25?hunter2@h", "smtp://me:25#hunter2@h", "smtp://me:hunter2@h:99999",
        "smtp://me:hunter2@h:0", "smtp://me:hunter2%FF@h", "smtp://me:hunter2@ma il",
        "smtp://:hunter2@h", "smtp://me:hunter2@", "smtp:me:hunter2@h", "smtp://me:hunter2@h/inbox",
        "smtp://me:hunter2@h?tls=yes", "smtp://me:hunter2@h?tsl=required",
        "smtp://me:hunter2@h?tls=required&tls=required", "smtp://me:hunter2@h?from=hunter2",
        "smtp://me:hunter2@h?from=a+b@example.org"],
    "SMS_URL": ["nexmo://key:hunter2@from", "twilio://AC1", "twilio://AC1:hunter2",
        "twilio://AC1:hunter2@", "twilio://AC/1:hunter2@+15550100", "twilio://:hunter2@+15550100",
        "twilio://AC1:hunter2@+15550100?api=eu.example",
        "twilio://AC1:hunter2@+15550100?api=https://eu.example:99999",
        "twilio://AC1:hunter2@+15550100?apo=https://eu.example"],
    "TELEGRAM_API": ["http://h:99999", "http://me:hunter2@h", "http://h?a=hunter2"],
    "TELEGRAM_TOKEN": ["hunter2"],
    "METRICS_TOKEN": ["hunter2 ü"],
    "AGENT_TOKEN": ["hunter2 x"],
    "WEBHOOK_SECRET": ["hunter2"],
    "ALLOW_NETWORKS": ["privat", "10.0.0.0/33"],
    "PUBLIC_URL": ["up.example.org", "https://x.test:99999", "https://x.test:0",
        "https://user:hunter2@x.test", "https://x.test?a=hunter2", "https://x.test/#hunter2",
        "https://x..test", "https://x.test/a//b", "https://x.test/a/../b", "https://x.test/a%2Fb",
        "https://x.test/a b"],
    "SUBSCRIBER_NETWORKS": ["intranet"],
    "TRUSTED_PROXIES": ["private", "proxy.example.org", "0.0.0.0/0"],
    "ALLOWED_HOSTS": ["https://up.example.org", "up.example.org:8443", "[::1]:80", "*.example.org",
        "up..example.org", ","],
    "RATE_LIMIT": ["-1", "1e3"],
    "CONFIRM_SECONDS": ["nan", "3601", "1_0", "٣"],
    "DNS_SERVERS": ["127.0.0.1:70000", "127.0.0.1:٥٣", "dns.example.org", ","],
    "RDAP_BOOTSTRAP": ["/does/not/exist.json", __file__, "https://x.test:99999/dns.json",
        "a" * 300],
    "CA_BUNDLE": [__file__, "/does/not/exist.pem", "a" * 300, f"/etc/passwd/{'a' * 300}"],
    "CANARIES": ["one.one.one.one:0", "one.one.one.one", "http://one.one.one.one:443",
        "one one:443", "::1:443", ","],
    "RETENTION_DAYS": ["0"],
    "TIME_ZONE": ["Mars/Base", "CEST"],
    "BROKER_URL": ["amqp://:hunter2@localhost", "redis://:hunter2@localhost:99999",
        "redis://:25/hunter2@localhost", "redis://:hunter2@localhost/one", "rediss://:hunter2@",
        "redis://:hunter2@localhost?ssl_cert_reqs=required",
        "rediss://:hunter2@localhost?ssl_cert_reqs=yes",
        "rediss://:hunter2@localhost?ssl_ca_certs=/nowhere",
        "rediss://:hunter2@localhost/0?socket_timeout=5"],
    "BATCH_KEY": ["hunter2"],
    "SERVER": ["http://wakeful.example.org", "ftp://127.0.0.1", "https://x.test:99999",
        "https://me:hunter2@x.test", "https://x.test/?a=hunter2"],
    "HEARTBEAT_URL": ["https://x.test:99999/hunter2", "hunter2", "https://u:hunter2@hc.example/"],
    "TIMEOUT": ["5"],
}  # fmt: skip
for _name in ("SECRET_KEY", "CA_BUNDLE", "LOCATION", "INSTANCE"):
    WRONG.setdefault(_name, []).append("hunter2\udcff" * 3)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_stops_the_start_naming_the_setting_and_no_secret(environ, name):
    for value in WRONG[name]:
        with pytest.raises(SettingError) as caught:
            read(environ | {f"WAKEFUL_{name}": value})
        sentence = str(caught.value)
        assert ("WAKEFUL_REMOTE_URL" if value == "remote" else f"WAKEFUL_{name}") in sentence
        assert "hunter2" not in sentence, value
        assert sentence.endswith("."), value


def test_each_remote_server_needs_a_key_of_its_own(environ):
    two = {"WAKEFUL_STORE": "remote", "WAKEFUL_REMOTE_URL": "http://a/, https://b/x/api/v1/"}
    with pytest.raises(SettingError, match="same number"):
        read(environ | two | {"WAKEFUL_REMOTE_KEY": "one"})
    remotes = read(environ | two | {"WAKEFUL_REMOTE_KEY": "one, two"}).remotes
    assert remotes == (("http://a", "one"), ("https://b/x", "two"))
    twice = {"WAKEFUL_REMOTE_URL": "http://a/, https://a/api/v1", "WAKEFUL_REMOTE_KEY": "one, two"}
    with pytest.raises(SettingError, match="twice"):
        read(environ | two | twice)


def test_what_is_secret_is_not_in_the_settings_as_printed(environ):
    secrets = {
        "WAKEFUL_SECRET_KEY": "hunter2-hunter2-hunter2",
        "WAKEFUL_DATABASE_URL": "postgresql://u:hunter2@h/d",
        "WAKEFUL_SMTP_URL": "smtp://u:hunter2@h",
        "WAKEFUL_TELEGRAM_TOKEN": "1:hunter2",
        "WAKEFUL_HEARTBEAT_URL": "https://hc.example/hunter2",
    }
    assert "hunter2" not in repr(read(environ | secrets))


KUBERNETES = {
    "WAKEFUL_SERVICE_HOST": "10.0.0.1", "WAKEFUL_SERVICE_PORT": "8000",
    "WAKEFUL_SERVICE_PORT_HTTP": "8000", "WAKEFUL_PORT": "tcp://10.0.0.1:8000",
    "WAKEFUL_PORT_8000_TCP": "tcp://10.0.0.1:8000", "WAKEFUL_PORT_8000_TCP_PROTO": "tcp",
    "WAKEFUL_PORT_8000_TCP_PORT": "8000", "WAKEFUL_PORT_8000_TCP_ADDR": "10.0.0.1",
    "WAKEFUL_WEB_SERVICE_HOST": "fd00::1", "WAKEFUL_WEB_SERVICE_PORT": "443",
    "WAKEFUL_WEB_PORT": "tcp://[fd00::1]:443",
    "WAKEFUL_DNS_SERVERS_PORT_53_UDP": "udp://10.0.0.2:53",
    "WAKEFUL_DNS_SERVERS_PORT_53_UDP_PROTO": "udp", "WAKEFUL_SMTP_URL_PORT_25_TCP_ADDR": "10.0.0.3",
}  # fmt: skip
DOCKER = {
    "WAKEFUL_NAME": "/checker/wakeful",
    "WAKEFUL_PORT": "tcp://172.17.0.2:8000",
    "WAKEFUL_PORT_8000_TCP_START": "tcp://172.17.0.2:8000",
    "WAKEFUL_PORT_8000_TCP_PORT_END": "8010",
    "WAKEFUL_ENV_WAKEFUL_SECRET_KEY": "hunter2",
    "WAKEFUL_ENV_PATH": "/usr/bin:/bin",
    "WAKEFUL_DB_1_NAME": "/project_checker_1/wakeful-db-1",
}


@pytest.mark.parametrize("links", [KUBERNETES, DOCKER], ids=["Kubernetes", "Docker"])
def test_what_kubernetes_and_docker_set_for_a_service_named_wakeful_is_no_setting(environ, links):
    assert read(environ | links) == read(environ)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "8000"), ("PORT", "http://10.0.0.1:8000"), ("PORT", "tcp://example.org:8000"),
        ("PORT", "tcp://10.0.0.1:99999"), ("SMTP_PORT", "25"), ("PORT_8000_TCP", "8000"),
        ("SERVICE_HOST", "wakeful.example"), ("SERVICE_PORT", "8000"), ("NAME", "home"),
        ("ENV_FILE", "/etc/wakeful.env"), ("SMTP_HOST", "10.0.0.1"),
        ("SMPT_URL", "tcp://10.0.0.1:25"), ("PORTS_8000_TCP", "tcp://10.0.0.1:8000"),
    ],
)  # fmt: skip
def test_a_misspelt_setting_is_refused_though_it_looks_like_a_link(environ, name, value):
    with pytest.raises(SettingError, match=f"WAKEFUL_{name} is not a setting"):
        read(environ | {f"WAKEFUL_{name}": value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REMOTE_URL", "https://x.test:99999"),
        ("REMOTE_URL", "https://me:hunter2@x.test"),
        ("REMOTE_URL", "https://x.test/?a=hunter2"),
        ("REMOTE_KEY", "hunter2 ü"),
    ],
)
def test_a_wrong_remote_server_or_key_is_refused(environ, name, value):
    remote = {
        "WAKEFUL_STORE": "remote",
        "WAKEFUL_REMOTE_URL": "http://a",
        "WAKEFUL_REMOTE_KEY": "k",
    }
    with pytest.raises(SettingError, match=f"WAKEFUL_{name} is wrong") as caught:
        read(environ | remote | {f"WAKEFUL_{name}": value})
    assert "hunter2" not in str(caught.value)
