"""Alerts: messages to people, the channels that send them, and the outbox that loses none.

outbox       writes a row for each message, in the transaction of the change that caused it
worker       claims rows, sends them outside of transactions, records the outcome
lane_rules   decides which row of a lane is sent, grouped, held or deferred
digests      holds rows in quiet hours and sends one message for them afterwards
messages/    the content of a message
channels/    a sender for each channel
"""
