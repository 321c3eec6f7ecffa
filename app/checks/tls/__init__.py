"""How a TLS server is checked: a handshake at once or after STARTTLS, judged as that of https.

checks    one check; its figures, verdict and evidence
starttls  what is said before the handshake, for each protocol
"""
