"""The one way to the network: bounded in time and size, and judged by policy.

policy        which addresses are open; networks is the table behind it, with its sources
resolver      names to addresses; dnsquery asks the servers, hosts knows the machine's own files
client        HTTP requests to addresses that policy has judged, for alerts
families      whether the other address family of a name answers
canary        whether our own network works
trust         the certificate authorities that are trusted
loop          epoll, timers, calls from other threads
"""
