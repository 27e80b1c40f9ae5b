"""Second factors: codes of an authenticator (TOTP, RFC 6238) and recovery codes for the day that one is lost."""

from __future__ import annotations

import base64
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from casino_brag.errors import Code, ServiceError
from casino_brag.sealing import SealBroken, Sealer

ISSUER: Final = "casino-brag"
DIGITS: Final = 6
STEP_SECONDS: Final = 30
STEPS_AROUND: Final = 1
"""Clocks differ: codes of so many time steps before and after the present one will do."""
SECRET_BYTES: Final = 20

RECOVERY_CODES: Final = 10
_RECOVERY_BYTES: Final = 10
_RECOVERY_CODE: Final = re.compile(r"[a-z2-7]{16}")
_TOTP_CODE: Final = re.compile(rf"[0-9]{{{DIGITS}}}")


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A secret that is offered to a person's authenticator, and is nobody's until a code of it is given.

    `sealed` is what a form carries of it.
    """

    secret: bytes = field(repr=False)
    sealed: str = field(repr=False)
    uri: str = field(repr=False)

    @property
    def text(self) -> str:
        """The secret as it is typed: Base32 in groups of four."""
        return " ".join(re.findall(".{1,4}", base64.b32encode(self.secret).decode()))


@dataclass(frozen=True, slots=True)
class Matched:
    """What a code that was typed can be: of a time step, or a recovery code of this hash.  One of the two is None."""

    step: int | None = None
    recovery_hash: bytes | None = None


def offer(sealer: Sealer, name: str, holder: str, brought_back: str = "") -> Enrolment:
    """A secret for a person's authenticator, sealed for the form of one holder: an invitation or a session.

    It is the one that the form brought back where it brought one, so that nobody has to begin anew, else a new one.
    """
    if brought_back:
        with suppress(ServiceError):
            return offered(sealer, brought_back, name, holder)
    return _enrolment(sealer, secrets.token_bytes(SECRET_BYTES), name, holder)


def offered(sealer: Sealer, sealed: str, name: str, holder: str) -> Enrolment:
    """The secret that such a form brought back; `ServiceError` invalid where it brought something else."""
    try:
        secret = sealer.open(bytes.fromhex(sealed), context=_offered_to(holder))
    except (SealBroken, ValueError) as broken:
        raise ServiceError(
            Code.INVALID,
            "The form is not the one that was sent. Load the page again.",
            errors={"new_code": ["Load the page again, and add the new secret to your authenticator."]},
        ) from broken
    return _enrolment(sealer, secret, name, holder)


def seal_secret(sealer: Sealer, secret: bytes, staff_id: UUID) -> bytes:
    """A person's secret as it is kept."""
    return sealer.seal(secret, context=_of(staff_id))


def match(sealer: Sealer, code: str, sealed: bytes, staff_id: UUID, now: datetime) -> Matched | None:
    """What a code that a person typed can be; None where it is neither the authenticator's nor of a recovery code's
    form.  That it is taken once is for the database to see to."""
    plain = plain_code(code)
    if _TOTP_CODE.fullmatch(plain):
        step = matching_step(sealer.open(sealed, context=_of(staff_id)), plain, now)
        return None if step is None else Matched(step=step)
    return Matched(recovery_hash=recovery_hash(plain)) if _RECOVERY_CODE.fullmatch(plain) else None


def sealed_again(sealer: Sealer, sealed: bytes, staff_id: UUID) -> bytes | None:
    """A person's secret under the key that seals now; None where it is so already."""
    if sealer.is_current(sealed):
        return None
    return seal_secret(sealer, sealer.open(sealed, context=_of(staff_id)), staff_id)


def matching_step(secret: bytes, code: str, now: datetime) -> int | None:
    """The time step that a code is of, counted from 1970; None where it is of none around now."""
    plain = plain_code(code).encode()
    present = int(now.timestamp()) // STEP_SECONDS
    for step in range(present + STEPS_AROUND, present - STEPS_AROUND - 1, -1):
        if compare_digest(_totp(secret).generate(step * STEP_SECONDS), plain):
            return step
    return None


def new_recovery_codes() -> list[str]:
    """Codes of 80 random bits, each good once.  Of each its hash is kept."""
    return [
        "-".join(re.findall("....", base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower()))
        for _ in range(RECOVERY_CODES)
    ]


def recovery_hash(code: str) -> bytes:
    """SHA-256 of a recovery code: all that is kept of it."""
    return sha256(plain_code(code).encode()).digest()


def plain_code(code: str) -> str:
    """A code as it is compared, however it was typed.

    >>> plain_code(" 123 456 "), plain_code("ABCD-efgh-2345-ijkl")
    ('123456', 'abcdefgh2345ijkl')
    """
    return re.sub(r"[\s-]", "", code).lower()


def _enrolment(sealer: Sealer, secret: bytes, name: str, holder: str) -> Enrolment:
    sealed = sealer.seal(secret, context=_offered_to(holder)).hex()
    return Enrolment(secret, sealed, _totp(secret).get_provisioning_uri(name, ISSUER))


def _totp(secret: bytes) -> TOTP:
    # SHA-1 is what every authenticator knows; what is asked of it here does not rest on its collisions.
    return TOTP(secret, DIGITS, SHA1(), STEP_SECONDS)  # noqa: S303


def _of(staff_id: UUID) -> str:
    return f"second factor of {staff_id}"


def _offered_to(holder: str) -> str:
    return f"second factor offered to {holder}"
