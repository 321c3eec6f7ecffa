"""Requests and handshakes by curl, for the kinds that need them.

transfers     curl's multi interface on the loop
wire          one request on a curl handle
exchange      a request and its result
failures      what went wrong in one request, or in its handshake
"""
