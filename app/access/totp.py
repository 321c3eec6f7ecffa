"""Codes of authenticator apps (TOTP, RFC 6238): 6 digits, for 30 seconds each."""

from __future__ import annotations

import hmac
from datetime import datetime

PERIOD_SECONDS = 30
DIGITS = 6
DRIFT = 1  # periods that a phone's clock may be ahead or behind
ISSUER = "Wakeful"


def make_secret() -> str:
    """160 random bits in base32, as RFC 4226 recommends."""
    import pyotp  # where it is used: a checker starts faster without

    return pyotp.random_base32()


def uri(secret: str, email: str) -> str:
    """What an app reads from the QR code."""
    import pyotp

    return pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=ISSUER)


def step_at(moment: datetime) -> int:
    """The number of the period, counted from 1970."""
    return int(moment.timestamp()) // PERIOD_SECONDS


def step_of(secret: str, code: str, now: datetime) -> int | None:
    """The period whose code this is, of those that the drift allows; None for a wrong code."""
    import pyotp

    digits = "".join(code.split())
    if len(digits) != DIGITS or not digits.isascii() or not digits.isdecimal():
        return None
    made, present = pyotp.TOTP(secret), step_at(now)
    steps = range(present - DRIFT, present + DRIFT + 1)
    # All are compared, so that the time reveals nothing. The newest counts where two are the same.
    right = [step for step in steps if hmac.compare_digest(made.generate_otp(step), digits)]
    return right[-1] if right else None
