"""The tolerance for stored times that a wrong clock wrote.

A time that is further in the future than its kind allows was written before the clock was set back.
Waiting for it would take as long as the clock was wrong, so such a time counts as past:
``moment > now + longest + SKEW``.
"""

from datetime import timedelta

# How far the clocks of two machines may differ before one treats the other's times as wrong.
SKEW = timedelta(seconds=10)
