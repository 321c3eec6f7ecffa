"""Convert records to JSON, to JSON schemas, and back from the JSON of an unreliable server. Pure.

    json_of(monitor, masked=True)      the JSON, secrets masked
    schema_of(Monitor)                 the schema of that JSON
    reader(Monitor, "monitor")         a function that reads it, or raises ``MalformedData``

The annotations of a record's fields decide how. ``kinds.py`` has the rules for single values: a new
kind of value is a line there; a new field of a known kind needs no change.
"""

from app.codec.kinds import plain
from app.codec.record import json_of, reader, schema_of
from app.codec.values import MalformedData

__all__ = ["MalformedData", "json_of", "plain", "reader", "schema_of"]
