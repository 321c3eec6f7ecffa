"""Checks through a queue (Celery over Redis): a checker sends batches, and probers on other
machines return the outcomes.

Both sides have the address of Redis (BROKER_URL) and a key (BATCH_KEY); probers
have no database. Batches and outcomes are encrypted and authenticated with the key, so somebody who
can read or write Redis learns no secret and can forge no result. They can stop the checks: for
availability, Redis is trusted.

    sender    the ``CheckCarrier`` of a checker
    prober    the worker that ``wakeful prober`` runs
    broker    the common part: names in Redis, messages (authenticated, fresh, taken once), and log
              lines about faults

Redis may lose messages, and a prober may be killed: a check without an outcome is sent again. A
prober claims a batch in Redis before it runs the checks, and the checker claims a batch that no
prober has taken before it sends the checks again. Therefore no check is made twice because a batch
was late. The tokens and generations of the database decide which result counts, as for every
carrier.
"""
