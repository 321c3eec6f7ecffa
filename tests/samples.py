"""A record of each resource that its form alone makes, without anything else in the installation.
The suites of stores, API, audit log, bound keys and roles take these from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.records.resources import RESOURCES


@dataclass(frozen=True)
class Sample:
    """``change``: a field, and two other values for it. ``pages``: the dashboard has a list, and
    forms to add, edit and delete one, under the usual names.
    """

    fields: Mapping[str, Any]
    change: tuple[str, str, str]
    pages: bool = False


# The samples by the name of the collection.
SAMPLES = {
    "markers": Sample({"name": "Deploy"}, ("name", "Deploy 2", "Deploy 3")),
    "post_templates": Sample(
        {"name": "Slow", "title": "Slow answers", "state": "investigating", "body": "We look."},
        ("title", "Slower", "Slowest"),
        pages=True,
    ),
}
PATHS = {resource.name: resource.path for resource in RESOURCES if resource.record}
SCHEMAS = {resource.name: resource.schema for resource in RESOURCES if resource.record}
PAGES = [name for name, sample in SAMPLES.items() if sample.pages]
