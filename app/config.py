"""Settings, typed, read from the environment (``WAKEFUL_*``) (decision 9).

Each value is checked here once, at the start. A wrong value stops the program with a sentence that
names the variable. Values that hold secrets are not shown in ``repr`` or in errors.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
import secrets
import ssl
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from app.codec.sealing import key_of
from app.i18n import N_, _
from app.net.canary import parse_canaries
from app.net.hosts import DnsServer, SystemNames, parse_servers
from app.net.policy import Policy
from app.paths import new_private_file
from app.proxies import is_folder, networks
from app.rules import sms, smtp
from app.rules.channel_values import TELEGRAM_TOKEN
from app.rules.quiet_hours import parse_zone
from app.rules.service_url import base_url, is_link, plain_url, take_apart_service
from app.rules.slugs import check_not_deleted
from app.rules.url import DEFAULT_PORTS, IpNetwork, host_of, parse_url, take_apart

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from app.net import client

PREFIX = "WAKEFUL_"
ANY_HOST = "*"
UNKNOWN = N_("%(name)s is not a setting of Wakeful. The settings are: %(names)s.")
NO_FOLDER = N_("%(name)s is wrong: %(folder)s cannot be used as a folder (%(error)s).")
WRONG = N_("%(name)s is wrong: %(fault)s")
UNEQUAL_LISTS = N_(
    "%(prefix)sREMOTE_URL and %(prefix)sREMOTE_KEY must name the same number of servers."
)
NO_HOST = N_(
    "%(part)s is not a host. Name hosts or addresses without scheme and port, such as"
    " wakeful.example.com, separated by commas, or * for any."
)
NO_REGISTRIES = N_("%(file)s holds no list of registries (%(fault)s).")
NO_TEXT = N_("it is not text in UTF-8.")
NO_DATABASE = N_("it is not a database URL such as sqlite:////var/lib/wakeful/wakeful.db.")
# The longest time that a session lasts; app/access/sessions.py has the other limits.
SESSION_SECONDS = 30 * 24 * 3600
_TLS_WORDS = {
    "ssl_cert_reqs": ("required", "optional", "none"),
    "ssl_check_hostname": ("true", "false"),
}
_TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
PUBLIC_TELEGRAM_API = "https://api.telegram.org"
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
T = TypeVar("T")


class SettingError(ValueError):
    """A setting has a value that cannot be used.

    The message names the variable and says what it should be.
    """


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings.

    Durations are in seconds; ``instance`` is the folder of the embedded database and its keys.
    """

    instance: Path
    database_url: str = field(repr=False)
    secret_key: str = field(repr=False)  # encrypts and signs
    bind: str = "127.0.0.1:8000"
    store: Literal["local", "remote"] = "local"
    remotes: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # (url, key)
    location: str = "default"
    smtp_url: str | None = field(default=None, repr=False)
    telegram_token: str | None = field(default=None, repr=False)
    telegram_api: str = PUBLIC_TELEGRAM_API
    sms_url: str | None = field(default=None, repr=False)
    webhook_secret: str | None = field(default=None, repr=False)
    # None: not set, so that the Settings page decides; "": public addresses only.
    allow_networks: str | None = None
    subscriber_networks: str = ""  # like allow_networks, for webhooks of subscribers
    public_url: str | None = None
    allowed_hosts: tuple[str, ...] = ()  # empty: not set; "*": any host
    trusted_proxies: tuple[IpNetwork, ...] = ()
    metrics_token: str | None = field(default=None, repr=False)
    rate_limit: int = 600  # requests a minute for each key; 0 is off
    confirm_seconds: float = 10.0
    dns_servers: str | None = None
    ca_bundle: str | None = None
    rdap_bootstrap: str | None = None
    canaries: str | None = None  # None: three well-known ones; "": none
    retention_days: int = 400  # how long single results are kept
    time_zone: str = "UTC"  # of times in messages to contacts that have no zone
    broker_url: str | None = field(default=None, repr=False)  # of the queue to probers
    batch_key: str | None = field(default=None, repr=False)  # the checker and all probers share it
    server: str | None = None  # of an agent
    agent_token: str | None = field(default=None, repr=False)
    heartbeat_url: str | None = field(default=None, repr=False)  # a secret, like a ping address
    old_keys: tuple[str, ...] = field(default=(), repr=False)  # still decrypt and verify

    @property
    def secret_keys(self) -> tuple[str, ...]:
        """The secret keys, the one that signs first; empty if there is none."""
        return (self.secret_key, *self.old_keys) if self.secret_key else ()

    @property
    def name_servers(self) -> tuple[DnsServer, ...]:
        """The name servers of DNS_SERVERS. If there are none, the system's are used."""
        return parse_servers(self.dns_servers or "")

    def network(self, policy: Policy | None = None) -> client.Network:
        """The network for requests that are not checks. The default policy is for hosts that
        settings name.
        """
        from app.net import client  # here: it loads requests, which few commands need

        names = SystemNames(self.name_servers)
        return client.Network(policy or Policy(), names, self.ca_bundle)

    @property
    def is_https(self) -> bool:
        """Whether people use HTTPS."""
        return (self.public_url or "").startswith("https://")

    @property
    def folder(self) -> str:
        """The path of ``public_url``, such as ``/wakeful``; "" for the root of its host."""
        return _folder_of(self.public_url or "")

    @property
    def own_hosts(self) -> frozenset[str]:
        """The hosts that are set for the dashboard; no status page may have one of them."""
        allowed = {host for host in self.allowed_hosts if host != ANY_HOST}
        public = {parse_url(self.public_url).ascii_host} if self.public_url else set()
        bound = host_of(self.bind)
        return frozenset({"localhost", *allowed, *public, *({bound} if bound else ())})

    @property
    def answers_any_host(self) -> bool:
        """Whether the dashboard answers hosts beside ``own_hosts``."""
        return ANY_HOST in self.allowed_hosts or not (self.allowed_hosts or self.public_url)


def read(environ: Mapping[str, str] = os.environ, *, make: bool = True) -> Settings:
    """Settings from ``environ``. Makes the instance folder and the secret key if they are
    missing; without ``make`` it writes nothing, and a missing key is "".

    Raises SettingError.
    """
    unknown = sorted(
        name
        for name in environ
        if name.startswith(PREFIX)
        and name[len(PREFIX) :] not in SETTING_NAMES
        and not is_link(name, environ)
    )
    if unknown:
        # A misspelt setting would be ignored, and its policy would not hold.
        raise SettingError(_(UNKNOWN, name=unknown[0], names=", ".join(sorted(SETTING_NAMES))))
    for name, value in environ.items():
        # Python puts bytes that are not UTF-8 into a variable as lone surrogates, which nothing can
        # store, send or print.
        if name.removeprefix(PREFIX) in SETTING_NAMES and _SURROGATE.search(value):
            raise _wrong(name.removeprefix(PREFIX), _(NO_TEXT))
    instance = Path(_text(environ, "INSTANCE") or "instance").resolve()
    keys = _parsed(environ, "SECRET_KEY", _secret_keys) or _stored_keys(instance, make)
    values = {name.lower(): _parsed(environ, name, parse) for name, parse in _READERS.items()}
    return Settings(
        instance=instance,
        database_url=_parsed(environ, "DATABASE_URL", _database_in(instance))
        or f"sqlite:///{instance / 'wakeful.db'}",
        secret_key=keys[0] if keys else "",
        old_keys=keys[1:],
        remotes=_remotes(environ),
        **{name: value for name, value in values.items() if value is not None},
    )


def _text(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(PREFIX + name, "").strip() or None


def _parsed(environ: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | Any:
    """The parsed value; None when unset, and in most settings when set to nothing."""
    raw = environ.get(PREFIX + name)
    if raw is None:
        return None
    if not raw.strip():
        return "" if name in _NONE_IF_EMPTY else None
    try:
        return parse(raw.strip())
    except ValueError as fault:
        raise _wrong(name, fault) from None


def _wrong(name: str, fault: object) -> SettingError:
    return SettingError(_(WRONG, name=PREFIX + name, fault=fault))


def _stored_keys(instance: Path, make: bool) -> tuple[str, ...]:
    """The secret keys in the file of this installation. If it is missing, ``make`` creates it;
    otherwise there are none. Several processes may call this at the same time.
    """
    path = instance / "secret_key"
    try:
        if make:
            # Other accounts on the machine must not read the database beside the key.
            instance.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_secret_key(path)
        elif not path.exists():
            return ()
        if keys := split_keys(path.read_text()):
            return keys
        raise ValueError(_("it is empty. Put the key back."))
    except OSError as fault:
        name = PREFIX + "INSTANCE"
        raise SettingError(_(NO_FOLDER, name=name, folder=instance, error=fault.strerror)) from None
    except ValueError as fault:  # the file is empty if the disk was full
        why = _(NO_TEXT) if isinstance(fault, UnicodeError) else fault
        raise SettingError(_(WRONG, name=path, fault=why)) from None


def _make_secret_key(path: Path) -> None:
    """Create the file with a new secret key unless it exists."""
    if path.exists():
        return
    fresh = path.with_name(f"secret_key.{os.getpid()}.{secrets.token_hex(4)}")
    with new_private_file(fresh) as file:
        file.write(secrets.token_urlsafe(48).encode())
    try:
        os.link(fresh, path)  # of two processes that start, both use the file of the first
    except FileExistsError:
        pass
    finally:
        fresh.unlink()


def _database_in(instance: Path) -> Callable[[str], str]:
    """A parser for the URL of a database; a file without a folder is in the instance folder."""

    def parse(raw: str) -> str:
        url = _database_url(raw)
        name = url.database or ":memory:"
        if url.get_backend_name() == "sqlite":
            if ":memory:" in name or "mode" in url.query:
                raise ValueError(
                    _("name a file: web server, checker and worker must read the same database.")
                )
            if not name.startswith("file:"):
                url = url.set(database=str(instance / name))
        return url.render_as_string(hide_password=False)

    return parse


def _database_url(raw: str) -> URL:
    # Imported here: an agent or a prober has no database, and starts in half the time without.
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(raw)
    except (ArgumentError, ValueError):
        raise ValueError(_(NO_DATABASE)) from None
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")  # the plain name would ask for psycopg2
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise ValueError(_("it must start with sqlite:// or postgresql://."))
    _check_database(url)
    return url


def _check_database(url: URL) -> None:
    """Refuse a URL that the driver refuses: it would do so at the first query, and show the whole
    URL.
    """
    from sqlalchemy.exc import ArgumentError, SAWarning

    if url.port is not None and not 1 <= url.port <= 65_535:
        raise ValueError(_("its port must be a number from 1 to 65535."))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SAWarning)  # an option that would be ignored
            names, options = url.get_dialect()().create_connect_args(url)
    except (ArgumentError, SAWarning):
        raise ValueError(_(NO_DATABASE)) from None
    if url.get_backend_name() == "sqlite":
        return
    try:
        from psycopg import ProgrammingError, conninfo, pq
    except ImportError as fault:
        raise ValueError(_("PostgreSQL's library cannot be used: %(why)s.", why=fault)) from None
    try:
        parameters = conninfo.conninfo_to_dict(conninfo.make_conninfo(*names, **options))
        conninfo.timeout_from_conninfo(parameters)
        # libpq checks the values of options when it begins to connect. This address has no server,
        # so a correct URL fails to connect, and a wrong one fails before that.
        nowhere = parameters | {"host": "/nonexistent", "hostaddr": None, "port": None}
        connection = pq.PGconn.connect_start(conninfo.make_conninfo("", **nowhere).encode())
    except ProgrammingError as fault:  # names the option alone
        raise ValueError(f"{str(fault).strip()}.") from None
    error = connection.get_error_message().strip()
    connection.finish()
    if not error.startswith("connection to server"):
        raise ValueError(f"{error}.")


def split_keys(text: str) -> tuple[str, ...]:
    """The secret keys in a text, separated by commas or line breaks, each once."""
    parts = (part.strip() for part in text.replace(",", "\n").splitlines())
    return tuple(dict.fromkeys(part for part in parts if part))


def _secret_keys(raw: str) -> tuple[str, ...]:
    keys = split_keys(raw)
    if not keys or any(len(key) < 16 for key in keys):
        raise ValueError(
            _("it must have 16 characters or more. A comma separates a new key from older ones.")
        )
    return keys


def _bind(raw: str) -> str:
    host, _colon, port = raw.rpartition(":")
    number = port.isascii() and port.isdigit() and int(port[:6]) <= 65_535
    # host_of would accept another port in the host, and gunicorn an IPv6 address without brackets.
    plain = (":" in host) == (host.startswith("[") and host.endswith("]"))
    if not number or not plain or host_of(host) is None:
        raise ValueError(
            _("it must be an address and a port, such as 127.0.0.1:8000 or [::1]:8000.")
        )
    return raw


def _store(raw: str) -> str:
    if raw not in ("local", "remote"):
        raise ValueError(_("it must be local or remote."))
    return raw


def _location(raw: str) -> str:
    if len(raw) > 64 or not all(c.isalnum() or c in "-_." for c in raw):
        raise ValueError(
            _("it may have letters, digits, dots, dashes and underscores, 64 at most.")
        )
    check_not_deleted(raw)
    return raw


def _remotes(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Remote servers: REMOTE_URL and REMOTE_KEY, which list as many values, in the same order."""
    urls = _parsed(environ, "REMOTE_URL", _separated_by_commas(_api_of)) or []
    keys = _parsed(environ, "REMOTE_KEY", _separated_by_commas(_bearer)) or []
    if _text(environ, "STORE") == "remote" and not urls:
        raise SettingError(
            _("%(prefix)sREMOTE_URL is missing: %(prefix)sSTORE is remote.", prefix=PREFIX)
        )
    if len(urls) != len(keys):
        raise SettingError(_(UNEQUAL_LISTS, prefix=PREFIX))
    # Pages and their addresses distinguish servers by host, port and path, without the scheme.
    if len({url.partition("://")[2] for url in urls}) < len(urls):
        raise SettingError(_("%(prefix)sREMOTE_URL names one server twice.", prefix=PREFIX))
    return tuple(zip(urls, keys, strict=True))


def _separated_by_commas(parse: Callable[[str], T]) -> Callable[[str], list[T]]:
    """A parser for values that commas separate; ``parse`` reads each."""
    return lambda raw: [parse(part.strip()) for part in raw.split(",") if part.strip()]


def _api_of(raw: str) -> str:
    """A server's URL. It may be written with the /api/v1 of its API, as people paste it."""
    return base_url(raw).removesuffix("/api/v1").rstrip("/")


def _public_url(raw: str) -> str:
    """The URL at which people reach Wakeful. Its folder is part of every link, so it must have only
    one spelling.
    """
    url = base_url(raw)
    target, folder = parse_url(url), _folder_of(url)
    if folder and not is_folder(folder):
        raise ValueError(
            _("its folder may have letters, digits and the signs - . _ ~, such as /wakeful.")
        )
    # The origin is spelt as browsers spell it, to be compared with the origin of a request.
    host = f"[{target.ascii_host}]" if ":" in target.ascii_host else target.ascii_host
    port = "" if target.port == DEFAULT_PORTS[target.scheme] else f":{target.port}"
    return f"{target.scheme}://{host}{port}{folder}"


def _folder_of(url: str) -> str:
    _host, slash, path = url.partition("://")[2].partition("/")
    return f"{slash}{path}"


def _hosts(raw: str) -> tuple[str, ...]:
    return _not_empty(tuple(_separated_by_commas(_host)(raw)))


def _not_empty(values: tuple[T, ...]) -> tuple[T, ...]:
    """Refuse an empty list, which would be ignored silently."""
    if not values:
        raise ValueError(_("it names nothing."))
    return values


def _host(part: str) -> str:
    """A host in the spelling of ``host_of``. Raises ValueError for one that no request can name."""
    if part == ANY_HOST:
        return part
    bare = f"[{part}]" if part.count(":") > 1 and not part.startswith("[") else part
    # Hosts are compared without a port, so a port here would have no effect.
    if not any(mark in bare.rpartition("]")[2] for mark in ":/?#"):
        with suppress(ValueError):
            return take_apart(f"http://{bare}", DEFAULT_PORTS).ascii_host
    raise ValueError(_(NO_HOST, part=repr(part)))


def _server(raw: str) -> str:
    """The server of an agent. Over plain http, others on the network could read the token."""
    url = _api_of(raw)
    target = parse_url(url)
    if target.scheme == "http" and not is_loopback(target.ascii_host):
        raise ValueError(
            _("it must start with https://. Only on this machine itself, http:// works.")
        )
    return url


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _broker(raw: str) -> str:
    """The URL of Redis. Its library takes a database that is not a number for the first one, and
    Celery accepts only options of TLS after the question mark.
    """
    service = take_apart_service(raw, "redis", "rediss")
    for name, value in service.query.items():
        if service.scheme != "rediss" or name not in (*_TLS_WORDS, *_TLS_FILES):
            names = ", ".join((*_TLS_WORDS, *_TLS_FILES))
            raise ValueError(
                _("after ? only these may stand, with rediss://: %(names)s.", names=names)
            )
        if name in _TLS_FILES:
            _check_file(value)
        elif value not in _TLS_WORDS[name]:
            words = ", ".join(_TLS_WORDS[name])
            raise ValueError(_("%(name)s must be one of: %(words)s.", name=name, words=words))
    number = service.path.removeprefix("/")
    if number and not (number.isascii() and number.isdigit()):
        raise ValueError(_("what stands after the port must be the number of a database."))
    return raw


def _bearer(raw: str) -> str:
    """A token of an Authorization header."""
    if not all("!" <= mark <= "~" for mark in raw):
        raise ValueError(_("it may have ASCII letters, digits and signs, and no spaces."))
    return raw


def _bot_token(raw: str) -> str:
    if not TELEGRAM_TOKEN.fullmatch(raw):
        raise ValueError(_("it must look like 123456:ABC-DEF. BotFather gives it."))
    return raw


def _webhook_secret(raw: str) -> str:
    encoded = raw.removeprefix("whsec_")
    try:
        base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        encoded = ""  # not base64, so it cannot sign
    if not raw.startswith("whsec_") or len(encoded) < 24:
        raise ValueError(_("it must start with whsec_ and hold at least 24 characters of base64."))
    return raw


def _accepted_by(parse: Callable[[str], object]) -> Callable[[str], str]:
    """A parser that returns the text itself if ``parse``, which reads it later, accepts it."""

    def check(raw: str) -> str:
        parse(raw)
        return raw

    return check


def _list_accepted_by(parse: Callable[[str], tuple[object, ...]]) -> Callable[[str], str]:
    """Like ``_accepted_by``, for a list, which may not be empty."""
    return _accepted_by(lambda raw: _not_empty(parse(raw)))


def _check_file(name: str) -> None:
    """Raises ValueError if the file is missing or cannot be read."""
    try:
        if Path(name).is_file():
            with Path(name).open("rb"):
                return
    except OSError:  # also for a folder without permission, and for a name that is too long
        raise ValueError(_("the file %(file)s cannot be read.", file=name)) from None
    raise ValueError(_("the file %(file)s does not exist.", file=name))


def _authorities(raw: str) -> str:
    """A file of certificates. A file without any is refused, because it would have no effect."""
    _check_file(raw)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(raw)
    except (ssl.SSLError, OSError):
        raise ValueError(_("%(file)s holds no certificates in PEM form.", file=raw)) from None
    return raw


def _url_or_file(raw: str) -> str:
    if "://" in raw:
        return plain_url(raw)
    try:
        _check_file(raw)
    except ValueError as fault:
        advice = _("Name another, or a URL that starts with https://.")
        raise ValueError(f"{fault} {advice}") from None
    # Imported here, because only this setting needs it, and it takes 8 MB.
    from app.checks.expiry.rdap import parse_bootstrap

    try:
        parse_bootstrap(Path(raw).read_bytes(), datetime.now(UTC), is_default=False)
    except Exception as fault:  # a file of another shape may raise any, such as KeyError
        why = fault.strerror if isinstance(fault, OSError) else str(fault).rstrip(".")
        raise ValueError(_(NO_REGISTRIES, file=raw, fault=why)) from None
    return raw


def _whole_number(low: int, high: int) -> Callable[[str], int]:
    def parse(raw: str) -> int:
        if not raw.isascii() or not raw.isdigit() or not low <= int(raw) <= high:
            raise ValueError(
                _("it must be a whole number from %(low)s to %(high)s.", low=low, high=high)
            )
        return int(raw)

    return parse


def _seconds(raw: str) -> float:
    value = float(raw) if _DECIMAL.fullmatch(raw) else -1  # float also takes 1_0 and Arabic digits
    if not 0 <= value <= 3600:
        raise ValueError(_("it must be a number of seconds from 0 to 3600."))
    return value


# The parser of each setting. The field of ``Settings`` of this name, in lower case, has the
# default.
_READERS: dict[str, Callable[[str], Any]] = {
    "BIND": _bind,
    "STORE": _store,
    "LOCATION": _location,
    "SMTP_URL": _accepted_by(smtp.parse),
    "TELEGRAM_TOKEN": _bot_token,
    "TELEGRAM_API": base_url,
    "SMS_URL": _accepted_by(sms.parse),
    "WEBHOOK_SECRET": _webhook_secret,
    "ALLOW_NETWORKS": _accepted_by(Policy.parse),
    "SUBSCRIBER_NETWORKS": _accepted_by(Policy.parse),
    "PUBLIC_URL": _public_url,
    "ALLOWED_HOSTS": _hosts,
    "TRUSTED_PROXIES": networks,
    "METRICS_TOKEN": _bearer,
    "RATE_LIMIT": _whole_number(0, 1_000_000),
    "CONFIRM_SECONDS": _seconds,
    "DNS_SERVERS": _list_accepted_by(parse_servers),
    "CA_BUNDLE": _authorities,
    "RDAP_BOOTSTRAP": _url_or_file,
    "CANARIES": _list_accepted_by(parse_canaries),
    "RETENTION_DAYS": _whole_number(1, 100_000),
    "TIME_ZONE": parse_zone,
    "BROKER_URL": _broker,
    "BATCH_KEY": _accepted_by(key_of),
    "SERVER": _server,
    "AGENT_TOKEN": _bearer,
    "HEARTBEAT_URL": plain_url,
}
_NONE_IF_EMPTY = {"ALLOW_NETWORKS", "CANARIES"}  # an empty value means none, not the default
SETTING_NAMES = {*_READERS, "INSTANCE", "DATABASE_URL", "SECRET_KEY", "REMOTE_URL", "REMOTE_KEY"}
