from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from casino_brag.laboratory.vectors import (
    FAILURES_NAMED,
    FILE_BYTES_MAX,
    LINE_CHARACTERS_MAX,
    VectorsUnusable,
    check_file,
    read,
)
from casino_brag.rng.hmac_drbg import HmacDrbg
from casino_brag.rng.known_answers import Case, cases
from casino_brag.simulation.ctr_drbg import CtrDrbg

EVPRAND = Path(__file__).parents[2] / ".cache" / "evprand.txt"
"""All of NIST's cases, where `make test` could fetch them.  In CI they must be there."""

PUBLISHED = [EVPRAND] if EVPRAND.exists() or os.environ.get("CI") else []

DIGESTS = {
    "SHA-1": "sha1",
    "SHA-224": "sha224",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
    "SHA-512/224": "sha512_224",
    "SHA-512/256": "sha512_256",
}

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file of this name and text."""

    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return written


def openssl(case: Case, *settings: str, index: int = 0) -> str:
    """A block of evprand.txt with one case."""
    values = {
        "Entropy": case.entropy_input,
        "Nonce": case.nonce,
        "PersonalisationString": case.personalization,
        "ReseedEntropy": case.entropy_input_reseed,
        "ReseedAdditionalInput": case.additional_input_reseed,
        "AdditionalInputA": case.additional_input1,
        "EntropyPredictionResistanceA": case.entropy_input_pr1,
        "AdditionalInputB": case.additional_input2,
        "EntropyPredictionResistanceB": case.entropy_input_pr2,
        "Output": case.returned,
    }
    lines = [*settings, f"GenerateBits = {8 * len(case.returned)}"]
    lines += [f"{name}.{index} = {value.hex().upper()}" for name, value in values.items() if value]
    return "\n".join(lines)


def nist(case: Case, section: str) -> str:
    """A section of a response file with one case: every field it can have, in NIST's order, empty or not."""
    lines = [
        f"[{section}]",
        f"[PredictionResistance = {case.entropy_input_pr1 is not None}]",
        f"[EntropyInputLen = {8 * len(case.entropy_input)}]",
        f"[ReturnedBitsLen = {8 * len(case.returned)}]",
        "",
        "COUNT = 0",
        f"EntropyInput = {case.entropy_input.hex()}",
        f"Nonce = {case.nonce.hex()}",
        f"PersonalizationString = {case.personalization.hex()}",
    ]
    if case.entropy_input_reseed is not None:
        lines.append(f"EntropyInputReseed = {case.entropy_input_reseed.hex()}")
        lines.append(f"AdditionalInputReseed = {case.additional_input_reseed.hex()}")
    for additional, entropy in (
        (case.additional_input1, case.entropy_input_pr1),
        (case.additional_input2, case.entropy_input_pr2),
    ):
        lines.append(f"AdditionalInput = {additional.hex()}")
        lines += [f"EntropyInputPR = {entropy.hex()}"] if entropy is not None else []
    return "\n".join([*lines, f"ReturnedBits = {case.returned.hex()}"])


def evprand(*blocks: str) -> str:
    return "\n\n".join(["# A comment", "Title = Tests of some kind", *blocks]) + "\n"


def response_file(*sections: str, newline: str = "\r\n") -> str:
    text = "\n\n\n".join(['# CAVS 14.3\n# DRBG800-90A information for "drbg_pr"', *sections]) + "\n\n"
    return text.replace("\n", newline)


HMAC = ("RAND = HMAC-DRBG", "Digest = SHA-256", "PredictionResistance = 0")
HASH = ("RAND = HASH-DRBG", "Digest = SHA-256", "PredictionResistance = 0")
CTR = ("RAND = CTR-DRBG", "Cipher = AES-256-CTR", "PredictionResistance = 0")
CTR_WITH_DF = (*CTR, "DerivationFunction = 1")
CTR_128 = ("RAND = CTR-DRBG", "Cipher = AES-128-CTR", "DerivationFunction = 0")


def ctr_case(**inputs: bytes) -> Case:
    """A case for the simulation's generator, answered by itself; NIST's are in tests/simulation."""
    case = Case(name="", entropy_input=bytes(range(48)), returned=bytes(64), **inputs)
    generator = CtrDrbg(case.entropy_input, case.personalization)
    generator.generate(64, case.additional_input1)
    return replace(case, returned=generator.generate(64, case.additional_input2))


def test_openssl_s_file_is_read_and_counted_by_kind(write: Write) -> None:
    plain, *_, last = cases()
    blocks = [openssl(plain, *HMAC), openssl(plain, *HASH), openssl(ctr_case(), *CTR)]
    blocks += [openssl(last, *HMAC, index=14), openssl(plain, *CTR_WITH_DF), openssl(plain, *CTR_128)]
    report = check_file(write("evprand.txt", evprand(*blocks)))
    assert report.passed == {"HMAC_DRBG SHA-256": 2, "CTR_DRBG AES-256 no df": 1}
    assert report.failed == {}
    assert report.failures == ()
    assert report.not_applicable == {
        "Hash_DRBG SHA-256": 1,
        "CTR_DRBG AES-256 use df": 1,
        "CTR_DRBG AES-128 no df": 1,
    }


def test_nist_s_own_file_is_read_and_counted_by_kind(write: Write) -> None:
    sections = [nist(case, "SHA-256") for case in cases()]
    report = check_file(write("HMAC_DRBG.rsp", response_file(*sections, nist(cases()[0], "SHA3-256"))))
    assert (report.passed, report.failed) == ({"HMAC_DRBG SHA-256": len(cases())}, {})
    assert report.not_applicable == {"HMAC_DRBG SHA3-256": 1}
    ctr = ctr_case(personalization=bytes(48), additional_input1=b"\1" * 48, additional_input2=b"\2" * 48)
    sections = [
        nist(ctr, "AES-256 no df"),
        nist(cases()[0], "AES-256 use df"),
        nist(cases()[0], "3KeyTDEA no df"),
    ]
    report = check_file(write("ctr_drbg.rsp", response_file(*sections, newline="\n")))
    assert (report.passed, report.failed) == ({"CTR_DRBG AES-256 no df": 1}, {})
    assert report.not_applicable == {"CTR_DRBG AES-256 use df": 1, "CTR_DRBG 3KeyTDEA no df": 1}


def test_both_formats_say_all_of_a_case(write: Write) -> None:
    files = [
        write("evprand.txt", evprand(*(openssl(case, *HMAC) for case in cases()))),
        write("HMAC_DRBG.rsp", response_file(*(nist(case, "SHA-256") for case in cases()))),
    ]
    for file in files:
        parsed = [Case.parse(vector.name, vector.fields) for vector in read(file)]
        assert [replace(case, name="") for case in parsed] == [replace(case, name="") for case in cases()]


@pytest.mark.parametrize("section", DIGESTS)
def test_each_hash_function_s_cases_are_run_with_it(write: Write, section: str) -> None:
    def answer(digest: str) -> Case:
        generator = HmacDrbg(bytes(32), bytes(16), digest=digest)
        size = hashlib.new(digest).digest_size
        generator.generate(size)
        return Case(name="", entropy_input=bytes(32), nonce=bytes(16), returned=generator.generate(size))

    for digest in DIGESTS.values():
        block = openssl(answer(digest), "RAND = HMAC-DRBG", f"Digest = {section}")
        report = check_file(write("evprand.txt", evprand(block)))
        own = digest == DIGESTS[section]
        assert (report.passed if own else report.failed) == {f"HMAC_DRBG {section}": 1}


def test_failures_are_counted_and_the_first_are_named(write: Write) -> None:
    wrong = [replace(case, nonce=bytes(16)) for case in cases()[: FAILURES_NAMED + 2]]
    blocks = [openssl(cases()[-1], *HMAC), *(openssl(case, *HMAC, index=7) for case in wrong)]
    report = check_file(write("evprand.txt", evprand(*blocks)))
    assert report.passed == {"HMAC_DRBG SHA-256": 1}
    assert report.failed == {"HMAC_DRBG SHA-256": FAILURES_NAMED + 2}
    assert len(report.failures) == FAILURES_NAMED
    line = evprand(*blocks[:1]).count("\n") + 2
    assert report.failures[0] == f"evprand.txt, line {line}, case 7"


def test_a_failure_of_the_simulation_s_generator_is_found(write: Write) -> None:
    wrong = replace(ctr_case(), returned=bytes(64))
    report = check_file(write("evprand.txt", evprand(openssl(wrong, *CTR))))
    assert (report.passed, report.failed) == ({}, {"CTR_DRBG AES-256 no df": 1})


def test_a_file_without_a_case_that_applies_is_refused(write: Write) -> None:
    file = write("evprand.txt", evprand(openssl(cases()[0], *HASH), openssl(cases()[0], *CTR_128)))
    with pytest.raises(
        VectorsUnusable, match=r"no case that applies \(1 of Hash_DRBG SHA-256, 1 of CTR_DRBG"
    ):
        check_file(file)


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "# nothing\n", evprand(), "known = answers\n"],
    ids=["empty", "blank", "remark", "title", "other"],
)
def test_a_file_without_any_case_is_refused(write: Write, text: str) -> None:
    with pytest.raises(
        VectorsUnusable, match=r"no case that applies \(none at all\): give NIST's HMAC_DRBG\.rsp"
    ):
        check_file(write("evprand.txt", text))


SAMPLE = openssl(cases()[0], *HMAC)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SAMPLE[:-1], "not hexadecimal"),
        (SAMPLE[:-2], "1016 returned bits, not 1024; is the file cut off"),
        (SAMPLE[: SAMPLE.index("Output")], "unknown or missing: ReturnedBits"),
        (SAMPLE[: SAMPLE.index("Output") + 3], "line 7: .* not of the form NAME = VALUE"),
        (SAMPLE.replace("GenerateBits = 1024\n", ""), "1024 returned bits, not "),
        (SAMPLE + "\nNonce.0 = 00", "line 8: the case has its Nonce already"),
        (SAMPLE + "\nNonse.0 = 00", "unknown or missing: Nonse"),
        (SAMPLE + "\nEntropy.1 = " + "0" * LINE_CHARACTERS_MAX, "line 8: .* far too long"),
        (openssl(replace(ctr_case(), entropy_input=bytes(47)), *CTR), "inputs are of 48 bytes"),
        (openssl(replace(ctr_case(), entropy_input_pr2=bytes(49)), *CTR), "inputs are of 48 bytes"),
        (openssl(replace(ctr_case(), additional_input2=bytes(49)), *CTR), "inputs are of 48 bytes"),
        ("Entropy = é", "cannot be read"),
    ],
)
def test_a_damaged_file_is_refused(write: Write, text: str, message: str) -> None:
    with pytest.raises(VectorsUnusable, match=rf"^evprand\.txt.* {message}"):
        check_file(write("evprand.txt", text))


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VectorsUnusable, match=r"evprand\.txt cannot be read"):
        check_file(tmp_path / "evprand.txt")
    with pytest.raises(VectorsUnusable, match="cannot be read"):
        check_file(tmp_path)
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    with pytest.raises(VectorsUnusable, match="it is no file of cases"):
        check_file(large)


@pytest.mark.parametrize("name", ["vectors.rsp", "HMAC_DRBG and CTR_DRBG.rsp"])
def test_a_response_file_must_say_its_mechanism_by_its_name(write: Write, name: str) -> None:
    with pytest.raises(VectorsUnusable, match=r"give it NIST's name, HMAC_DRBG\.rsp or CTR_DRBG\.rsp"):
        check_file(write(name, response_file(nist(cases()[0], "SHA-256"))))


def test_a_response_file_of_another_mechanism_has_no_case_that_applies(write: Write) -> None:
    file = write("Hash_DRBG.rsp", response_file(nist(cases()[0], "SHA-256")))
    with pytest.raises(VectorsUnusable, match=r"no case that applies \(1 of Hash_DRBG SHA-256\)"):
        check_file(file)


def test_a_response_file_cut_off_is_refused(write: Write) -> None:
    text = response_file(nist(cases()[0], "SHA-256")).rstrip()
    for cut, message in (
        (text[:-2], "1016 returned bits, not 1024"),
        (text.rpartition("\r")[0], "missing: Returned"),
    ):
        with pytest.raises(VectorsUnusable, match=message):
            check_file(write("HMAC_DRBG.rsp", cut))


@pytest.fixture(params=["extract", *PUBLISHED], ids=lambda param: Path(param).name)
def published(request: pytest.FixtureRequest, write: Write) -> Path:
    """The extract as OpenSSL would write it, and all that NIST published, where that could be fetched."""
    if request.param == "extract":
        return write("evprand.txt", evprand(*(openssl(case, *HMAC) for case in cases())))
    return Path(request.param)


def test_all_published_cases_are_answered(published: Path) -> None:
    expected = {"HMAC_DRBG SHA-256": len(cases())}
    if published == EVPRAND:
        expected = {f"HMAC_DRBG {section}": 720 for section in DIGESTS} | {"CTR_DRBG AES-256 no df": 720}
    report = check_file(published)
    assert report.passed == expected
    assert report.failed == {}


def test_the_extract_is_of_what_was_published(published: Path) -> None:
    """But for the reseeded cases of HMAC_DRBG, which OpenSSL does not hand on."""
    found = {
        replace(Case.parse(vector.name, vector.fields), name="")
        for vector in read(published)
        if vector.kind == "HMAC_DRBG SHA-256"
    }
    assert {replace(case, name="") for case in cases() if case.entropy_input_reseed is None} <= found
