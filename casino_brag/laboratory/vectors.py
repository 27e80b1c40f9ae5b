"""NIST's published cases for the generators of SP 800-90A, from the files in which they are handed around.

Read are the response files of NIST's own drbgtestvectors.zip (``HMAC_DRBG.rsp``, ``CTR_DRBG.rsp``) and OpenSSL's
``evprand.txt``, which ``verification/fetch_nist_vectors.sh`` fetches.  Cases of HMAC_DRBG run against the random
number module, with every hash function; cases of CTR_DRBG with AES-256 and no derivation function against the
generator of the simulation.  There is nothing here that the other cases could test, so they are only counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from casino_brag.rng.known_answers import Case, KnownAnswerMismatch, check, compare
from casino_brag.simulation.ctr_drbg import SEED_BYTES, CtrDrbg

FILE_BYTES_MAX: Final = 1 << 26
LINE_CHARACTERS_MAX: Final = 100_000
"""Bounds for what is read.  NIST's files have some MB and some hundred characters a line."""

FAILURES_NAMED: Final = 5


class VectorsUnusable(Exception):
    """The file cannot be read to its end, or holds no case that applies."""


@dataclass(frozen=True, slots=True)
class Report:
    """How many cases of each kind passed, failed, or do not apply; and the names of the first that failed.

    A kind is mechanism and section in NIST's words: ``HMAC_DRBG SHA-256``, ``CTR_DRBG AES-256 no df``.
    """

    passed: Mapping[str, int]
    failed: Mapping[str, int]
    not_applicable: Mapping[str, int]
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Vector:
    """A case as its file has it.

    `fields` are hexadecimal and named as :meth:`casino_brag.rng.known_answers.Case.parse` wants them, `bits` is what
    the file says of the length of the last one.
    """

    kind: str
    name: str
    fields: Mapping[str, str]
    bits: str


def check_file(path: Path) -> Report:
    """Runs all cases of a file that apply.  Raises `VectorsUnusable` for a file that is damaged or has none."""
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    not_applicable: Counter[str] = Counter()
    failures = []
    for vector in read(path):
        check_case = _CHECKS.get(vector.kind)
        if check_case is None:
            not_applicable[vector.kind] += 1
            continue
        try:
            check_case(_case(vector))
        except KnownAnswerMismatch:
            failed[vector.kind] += 1
            failures.append(vector.name)
        else:
            passed[vector.kind] += 1
    if not passed and not failed:
        others = ", ".join(f"{count} of {kind}" for kind, count in not_applicable.items()) or "none at all"
        raise VectorsUnusable(
            f"{path.name} holds no case that applies ({others}): give NIST's HMAC_DRBG.rsp or CTR_DRBG.rsp, "
            "or OpenSSL's evprand.txt"
        )
    return Report(passed, failed, not_applicable, tuple(failures[:FAILURES_NAMED]))


def read(path: Path) -> Iterator[Vector]:
    """The cases of a file in either format.  Raises `VectorsUnusable`."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise VectorsUnusable(
                f"{path.name} is larger than {FILE_BYTES_MAX:,} bytes: it is no file of cases"
            )
        text = content.decode("ascii")
    except (OSError, UnicodeDecodeError) as unreadable:
        raise VectorsUnusable(f"{path.name} cannot be read: {unreadable}") from unreadable
    numbered = ((f"{path.name}, line {n}", line.strip()) for n, line in enumerate(text.splitlines(), start=1))
    lines = ((place, line) for place, line in numbered if not line.startswith("#"))
    blocks = (list(block) for filled, block in groupby(lines, key=lambda each: each[1] != "") if filled)
    return _response_file(path, blocks) if path.suffix == ".rsp" else _evprand(blocks)


_Block = list[tuple[str, str]]
"""Lines without an empty one between them, each after its place in the file."""

_MECHANISMS: Final = {"HMAC-DRBG": "HMAC_DRBG", "HASH-DRBG": "Hash_DRBG", "CTR-DRBG": "CTR_DRBG"}
"""OpenSSL's names, and NIST's."""


# ---- OpenSSL's evprand.txt: blocks of settings (Digest = SHA-256) and numbered cases (Entropy.0 = 06032cd5...) ----

_OPENSSL_FIELDS: Final = {
    "Entropy": "EntropyInput",
    "PersonalisationString": "PersonalizationString",
    "ReseedEntropy": "EntropyInputReseed",
    "ReseedAdditionalInput": "AdditionalInputReseed",
    "AdditionalInputA": "AdditionalInput1",
    "EntropyPredictionResistanceA": "EntropyInputPR1",
    "AdditionalInputB": "AdditionalInput2",
    "EntropyPredictionResistanceB": "EntropyInputPR2",
    "Output": "ReturnedBits",
}


def _evprand(blocks: Iterable[_Block]) -> Iterator[Vector]:
    for block in blocks:
        settings: dict[str, str] = {}
        cases: dict[str, dict[str, str]] = {}
        for place, line in block:
            name, value = _assignment(place, line)
            field, dot, index = name.partition(".")
            if dot:
                _put(cases.setdefault(index, {}), place, _OPENSSL_FIELDS.get(field, field), value)
            else:
                _put(settings, place, name, value)
        for index, fields in cases.items():
            name = f"{block[0][0]}, case {index}"
            yield Vector(_openssl_kind(settings), name, fields, settings.get("GenerateBits", "?"))


def _openssl_kind(settings: Mapping[str, str]) -> str:
    mechanism = _MECHANISMS.get(settings.get("RAND", "?"), "another mechanism's")
    if mechanism != "CTR_DRBG":
        return f"{mechanism} {settings.get('Digest', '?')}"
    df = "no df" if settings.get("DerivationFunction", "0") == "0" else "use df"
    return f"{mechanism} {settings.get('Cipher', '?').removesuffix('-CTR')} {df}"


# ---- NIST's response files: headings of settings in brackets, and a block for each case ----


def _response_file(path: Path, blocks: Iterable[_Block]) -> Iterator[Vector]:
    mechanisms = [name for name in _MECHANISMS.values() if name.lower() in path.name.lower()]
    if len(mechanisms) != 1:
        raise VectorsUnusable(
            f"{path.name}: only the name of a response file says which mechanism it is of; give it NIST's name, "
            "HMAC_DRBG.rsp or CTR_DRBG.rsp"
        )
    section, bits = "?", "?"
    for block in blocks:
        fields: dict[str, str] = {}
        for place, line in block:
            if line.startswith("["):
                name, equals, value = map(str.strip, line.strip("[]").partition("="))
                if not equals:
                    section = name
                elif name == "ReturnedBitsLen":
                    bits = value
                continue
            name, value = _assignment(place, line)
            if name in {"AdditionalInput", "EntropyInputPR"}:  # there are two of each, named alike
                name += "2" if f"{name}1" in fields else "1"
            _put(fields, place, name, value)
        fields.pop("COUNT", None)
        if fields:
            yield Vector(f"{mechanisms[0]} {section}", block[0][0], fields, bits)


def _assignment(place: str, line: str) -> tuple[str, str]:
    name, equals, value = map(str.strip, line.partition("="))
    if not equals or len(line) > LINE_CHARACTERS_MAX:
        raise VectorsUnusable(f"{place}: this is not of the form NAME = VALUE, or far too long")
    return name, value


def _put(fields: dict[str, str], place: str, name: str, value: str) -> None:
    if name in fields:
        raise VectorsUnusable(f"{place}: the case has its {name} already")
    fields[name] = value


# ---- running them ----


def _case(vector: Vector) -> Case:
    try:
        case = Case.parse(vector.name, vector.fields)
    except ValueError as wrong:
        raise VectorsUnusable(str(wrong)) from wrong
    bits = str(8 * len(case.returned))
    if bits != vector.bits:
        raise VectorsUnusable(f"{case.name}: {bits} returned bits, not {vector.bits}; is the file cut off?")
    return case


def _check_ctr_drbg(case: Case) -> None:
    inputs = (case.entropy_input, case.entropy_input_reseed, case.entropy_input_pr1, case.entropy_input_pr2)
    others = (
        case.personalization,
        case.additional_input_reseed,
        case.additional_input1,
        case.additional_input2,
    )
    lengths = {len(entropy) for entropy in inputs if entropy is not None}
    if lengths != {SEED_BYTES} or any(len(other) > SEED_BYTES for other in others):
        raise VectorsUnusable(f"{case.name}: without a derivation function, inputs are of {SEED_BYTES} bytes")
    compare(case, CtrDrbg(case.entropy_input, case.personalization))


_DIGESTS: Final = {
    "SHA-1": "sha1",
    "SHA-224": "sha224",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
    "SHA-512/224": "sha512_224",
    "SHA-512/256": "sha512_256",
}

_CHECKS: Final[dict[str, Callable[[Case], None]]] = {
    **{f"HMAC_DRBG {section}": partial(check, digest=digest) for section, digest in _DIGESTS.items()},
    "CTR_DRBG AES-256 no df": _check_ctr_drbg,
}
