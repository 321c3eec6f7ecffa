"""Status pages: what the public sees, without a key or a login.

A WSGI layer in front of the dashboard (``serving``) answers ``/status`` and everything under a
page's own host name. It reads through ``app.stores.public.PublicPages`` and keeps what it read.
"""
