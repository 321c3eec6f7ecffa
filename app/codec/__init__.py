"""What a record's annotations say, done: its JSON, its schema, and reading it from the JSON of a
server that may be wrong. Pure.

    json_of(monitor, masked=True)      the JSON, secrets masked
    schema_of(Monitor)                 the schema of that JSON
    reader(Monitor, "monitor")         a function that reads it, or raises ``Odd``

``kinds.py`` has the rules for single values: a new kind of value is a line there, and a new field
of a known kind needs none.
"""

from app.codec.record import json_of, reader, schema_of
from app.codec.values import Odd
from app.codec.writing import plain

__all__ = ["Odd", "json_of", "plain", "reader", "schema_of"]
