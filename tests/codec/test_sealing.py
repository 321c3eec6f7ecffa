"""Messages between machines can be neither read nor changed on their way."""

import base64
import os

import pytest

from app.codec.sealing import (
    BatchKey,
    Forged,
    new_private_key,
    public_key,
    public_key_of,
    seal_to,
    unseal,
)

DATA = {"auth": ["user", "hunter2"], "ü": [1, None]}


def key():
    return BatchKey(base64.b64encode(os.urandom(32)).decode())


def test_a_batch_is_read_with_the_same_key():
    own = key()
    sealed = own.seal(DATA, "checks eu")
    assert b"hunter2" not in sealed
    assert own.open(sealed, "checks eu") == DATA


def test_a_batch_for_another_purpose_or_from_another_key_is_forged():
    own = key()
    sealed = own.seal(DATA, "checks eu")
    for reader, about in ((own, "checks us"), (own, "outcomes eu"), (key(), "checks eu")):
        with pytest.raises(Forged):
            reader.open(sealed, about)


@pytest.mark.parametrize("place", [0, 12, 20, -1])
def test_a_changed_byte_makes_a_batch_forged(place):
    own = key()
    changed = bytearray(own.seal(DATA, "checks"))
    changed[place] ^= 1
    with pytest.raises(Forged):
        own.open(bytes(changed), "checks")
    with pytest.raises(Forged):
        own.open(b"short", "checks")


@pytest.mark.parametrize("text", ["", "hunter2", base64.b64encode(bytes(31)).decode(), "ü" * 44])
def test_a_key_of_another_length_is_refused(text):
    with pytest.raises(ValueError, match="32 random bytes"):
        BatchKey(text)


def test_a_public_key_to_which_nothing_can_be_sealed_is_refused():
    with pytest.raises(ValueError, match="32 random bytes"):
        public_key(base64.b64encode(bytes(32)).decode())


def test_only_the_owner_of_the_private_key_reads_what_is_sealed_to_it():
    private = new_private_key()
    sealed = seal_to(public_key_of(private), DATA, "oslo")
    assert b"hunter2" not in sealed
    assert unseal(private, sealed, "oslo") == DATA
    for other, about in ((new_private_key(), "oslo"), (private, "eu")):
        with pytest.raises(Forged):
            unseal(other, sealed, about)
    with pytest.raises(Forged):
        unseal(private, b"short", "oslo")
