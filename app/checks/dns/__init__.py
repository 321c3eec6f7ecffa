"""How DNS is checked: which records a server has.

address   what a dns: URL may hold (RFC 4501)
checks    one check
outcome   the figures, verdict and evidence of a check
"""
