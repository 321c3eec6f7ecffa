"""Ping a host (ICMP echo).

checks    one check: look up, ping the first address of each family, then the other addresses; its
          figures, verdict and evidence
"""
