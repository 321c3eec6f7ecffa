"""The contract over every store: the local one, also on PostgreSQL, and the remote one, call by
call over a real Wakeful and over a server that speaks the base API alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask

from app.config import Settings
from app.records import Incident
from app.stores.base import Store
from app.stores.local import LocalStore
from app.stores.remote import remote_store
from tests.factories import make_key
from tests.stores.contract import BareContract, StoreContract
from tests.stores.contract.incidents import IncidentsContract
from tests.stores.contract.making import add_incident, add_monitor
from tests.stores.contract.monitors import MonitorsContract
from tests.stores.contract.post_templates import PostTemplatesContract
from tests.stores.contract.results import ResultsContract
from tests.support.bare_server import KEY, WORST, BareServer
from tests.support.loopback import reached, serving


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, core: Flask, settings: Settings) -> Iterator[Store]:
        with core.app_context():
            yield LocalStore(settings)


@pytest.mark.postgres
class TestLocalStoreOnPostgres(
    MonitorsContract, IncidentsContract, ResultsContract, PostTemplatesContract
):
    """The suites whose statements search, sort and compare."""

    store = TestLocalStore.store

    @pytest.fixture
    def database_url(self, postgres_url: str) -> str:
        return postgres_url


# Each call of the remote store once, in each form of its answer. What the server behind it decides
# (orders, searches, refusals) is the local store's, whose contract has all of it.
OF_EACH_CALL = """
    a_check_by_hand_is_recorded_and_counts a_contact_gets_each_monthly_report_once
    a_contact_in_use_is_deleted_only_when_asked_for a_deleted_monitor_is_gone_with_its_incidents
    a_described_record_is_stored_changed_and_deleted
    a_dry_run_stores_nothing_and_an_import_what_fits
    a_channel_of_several_monitors_becomes_a_contact
    a_heartbeat_has_a_ping_url_and_the_old_one_ends_with_a_new_one
    a_heartbeat_has_pings_and_other_monitors_have_none
    a_list_brings_the_last_hours_where_they_are_asked_for a_list_has_pages
    a_logo_has_an_address_of_its_own_until_it_is_removed
    a_page_is_stored_shown_changed_and_deleted
    a_place_in_use_is_not_deleted_and_the_monitors_are_named a_post_is_drafted_from_an_incident
    a_post_is_stored_shown_and_deleted a_post_stays_in_its_family_of_states
    a_report_may_have_the_days_of_each_monitor
    a_store_names_the_channels_that_cannot_work_if_it_can_tell
    a_store_whose_alerts_can_be_read_names_no_monitor
    a_store_without_failures_has_no_failed_channel a_stored_monitor_comes_back_with_every_field
    a_test_alert_stands_in_the_delivery_log a_test_goes_to_every_channel_of_a_contact
    an_agent_has_a_token_that_is_shown_once
    an_incident_goes_from_open_to_acknowledged_to_resolved
    an_incident_may_be_classified_and_the_figures_follow an_unknown_monitor_is_not_found
    an_unknown_post_is_not_found an_unknown_record_is_not_found
    channels_are_tested_whether_they_are_stored_or_not contacts_are_stored_changed_and_deleted
    counters_follow_the_filters fields_are_checked_without_being_stored
    incidents_are_acknowledged_together_with_an_answer_for_each
    monthly_reports_are_stored_changed_and_deleted
    names_alone_come_by_name_all_or_some_of_them our_own_fields_come_back
    places_are_stored_changed_and_deleted posts_come_in_pages_the_newest_first
    statistics_between_two_times_have_the_buckets_that_hold_them tags_are_found_by_name
    the_certificates_that_a_target_sent_are_shown the_checks_from_one_place_are_listed
    the_monitor_list_is_filtered_by_page the_monitors_of_one_address_are_found_in_any_spelling
    the_places_of_a_monitor_say_what_they_see the_true_pause_is_check_every_or_else_the_interval
    times_that_cannot_be_are_refused_and_change_nothing
    what_is_reached_through_a_monitor_is_listed_by_name
    what_is_sent_again_unchanged_is_no_correction windows_are_stored_changed_and_deleted
"""


class TestRemoteStoreOverWakeful:
    @pytest.fixture
    def store(self, app: Flask) -> Iterator[Store]:
        key = make_key(app, "admin")
        with reached(app) as url:
            yield remote_store(url, key)

    def test_incidents_are_acknowledged_by_one_request(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also if nothing has asked yet whether the server is a Wakeful."""
        ids = [add_incident(store, add_monitor(store, name=name)).id for name in ("a", "b")]
        incidents: Any = store.incidents
        written, write = [], incidents._write
        monkeypatch.setattr(
            incidents, "_write", lambda *sent, **more: written.append(sent) or write(*sent, **more)
        )
        assert all(isinstance(answer, Incident) for answer in incidents.acknowledge(ids))
        assert [sent[:2] for sent in written] == [("POST", f"{incidents.path}/acknowledge")]


for name in OF_EACH_CALL.split():
    setattr(TestRemoteStoreOverWakeful, f"test_{name}", getattr(StoreContract, f"test_{name}"))


class TestRemoteStoreOverTheWorstBareServer(BareContract):
    """The forms of the plain one are among those of test_remote.py."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        with serving(BareServer(WORST)) as url:
            yield remote_store(url, KEY)
