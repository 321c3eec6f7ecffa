"""Names with numbers in them stand in the order of these, wherever names are listed."""

from tests.factories import make_monitor
from tests.support.store import store_of

NAMES = ("Shop 10", "Oslo", "Shop 2", "Öl")
IN_ORDER = ("Öl", "Oslo", "Shop 2", "Shop 10")
PLACES = ("/", "/monitors?sort_by=name&sort=asc", "/monitors", "/wall", "/contacts", "/status")


def test_lists_the_wall_and_what_is_added_to_a_page_are_in_natural_order(app, editor):
    for name in NAMES:
        make_monitor(app, name=name, tags="\nprod\n", state={"verdict": "up"})
        store_of(app).contacts.create({"name": name, "channels": ()})
        store_of(app).status_pages.create({"name": name})
    for path in PLACES:
        assert editor.open(path).status == 200
        editor.shows_in_order(*IN_ORDER)
    editor.open("/status-pages/new").press("Add all with this tag", tag="prod")
    editor.shows_in_order(*IN_ORDER)
