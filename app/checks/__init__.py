"""What a check is. No Flask, no SQLAlchemy: specs in (``records.CheckSpec``), outcomes out
(``records.Outcome``).

    prober        submit(spec, done) or check(spec): thousands of checks on one thread
    kinds         the table of kinds: what each knows, and how its checks start
    tools         what the checks of every kind share
    lookup        from a name to the addresses that policy leaves open
    outcome       failures and verdicts; evidence and text have the rest of what kinds share
    http/         how a URL is checked over HTTP, and how its outcome is judged
    certificate   judging a certificate chain, and reading when it ends
    redact        masking a monitor's secrets in what a check saw
    expiry/       when a domain name expires: RDAP, WHOIS
"""
