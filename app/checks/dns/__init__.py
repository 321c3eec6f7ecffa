"""How DNS is checked: which records a server has.

address   what a dns: URL may hold (RFC 4501)
checks    one check; its figures, verdict and evidence
"""
