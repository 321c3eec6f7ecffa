"""gunicorn, with a worker of our own: ``webserver`` runs it, without gunicorn's arbiter, and
``webworker`` is the worker.

**Why.** gunicorn's gthread gives a connection a thread from its first byte on, and its ``timeout``
never ends a connection that is merely slow: sixteen clients that send one byte a second block
everybody (docs/performance.md). Its asynchronous workers patch the whole process.

**What is promised.** A thread gets a request when all of it has arrived, or when the rest changes
nothing (a body that is too large or malformed, a ping that is late), and hands its answer over
without waiting for the client (``webworker``, ``connection``). Header, body and answer each have a
time limit as a whole; a file has one for each part. ``/healthz``, ``/readyz`` and pings have
separate threads. A refusal that needs no body is sent before the body has arrived
(``middleware.EARLY``). Chunks are read in linear time (``bodies``). A request that gunicorn refuses
gets JSON below /api, and the log lines about it are limited (``RefusalFilter``).

**What it assumes** and gunicorn does not promise. ``tests/faults/test_gunicorn.py`` has a test for
each assumption, which fails if a new version of gunicorn breaks it:

- a worker is made with the arguments that an arbiter passes, and ``init_process`` sets signals,
  loads the application and serves until SIGTERM;
- ``ThreadWorker`` calls ``accept`` for a listener that is ready, ``murder_pending`` after each wait
  for events, ``_cap_keepalive`` when it stops, and stops accepting at ``worker_connections``;
- its ``poller`` is a selector whose data are callables that get the socket, its ``method_queue``
  defers a call to the event loop, its ``tpool`` is a thread pool, its ``nr_conns`` counts;
- ``handle_request(request, connection)`` runs the application, writes to ``connection.sock`` and
  returns whether the connection may stay open;
- ``handle_error(request, client, address, fault)`` writes an answer with ``sendall``;
- ``http.get_parser`` and ``wsgi.create`` take a source of bytes and make of it a request, its
  environment and a response, which writes nothing before its body and has the ``status_code``;
  ``_expected_100_continue`` of a request makes the answer begin with 100;
- ``wsgi`` of the worker is the application.
"""
