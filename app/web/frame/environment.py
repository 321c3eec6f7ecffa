"""The environment of the templates."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from flask.templating import Environment as FlaskEnvironment


class Environment(FlaskEnvironment):
    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """No template has globals of its own. With them, a template would get a ChainMap, which
        each import looks through name by name: a twentieth of the time of a page.
        """
        return super().make_globals(d) if d else self.globals
