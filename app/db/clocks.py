"""Stored moments and a clock that was set.

A moment that is further ahead than anything of its kind can be was written by a clock that was set
back since. To wait for it would be to wait for as long as the clock was wrong, so it counts as
past: ``moment > now + longest + SKEW``.
"""

from datetime import timedelta

# By how much the clocks of two machines may differ before one takes the other's moments for wrong.
SKEW = timedelta(seconds=10)
