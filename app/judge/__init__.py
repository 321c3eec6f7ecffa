"""The one judge: the verdict on a monitor by its checks. Its functions are pure.

``verdict.py`` answers "when is a monitor down?". ``replay.py`` judges stored results again, in the
order of their checks: "how does a late result count?". ``slow.py`` answers "has it been slow for so
long that people are alerted?". ``heartbeat.py`` makes results of the pings of a heartbeat.
"""
