"""How a TCP port is checked: connect, and where a text condition needs it, read what the server
sends by itself.

address   what a tcp:// URL may hold
checks    the checks of this kind in one prober
run       one check: look up, connect, listen
outcome   what it saw as figures, a verdict and evidence
"""
