from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from casino_brag.rng import known_answers
from casino_brag.rng.hmac_drbg import HmacDrbg
from casino_brag.rng.known_answers import CASES, Case, KnownAnswerMismatch, cases, check, compare, run

TEXT = known_answers.FILE.read_text(encoding="ascii")
Put = Callable[[str], None]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts another text in the place of the known answers."""
    file = tmp_path / "known_answers.txt"
    monkeypatch.setattr(known_answers, "FILE", file)

    def written(text: str) -> None:
        file.write_text(text, encoding="utf-8")

    return written


def unnoticed(put: Put, texts: dict[str, str]) -> list[str]:
    """Names of the texts that pass for known answers."""
    passed = []
    for name, text in texts.items():
        put(text)
        try:
            run()
        except KnownAnswerMismatch:
            continue
        passed.append(name)
    return passed


def kind(case: Case) -> tuple[bool, bool, bool, bool]:
    return (
        case.entropy_input_reseed is not None,
        case.entropy_input_pr1 is not None,
        case.personalization != b"",
        case.additional_input1 != b"",
    )


def test_there_are_cases_of_every_kind() -> None:
    """Without reseeding, reseeded, with prediction resistance; each with and without the optional inputs."""
    optional = [(personal, additional) for personal in (False, True) for additional in (False, True)]
    reseeding = [(False, False), (True, False), (False, True)]
    assert {kind(case) for case in cases()} == {(*how, *what) for how in reseeding for what in optional}


def test_no_case_occurs_twice() -> None:
    assert len({case.entropy_input for case in cases()}) == len({case.name for case in cases()}) == CASES


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.entropy_input[:4].hex())
def test_every_known_answer_is_given(case: Case) -> None:
    check(case)


def test_all_cases_are_counted() -> None:
    assert run() == CASES == TEXT.count("ReturnedBits")


def test_an_answer_of_another_hash_function_is_none() -> None:
    with pytest.raises(KnownAnswerMismatch, match=r"drbgvectors_no_reseed: \[SHA-256\].* COUNT = 0$"):
        check(cases()[0], digest="sha512_256")


class ReseedsNever(HmacDrbg):
    def reseed(self, entropy_input: bytes, additional_input: bytes = b"") -> None:
        pass


class ReseedsWithoutAdditionalInput(HmacDrbg):
    def reseed(self, entropy_input: bytes, additional_input: bytes = b"") -> None:
        super().reseed(entropy_input)


class GeneratesWithoutAdditionalInput(HmacDrbg):
    def generate(self, size: int, additional_input: bytes = b"") -> bytes:
        return super().generate(size)


@pytest.mark.parametrize(
    ("generator", "noticing"),
    [
        (ReseedsNever, lambda case: case.entropy_input_reseed or case.entropy_input_pr1),
        (
            ReseedsWithoutAdditionalInput,
            lambda case: case.additional_input_reseed or (case.entropy_input_pr1 and case.additional_input1),
        ),
        (
            GeneratesWithoutAdditionalInput,
            lambda case: case.additional_input1 and not case.entropy_input_pr1,
        ),
    ],
)
def test_a_generator_that_leaves_an_input_out_is_found_by_each_case_that_has_it(
    generator: type[HmacDrbg], noticing: Callable[[Case], bytes | None]
) -> None:
    found = []
    for case in cases():
        try:
            compare(case, generator(case.entropy_input, case.nonce, case.personalization))
        except KnownAnswerMismatch:
            found.append(case)
    assert found
    assert found == [case for case in cases() if noticing(case)]


def test_one_digit_altered_in_any_value_is_noticed(put: Put) -> None:
    altered = {}
    lines = TEXT.splitlines()
    for number, line in enumerate(lines):
        name, _, value = line.partition(" = ")
        if value and not line.startswith("#"):
            place = number % len(value)
            digit = "0" if value[place] != "0" else "1"
            text = f"{name} = {value[:place]}{digit}{value[place + 1 :]}"
            altered[f"{number}: {line}"] = "\n".join([*lines[:number], text, *lines[number + 1 :]])
    assert len(altered) == len(re.findall(r"^\w+ = \w+$", TEXT, re.MULTILINE)) > CASES
    assert unnoticed(put, altered) == []


def test_the_case_that_differs_is_named(put: Put) -> None:
    put(TEXT.replace("ReturnedBits = e528", "ReturnedBits = e529"))
    with pytest.raises(KnownAnswerMismatch, match=r"drbgvectors_no_reseed: \[SHA-256\].* COUNT = 0$"):
        run()


def test_a_file_cut_off_anywhere_is_noticed(put: Put) -> None:
    last_digit = len(TEXT.rstrip()) - 1
    lengths = [*range(0, last_digit, 29), last_digit]
    assert unnoticed(put, {str(length): TEXT[:length] for length in lengths}) == []


def test_a_case_or_a_filled_line_taken_away_is_noticed(put: Put) -> None:
    heading, *blocks = TEXT.split("\n\n")
    lines = TEXT.splitlines()
    shorter = {
        f"case {number}": "\n\n".join([heading, *blocks[:number], *blocks[number + 1 :]])
        for number in range(len(blocks))
    }
    for number, line in enumerate(lines):
        if not line.startswith("#") and not line.endswith("="):
            shorter[line] = "\n".join([*lines[:number], *lines[number + 1 :]])
    assert unnoticed(put, shorter) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(TEXT.split("\n\n", maxsplit=1)[0], id="the heading alone"),
        pytest.param("\n\n".join(TEXT.split("\n\n")[1:]), id="no heading"),
        pytest.param(TEXT + "\n\n" + TEXT.split("\n\n")[-1], id="a case too many"),
        pytest.param(TEXT.replace("e528", "e52g", 1), id="no hexadecimal"),
        pytest.param(TEXT.replace("e528", "e52é", 1), id="no ASCII"),
        pytest.param(TEXT.replace("EntropyInputPR1 ", "EntropyInputPR3 ", 1), id="an unknown field"),
        pytest.param(TEXT.replace("EntropyInputPR2 ", "EntropyInputPR1 ", 1), id="a field twice"),
        pytest.param(TEXT.replace("Nonce = ", "Nonce: ", 1), id="no field"),
    ],
)
def test_a_file_of_another_form_is_a_mismatch(put: Put, text: str) -> None:
    put(text)
    with pytest.raises(KnownAnswerMismatch, match=r"^known_answers\.txt "):
        run()


@pytest.mark.usefixtures("put")
def test_a_missing_file_is_a_mismatch() -> None:
    with pytest.raises(KnownAnswerMismatch, match="cannot be read"):
        run()
