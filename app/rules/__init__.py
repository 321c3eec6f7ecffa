"""Pure rules about values: which values may be stored, and how they are read.

Forms, stores, engine and alerts call the same functions, so that none refuses a value that another
accepts. Nothing here uses a clock, a network or a database.
"""
