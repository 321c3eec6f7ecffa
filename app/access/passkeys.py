"""Passkeys (WebAuthn): the challenges that browsers sign, and the check of their signatures.

A challenge is for one browser, the holder, which has a session or a pending login. A challenge is
valid for five minutes, and ends with the first answer, right or wrong.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select

from app.access.people import People
from app.access.second_factor import SecondFactors, note
from app.access.tokens import digest_of
from app.db import DbSession, db, writing
from app.db.statements import count_of, delete_rows, inserting
from app.db.tables import PasskeyChallengeRow, PasskeyRow
from app.errors import Conflict, Denied, Invalid
from app.i18n import N_, _, _n
from app.records import MAX_PASSKEY_NAME, MAX_PASSKEYS, Action, Person
from app.rules import text
from app.rules.clocks import believable, runs

CHALLENGE_BYTES = 32
CHALLENGE_LASTS = timedelta(minutes=5)
CHALLENGE_MS = CHALLENGE_LASTS // timedelta(milliseconds=1)
PRODUCT = "Wakeful"
CREDENTIAL = "credential"  # the field that a script fills in
OLD_CHALLENGE = N_("This took too long, or another tab has asked since. Try again.")
NOT_PROVEN = N_("The passkey could not be verified. Try again.")
ADDED_ALREADY = N_("This passkey was added already.")


@dataclass(frozen=True, slots=True)
class Site:
    """The website that passkeys are made for. A browser offers a passkey to no other host."""

    host: str
    origin: str  # scheme, host and port, as browsers write it


@dataclass(frozen=True, slots=True)
class PasskeySignature:
    """The signature of a challenge by the passkey ``id``. ``count``: the passkey's counter of its
    signatures; ``previous_count``: that counter at the last login.
    """

    id: int
    previous_count: int
    count: int


class Passkeys:
    def __init__(
        self, clock: Callable[[], datetime], people: People, factors: SecondFactors
    ) -> None:
        self.clock, self.people, self.factors = clock, people, factors

    def creation_options(self, id: int, site: Site, holder: str, *, current: str) -> str:
        """The options of ``navigator.credentials.create``, as JSON. ``holder``: the token of the
        session. Raises Conflict for too many passkeys, Invalid and Throttled.
        """
        from webauthn import generate_registration_options, options_to_json
        from webauthn.helpers.structs import (
            AttestationConveyancePreference,
            AuthenticatorSelectionCriteria,
            ResidentKeyRequirement,
            UserVerificationRequirement,
        )

        self.people.confirm(id, current)
        person = self.people.get(id)
        _check_count(db.session, id)
        options = generate_registration_options(
            rp_id=site.host,
            rp_name=PRODUCT,
            user_id=str(id).encode(),
            user_name=person.email,
            user_display_name=person.label,
            challenge=self._new_challenge(id, holder),
            timeout=CHALLENGE_MS,
            attestation=AttestationConveyancePreference.NONE,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.DISCOURAGED,
                user_verification=UserVerificationRequirement.PREFERRED,
            ),
            exclude_credentials=_descriptors(id, site),
        )
        return options_to_json(options)

    def add(
        self, id: int, site: Site, holder: str, credential: str, name: str, *, current: str
    ) -> tuple[Person, list[str]]:
        """Store the passkey that the browser made. Returns new recovery codes if the person has
        none. Raises Invalid (``name``, ``credential``, ``current_password``), Conflict for too many
        passkeys, and Throttled.
        """
        from webauthn import verify_registration_response

        _check_name(name)
        challenge = self._take_challenge(id, holder)
        registration = _verified(
            verify_registration_response,
            credential,
            expected_challenge=challenge,
            expected_rp_id=site.host,
            expected_origin=site.origin,
        )
        row = PasskeyRow(
            person_id=id,
            name=name.strip(),
            host=site.host,
            credential=_text(registration.credential_id),
            public_key=_text(registration.credential_public_key),
            sign_count=registration.sign_count,
            verifies=registration.user_verified,
            created_at=self.clock(),
        )
        needs_codes = not self.factors.of(id).codes_left
        with self.factors.changing(id, current, make_codes=needs_codes) as (session, person, codes):
            query = select(PasskeyRow.id).where(PasskeyRow.credential == row.credential)
            if session.scalar(query) is not None:
                raise _invalid(ADDED_ALREADY)
            _check_count(session, id)  # a second time: several may have been begun at the same time
            session.add(row)
            note(session, person, Action.CREATED, "passkey", row.name)
            changed = self.factors.finish_change(session, person)
            return changed, self.factors.store_first_codes(session, person, codes)

    def request_options(self, id: int, site: Site, holder: str) -> str:
        """The options of ``navigator.credentials.get``, as JSON. ``holder``: the token of the
        pending login. Raises Denied if the person has no passkey for this site.
        """
        from webauthn import generate_authentication_options, options_to_json
        from webauthn.helpers.structs import UserVerificationRequirement

        descriptors = _descriptors(id, site)
        if not descriptors:
            raise Denied(_("This account has no passkey for %(host)s.", host=site.host))
        options = generate_authentication_options(
            rp_id=site.host,
            challenge=self._new_challenge(id, holder),
            timeout=CHALLENGE_MS,
            allow_credentials=descriptors,
            user_verification=UserVerificationRequirement.PREFERRED,
        )
        return options_to_json(options)

    def signature(self, id: int, site: Site, holder: str, credential: str) -> PasskeySignature:
        """The verified signature in ``credential``, the answer of a browser. Raises Invalid
        (``credential``).
        """
        from webauthn import verify_authentication_response

        challenge = self._take_challenge(id, holder)
        row = db.session.scalar(
            select(PasskeyRow).where(
                PasskeyRow.person_id == id,
                PasskeyRow.host == site.host,
                PasskeyRow.credential == _credential_id(credential),
            )
        )
        if row is None:
            raise _invalid(NOT_PROVEN)
        verified = _verified(
            verify_authentication_response,
            credential,
            expected_challenge=challenge,
            expected_rp_id=site.host,
            expected_origin=site.origin,
            credential_public_key=_bytes(row.public_key),
            credential_current_sign_count=row.sign_count,
            # The browser says whether the key has asked for its PIN. Without this check, the finder
            # of a lost security key could use it without the PIN.
            require_user_verification=row.verifies,
        )
        return PasskeySignature(row.id, row.sign_count, verified.new_sign_count)

    def forget_old(self) -> None:
        """Delete challenges that nobody answered. The engine's housekeeping calls it."""
        now, created_at = self.clock(), PasskeyChallengeRow.created_at
        delete_rows(
            PasskeyChallengeRow, ~created_at.between(now - CHALLENGE_LASTS, believable(now))
        )

    def _new_challenge(self, id: int, holder: str) -> bytes:
        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        values = {"person_id": id, "challenge": _text(challenge), "created_at": self.clock()}
        # One statement, because two requests of a browser may find no row at the same time.
        row = PasskeyChallengeRow
        statement = inserting(row).values(digest=digest_of(holder), **values)
        with writing() as session:
            session.execute(
                statement.on_conflict_do_update(index_elements=[row.digest], set_=values)
            )
        return challenge

    def _take_challenge(self, id: int, holder: str) -> bytes:
        """Delete the challenge of this holder, and return it. Raises Invalid."""
        row = PasskeyChallengeRow
        deletion = delete(row).where(row.digest == digest_of(holder), row.person_id == id)
        with writing() as session:
            stored = session.execute(deletion.returning(row.challenge, row.created_at)).first()
        if stored is None or not runs(stored.created_at, self.clock(), CHALLENGE_LASTS):
            raise _invalid(OLD_CHALLENGE)
        return _bytes(stored.challenge)


def _check_count(session: DbSession, id: int) -> None:
    """Raises Conflict if the person has as many passkeys as they may."""
    if count_of(session, PasskeyRow, PasskeyRow.person_id == id) >= MAX_PASSKEYS:
        raise Conflict(
            _n("There can be %(num)s passkey at most. Remove one first.",
               "There can be %(num)s passkeys at most. Remove one first.", MAX_PASSKEYS)
        )  # fmt: skip


def count_use(session: DbSession, signed: PasskeySignature, now: Any) -> bool:
    """Note that a passkey was used. Returns False if it was used or removed since it signed."""
    row = session.get(PasskeyRow, signed.id, with_for_update=True, populate_existing=True)
    if row is None or row.sign_count != signed.previous_count:
        return False
    row.sign_count, row.last_used_at = signed.count, now
    return True


def _descriptors(id: int, site: Site) -> list[Any]:
    from webauthn.helpers.structs import PublicKeyCredentialDescriptor

    query = select(PasskeyRow.credential).where(
        PasskeyRow.person_id == id, PasskeyRow.host == site.host
    )
    return [PublicKeyCredentialDescriptor(id=_bytes(text)) for text in db.session.scalars(query)]


def _verified(verify: Any, credential: str, **expected: Any) -> Any:
    """The result of ``verify``. Raises Invalid."""
    try:
        return verify(credential=credential, **expected)
    except Exception:
        # A stranger wrote the credential. For a malformed one, the library raises KeyError,
        # struct.error and errors of cryptography.
        raise _invalid(NOT_PROVEN) from None


def _credential_id(credential: str) -> str:
    """The id of the passkey that an answer names; empty if it names none."""
    try:
        data = json.loads(credential)
    except (ValueError, RecursionError):
        return ""
    id = data.get("id") if isinstance(data, dict) else None
    # PostgreSQL takes no null characters.
    return id if isinstance(id, str) and id.isascii() and id.isprintable() else ""


def _invalid(sentence: str) -> Invalid:
    return Invalid({CREDENTIAL: [_(sentence)]})


def _check_name(name: str) -> None:
    if fault := text.fault_of(lambda: text.length(name.strip(), MAX_PASSKEY_NAME)):
        raise Invalid({"name": [fault]})
    if not name.strip():
        raise Invalid({"name": [_("Enter a name.")]})


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
