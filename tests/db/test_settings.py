"""The settings table, as the engine and the dashboard read and write it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.access import Access
from app.db.settings import change_setting, is_notice_set, remove_setting, setting, store_setting
from app.records import Notice

pytestmark = pytest.mark.both_databases

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def test_a_setting_is_stored_and_removed(core):
    with core.app_context():
        assert setting("notice") is None
        store_setting("notice", "one", NOW)
        store_setting("notice", "two", NOW)
        assert setting("notice") == "two"
        store_setting("notice", None, NOW)
        assert setting("notice") is None


def test_only_one_of_two_removals_of_a_setting_returns_true(core):
    with core.app_context():
        store_setting("token", "secret", NOW)
        assert remove_setting("token")
        assert not remove_setting("token")


def test_a_setting_is_changed_from_its_present_value(core):
    with core.app_context():
        assert change_setting("count", lambda kept: (kept or "") + "x", NOW) == "x"
        assert change_setting("count", lambda kept: (kept or "") + "x", NOW) == "xx"
        assert setting("count") == "xx"


def test_a_notice_of_the_engine_is_one_of_the_dashboard(core, settings):
    with core.app_context():
        assert not is_notice_set(Notice.NETWORK_DOWN)
        store_setting(Notice.NETWORK_DOWN, "2026-11-21T08:00:00Z", NOW)
        assert is_notice_set(Notice.NETWORK_DOWN)
        assert Access().settings.notices() == {Notice.NETWORK_DOWN: "2026-11-21T08:00:00Z"}
