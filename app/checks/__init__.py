"""What a check is. No Flask, no SQLAlchemy: specs in (``records.CheckSpec``), outcomes out
(``records.Outcome``).

How to find one's way, from the outside in:

    prober        Prober: submit(spec, done) or check(spec); one thread for thousands
    run           one check from hop to hop: look up, judge addresses, pin, send, follow redirects
      target      reading URLs (the rule that forms use too)
      resolver    names to addresses; dnsquery asks the servers, hosts knows the machine's own files
      policy      which addresses are open; networks is the table behind it, with its sources
      compose     what a request carries, and what of it survives a redirect
      families    is the other address family alive?
      curls       curl's multi interface on the loop
      wire        one request and what it saw; decode undoes gzip and its like
      loop        epoll, timers, calls from other threads
    story         what happened, before anybody judges it
    outcome       the story's figures and verdict
      verdict     what went wrong, as decisions.md 10 tells it apart, in a sentence
      certificate judging a chain; trust is the file of authorities
      statuses    accepted_statuses
      text        charset and text conditions
      evidence    what was seen, as JSON, without secrets
    domain        when a domain name ends: registry, rdap, whois
    canary        does our own network work?
"""
