"""A demonstration: Wakeful with a dozen monitors, local targets that really fail, and a past.

``python -m app.demo`` (``make demo``) runs it in an installation of its own. From its start on, the
failures are real: the targets in ``targets`` fail by a script, and the checker finds out. The 90
days before are made up by ``history``. The dashboard says that this is a demonstration.
"""
