"""Pure rules about values: what may be stored, and how it is read.

Forms, stores, engine and alerts ask the same function, so that a value that one of them takes is
never refused by another. Nothing here knows the clock, a network or a database.
"""
