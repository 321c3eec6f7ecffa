"""``wakeful agent``: checks from behind any NAT, without a database and without an open port.

It asks the server what to check, checks on its own schedule, and sends the results. While the
server is out of reach, checks continue and their results wait on disk.

    agent          the loop: schedule, prober, results
    buffer         results that the server has not taken yet
    link           the requests to the server, on a thread of their own
    assigned_file  what to check, for a start while the server is away
    clock          the server's time
"""
