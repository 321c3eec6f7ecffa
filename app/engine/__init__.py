"""Schedule checks, run them, and record their results.

``schedule`` spreads the checks over time, ``checker`` is the loop that runs them, and ``recorder``
is the only writer of what follows. ``app.judge`` decides what results mean.
"""
