"""The version of this package, which the build and the OpenAPI document read."""

__version__ = "0.1.0"
