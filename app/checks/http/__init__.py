"""How a URL is checked over HTTP.

checks        one check from hop to hop: look up, judge addresses, pin, send, follow redirects;
              and all of this kind in one prober
compose       what a request carries, and what of it survives a redirect
curls         curl's multi interface on the loop
wire          one request on a curl handle
old_tls       what a handle needs for servers with old TLS
cookies       the cookies of a chain of redirects
exchange      a request, what was seen of its answer, and all hops of one check
outcome       the result, figures and evidence of a trace
verdict       what went wrong, in the order of decision 10, in a sentence
failures      what went wrong in one request; tls_failures has the part about TLS, telling
              what their sentences name
"""
