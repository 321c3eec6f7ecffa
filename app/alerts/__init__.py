"""Alerts: what people are told, through which channel, and the outbox that loses none of it.

values       what a channel's value looks like (pure: the forms import it)
outbox       rows written with the change that caused them
quiet        quiet hours: when they are (pure: the forms import it)
digests      what quiet hours hold back, and the one message that tells of it
worker       claims rows, sends them outside of transactions, marks them
messages     one message, and its words for each channel
channels/    the table of senders
"""
