"""The fault laboratory: real listeners on loopback that fail in every way a target can fail.

``Lab`` (lab.py) puts the parts together: certificates (ca.py), a DNS server (dns.py), listeners
(net.py) and what they do to a client (tcp.py, tls.py, http.py, content.py, h2.py). Each fault is a
small function in one of these files; a row of the table (table.py) names it by a URL.
"""
