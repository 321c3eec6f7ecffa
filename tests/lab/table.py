"""The table of faults: for each case, how to cause it, and what a check must report.

A row's name is that of uptime-bench's taxonomy (``tls_invalid/self_signed``) where it has one.
The expectations are those of decision 10, and decision 3 for what a good answer is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from app.records import Cause, Verdict, Warn
from tests.lab.content import CAP, UMLAUTS
from tests.lab.http import MARKER
from tests.lab.lab import Lab
from tests.lab.starttls import PROTOCOLS as STARTTLS

UP, DOWN, DEGRADED, UNKNOWN = Verdict.UP, Verdict.DOWN, Verdict.DEGRADED, Verdict.UNKNOWN
GRACE = 0.5  # seconds that a check may take beyond its timeout (issue 3)
TIMEOUT = 5  # of a row that says nothing of its own


@dataclass(frozen=True)
class At:
    """The target of a row's check: a method of the lab and its arguments."""

    kind: str
    args: tuple[Any, ...] = ()
    words: Mapping[str, Any] = field(default_factory=dict)

    def url(self, lab: Lab) -> str:
        words = {name: _url(value, lab) for name, value in self.words.items()}
        path = str(getattr(lab, self.kind)(*(_url(arg, lab) for arg in self.args), **words))
        return path


def _url(value: Any, lab: Lab) -> Any:
    """A value that depends on the lab: a redirect's target, a fresh name."""
    return value(lab) if callable(value) else value


def http(path: str = "/good", host: Any = "good.lab.test") -> At:
    return At("http", (path,), {"host": host})


def https(kind: str = "valid", path: str = "/good", host: str = "good.lab.test") -> At:
    return At("https", (kind, path, host))


def named(label: str) -> At:
    """The good page under a name whose look-up is the case."""
    return http(host=f"{label}.lab.test")


def named_afresh(label: str) -> At:
    """The same under a name that nobody asked for yet.

    A look-up outlives the check that began it, and its late end would be there for the next run.
    """
    return http(host=lambda lab: lab.fresh(label))


def tcp(fault: str) -> At:
    return At("tcp", (fault,))


def tls(fault: str) -> At:
    return At("tls", (fault,))


def h2(fault: str) -> At:
    return At("h2", (fault,))


def dual(v4: str, v6: str) -> At:
    return At("dual", (v4, v6))


def port(place: str, *args: str, **words: Any) -> At:
    """The port of a place of the lab, as tcp://."""
    return At("port", (place, *args), words)


def secure(place: str, *args: str, **words: Any) -> At:
    """The port of a place of the lab, as tls://."""
    return At("secure", (place, *args), words)


def starttls(name: str, protocol: str, *args: str, code: str | None = None, **words: Any) -> Row:
    """A server of this protocol: up, or down with this code."""
    at = At("starttls", (protocol, *args), words)
    return Row(name, at, DOWN if code else UP, code, fields={"starttls": protocol})


def port_of(label: str) -> At:
    """An open port under a name whose look-up is the case."""
    return port("http", host=f"{label}.lab.test")


def redirect(target: At | str, status: int = 302, by: str = "http", **words: Any) -> At:
    """A redirect by the good server to another place of the lab, or to a Location as written."""

    def path(lab: Lab) -> str:
        location = target.url(lab) if isinstance(target, At) else target
        return f"/to/{status}?url={quote(location, safe='')}"

    return At(by, (), {"path": path} | words)


def set_cookie(cookie: str) -> At:
    """A cookie of the good server, whose redirect leads to another port of the same host."""

    def path(lab: Lab) -> str:
        url = quote(lab.other("/echo-cookie"), safe="")
        return f"/set-cookie?cookie={quote(cookie, safe='')}&url={url}"

    return At("http", (), {"path": path})


@dataclass(frozen=True)
class Row:
    """One case. ``fields`` are the monitor's, as POST /checks takes them; ``longest`` in seconds.

    ``says`` are words and figures that the cause's sentence must name. ``v6`` marks what needs ::1.
    """

    name: str
    at: At
    verdict: Verdict = UP
    code: str | None = None
    warnings: tuple[Warn, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    longest: float | None = None
    says: tuple[str, ...] = ()
    heavy: bool = False
    v6: bool = False

    @property
    def timeout(self) -> int:
        return int(self.fields.get("timeout", TIMEOUT))

    @property
    def limit(self) -> float:
        return self.longest or self.timeout + GRACE

    def __str__(self) -> str:
        return self.name


def _timeout(name: str, at: At, code: str, **fields: Any) -> Row:
    """A case in which the time runs out; the sentence names how long it was.

    One second; three where the target has to come as far as a body first, also on a busy machine.
    """
    seconds = 3 if code == Cause.TIMEOUT_BODY else 1
    return Row(name, at, DOWN, code, fields={"timeout": seconds, **fields}, says=(f"{seconds} s",))


def _domain(name: str, at: At, text: str, **more: Any) -> Row:
    """The text is there: up when it must be there, down when it must not (given as ``down``)."""
    return Row(
        name, at, fields={"alert_condition": "url_no_text", "alert_text_lookup": text}, **more
    )


def _missing(name: str, at: At, text: str = MARKER) -> Row:
    fields = {"alert_condition": "url_no_text", "alert_text_lookup": text}
    return Row(name, at, DOWN, Cause.TEXT_MISSING, fields=fields)


def _unwanted(name: str, at: At, text: str) -> Row:
    fields = {"alert_condition": "url_text", "alert_text_lookup": text}
    return Row(name, at, DOWN, Cause.TEXT_FOUND, fields=fields)


def _down(name: str, at: At, code: str, *says: str, **fields: Any) -> Row:
    return Row(name, at, DOWN, code, fields=fields, says=says)


def _status(code: int, **fields: Any) -> Row:
    at = http(f"/status/{code}")
    return _down(f"http_status {code}", at, f"{Cause.HTTP_STATUS}:{code}", str(code), **fields)


def _up(name: str, at: At, *warnings: Warn, **fields: Any) -> Row:
    return Row(name, at, warnings=warnings, fields=fields)


def _looked_up(kind: str, at: Callable[[Any], At]) -> Iterator[Row]:
    """The causes of a kind for names that cannot be looked up."""
    for label, code in (
        ("nxdomain", Cause.DNS_NXDOMAIN),
        ("servfail", Cause.DNS_SERVFAIL),
        ("refused", Cause.DNS_REFUSED),
        ("no-address", Cause.DNS_NO_ADDRESS),
    ):
        yield _down(f"{kind} {code}", at(f"{label}.lab.test"), code)
    yield _timeout(f"{kind} dns_timeout", at(lambda lab: lab.fresh("silent")), Cause.DNS_TIMEOUT)


CUT = (Warn.BODY_CUT_AT_CAP,)
WITH_TEXT = {"alert_condition": "url_no_text", "alert_text_lookup": MARKER}
WITHOUT_TEXT = {"alert_condition": "url_text", "alert_text_lookup": MARKER}

DNS = [
    _down("dns_nxdomain", named("nxdomain"), Cause.DNS_NXDOMAIN, "nxdomain.lab.test"),
    _down("dns_servfail", named("servfail"), Cause.DNS_SERVFAIL, "servfail.lab.test"),
    _down("dns_refused", named("refused"), Cause.DNS_REFUSED, "refused.lab.test"),
    _down("dns_notimp", named("notimp"), Cause.DNS_SERVFAIL),
    _down("dns_formerr", named("formerr"), Cause.DNS_SERVFAIL),
    _timeout("dns_timeout", named_afresh("silent"), Cause.DNS_TIMEOUT),
    _timeout("dns_ns_unavailable/all answer too late", named_afresh("too-late"), Cause.DNS_TIMEOUT),
    _timeout("dns answers with a wrong id only", named_afresh("wrong-id"), Cause.DNS_TIMEOUT),
    _down("dns missing A record", named("no-address"), Cause.DNS_NO_ADDRESS),
    _down("dns_cname_nxdomain", named("alias-to-nowhere"), Cause.DNS_NXDOMAIN),
    _down("dns CNAME loop", named("alias-loop"), Cause.DNS_SERVFAIL),
    _down("dns CNAME to itself", named("alias-to-itself"), Cause.DNS_SERVFAIL),
    _up("dns CNAME", named("alias")),
    _up("dns CNAME chain of six", named("long-alias")),
    _up("dns_latency", named("latency")),
    _up("dns answer too long for UDP", named("truncated")),
    _up("dns forged answer before the true one", named("forged")),
    _up("dns_ns_unavailable/silent", named("first-silent")),
    _up("dns_ns_unavailable/servfail", named("first-servfail")),
    _up("dns first server refuses", named("first-refused")),
    _up("dns AAAA fails while A answers", named("aaaa-servfail")),
    _up("dns AAAA is never answered while A is", named("aaaa-silent")),
    _up("dns AAAA is NXDOMAIN while A answers", named("aaaa-nxdomain")),
    Row("dns one server fails, the other is silent", named_afresh("servfail-and-silent"), DOWN,
     Cause.DNS_SERVFAIL, fields={"timeout": 2}),
    Row(
        "dns one server is silent, the other refuses",
        named_afresh("refused-and-silent"),
        DOWN,
        Cause.DNS_REFUSED,
        fields={"timeout": 2},  # after 0.8 s the second server is asked
    ),
    _down("dns half an answer", named("half-an-answer"), Cause.DNS_SERVFAIL),
    _down("dns too long for UDP, and no TCP", named("cut-everywhere"), Cause.DNS_SERVFAIL),
    _timeout("dns the question comes back", named_afresh("echo"), Cause.DNS_TIMEOUT),
    Row("dns A is NXDOMAIN while AAAA answers", named("a-nxdomain"), v6=True),
    _up("dns name with an underscore", named("under_score")),
    _up("dns name that begins with a hyphen", named("-hyphen")),
    _up("dns international name", http(host="bücher.lab.test")),
    _up("dns name with a final dot", http(host="good.lab.test.")),
    _up("dns name with capitals", http(host="GOOD.Lab.Test")),
    _up("dns round robin with a dead backend", named("one-dead-backend")),
    _up("dns seven dead backends and a good one", named("many")),
]  # fmt: skip

CONNECT = [
    _down("tcp port closed", At("closed"), Cause.CONNECTION_REFUSED),
    _timeout("tcp_timeout", At("black_hole"), Cause.TIMEOUT_CONNECT),
    _down("tcp unreachable address", named("unreachable"), Cause.HOST_UNREACHABLE),
    _down("tcp reset at once", tcp("reset_at_once"), Cause.CONNECTION_RESET),
    _down("tcp reset after the request", tcp("reset_after_request"), Cause.CONNECTION_RESET),
    _down("tcp reset within the headers", tcp("half_the_headers_then_reset"),
     Cause.CONNECTION_RESET),
    _down("tcp_refused", tcp("close_at_once"), Cause.EMPTY_RESPONSE),
    _down("tcp closed after the request", tcp("close_after_request"), Cause.EMPTY_RESPONSE),
    _down("tcp closed within the status line", tcp("half_a_status_line"), Cause.EMPTY_RESPONSE),
    _down("tcp closed within the headers", tcp("half_the_headers"), Cause.EMPTY_RESPONSE),
    _timeout("http_timeout/total", tcp("silent"), Cause.TIMEOUT_TTFB),
    _up("tcp IPv4 address in the URL", http(host="127.0.0.1")),
    Row("tcp IPv6 address in the URL", http(host="[::1]"), v6=True),
]  # fmt: skip

TLS = [
    _down("tls_expired", https("expired"), Cause.TLS_EXPIRED, "3 days"),
    _down("tls_expired/30d", https("expired_30d"), Cause.TLS_EXPIRED, "days ago"),
    _down("tls_expired/intermediate", https("expired_intermediate"), Cause.TLS_EXPIRED),
    _down("tls expired and for another host", https("expired_wrong_host"), Cause.TLS_EXPIRED),
    _down("tls not yet valid", https("not_yet_valid"), Cause.TLS_NOT_YET_VALID),
    _down("tls not yet valid and for another host", https("not_yet_valid_wrong_host"),
     Cause.TLS_NOT_YET_VALID),
    _down("tls_invalid/self_signed", https("self_signed"), Cause.TLS_SELF_SIGNED),
    _down("tls self-signed and expired", https("self_signed_expired"), Cause.TLS_EXPIRED),
    _down("tls unknown authority, whole chain", https("unknown_ca"), Cause.TLS_UNTRUSTED),
    _down("tls unknown authority above an intermediate", https("unknown_ca_below_intermediate"),
     Cause.TLS_UNTRUSTED),
    _down("tls unknown authority and another host", https("unknown_ca_wrong_host"),
     Cause.TLS_UNTRUSTED),
    _down("tls missing intermediate", https("missing_intermediate"), Cause.TLS_INCOMPLETE_CHAIN),
    _down("tls_invalid/hostname_mismatch", https("wrong_host"), Cause.TLS_HOSTNAME,
     "other.example"),
    _down("tls name in the CN alone", https("common_name_only"), Cause.TLS_HOSTNAME),
    _down("tls wildcard one level too deep", https(host="a.b.lab.test"), Cause.TLS_HOSTNAME),
    _down("tls_handshake/version_mismatch", tls("alert_protocol_version"), Cause.TLS_PROTOCOL),
    _down("tls_deprecated/TLS10", https("tls_1_0_only"), Cause.TLS_PROTOCOL),
    _down("tls_deprecated/TLS11", https("tls_1_1_only"), Cause.TLS_PROTOCOL),
    _down("tls_handshake/no_common_cipher", https("no_common_cipher"), Cause.TLS_HANDSHAKE),
    _down("tls alert handshake_failure", tls("alert_handshake_failure"), Cause.TLS_HANDSHAKE),
    _down("tls alert unrecognized_name", tls("alert_unrecognized_name"), Cause.TLS_HANDSHAKE),
    _down("tls closed in the handshake", tls("close_in_handshake"), Cause.TLS_HANDSHAKE),
    _down("tls reset in the handshake", tls("reset_in_handshake"), Cause.TLS_HANDSHAKE),
    _down("tls reset before the handshake", tls("reset_before_handshake"), Cause.TLS_HANDSHAKE),
    _down("tls garbage in the handshake", tls("garbage_in_handshake"), Cause.TLS_HANDSHAKE),
    _down("tls HTTPS not supported at all", tls("plain_http"), Cause.TLS_HANDSHAKE),
    _down("tls client certificate wanted, 1.2", https("client_certificate_1_2"),
     Cause.TLS_HANDSHAKE),
    _down("tls client certificate wanted, 1.3", https("client_certificate_1_3"),
     Cause.TLS_HANDSHAKE),
    _down("tls reset after the request", At("tcp_over_tls", ("reset_after_request",)),
     Cause.CONNECTION_RESET),
    _down("tls closed after the request", At("tcp_over_tls", ("close_after_request",)),
     Cause.EMPTY_RESPONSE),
    _timeout("tls silent after the request", At("tcp_over_tls", ("silent",)), Cause.TIMEOUT_TTFB),
    _timeout("tls slow handshake", tls("silent_in_handshake"), Cause.TIMEOUT_TLS),
    _timeout("tls half a server hello", tls("half_a_server_hello"), Cause.TIMEOUT_TLS),
    _down("tls port closed", At("closed", (), {"scheme": "https"}), Cause.CONNECTION_REFUSED),
    _up("tls valid", https()),
    _up("tls valid with an intermediate", https("with_intermediate")),
    _up("tls 1.2 only", https("tls_1_2_only")),
    _up("tls 1.3 only", https("tls_1_3_only")),
    _up("tls certificate for an address", https(host="127.0.0.1")),
    _up("tls international name", https(host="bücher.lab.test")),
    _up("tls cross-signed by an expired root", https("cross_signed")),
    _up("tls chain in the wrong order", https("wrong_order")),
    _up("tls expired intermediate beside its renewal", https("renewed_intermediate")),
    _down("tls intermediate of the certificate before", https("intermediate_of_another_time"),
     Cause.TLS_INCOMPLETE_CHAIN, "Middle"),
    _down("tls certificate sent twice", https("leaf_twice"), Cause.TLS_INCOMPLETE_CHAIN),
    _down("tls certificate for clients", https("for_clients"), Cause.TLS_UNTRUSTED, "purpose"),
    _down("tls name that the issuer may not certify", https("constrained"), Cause.TLS_UNTRUSTED),
    _down("tls address written as a host name", https("address_as_name", host="127.0.0.1"),
     Cause.TLS_HOSTNAME, "not as an address"),
    _up("tls server of many names", https("sni")),
    _up("tls server of many names, final dot", https("sni", host="GOOD.lab.test.")),
    _down("tls server of many names, not of this one", https("sni", host="any.lab.test"),
     Cause.TLS_HOSTNAME, "other.example"),
    _up("tls name required", https("sni_required")),
    _down("tls name required, asked by address", https("sni_required", host="127.0.0.1"),
     Cause.TLS_HANDSHAKE),
    _up("tls without a farewell, nor a length", https(path="/http-1-0")),
    _up("tls wildcard covers the name", https(host="any.lab.test")),
    _up("tls_expiring", https("expiring_5d"), Warn.TLS_EXPIRING, ssl_alert_days=7),
    _up("tls_expiring/today", https("expiring_today"), Warn.TLS_EXPIRING, ssl_alert_days=0),
    _up("tls_expiring/outside the threshold", https("expiring_5d"), ssl_alert_days=3),
    _up("tls_expiring/auto", https("expiring_5d"), Warn.TLS_EXPIRING, ssl_alert_days="auto"),
    _up("tls_expiring/not asked for", https("expiring_5d")),
    _up("tls_expiring/of a host that only redirects",
     redirect(https(), by="https", kind="expiring_5d"), Warn.TLS_EXPIRING, ssl_alert_days=7),
    _up("tls unverified, expired", https("expired"), verify_tls="false"),
    _up("tls unverified, self-signed", https("self_signed"), verify_tls="false"),
    _up("tls unverified, wrong host", https("wrong_host"), verify_tls="false"),
    _up("tls unverified, unknown authority", https("unknown_ca"), verify_tls="false"),
    _up("tls unverified, TLS 1.0", https("tls_1_0_only"), verify_tls="false"),
    _up("tls unverified, TLS 1.1", https("tls_1_1_only"), verify_tls="false"),
    _up("tls unverified, TLS 1.3", https("tls_1_3_only"), verify_tls="false"),
    _down("tls Diffie-Hellman of 1024 bits", https("small_dh"), Cause.TLS_HANDSHAKE),
    _up("tls unverified, Diffie-Hellman of 1024 bits", https("small_dh"), verify_tls="false"),
    _down("tls key of 1024 bits", https("small_key"), Cause.TLS_SELF_SIGNED),
    _up("tls unverified, key of 1024 bits", https("small_key"), verify_tls="false"),
    _down("tls without secure renegotiation", https("no_secure_renegotiation"), Cause.TLS_HANDSHAKE,
     "RFC 5746"),
    _up("tls unverified, without secure renegotiation", https("no_secure_renegotiation"),
     verify_tls="false"),
    _up("tls unverified, without secure renegotiation, HEAD", https("no_secure_renegotiation"),
     verify_tls="false", request_method="HEAD"),
    _down("tls unverified, and no TLS that is spoken", tls("alert_protocol_version"),
     Cause.TLS_PROTOCOL, "TLS 1.0 to 1.3", verify_tls="false"),
]  # fmt: skip

HTTP = [
    *[_status(code) for code in (400, 401, 403, 404, 410, 429, 500, 502, 503, 504, 520)],
    _down("http_status 204 not accepted", http("/status/204"), "http_status:204",
     accepted_statuses="200"),
    _up("http_status 204", http("/status/204")),
    _up("http_status 304 is final", http("/status/304")),
    _up("http_status accepted by list", http("/status/401"), accepted_statuses="200-299,401"),
    _down("http_status 200 not accepted", http(), "http_status:200", accepted_statuses="404"),
    _down("http_header_status", http("/header-status"), "http_status:503",
     **{"request_headers[0][key]": "X-Lab", "request_headers[0][value]": "1"}),
    _up("http_header_status/without the header", http("/header-status")),
    _down("http_method_status/HEAD", http("/method-status/HEAD/405"), "http_status:405",
     request_method="HEAD"),
    _up("http_method_status/HEAD fails, GET is asked", http("/method-status/HEAD/405")),
    _down("http_method_status/GET", http("/method-status/GET/503"), "http_status:503"),
    _up("http HEAD", http(), request_method="HEAD"),
    _up("http OPTIONS", http(), request_method="OPTIONS"),
    _up("http DELETE", http("/method-status/GET/500"), request_method="DELETE"),
    Row("http POST sends the body", http("/echo-body"),
     fields={**WITH_TEXT, "request_method": "POST", "request_body": f"a {MARKER}"}),
    _up("http basic auth", http("/basic-auth"), request_auth_username="ann",
     request_auth_password="pässword:1"),
    _down("http basic auth missing", http("/basic-auth"), "http_status:401"),
    _up("http cache buster", http("/cache-buster"), cache_buster="1"),
    _up("http 1.0 without a length", http("/http-1-0")),
    _up("http bare line feeds", http("/bare-line-feeds")),
    _up("http early hints", http("/early-hints")),
    _up("http 100 that nobody asked for", http("/unasked-continue")),
    _down("http 102 and no more", http("/only-continue"), Cause.EMPTY_RESPONSE),
    _down("http 101 that nobody asked for", http("/switching"), "http_status:101"),
    _down("http_status 999", http("/status-999"), "http_status:999"),
    _up("http no reason behind the status", http("/no-reason")),
    _down("http status 000", http("/status-000"), Cause.INVALID_HTTP, "HTTP/1.1 000 None"),
    _down("http status of four digits", http("/status-of-four-digits"), Cause.INVALID_HTTP),
    _down("http empty line first", http("/empty-line-first"), Cause.INVALID_HTTP, "empty line"),
    _down("http two lengths", http("/two-lengths"), Cause.INVALID_HTTP),
    _up("http the same length twice", http("/same-length-twice")),
    _up("http length and chunks", http("/length-and-chunks")),
    _up("http trailers", http("/trailers")),
    _up("http folded header", http("/folded-header")),
    _down("http header without a colon", http("/header-without-colon"), Cause.INVALID_HTTP),
    _down("http NUL in a header", http("/nul-in-header"), Cause.INVALID_HTTP),
    Row("http slow close", http("/slow-close"), longest=3),
    Row("http body longer than said", http("/longer-than-said"), longest=3),
    _timeout("http 1.0 without a length or an end", http("/without-length-or-end"),
     Cause.TIMEOUT_BODY),
    _up("http reset after the whole body", http("/reset-after-whole")),
    _up("http reset after the whole body, TLS", https(path="/reset-after-whole")),
    _down("http reset instead of an end", http("/reset-instead-of-end"), Cause.BODY_TRUNCATED),
    _down("http turned away before the request", tcp("answer_before_request"), "http_status:503"),
    _down("http turned away before the request's body", tcp("answer_before_body"),
     "http_status:413", request_method="POST", request_body="x" * 60_000),
    _up("http missing Content-Type", http("/no-content-type")),
    _up("http chunked", http("/chunked")),
    _down("http no HTTP status line", http("/garbage-status-line"), Cause.INVALID_HTTP),
    _down("http status is no number", http("/status-not-a-number"), Cause.INVALID_HTTP),
    _down("http binary noise", http("/binary-noise"), Cause.INVALID_HTTP),
    _down("http body without headers", http("/http-0-9"), Cause.INVALID_HTTP),
    _down("http TLS server on a plain port", http("/tls-alert"), Cause.INVALID_HTTP),
    _down("http another protocol", tcp("ssh_banner"), Cause.INVALID_HTTP),
    _down("http negative Content-Length", http("/negative-length"), Cause.INVALID_HTTP),
    _down("http Content-Length is a word", http("/length-is-a-word"), Cause.INVALID_HTTP),
    _down("http bad chunk size", http("/bad-chunk-size"), Cause.INVALID_HTTP),
    _down("http huge chunk size", http("/huge-chunk-size"), Cause.INVALID_HTTP),
    _down("http chunk longer than said", http("/chunk-too-long"), Cause.INVALID_HTTP),
    _down("http chunk cut short", http("/cut-chunk"), Cause.BODY_TRUNCATED),
    _down("http last chunk missing", http("/no-last-chunk"), Cause.BODY_TRUNCATED),
    _down("http_partial", http("/cut-body"), Cause.BODY_TRUNCATED),
    _down("http_partial/no body at all", http("/cut-before-body"), Cause.BODY_TRUNCATED),
    _down("http_partial/over TLS", https(path="/cut-body"), Cause.BODY_TRUNCATED),
    _down("http_partial/reset", http("/reset-in-body"), Cause.BODY_TRUNCATED),
    _down("http_partial/reset between chunks", http("/reset-in-chunks"), Cause.BODY_TRUNCATED),
    _up("http headers of 60 KiB", http("/many-headers/60")),
    _down("http headers of 70 KiB", http("/many-headers/70"), Cause.HEADERS_TOO_LARGE),
    _down("http one header of 80 kB", http("/one-huge-header"), Cause.HEADERS_TOO_LARGE),
    Row("http headers without end", http("/endless-headers"), DOWN, Cause.HEADERS_TOO_LARGE,
     longest=3, heavy=True),
    _up("http2", h2("h2_good")),
    _down("http2 status 500", h2("h2_status_500"), "http_status:500"),
    _down("http2 stream error", h2("h2_stream_reset"), Cause.INVALID_HTTP),
    _down("http2 stream error in the body", h2("h2_stream_reset_in_body"), Cause.INVALID_HTTP),
    _down("http2 closed before the headers", h2("h2_closed_before_headers"), Cause.EMPTY_RESPONSE),
    _up("http2 trailers", h2("h2_trailers")),
    _up("http2 early hints", h2("h2_early_hints")),
    _up("http2 GOAWAY, and the answer", h2("h2_goaway_after_this")),
    _down("http2 GOAWAY instead of an answer", h2("h2_goaway_refuses"), Cause.INVALID_HTTP,
     "refused the request"),
    _down("http2 GOAWAY that asks for calm", h2("h2_goaway_asks_for_calm"), Cause.INVALID_HTTP,
     "over HTTP/2 with the error ENHANCE_YOUR_CALM"),
    _down("http2 REFUSED_STREAM", h2("h2_refused_stream"), Cause.INVALID_HTTP,
     "refused the request"),
    _down("http2 GOAWAY in the body", h2("h2_goaway_in_body"), Cause.BODY_TRUNCATED),
    _down("http2 closed in the body", h2("h2_closed_in_body"), Cause.BODY_TRUNCATED),
    _down("http2 reset before the headers", h2("h2_tcp_reset"), Cause.CONNECTION_RESET),
    _down("http2 reset in the body", h2("h2_tcp_reset_in_body"), Cause.BODY_TRUNCATED),
    _down("http2 body shorter than said", h2("h2_length_too_long"), Cause.INVALID_HTTP),
    _down("http2 body longer than said", h2("h2_length_too_short"), Cause.INVALID_HTTP),
    _down("http2 no status", h2("h2_no_status"), Cause.INVALID_HTTP),
    _down("http2 broken header compression", h2("h2_broken_compression"), Cause.INVALID_HTTP),
    _down("http2 in name only", h2("h2_in_name_only"), Cause.INVALID_HTTP),
    Row("http2 header bomb", h2("h2_header_bomb"), DOWN, Cause.HEADERS_TOO_LARGE, longest=3,
     heavy=True),
    Row("http2 headers without end", h2("h2_endless_headers"), DOWN, Cause.HEADERS_TOO_LARGE,
     longest=3, heavy=True),
    Row("http2 ping flood", h2("h2_ping_flood"), DOWN, Cause.INVALID_HTTP, heavy=True),
    _timeout("http2 not even settings", h2("h2_no_settings"), Cause.TIMEOUT_TTFB),
    _timeout("http2 silent", h2("h2_silent"), Cause.TIMEOUT_TTFB),
    _timeout("http2 stalled body", h2("h2_stalled_body"), Cause.TIMEOUT_BODY),
]  # fmt: skip

REDIRECTS = [
    _up("http ten redirects", http("/hops/10")),
    _down("http_redirect/chain", http("/hops/11"), Cause.TOO_MANY_REDIRECTS, "10"),
    _down("http_redirect/loop", http("/loop/a"), Cause.REDIRECT_LOOP),
    _down("http_redirect/loop to itself", http("/loop-to-itself"), Cause.REDIRECT_LOOP),
    _up("http a cookie and the same URL again", http("/cookie-wall")),
    *[
        _up(f"http cookie: {cookie}", set_cookie(cookie), **WITH_TEXT)
        for cookie in (
            f"{MARKER}=1; Max-Age=0600",
            f"{MARKER}=1; Domain=lab.test",
            f"{MARKER}=1; Expires=Thu, 01-Jan-99 00:00:00 GMT; Max-Age=5",
        )
    ],
    *[
        _missing(f"http cookie: {cookie}", set_cookie(cookie))
        for cookie in (
            f"{MARKER}=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            f"{MARKER}=1; Domain=other.test",
            f"{MARKER}=1; Secure",
        )
    ],
    _down("http_redirect/never the same cookie", http("/cookie-maze"), Cause.TOO_MANY_REDIRECTS),
    _down("http redirect to nowhere at all", http("/location-empty"), Cause.REDIRECT_LOOP),
    _down("http redirect to no host name", redirect("http://a,b.lab.test/"),
     Cause.REDIRECT_BLOCKED),
    _down("http redirect with a user name", redirect("http://ann:pw@good.lab.test/"),
     Cause.REDIRECT_BLOCKED),
    _up("http redirect not followed", http("/hops/1"), follow_redirects="false"),
    _up("http redirect without Location is final", http("/without-location")),
    _down("http redirect without Location, not accepted", http("/without-location"),
     "http_status:302", accepted_statuses="200-299"),
    _up("http 303 becomes GET", http("/see-other"), request_method="POST", request_body="a=1"),
    _up("http 307 keeps method and body", http("/keep-method"), request_method="POST",
     request_body="a=1"),
    _up("http permanent redirect", redirect(http(), 308)),
    _up("http relative redirect", redirect("../good?x=1#part")),
    _up("http redirect with a space and an umlaut", redirect("/good?q=größe ok")),
    _down("http redirect to ftp", redirect("ftp://good.lab.test/"), Cause.REDIRECT_BLOCKED),
    _down("http redirect to a file", redirect("file:///etc/passwd"), Cause.REDIRECT_BLOCKED),
    _down("http redirect to a script", redirect("javascript:alert(1)"), Cause.REDIRECT_BLOCKED),
    _down("http redirect to half an address", redirect("http://[::1/"), Cause.REDIRECT_BLOCKED),
    _down("http redirect to no port", redirect("http://good.lab.test:99999/"),
     Cause.REDIRECT_BLOCKED),
    _down("http redirect to nobody", redirect("http:///good"), Cause.REDIRECT_BLOCKED),
    _down("http redirect to a closed port", redirect(At("closed")), Cause.CONNECTION_REFUSED),
    _down("http redirect to a dead name", redirect(named("nxdomain")), Cause.DNS_NXDOMAIN),
    _down("http redirect to an expired certificate", redirect(https("expired")), Cause.TLS_EXPIRED),
    _down("http redirect to a 503", redirect(http("/status/503")), "http_status:503"),
    _timeout("http redirect to silence", redirect(tcp("silent")), Cause.TIMEOUT_TTFB),
    # It runs out in the middle of a wait, not where one hop meets the next.
    Row("http slow redirects add up", http("/slow-hops/3?ms=1200"), DOWN, Cause.TIMEOUT_TTFB,
     fields={"timeout": 2}, says=("2 s",)),
    _up("http port 80 to 443", redirect(https())),
    _up("http HTTPS to HTTP downgrade", redirect(http(), by="https"), Warn.REDIRECT_DOWNGRADE),
    _up("http own User-Agent goes along", redirect(At("other", ("/who-asks",))),
     **{"request_headers[0][key]": "User-Agent", "request_headers[0][value]": "curl/8"}),
    _down("http password stays with its origin", redirect(At("other", ("/basic-auth",))),
     "http_status:401", "user name and password", "not sent", request_auth_username="ann",
     request_auth_password="pässword:1"),
    _up("http password comes back on its origin",
     redirect(At("other", (), {"path": lambda lab: f"/to/302?url={lab.http('/basic-auth')}"})),
     request_auth_username="ann", request_auth_password="pässword:1"),
    _up(
        "http secrets stay with their origin",
        redirect(At("other", ("/no-secrets",))),
        **{
            "request_auth_username": "ann",
            "request_auth_password": "secret",
            "request_headers[0][key]": "X-Secret",
            "request_headers[0][value]": "secret",
        },
    ),
]  # fmt: skip

STREAM = (Warn.STREAM_OPEN,)
STREAMS = [
    *[
        _up(f"http stream of {kind}", http(f"/stream/{quote(kind)}"), *STREAM, timeout=3)
        for kind in ("audio/mpeg", "audio/aacp", "video/mp2t", "text/event-stream", "Audio/OGG",
                     "multipart/x-mixed-replace; boundary=x", "text/event-stream;charset=utf-8")
    ],
    _up("http stream in chunks", http("/stream-in-chunks/audio/mpeg"), *STREAM, timeout=3),
    _up("http stream of SHOUTcast", http("/icy-stream/audio/mpeg"), *STREAM, timeout=3),
    _up("http stream over TLS", https(path="/stream/video/mp4"), *STREAM, timeout=3),
    _timeout("http stream without a byte", http("/silent-stream/text/event-stream"),
             Cause.TIMEOUT_BODY),
    _timeout("http stream that a text is looked up in", http("/stream/audio/mpeg"),
             Cause.TIMEOUT_BODY, **WITH_TEXT),
    _timeout("http text without end", http("/stream/text/plain"), Cause.TIMEOUT_BODY),
    _timeout("http text without end, of a longer name", http("/stream/text/event-streams"),
             Cause.TIMEOUT_BODY),
    _down("http stream with a length", http("/sized-stream/audio/mpeg"), Cause.BODY_TRUNCATED),
]  # fmt: skip

SLOW = [
    Row("http_latency", http("/late/300"), DEGRADED, Cause.SLOW_RESPONSE,
        fields={"slow_after": 100}, says=("100",)),
    _up("http_latency/below the threshold", http("/late/100"), slow_after=4000),
    _up("http_latency/no threshold", http("/late/300")),
    Row("dns_latency/beyond the threshold", named("latency"), DEGRADED, Cause.SLOW_RESPONSE,
        fields={"slow_after": 100}),
    Row("http slow redirects beyond the threshold", http("/slow-hops/1"), DEGRADED,
        Cause.SLOW_RESPONSE, fields={"slow_after": 400}),
    _down("http_latency/and a 503 is down", http("/status/503"), "http_status:503", slow_after=1),
    _timeout("http_timeout/ttfb", http("/late/9000"), Cause.TIMEOUT_TTFB),
    _timeout("http_timeout/body", http("/no-body"), Cause.TIMEOUT_BODY),
    _timeout("http half a body, then silence", http("/stalled-body"), Cause.TIMEOUT_BODY),
    _timeout("http header without end, byte by byte", http("/drip-headers"), Cause.TIMEOUT_TTFB),
    _timeout("http status line byte by byte", http("/drip-status-line"), Cause.TIMEOUT_TTFB),
    _timeout("http slow-loris: one byte a second", http("/drip-body"), Cause.TIMEOUT_BODY),
    _timeout("http slow-loris over TLS", https(path="/drip-body"), Cause.TIMEOUT_BODY),
    _timeout("http body without end, byte by byte", http("/drip-body-without-end"),
             Cause.TIMEOUT_BODY),
]  # fmt: skip


def _asserts(source: str, op: str, value: str, path: str = "", **more: Any) -> dict[str, Any]:
    parts = {"source": source, "property": path, "op": op, "value": value}
    return {f"assertions[0][{name}]": part for name, part in parts.items() if part} | more


CONTENT = [
    _down("http gzip cut short", http("/packed-cut/gzip"), Cause.BODY_TRUNCATED),
    _down("http deflate cut short", http("/packed-cut/deflate"), Cause.BODY_TRUNCATED),
    _down("http brotli cut short", http("/packed-cut/br"), Cause.BODY_TRUNCATED),
    _down("http zstd cut short", http("/packed-cut/zstd"), Cause.BODY_TRUNCATED),
    _down("http gzip that is none", http("/packed-bad/gzip"), Cause.INVALID_HTTP),
    _down("http deflate that is none", http("/packed-bad/deflate"), Cause.INVALID_HTTP),
    _down("http brotli that is none", http("/packed-bad/br"), Cause.INVALID_HTTP),
    _down("http zstd that is none", http("/packed-bad/zstd"), Cause.INVALID_HTTP),
    _down("http gzip damaged within", http("/packed-bad-later/gzip"), Cause.INVALID_HTTP),
    _down("http zstd damaged within", http("/packed-bad-later/zstd"), Cause.INVALID_HTTP),
    *[
        _up(f"http {name} and no body", http(f"/packed-empty/{name}"))
        for name in ("gzip", "deflate", "br", "zstd")
    ],
    _up("http HEAD of a gzip page", http("/packed/gzip"), request_method="HEAD"),
    _down("http unknown compression", http("/packed-unknown"), Cause.INVALID_HTTP),
    *[
        _domain(f"text in {name}", http(f"/packed/{name}"), MARKER)
        for name in ("gzip", "x-gzip", "deflate", "raw-deflate", "br", "zstd", "identity",
                     "gzip-members", "gzip-and-garbage", "gzip-and-zeros", "gzip-then-br")
    ],
    _domain("text in gzip in chunks", http("/packed-in-chunks"), MARKER),
    _domain("text across chunk borders", http("/chunked"), MARKER),
    _domain("text in http2", h2("h2_good"), MARKER),
    _domain("text with characters across chunks", http("/multibyte-across-chunks"), "läuft 🟢 gut"),
    *[
        _domain(f"text in charset {name}", http(f"/charset-{name}"), UMLAUTS)
        for name in ("header", "header-quoted", "meta", "http-equiv", "xml", "bom-utf-16",
                     "bom-utf-8", "header-before-meta", "unknown", "none")
    ],
    _domain("text in charset Shift_JIS", http("/charset-shift-jis"), "稼働中"),
    _domain("text after bad bytes", http("/bad-bytes"), UMLAUTS),
    _missing("http_body/keyword_missing", http("/keyword-missing")),
    _down("text that is missing outranks an assertion", http("/keyword-missing"),
          Cause.TEXT_MISSING, **WITH_TEXT, **_asserts("size", "=", "0")),
    _missing("http_body/empty", http("/near-empty")),
    _missing("http_body/error_page", http("/error-page")),
    _missing("http_body/ransomware", http("/ransomware")),
    _missing("http_body/defacement", http("/defacement")),
    _missing("text in an empty body", http("/empty-page")),
    _missing("text in other case", http(), MARKER.upper()),
    _unwanted("http_body/keyword_injected", http("/keyword-injected"), "HACKED"),
    _unwanted("http_body/malicious_script", http("/malicious-script"), "evil.example"),
    _unwanted("http_body/spam_links", http("/spam-links"), "cheap pills"),
    _up("text that must not be there is not", http("/empty-page"), **WITHOUT_TEXT),
    _down("text on a page with 503", http("/status/503"), "http_status:503", **WITH_TEXT),
    _up("text on a 503 that is accepted", http("/status/503"), accepted_statuses="503",
        **WITH_TEXT),
    _up("http body of exactly the cap", http(f"/sized/{CAP}"), **WITH_TEXT),
    _up("http body of exactly the cap, gzip", http(f"/sized/{CAP}?packed=gzip"), **WITH_TEXT),
    _up("http body one byte over the cap", http(f"/sized/{CAP + 1}"), *CUT),
    _up("assertion on a body that is cut off", http(f"/sized/{CAP + 1}"), *CUT,
        **_asserts("json", "=", "ok", "$.status")),
    _up("assertions on status and certificate", https(), **_asserts("certificate_days", ">", "0")),
    _down("assertion on a body that is no JSON", http(), Cause.ASSERTION_FAILED, "not JSON",
          **_asserts("json", "=", "ok", "$.status")),
    _down("assertion and a 503", http("/status/503"), "http_status:503",
          **_asserts("status", "=", "200")),
    _up("text cut off at the cap", http(f"/sized/{CAP + 1}"), *CUT, **WITH_TEXT),
    _up("text cut off at the cap, gzip", http(f"/sized/{CAP + 1}?packed=gzip"), *CUT, **WITH_TEXT),
    _up("text across the cap", http("/marker-across-cap"), *CUT, **WITH_TEXT),
    _up("text ends at the cap", http("/marker-before-cap"), *CUT, **WITH_TEXT),
    _up("text behind the cap", http("/marker-behind-cap"), *CUT, **WITHOUT_TEXT),
    Row("unwanted text before the cap", http("/marker-before-cap"), DOWN, Cause.TEXT_FOUND, CUT,
        fields=WITHOUT_TEXT),
    Row("http body of 8 MB", http(f"/sized/{8 * CAP}"), UP, warnings=CUT, longest=3, heavy=True),
    Row("http body without end", http("/endless-body"), UP, warnings=CUT, longest=3, heavy=True),
    *[
        Row(f"http compression bomb {kind}", http(f"/compression-bomb/{kind}"), UP, warnings=CUT,
            longest=3, heavy=True)
        for kind in ("gzip", "br", "zstd")
    ],
]  # fmt: skip

DUAL_STACK = [
    Row("dual stack, both answer", dual("open", "open"), v6=True),
    Row("dual stack, IPv6 refused", dual("open", "closed"),
        warnings=(Warn.IPV6_UNREACHABLE,), v6=True),
    Row("dual stack, IPv4 refused", dual("closed", "open"),
        warnings=(Warn.IPV4_UNREACHABLE,), v6=True),
    Row("dual stack, IPv6 dropped", dual("open", "dropped"), fields={"timeout": 2},
        warnings=(Warn.IPV6_UNREACHABLE,), v6=True),
    Row("dual stack, IPv4 dropped", dual("dropped", "open"), fields={"timeout": 2},
        warnings=(Warn.IPV4_UNREACHABLE,), v6=True),
    Row("dual stack, both refused", dual("closed", "closed"), DOWN, Cause.CONNECTION_REFUSED,
        v6=True),
    Row("dual stack, both dropped", dual("dropped", "dropped"), DOWN, Cause.TIMEOUT_CONNECT,
        fields={"timeout": 1}, v6=True),
    Row("dual stack, AAAA alone", named("v6-only"), v6=True),
]  # fmt: skip


def _expects(text: str, **more: Any) -> dict[str, Any]:
    return {"alert_condition": "url_no_text", "alert_text_lookup": text, **more}


def _refuses(text: str, **more: Any) -> dict[str, Any]:
    return {"alert_condition": "url_text", "alert_text_lookup": text, **more}


# The kind tcp. A text condition waits for what the server sends by itself.
PORTS = [
    _up("port open", port("http")),
    _up("port open under a final dot and capitals", port("http", host="GOOD.lab.test.")),
    _up("port open at an address", port("http", host="127.0.0.1")),
    Row("port open at an IPv6 address", port("http", host="[::1]"), v6=True),
    Row("port AAAA alone", port_of("v6-only"), v6=True),
    _up("port of an international name", port_of("bücher")),
    _up("port silent", port("tcp", "silent")),
    _down("port closed", port("closed"), Cause.CONNECTION_REFUSED, "127.0.0.1 port"),
    _timeout("port that never answers", port("black_hole"), Cause.TIMEOUT_CONNECT),
    _down("port unreachable", port_of("unreachable"), Cause.HOST_UNREACHABLE),
    _up("port with a dead backend", port_of("one-dead-backend")),
    _up("port with seven dead backends and a good one", port_of("many")),
    _down("port dns_nxdomain", port_of("nxdomain"), Cause.DNS_NXDOMAIN, "nxdomain.lab.test"),
    _down("port dns_servfail", port_of("servfail"), Cause.DNS_SERVFAIL),
    _down("port dns_refused", port_of("refused"), Cause.DNS_REFUSED),
    _down("port dns_no_address", port_of("no-address"), Cause.DNS_NO_ADDRESS),
    _timeout("port dns_timeout", port("http", host=lambda lab: lab.fresh("silent")),
             Cause.DNS_TIMEOUT),
    _up("port banner has the text", port("tcp", "greeting"), **_expects("ESMTP")),
    _up("port banner in pieces", port("tcp", "greeting_in_pieces"), **_expects("Begrüßung ready")),
    _up("port banner and then a close", port("tcp", "greeting_then_close"), **_expects("closing")),
    _up("port binary banner", port("tcp", "binary_greeting"), **_expects("8.0.36")),
    _up("port text ends at 1 KiB", port("tcp", "long_greeting"), **_expects("at the end")),
    _down("port text behind 1 KiB", port("tcp", "long_greeting"), Cause.TEXT_MISSING,
          "1024 bytes", **_expects("behind")),
    _up("port unwanted text behind 1 KiB", port("tcp", "long_greeting"), **_refuses("behind")),
    _up("port banner matches an assertion", port("tcp", "greeting"),
        **_asserts("banner", "matches", "^220 .*ESMTP")),
    _down("port banner fails an assertion", port("tcp", "greeting_then_close"),
          Cause.ASSERTION_FAILED, "Banner", **_asserts("banner", "contains", "IMAP")),
    Row("port banner without the text", port("tcp", "greeting"), DOWN, Cause.TEXT_MISSING,
        fields=_expects("IMAP", timeout=1), says=("31 bytes", "IMAP")),
    _down("port banner in other case", port("tcp", "greeting_then_close"), Cause.TEXT_MISSING,
          **_expects("CLOSING")),
    _down("port closed without a banner", port("tcp", "close_at_once"), Cause.TEXT_MISSING,
          "without sending anything", **_expects("ESMTP")),
    _timeout("port silent where a text is expected", port("tcp", "silent"), Cause.TEXT_MISSING,
             **_expects("ESMTP")),
    Row("port silent where a text is refused", port("tcp", "silent"),
        fields=_refuses("ESMTP", timeout=1, slow_after=900)),
    _down("port banner has an unwanted text", port("tcp", "greeting"), Cause.TEXT_FOUND, "ESMTP",
          **_refuses("ESMTP")),
    _down("port reset at once", port("tcp", "reset_at_once"), Cause.CONNECTION_RESET,
          **_expects("ESMTP")),
    _down("port reset within the banner", port("tcp", "half_a_greeting_then_reset"),
          Cause.CONNECTION_RESET, "4 bytes", **_expects("ESMTP")),
    Row("port slow banner", port("tcp", "late_greeting"), DEGRADED, Cause.SLOW_RESPONSE,
        fields=_expects("ESMTP", slow_after=100)),
    Row("port slow look-up", port_of("latency"), DEGRADED, Cause.SLOW_RESPONSE,
        fields={"slow_after": 100}),
    Row("port dual stack, both answer", port("dual", "open", "open"), v6=True),
    Row("port dual stack, IPv6 refused", port("dual", "open", "closed"),
        warnings=(Warn.IPV6_UNREACHABLE,), v6=True),
    Row("port dual stack, IPv4 refused", port("dual", "closed", "open"),
        warnings=(Warn.IPV4_UNREACHABLE,), v6=True),
    Row("port dual stack, IPv6 dropped", port("dual", "open", "dropped"), fields={"timeout": 2},
        warnings=(Warn.IPV6_UNREACHABLE,), v6=True),
    Row("port dual stack, both refused", port("dual", "closed", "closed"), DOWN,
        Cause.CONNECTION_REFUSED, v6=True),
    Row("port dual stack, both dropped", port("dual", "dropped", "dropped"), DOWN,
        Cause.TIMEOUT_CONNECT, fields={"timeout": 1}, v6=True),
]  # fmt: skip


def _at_tls(rows: Iterable[Row]) -> Iterator[Row]:
    """The first of ``rows`` with each cause or warning, asked for as tls://."""
    asked = set()
    for row in rows:
        outcome = (row.code, row.warnings, "verify_tls" in row.fields)
        if row.at.kind in ("https", "tls") and outcome not in asked:
            asked.add(outcome)
            at = secure(row.at.kind, *row.at.args, **row.at.words)
            yield replace(row, name=row.name.replace("tls", "handshake", 1), at=at)


HANDSHAKES = [
    *_at_tls(TLS),
    _down("handshake port closed", secure("closed"), Cause.CONNECTION_REFUSED),
    _down("handshake fails an assertion", secure("https", "valid"), Cause.ASSERTION_FAILED,
          "certificate", **_asserts("certificate_days", ">", "999999")),
    Row("handshake slow", secure("https", "valid", host="handshake-latency.lab.test"), DEGRADED,
        Cause.SLOW_RESPONSE, fields={"slow_after": 100, "verify_tls": "false"}),
    _timeout("handshake where no SYN is answered", secure("black_hole"), Cause.TIMEOUT_CONNECT),
    _down("handshake unreachable", secure("closed", host="unreachable.lab.test"),
          Cause.HOST_UNREACHABLE),
    *_looked_up("handshake", lambda host: secure("http", host=host)),
    _up("handshake with an international name", secure("https", host="bücher.lab.test")),
    Row("handshake at an IPv6 address", secure("https", host="[::1]"),
        fields={"verify_tls": "false"}, v6=True),
    Row("handshake AAAA alone", secure("https", host="v6-only.lab.test"), v6=True),
    *[starttls(f"starttls {name}", name) for name in STARTTLS],
    *[starttls(f"starttls {name} refused", name, code=Cause.STARTTLS_REFUSED, refuses=True)
      for name in STARTTLS],
    starttls("starttls expired", "smtp", "expired", code=Cause.TLS_EXPIRED),
    _down("starttls of another protocol", secure("tcp", "ssh_banner"), Cause.STARTTLS_REFUSED,
          "SSH-2.0", starttls="imap"),
    _down("starttls closed without a greeting", secure("tcp", "close_at_once"),
          Cause.TLS_HANDSHAKE, "closed", starttls="smtp"),
    _timeout("starttls silent", secure("tcp", "silent"), Cause.TIMEOUT_TLS, starttls="smtp"),
    _timeout("starttls where TLS is expected at once", secure("https", "valid"),
             Cause.TIMEOUT_TLS, starttls="smtp"),
    _timeout("starttls greets and no more", secure("tcp", "greeting"), Cause.TIMEOUT_TLS,
             starttls="smtp"),
]  # fmt: skip


def _blocked(name: str, at: At, *says: str) -> Row:
    return Row(name, at, UNKNOWN, Cause.BLOCKED_BY_POLICY, says=says)


def ping(label: str = "good") -> At:
    return At("ping", (f"{label}.lab.test",))


PINGS = [
    _up("ping answered", ping()),
    _up("ping without loss", ping(), **_asserts("loss", "=", "0")),
    _down("ping fails an assertion", ping(), Cause.ASSERTION_FAILED, "Response time",
        **_asserts("response_time", ">", "60000")),
    Row("ping answered over IPv6", At("ping", ("[::1]",)), v6=True),
    *_looked_up("ping", lambda host: At("ping", (host,))),
    _down("ping no route", ping("unreachable"), Cause.HOST_UNREACHABLE),
    _timeout("ping that nobody answers", ping("no-echo"), Cause.PING_TIMEOUT),
    Row("ping slow", ping("slow-echo"), DEGRADED, Cause.SLOW_RESPONSE, fields={"slow_after": 10}),
    Row("ping from a machine that may not", ping("not-allowed"), UNKNOWN, Cause.CHECK_ERROR,
        says=("net.ipv4.ping_group_range", "CAP_NET_RAW")),
    _up("ping international name", ping("bücher")),
    Row("ping AAAA alone", ping("v6-only"), v6=True),
    _blocked("policy ping", ping("closed-address"), "10.11.12.13"),
]  # fmt: skip


def record(label: Any, *server: Any) -> At:
    return At("record", (), {"label": label} | ({"server": server[0]} if server else {}))


def _first_server(lab: Lab) -> str:
    return f"//127.0.0.1:{lab.dns.addresses[0][1]}"


def _server_on_ipv6(lab: Lab) -> str:
    return f"//[::1]:{lab.dns.port_on_ipv6()}"


RECORDS = [
    _up("record of the installation's servers", record("good")),
    _up("record of a named server", record("good", _first_server)),
    _up("record of an international name", record("bücher")),
    Row("record of a server at an IPv6 address", record("good", _server_on_ipv6), v6=True),
    _up("record too long for UDP", record("truncated")),
    _up("record behind a CNAME", record("alias")),
    _up("record of the second server", record("first-servfail")),
    _up("record has the text", record("good"), **_expects("127.0.0.1")),
    _down("record without the text", record("good"), Cause.TEXT_MISSING, "1 record",
          **_expects("127.0.0.2")),
    _down("record has an unwanted text", record("good"), Cause.TEXT_FOUND, **_refuses("127.0")),
    _down("record nxdomain", record("nxdomain"), Cause.DNS_NXDOMAIN, "nxdomain.lab.test"),
    _down("record servfail", record("servfail"), Cause.DNS_SERVFAIL),
    _down("record refused", record("refused"), Cause.DNS_REFUSED),
    _down("record of another type", record("no-address"), Cause.DNS_NO_ANSWER, "no A record"),
    _down("record of another name", record("of-another-name"), Cause.DNS_NO_ANSWER),
    _down("record behind an alias to nowhere", record("alias-to-nowhere"), Cause.DNS_NXDOMAIN),
    _down("record too long for UDP, and nothing over TCP", record("cut-everywhere"),
          Cause.DNS_SERVFAIL),
    _down("record cut short", record("half-an-answer"), Cause.DNS_SERVFAIL),
    _down("record fails an assertion", record("good"), Cause.ASSERTION_FAILED, "127.0.0.1",
          **_asserts("answer", "=", "127.0.0.2")),
    _up("record with a forged answer before it", record("forged"),
        **_asserts("answer", "=", "127.0.0.1")),
    Row("record slow", record("latency"), DEGRADED, Cause.SLOW_RESPONSE,
        fields={"slow_after": 100}),
    *[
        Row(f"record {label}", record(lambda lab, label=label: lab.fresh(label).split(".")[0]),
            DOWN, Cause.DNS_TIMEOUT, fields={"timeout": 1})
        for label in ("wrong-id", "echo", "too-late")
    ],
    _down("record behind a loop of CNAMEs", record("alias-loop"), Cause.DNS_NO_ANSWER),
    # The sentence has the measured time, so a busy machine shows more than a second.
    Row("record of silent servers", record(lambda lab: lab.fresh("silent").split(".")[0]), DOWN,
        Cause.DNS_TIMEOUT, fields={"timeout": 1}, says=("within 1",)),
    _blocked("policy dns server", record("good", "//10.11.12.13"), "10.11.12.13"),
]  # fmt: skip

POLICY = [
    _blocked("policy name with a private address", named("closed-address"), "10.11.12.13"),
    _blocked("policy name of the metadata service", named("metadata"), "169.254.169.254"),
    _blocked("policy IPv4 mapped into IPv6", named("mapped")),
    _blocked("policy address in the URL", http(host="10.11.12.13"), "10.11.12.13"),
    _blocked("policy redirect to an address", redirect("http://169.254.169.254/latest/"),
             "169.254.169.254"),
    _blocked("policy redirect to a name", redirect(named("closed-address")), "10.11.12.13"),
    _blocked("policy rebinding between two hops", At("rebinding"), "169.254.169.254"),
    _up("policy open and closed addresses", named("open-and-closed")),
    _blocked("policy port of a closed address", port("http", host="10.11.12.13"), "10.11.12.13"),
    _blocked("policy port of a name with a closed address", port_of("closed-address"),
             "10.11.12.13"),
    _up("policy port of open and closed addresses", port_of("open-and-closed")),
    _blocked("policy handshake", secure("http", host="closed-address.lab.test"), "10.11.12.13"),
]  # fmt: skip

# Failures that are Wakeful's own. One check of each kind while no canary answers...
NETWORK_DOWN = [
    Row(f"own network is down, {name}", at, UNKNOWN, Cause.NETWORK_DOWN, says=("own network",))
    for name, at in (
        ("http", At("closed")),
        ("tcp", port("closed")),
        ("tls", secure("closed")),
        ("ping", ping("unreachable")),
        ("dns", record("servfail")),
    )
] + [  # what the target itself has answered is no fault of our network
    _status(503),
    _down("record servfail of a named server", record("servfail", _first_server),
          Cause.DNS_SERVFAIL),
]  # fmt: skip
# ... and one that meets a fault in the code.
FAULTS = [
    Row(f"fault of ours, {name}", at, UNKNOWN, Cause.CHECK_ERROR)
    for name, at in (
        ("http", http()),
        ("tcp", port("http")),
        ("tls", secure("https", "valid")),
        ("ping", ping()),
        ("dns", record("good", _first_server)),
    )
]

_LOOKUP = {
    Cause.DNS_NXDOMAIN, Cause.DNS_SERVFAIL, Cause.DNS_REFUSED, Cause.DNS_TIMEOUT,
    Cause.DNS_NO_ADDRESS,
}  # fmt: skip
_CONNECT = {Cause.CONNECTION_REFUSED, Cause.HOST_UNREACHABLE, Cause.TIMEOUT_CONNECT}
_HANDSHAKE = {
    Cause.TLS_EXPIRED, Cause.TLS_NOT_YET_VALID, Cause.TLS_SELF_SIGNED, Cause.TLS_UNTRUSTED,
    Cause.TLS_INCOMPLETE_CHAIN, Cause.TLS_HOSTNAME, Cause.TLS_PROTOCOL, Cause.TLS_HANDSHAKE,
    Cause.TIMEOUT_TLS,
}  # fmt: skip
_TEXT = {Cause.TEXT_MISSING, Cause.TEXT_FOUND}
_ANY = {
    Cause.ASSERTION_FAILED, Cause.SLOW_RESPONSE, Cause.BLOCKED_BY_POLICY, Cause.NETWORK_DOWN,
    Cause.CHECK_ERROR,
}  # fmt: skip
# The causes that a check of each kind can have.
CAUSES = {
    "http": _LOOKUP | _CONNECT | _HANDSHAKE | _TEXT | _ANY | {
        Cause.CONNECTION_RESET, Cause.HTTP_STATUS, Cause.EMPTY_RESPONSE, Cause.INVALID_HTTP,
        Cause.HEADERS_TOO_LARGE, Cause.BODY_TRUNCATED, Cause.REDIRECT_LOOP,
        Cause.TOO_MANY_REDIRECTS, Cause.REDIRECT_BLOCKED, Cause.TIMEOUT_TTFB, Cause.TIMEOUT_BODY,
    },
    "tcp": _LOOKUP | _CONNECT | _TEXT | _ANY | {Cause.CONNECTION_RESET},
    "tls": _LOOKUP | _CONNECT | _HANDSHAKE | _ANY | {Cause.STARTTLS_REFUSED},
    "ping": _LOOKUP | _ANY | {Cause.HOST_UNREACHABLE, Cause.PING_TIMEOUT},
    "dns": _LOOKUP - {Cause.DNS_NO_ADDRESS} | _TEXT | _ANY | {Cause.DNS_NO_ANSWER},
}  # fmt: skip
_KINDS = {"port": "tcp", "secure": "tls", "starttls": "tls", "ping": "ping", "record": "dns"}


def caused() -> Mapping[str, set[str]]:
    """The causes of each kind that some row has."""
    causes: dict[str, set[str]] = {kind: set() for kind in CAUSES}
    for row in (*ROWS, *NETWORK_DOWN, *FAULTS):
        if row.code is not None:
            code = str(row.code)
            is_status = code.startswith(f"{Cause.HTTP_STATUS}:")
            causes[_KINDS.get(row.at.kind, "http")].add("http_status" if is_status else code)
    return causes


ROWS = [
    *DNS,
    *CONNECT,
    *TLS,
    *HTTP,
    *REDIRECTS,
    *STREAMS,
    *SLOW,
    *CONTENT,
    *DUAL_STACK,
    *PORTS,
    *HANDSHAKES,
    *PINGS,
    *RECORDS,
    *POLICY,
]
