"""Check a TLS server: a handshake at once or after STARTTLS, judged like that of https.

checks    one check; its figures, verdict and evidence
"""
