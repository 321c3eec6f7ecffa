"""Ping a host (ICMP echo).

checks    one check: look up, ping the first address of each family, and the others in their turn;
          its figures, verdict and evidence
"""
