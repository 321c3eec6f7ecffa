"""Variables that Kubernetes and Docker set for the services beside a container. A service that is
called ``wakeful``, or ``wakeful-web``, gives them names that begin as our settings do.

They are recognised by their values as well: a ``_PORT`` of 8000 is a setting that somebody made up,
one of tcp://10.0.0.1:8000 is a link.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

_LINK = re.compile(
    r"(?P<service>.{,255}?)_(?:"  # Docker and Kubernetes name none longer
    r"(?P<host>SERVICE_HOST)|(?P<port>SERVICE_PORT(?:_[A-Z0-9_]+)?)|"
    r"PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:START|END))?"
    r"(?P<part>_PROTO|_PORT(?:_START|_END)?|_ADDR)?)?|"
    r"(?P<name>NAME)|(?P<env>ENV_.+))"
)
_URL = re.compile(r"(?:tcp|udp|sctp)://(?P<host>\[[^\[\]]+\]|[^:\[\]]+):(?P<port>[0-9]+)")
_CONTAINERS = re.compile(r"(?:/[\w.-]+)+/[\w.-]+")  # NAME of Docker: /this_container/its_alias
_PROTOCOLS = frozenset({"tcp", "udp", "sctp"})


def is_link(name: str, environ: Mapping[str, str]) -> bool:
    """Whether the variable is such a link."""
    link = _LINK.fullmatch(name)
    if link is None:
        return False
    value, service = environ[name], link["service"]
    if link["host"]:
        return _is_address(value)
    if link["port"]:  # a number alone could be anybody's
        return _is_port(value) and _is_address(environ.get(f"{service}_SERVICE_HOST", ""))
    if link["name"] or link["env"]:  # ENV_ has whatever the other container's environment has
        return bool(_CONTAINERS.fullmatch(environ.get(f"{service}_NAME", "")))
    part = link["part"]
    if part is None:
        url = _URL.fullmatch(value)
        return url is not None and _is_address(url["host"].strip("[]")) and _is_port(url["port"])
    if part == "_PROTO":
        return value in _PROTOCOLS
    return _is_address(value) if part == "_ADDR" else _is_port(value)


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _is_port(value: str) -> bool:
    return value.isascii() and value.isdigit() and 1 <= int(value[:6]) <= 65_535
