"""All network access: bounded in time and size, and judged by the policy, except access to servers
that an admin names in a setting.

policy        which addresses are open; networks is the table behind it, with its sources
resolver      names to addresses; dnsquery asks the servers, hosts reads the machine's files
client        connections and HTTP requests that are not checks
race          TCP connections to several addresses in parallel, and to the other address family
canary        whether this installation's network works
codings       gzip and other content codings, decoded within limits, and the bytes as text
icmp          echoes (ping) to one address
loop          epoll, timers, calls from other threads, and the end of connections
"""
