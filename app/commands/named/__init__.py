"""A module for each command of ``wakeful``, with a function of its name.

``app/commands/cli.py`` has the table of them, with what ``--help`` says of each, and imports
the one that is typed: no command waits for what only another one needs.
"""
