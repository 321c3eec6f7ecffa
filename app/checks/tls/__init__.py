"""How a TLS server is checked: a handshake at once or after STARTTLS, judged as that of https.

checks    one check
starttls  what is said before the handshake, for each protocol
outcome   the figures, verdict and evidence of a check
"""
