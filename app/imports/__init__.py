"""Read lists of monitors: lines, CSV, and the exports of other tools.

Each source has a module. It turns a file into ``candidates.Reading``: neutral candidates, each with
remarks on what was dropped or changed. Nothing here knows forms, stores or the web, and nothing is
stored. ``files.read`` finds out which source a file is of. Files come from strangers: sizes, depths
and counts have limits, and ``NotReadable`` says in one sentence what is wrong.
"""
