"""Make checks. The input is a ``records.CheckSpec``, the output a ``records.Outcome``; no Flask, no
SQLAlchemy.

    prober        submit(spec, done) or check(spec): thousands of checks on one thread
    kinds         the table of kinds: what each knows, and how its checks start; and what a check of
                  fields that nobody stored consists of
    running       the tools that checks of every kind share, and the life of a check of the simple
                  kinds; connection has what those over TCP share
    outcome       failures and verdicts; evidence and text have the rest of what kinds share
    curl/         requests and handshakes by curl
    http/         how a URL is checked over HTTP, and how its outcome is judged
    tcp/          how a TCP port is checked
    tls/          how a TLS server is checked
    ping/         how a host is pinged
    dns/          how records of DNS are checked
    certificate   judging a certificate chain, and reading when it ends
    redact        masking a monitor's secrets in what a check saw
    expiry/       when a domain name expires: RDAP, WHOIS
"""
