"""Checks through a queue: a checker sends batches, and probers elsewhere bring the outcomes back.

Celery over Redis. Both sides know the address of Redis (BROKER_URL) and a key (BATCH_KEY); probers
have no database. Batches and outcomes are encrypted and authenticated with the key, so whoever
reads or writes Redis learns no secret and can forge no result. He can stop the checks: for that,
Redis is trusted.

    sender    the ``Carrier`` of a checker
    prober    what ``wakeful prober`` runs
    broker    what both sides share: which messages count (ours, fresh, and each once), and what
              the log says when the broker fails, or when we do

Redis may lose messages, and a prober may be killed: what does not come back is sent again. A prober
claims a batch in Redis before it runs the checks, and the checker claims one that nobody has taken
before it sends its checks again, so none is made twice however late a batch comes. The tokens and
turns of the database decide which result counts, as for every carrier.
"""
