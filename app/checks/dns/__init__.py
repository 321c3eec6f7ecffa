"""Check DNS: the records that a server has for a name.

address   what a dns: URL may hold (RFC 4501)
checks    one check; its figures, verdict and evidence
"""
