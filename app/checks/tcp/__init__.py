"""How a TCP port is checked: connect, and for a text condition read what the server sends first.

address   what a tcp:// URL may hold
checks    one check (look up, connect, read), and all of this kind in one prober
outcome   the figures, verdict and evidence of a check
"""
