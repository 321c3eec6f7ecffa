"""Check a URL over HTTP.

checks        one check from hop to hop: look up, judge addresses, pin, send, follow redirects
compose       the contents of a request, and which of them are sent again after a redirect
cookies       the cookies of a chain of redirects
trace         all hops of one check
outcome       the result, figures and evidence of a trace
verdict       what went wrong, in the order of decision 10, in a sentence
"""
