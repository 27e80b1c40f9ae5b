"""Known answers: cases that NIST published for HMAC_DRBG, run against the very code that deals before it may deal.

`known_answers.txt` holds a few of each kind and says where they come from.  :mod:`casino_brag.laboratory.vectors`
runs all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from casino_brag.rng.hmac_drbg import HmacDrbg

FILE: Final = Path(__file__).with_name("known_answers.txt")

CASES: Final = 18
RETURNED_BYTES: Final = 128
"""What the file must hold: so many cases, and so many returned bytes in each.  A file cut off holds less."""

_FIELDS: Final = {
    "EntropyInput": "entropy_input",
    "Nonce": "nonce",
    "PersonalizationString": "personalization",
    "EntropyInputReseed": "entropy_input_reseed",
    "AdditionalInputReseed": "additional_input_reseed",
    "AdditionalInput1": "additional_input1",
    "EntropyInputPR1": "entropy_input_pr1",
    "AdditionalInput2": "additional_input2",
    "EntropyInputPR2": "entropy_input_pr2",
    "ReturnedBits": "returned",
}


class KnownAnswerMismatch(Exception):
    """A generator gave another answer than the published one, or the published ones cannot be read."""


class Drbg(Protocol):
    """An instantiated generator that a case can be run against."""

    def reseed(self, entropy_input: bytes, additional_input: bytes = b"") -> None:
        """The standard's reseed function."""

    def generate(self, size: int, additional_input: bytes = b"") -> bytes:
        """The standard's generate function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One published case: instantiate, perhaps reseed, generate twice.  The second answer is the known one.

    Without `entropy_input_reseed` there is no reseeding; an `entropy_input_pr…` makes its call of generate one with
    prediction resistance.
    """

    name: str
    entropy_input: bytes
    nonce: bytes = b""
    personalization: bytes = b""
    entropy_input_reseed: bytes | None = None
    additional_input_reseed: bytes = b""
    additional_input1: bytes = b""
    entropy_input_pr1: bytes | None = None
    additional_input2: bytes = b""
    entropy_input_pr2: bytes | None = None
    returned: bytes

    @classmethod
    def parse(cls, name: str, fields: Mapping[str, str]) -> Case:
        """A case from hexadecimal text by NIST's names of the fields.  Raises `ValueError` saying what is amiss.

        >>> Case.parse("a case", {"EntropyInput": "00ff", "ReturnedBits": "80"}).entropy_input
        b'\\x00\\xff'
        """
        wrong = (fields.keys() - _FIELDS.keys()) | ({"EntropyInput", "ReturnedBits"} - fields.keys())
        if wrong:
            raise ValueError(f"{name}: unknown or missing: {', '.join(sorted(wrong))}")
        try:
            return cls(name=name, **{_FIELDS[field]: bytes.fromhex(text) for field, text in fields.items()})
        except ValueError as not_hex:
            raise ValueError(f"{name}: a field is not hexadecimal") from not_hex


def cases() -> list[Case]:
    """The cases of `known_answers.txt`.  Raises `KnownAnswerMismatch` when they are not all there."""
    try:
        _, *blocks = FILE.read_text(encoding="ascii").split("\n\n")
        found = [_case(block) for block in blocks]
    except (OSError, ValueError) as unreadable:
        raise KnownAnswerMismatch(f"{FILE.name} cannot be read: {unreadable}") from unreadable
    if len(found) != CASES or any(len(case.returned) != RETURNED_BYTES for case in found):
        raise KnownAnswerMismatch(f"{FILE.name} does not hold {CASES} whole cases")
    return found


def compare(case: Case, generator: Drbg) -> None:
    """Runs a case against a generator instantiated for it.  Raises `KnownAnswerMismatch` naming the case.

    Prediction resistance is reseeding with the additional input, then generating without it (9.3.1, steps 7 and 8).
    """
    if case.entropy_input_reseed is not None:
        generator.reseed(case.entropy_input_reseed, case.additional_input_reseed)
    answer = b""
    for entropy_input, additional_input in (
        (case.entropy_input_pr1, case.additional_input1),
        (case.entropy_input_pr2, case.additional_input2),
    ):
        if entropy_input is None:
            answer = generator.generate(len(case.returned), additional_input)
        else:
            generator.reseed(entropy_input, additional_input)
            answer = generator.generate(len(case.returned))
    if answer != case.returned:
        raise KnownAnswerMismatch(f"the answer is not the known one: {case.name}")


def check(case: Case, *, digest: str = "sha256") -> None:
    """Runs a case against HMAC_DRBG.  Raises `KnownAnswerMismatch` naming the case."""
    compare(case, HmacDrbg(case.entropy_input, case.nonce, case.personalization, digest=digest))


def run() -> int:
    """Runs all cases of the file, and says how many passed: all.  Raises `KnownAnswerMismatch`.

    >>> run() == CASES
    True
    """
    found = cases()
    for case in found:
        check(case)
    return len(found)


def _case(block: str) -> Case:
    heading, *lines = block.splitlines()
    fields: dict[str, str] = {}
    for line in lines:
        field, _, text = map(str.strip, line.partition("="))
        if field in fields:
            raise ValueError(f"{heading}: {field} is there twice")
        fields[field] = text
    return Case.parse(heading.removeprefix("# "), fields)
