"""How a TCP port is checked: connect, and for a text condition read what the server sends first.

checks    one check: look up, connect, read; its figures, verdict and evidence
"""
