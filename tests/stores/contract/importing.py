"""The contract of every store for imports: a dry run, and then one monitor at a time."""

from __future__ import annotations

from pathlib import Path

from app.forms.imported import ImportDefaults
from app.imports import files
from app.records import MonitorQuery, Pair
from app.stores.base import Extent, Store
from app.stores.importing import Created, Importer, counts
from tests.stores.contract.contacts import add_contact
from tests.stores.contract.making import add_monitor, over_bare

KUMA = Path(__file__).parents[2] / "imports" / "samples" / "kuma-backup.json"


class ImportingContract:
    @over_bare
    def test_a_dry_run_stores_nothing_and_an_import_what_fits(self, store: Store) -> None:
        reading = files.read_path(KUMA)
        importer = Importer(store, ImportDefaults(tags=("moved",)), reading.contacts)
        rows = importer.dry_run(reading.candidates)
        own = store.extent > Extent.BARE
        new = 5 if own else 3  # The base API has neither tcp nor ping
        assert (counts(rows).new, counts(rows).unfit) == (new, 7 - new)
        assert not store.monitors.list(MonitorQuery()).items
        if not own:
            assert "Tags dropped: this server does not support it." in rows[0].validated.remarks
            assert "Interval: 20 s becomes 1 min." in rows[0].validated.remarks
        made = [importer.create(row.validated) for row in rows if row.validated.fits]
        assert made == [Created(True)] * new
        by_name = {monitor.name: monitor for monitor in store.monitors.list(MonitorQuery()).items}
        assert [name for name, item in by_name.items() if item.paused] == ["Database"] * own
        assert by_name["Shop"].request_auth_username == "watcher"
        assert (by_name["Shop"].interval, by_name["Shop"].true_interval) == (60, 20 if own else 60)
        slack = Pair("contact", "Ops Slack")
        if store.extent == Extent.BARE:
            slack = Pair("slack", "https://hooks.slack.com/services/T000/B000/kumasecrethook")
        assert by_name["Shop"].alerts[0] == slack, "shared by two monitors"
        if own:
            assert by_name["Shop"].tags == ("prod", "region: eu", "moved")
        again = Importer(store, ImportDefaults(), reading.contacts).dry_run(reading.candidates)
        assert [row.watched_by for row in again if row.validated.fits] == [
            "Shop",
            "Front page",
            *["Database", "Router"] * own,
            "No errors",
        ]

    @over_bare
    def test_an_import_knows_what_is_watched_and_which_contacts_there_are(
        self, store: Store
    ) -> None:
        add_monitor(store, name="Old", url="https://old.example.com/")
        contacts = store.extent > Extent.BARE
        if contacts:
            add_contact(store, "Ops")
        lines = b"OLD.example.com\nA, a.example.com, , ops\nB, b.example.com, , Nobody"
        importer = Importer(store, ImportDefaults())
        old, existing, unknown = importer.dry_run(files.read(lines).candidates)
        assert (old.watched_by, old.is_new) == ("Old", False)
        assert existing.is_new
        assert unknown.validated.fits is not contacts, "a server without contacts drops them"
        if contacts:
            assert importer.create(existing.validated) == Created(True)
            (made,) = store.monitors.list(MonitorQuery(search="a.example", search_by="url")).items
            assert [alert.value for alert in made.alerts] == ["Ops"]
