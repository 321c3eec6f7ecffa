"""Check a TCP port: connect, and for a text condition read the first bytes of the server.

checks    one check: look up, connect, read; its figures, verdict and evidence
"""
