"""Pure rules about values: what may be stored, and how it is read.

Forms, stores, engine and alerts call the same functions, so that a value that one of them accepts
is never refused by another. Nothing here uses a clock, a network or a database.
"""
