"""Pages of lists."""

from __future__ import annotations

import pytest

from app.records import Page


@pytest.mark.parametrize(
    ("total", "last"), [(0, 1), (1, 1), (9, 1), (10, 1), (11, 2), (20, 2), (21, 3)]
)
def test_the_last_page_is_the_last_that_has_records(total: int, last: int) -> None:
    assert Page((), 1, 10, total).last_number == last
