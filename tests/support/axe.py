"""What axe finds on a page: violations of all its rules, serious or minor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axe_playwright_python.base import AXE_SCRIPT

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Two themes have the same structure: the second one is asked only for what colours can spoil.
OF_COLOUR = ["color-contrast", "link-in-text-block"]
# Returns only violations: the passed rules are megabytes. ``rest``: only what the look before did
# not show.
LOOK = """async ([options, rest]) => {
  const shown = [...document.querySelectorAll("body *")].filter((at) =>
    at.checkVisibility({ visibilityProperty: true }));
  const fresh = shown.filter((at) => !rest || !window.looked.has(at));
  window.looked = new Set(shown);
  if (!fresh.length) return [];
  return (await axe.run(rest ? { include: fresh } : document, options)).violations.flatMap(
    ({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}"""


def violations(page: Page, *, colours: bool = False, rest: bool = False) -> list[str]:
    """``colours``: only of what colours can spoil. ``rest``: only of what the look before did not
    show.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    # Not preloaded: the style sheets, for a rule that is off, and films, of which there are none.
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if colours:
        options["runOnly"] = OF_COLOUR
    found: list[str] = page.evaluate(LOOK, [options, rest])
    return found
