"""How a URL is checked over HTTP.

run           one check from hop to hop: look up, judge addresses, pin, send, follow redirects
compose       what a request carries, and what of it survives a redirect
curls         curl's multi interface on the loop
wire          one request and what it saw; decode undoes gzip and its like
story         what happened, before anybody judges it
outcome       the story's figures and verdict
verdict       what went wrong, as decisions.md 10 tells it apart, in a sentence
text          charset and text conditions
"""
