"""Check DNS: the records that a server has for a name.

checks    one check; its figures, verdict and evidence
"""
