"""Schedule checks, run them, and record their results.

``schedule`` spreads the checks over time, ``checker`` is the loop that runs them, ``judge`` says
what results mean (pure functions), and ``recorder`` is the only writer of what that decides.
"""
