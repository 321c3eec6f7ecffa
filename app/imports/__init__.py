"""Read lists of monitors: lines, CSV, and the exports of other tools.

Each source has a module, which turns a file into a ``candidates.Reading``: candidates for monitors,
each with remarks on the settings that were dropped or changed. This package imports no forms,
stores or web pages, and stores nothing. ``files.read`` detects the source of a file. Files may be
hostile: sizes, depths and counts have limits, and ``NotReadable`` says in one sentence what is
wrong.
"""
