"""Check a URL over HTTP.

checks        one check from hop to hop: look up, judge addresses, pin, send, follow redirects
compose       what a request carries, and what of it survives a redirect
cookies       the cookies of a chain of redirects
trace         all hops of one check
outcome       the result, figures and evidence of a trace
verdict       what went wrong, in the order of decision 10, in a sentence
"""
