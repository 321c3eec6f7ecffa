"""Convert records to JSON, to JSON schemas, and back from the JSON of an unreliable server. Pure.

    json_of(monitor, masked=True)      the JSON, secrets masked
    schema_of(Monitor)                 the schema of that JSON
    reader(Monitor, "monitor")         a function that reads it, or raises ``MalformedData``

The annotations of a record's fields decide how. ``value_types.py`` reads and writes single values:
a new type of value is a line there; a new field of a type that is there needs no change.
"""

from app.codec.record import json_of, reader, schema_of
from app.codec.value_types import plain
from app.codec.values import MalformedData

__all__ = ["MalformedData", "json_of", "plain", "reader", "schema_of"]
