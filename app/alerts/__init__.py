"""Alerts: messages to people, the channels that send them, and the outbox that loses none.

outbox     writes a row for each message, in the transaction of the change that caused it
lanes      the table of a row's states, and the decisions on them: pure
claims     carries out the decisions in the database: leases a row, stores the outcome
composing  makes the message of a row, for the worker and for the delivery log
worker     sends the claimed rows outside of transactions; lists the steps from row to service
digests    puts rows on hold in quiet hours and sends one message for them afterwards
messages/  the content of a message
channels/  a sender for each channel
"""
