"""The one judge: the verdict on a monitor by its checks. Pure, and used wherever one is needed.

``verdict.py`` answers "when is a monitor down?". ``replay.py`` judges stored results again, in the
order of their checks: it answers "how does a late result count?". ``slow.py`` answers "is it slow
for so long that people are alerted?", ``heartbeat.py`` what the pings of a heartbeat say.
"""
