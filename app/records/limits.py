"""Limits of requests (decisions.md 7): characters are code points, sizes are UTF-8 bytes."""

from __future__ import annotations

MAX_NAME = 255
MAX_BODY_BYTES = 1024 * 1024  # an API request's body; more is 413
# A form of the dashboard: a million characters of addresses, three bytes each where encoded.
MAX_FORM_BYTES = 4 * 1024 * 1024
# A window may name ten thousand monitors; more fields than that nobody fills in.
MOST_FIELDS = 20_000
