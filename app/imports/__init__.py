"""Read lists of monitors: lines, CSV, and the exports of other tools.

A module for each source (``other_tools`` has the small ones) turns a file into a
``candidates.Reading``: candidates for monitors, with remarks on the settings that were dropped or
changed. ``files.read`` detects the source. Nothing here stores anything. Files may be hostile:
sizes, depths and counts have limits, and ``NotReadable`` says in one sentence what is wrong.
"""
