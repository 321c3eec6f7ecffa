"""Slugs of status pages (decision 12)."""

from __future__ import annotations

import pytest

from app.records import MAX_SLUG
from app.rules import slugs

NAMES = [
    ("Our Shop", "our-shop"),
    ("  Größe & Straße  ", "grosse-strasse"),
    ("Ærøskøbing Łódź", "aeroskobing-lodz"),
    ("Ħal Għargħur", "hal-gharghur"),
    ("a--b__c..d", "a-b-c-d"),
    ("Crème brûlée №5", "creme-brulee-no5"),
    ("日本", "status"),
    ("!!!", "status"),
    ("ﬁ ２", "fi-2"),  # noqa: RUF001
    ("x" * 255, "x" * 64),
    ("x" * 63 + " yy", "x" * 63),
]


@pytest.mark.parametrize(("name", "slug"), NAMES)
def test_a_slug_is_like_its_name(name, slug):
    assert slugs.of_name(name) == slug
    assert slugs.check(slug) == slug


def test_a_number_makes_it_unique_within_its_length():
    taken = {"a", "a-2", "y" * 64}
    assert slugs.numbered("b", taken) == "b"
    assert slugs.numbered("a", taken) == "a-3"
    assert slugs.numbered("y" * 64, taken) == "y" * 62 + "-2"
    cut = slugs.numbered("x" * 61 + "-yy", {"x" * 61 + "-yy"})
    assert cut == "x" * 61 + "-2"


def test_a_random_one_has_64_bits_or_more():
    names = {slugs.random() for _ in range(100)}
    assert len(names) == 100
    for slug in names:
        assert slugs.check(slug) == slug
        assert 64 <= 4 * len(slug) <= 4 * MAX_SLUG
