"""Each resource is in every place that CONTRIBUTING.md names, under the same name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import get_origin, get_type_hints

import pytest

from app.config import Settings
from app.stores import base
from app.stores.local import LocalStore
from app.stores.remote import remote_store
from tests.samples import SAMPLES
from tests.stores.contract import StoreContract
from tests.stores.contract.described import DescribedContract

INTERFACES = {
    name: get_origin(hint) or hint
    for name, hint in get_type_hints(base.Store).items()
    if name != "extent"
}
STORES = {
    "local": lambda folder: LocalStore(Settings(instance=folder, database_url="", secret_key="")),
    "remote": lambda _: remote_store("http://127.0.0.1:9", "key"),
}


def class_name(resource: str) -> str:
    return resource.title().replace("_", "")


@pytest.mark.parametrize("place", STORES)
@pytest.mark.parametrize("name", INTERFACES)
def test_a_resource_has_a_collection_in_each_store(name: str, place: str, tmp_path: Path) -> None:
    collection = getattr(STORES[place](tmp_path), name)
    assert isinstance(collection, INTERFACES[name])
    assert type(collection).__module__.startswith(f"app.stores.{place}.")


@pytest.mark.parametrize("name", INTERFACES)
def test_a_resource_has_a_suite_that_every_store_runs(name: str) -> None:
    if name in SAMPLES:
        assert issubclass(StoreContract, DescribedContract)
        return
    suite = getattr(import_module(f"tests.stores.contract.{name}"), f"{class_name(name)}Contract")
    assert issubclass(StoreContract, suite)


def test_no_test_of_a_suite_hides_one_of_another() -> None:
    names = [name for suite in StoreContract.__mro__ for name in vars(suite) if "test_" in name]
    assert len(names) == len(set(names)) > 40


@pytest.mark.parametrize("place", STORES)
def test_a_store_has_no_collection_that_the_interface_lacks(place: str, tmp_path: Path) -> None:
    part = getattr(import_module(f"app.stores.{place}.part"), f"{place.title()}Part")
    stored = vars(STORES[place](tmp_path)).items()
    assert {name for name, value in stored if isinstance(value, part)} == set(INTERFACES)
