"""When and where checks run, and what becomes of their results.

``schedule`` spreads the checks over time, ``checker`` is the loop that runs them, ``quorum`` and
``state`` judge results (pure functions), ``recorder`` is the one writer of what they decide.
"""
