"""``wakeful agent``: checks from behind any NAT, without a database and without an open port.

It gets the monitors from the server, checks them on its own schedule, and sends the results. While
the server is out of reach, checks continue and their results wait on disk.

    agent          the loop: schedule, prober, results
    buffer         results that the server has not taken yet
    link           the requests to the server, on a separate thread, and its time
    assigned_file  the monitors, for a start while the server is away
"""
