"""Make checks. The input is a ``records.CheckSpec``, the output a ``records.Outcome``; no Flask, no
SQLAlchemy.

    prober        submit(spec, on_done) or check(spec): thousands of checks on one thread
    kinds         the table of kinds: the fields of each, and how its checks start; and the spec of
                  a check of fields that are not stored
    running       the tools that all checks share, and the life of a check from start to outcome
    connection    the base of the kinds that make a TCP connection
    outcome       failures, verdicts, text conditions, and when a good check has evidence
    curl/         requests and handshakes by curl
    http/         how a URL is checked over HTTP, and how its outcome is judged
    tcp/          how a TCP port is checked
    tls/          how a TLS server is checked
    ping/         how a host is pinged
    dns/          how records of DNS are checked
    certificate   judging a certificate chain, and reading when it expires
    redact        masking a monitor's secrets in evidence and sentences
    expiry/       when a domain name expires: RDAP, WHOIS
"""
