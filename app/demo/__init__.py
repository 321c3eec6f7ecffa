"""A demonstration: Wakeful with a dozen monitors, local targets that really fail, and a past.

``python -m app.demo`` (``make demo``) runs it in an installation of its own. The failures that it
shows now are real: the targets in ``targets`` misbehave by a script, and the checker finds out. The
90 days before are made up by ``history``, and the dashboard says that this is a demonstration.
"""
