"""The one judge: what checks say of a monitor. Pure, and used by all who need to know.

``verdict.py`` answers "when is a monitor down?". ``replay.py`` judges stored results again, in the
order of their checks: it answers "how does a late result count?". ``slow.py`` answers "is it slow
for so long that people are alerted?", ``heartbeat.py`` what the pings of a heartbeat say.
"""
