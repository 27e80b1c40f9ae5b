"""``rng`` as a laboratory runs it: what comes out, what is refused, and the exit codes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from casino_brag.cli import commands
from casino_brag.errors import SetUpError
from casino_brag.game.cards import Card
from casino_brag.laboratory import battery
from casino_brag.laboratory.judging import Test, judge
from casino_brag.rng import MODULE_DIGEST, known_answers
from casino_brag.rng.deal import rank
from casino_brag.rng.known_answers import CASES, KnownAnswerMismatch
from tests.terminal import casino_brag, command, environment

SECONDS = 60


def raw(size: str) -> bytes:
    finished = CliRunner().invoke(commands, ["rng", "raw", size])
    assert (finished.exit_code, finished.stderr_bytes) == (0, b"")
    return finished.stdout_bytes


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that finds a fault when it starts."""

    def fault() -> int:
        raise KnownAnswerMismatch("the answer is not the known one: case 7")

    monkeypatch.setattr(known_answers, "run", fault)


@pytest.mark.parametrize(
    ("written", "size"), [("1", 1), ("70_000", 70_000), ("1e6", 1_000_000), ("1.5e3", 1_500)]
)
def test_raw_output_has_the_size_asked_for(written: str, size: int) -> None:
    assert len(raw(written)) == size


def test_raw_output_never_comes_twice() -> None:
    assert raw("64") != raw("64")


def test_raw_output_goes_through_a_pipe() -> None:
    piped = subprocess.run(
        [sys.executable, "-m", "casino_brag", "rng", "raw", "200_000"],
        capture_output=True,
        timeout=SECONDS,
        check=True,
        env=environment(),
    )
    assert (len(piped.stdout), piped.stderr) == (200_000, b"")


@pytest.mark.parametrize("words", [("raw", "1e10"), ("deals", "1e9")], ids=" ".join)
def test_a_closed_pipe_ends_it_quietly(words: tuple[str, ...]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "casino_brag", "rng", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout
        assert process.stderr
        assert len(process.stdout.read(1_000)) == 1_000
        process.stdout.close()
        assert process.wait(SECONDS) == 1
        assert process.stderr.read() == b""


@pytest.mark.parametrize("words", [("raw", "1e6"), ("deals", "1e4")], ids=" ".join)
def test_a_full_disk_is_told(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "casino_brag", "rng", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=False,
            env=environment(),
        )
    assert finished.returncode == 2
    assert finished.stderr == "casino-brag: No space left on device: make room and try again\n"


def test_raw_output_is_kept_from_a_terminal() -> None:
    ours, theirs = pty.openpty()
    finished = subprocess.run(
        [sys.executable, "-m", "casino_brag", "rng", "raw", "100"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
        check=False,
        env=environment(),
    )
    os.close(theirs)
    os.close(ours)
    assert finished.returncode == 1
    assert finished.stderr.startswith("casino-brag: Raw output is not for a terminal")
    assert finished.stderr.endswith("casino-brag rng raw 100 > raw.bin\n")


def test_deals_are_six_cards_a_line() -> None:
    finished = command("rng", "deals", "1_500")
    assert (finished.code, finished.err) == (0, "")
    lines = finished.out.splitlines()
    assert len(lines) == len(set(lines)) == 1_500
    assert all(len({Card.parse(card) for card in line.split(" ")}) == 6 for line in lines)


def test_deals_may_begin_with_their_index() -> None:
    for line in command("rng", "deals", "20", "--index").out.splitlines():
        index, *cards = line.split(" ")
        assert rank(tuple(Card.parse(card).index for card in cards)) == int(index)


@pytest.mark.parametrize(
    "arguments",
    [
        ["raw", "0"],
        ["raw", "64K"],
        ["raw", "1.5"],
        ["raw", "1e14"],
        ["raw", "nan"],
        ["raw", "--", "-5"],
        ["deals", "1e11"],
        ["battery", "--bytes", "10"],
        ["evidence", "x", "--deals", "100"],
        ["evidence", "x", "--bytes", "1e10"],
    ],
    ids=" ".join,
)
def test_a_number_out_of_bounds_is_wrong_usage(arguments: list[str]) -> None:
    finished = command("rng", *arguments)
    assert (finished.code, finished.out) == (2, "")
    assert "write 10_000_000 or 1e9" in finished.err


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize("words", [("raw", "10"), ("deals", "10"), ("evidence", "never-made")], ids=" ".join)
def test_a_failed_module_gives_nothing_and_a_sentence(words: tuple[str, ...]) -> None:
    finished = CliRunner().invoke(commands, ["rng", *words])
    assert finished.stdout_bytes == b""
    assert isinstance(finished.exception, SetUpError)
    reason = "the answer is not the known one: case 7"
    assert str(finished.exception) == (
        f"The random number module gives nothing: {reason}. See casino-brag rng health."
    )
    assert not Path("never-made").exists()


@pytest.mark.usefixtures("failing")
def test_a_failed_module_is_told_by_the_exit_code() -> None:
    assert "casino-brag rng health" in command("rng", "deals", "10").sentence


def test_health_tells_that_the_module_is_ready() -> None:
    finished = casino_brag("rng", "health")
    assert (finished.code, finished.err) == (0, "")
    told = dict(line.rsplit(maxsplit=1) for line in finished.out.splitlines() if not line.endswith("tested"))
    assert told["state"] == "ready"
    assert told["module"] == MODULE_DIGEST
    assert told["kernel seeded"] == "yes"
    document = json.loads(command("rng", "health", "--json").out)
    assert document["ready"] is True
    assert document["tested"]["known_answers"] == CASES


@pytest.mark.usefixtures("failing")
def test_health_tells_what_failed() -> None:
    finished = command("rng", "health")
    assert finished.code == 1
    lines = finished.out.splitlines()
    assert lines[0].split() == ["state", "error"]
    assert lines[1].endswith("the answer is not the known one: case 7")
    document = json.loads(command("rng", "health", "--json").out)
    assert (document["ready"], document["state"]) == (False, "error")


def test_known_answers_are_computed() -> None:
    finished = command("rng", "kat")
    assert (finished.code, finished.out, finished.err) == (0, f"the module's own: {CASES} passed\n", "")
    document = json.loads(command("rng", "kat", "--json").out)
    assert document == {"known_answers": CASES, "failure": None, "files": {}}


@pytest.mark.usefixtures("failing")
def test_another_answer_than_the_known_one_is_told() -> None:
    finished = command("rng", "kat")
    assert finished.code == 1
    assert finished.out == "the module's own: the answer is not the known one: case 7\n"
    assert json.loads(command("rng", "kat", "--json").out)["failure"] is not None


def response_file(directory: Path, returned: str | None = None) -> Path:
    """One of the module's own cases, written as NIST writes them; perhaps with another answer."""
    case = next(case for case in known_answers.cases() if case.entropy_input_reseed is not None)
    file = directory / "HMAC_DRBG.rsp"
    file.write_text(
        f"""[SHA-256]
[PredictionResistance = False]
[EntropyInputLen = {8 * len(case.entropy_input)}]
[NonceLen = {8 * len(case.nonce)}]
[PersonalizationStringLen = {8 * len(case.personalization)}]
[AdditionalInputLen = {8 * len(case.additional_input1)}]
[ReturnedBitsLen = {8 * len(case.returned)}]

COUNT = 0
EntropyInput = {case.entropy_input.hex()}
Nonce = {case.nonce.hex()}
PersonalizationString = {case.personalization.hex()}
EntropyInputReseed = {case.entropy_input_reseed.hex() if case.entropy_input_reseed else ""}
AdditionalInputReseed = {case.additional_input_reseed.hex()}
AdditionalInput = {case.additional_input1.hex()}
AdditionalInput = {case.additional_input2.hex()}
ReturnedBits = {returned or case.returned.hex()}

"""
    )
    return file


def test_the_cases_of_a_file_are_computed(tmp_path: Path) -> None:
    file = response_file(tmp_path)
    finished = command("rng", "kat", file)
    assert (finished.code, finished.err) == (0, "")
    assert finished.out.splitlines()[1] == f"{file}: HMAC_DRBG SHA-256: 1 passed, 0 failed"
    document = json.loads(command("rng", "kat", file, "--json").out)
    assert document["files"][str(file)]["passed"] == {"HMAC_DRBG SHA-256": 1}


def test_a_case_with_another_answer_is_named(tmp_path: Path) -> None:
    file = response_file(tmp_path, returned="00" * 128)
    finished = command("rng", "kat", file)
    assert finished.code == 1
    assert "0 passed, 1 failed" in finished.out
    assert f"{file}: another answer than the known one: " in finished.out


def test_a_file_of_no_cases_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n")
    assert "notes.txt" in command("rng", "kat", tmp_path / "notes.txt").sentence
    assert command("rng", "kat", tmp_path / "none.rsp").code == 2


def program(directory: Path, name: str, output: str) -> None:
    file = directory / name
    file.write_text(f"#!/bin/sh\n/bin/cat >/dev/null\nprintf '%s' '{output}'\n")
    file.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """An environment in which only rngtest is installed, which says that all is well."""
    program(
        tmp_path,
        "rngtest",
        "rngtest: starting FIPS tests...\nrngtest: FIPS 140-2 successes: 399\nrngtest: FIPS 140-2 failures: 0\n",
    )
    return {"PATH": str(tmp_path)}


def test_a_battery_runs_what_is_installed_and_names_the_rest(programs: dict[str, str]) -> None:
    finished = command("rng", "battery", "--bytes", "1e6", env=programs)
    assert finished.code == 0
    assert finished.err.splitlines() == [
        "not installed, and so not run: ent (Debian package ent)",
        "not installed, and so not run: dieharder (Debian package dieharder)",
        "1 of 1: rngtest",
    ]
    assert finished.out.splitlines()[-1] == "passes: No test found anything."
    document = json.loads(command("rng", "battery", "--quick", "--bytes", "1e6", "--json", env=programs).out)
    assert set(document) == {"module_digest", "runs", "missing", "tests", "conclusion"}


def test_a_battery_that_fails_twice_is_told_by_the_exit_code(programs: dict[str, str]) -> None:
    program(
        Path(programs["PATH"]),
        "rngtest",
        "rngtest: FIPS 140-2 successes: 300\nrngtest: FIPS 140-2 failures: 99\n",
    )
    finished = command("rng", "battery", "--bytes", "1e6", env=programs)
    assert finished.code == 1
    assert "run again" in finished.out
    assert finished.out.splitlines()[-1].startswith("fails: ")


def test_without_any_program_there_is_no_battery(tmp_path: Path) -> None:
    finished = command("rng", "battery", env={"PATH": str(tmp_path)})
    assert (finished.code, finished.out) == (2, "")
    assert finished.err.count("Debian package") == 3
    told = command("rng", "evidence", tmp_path / "new", "--battery", env={"PATH": str(tmp_path)}).sentence
    assert told.startswith("No battery is installed: install one of ent (Debian package ent), ")


def test_evidence_is_written_and_says_where_it_begins(tmp_path: Path) -> None:
    directory = tmp_path / "evidence"
    finished = casino_brag("rng", "evidence", directory, "--deals", "3e4", "--bytes", "1_048_576")
    assert finished.code == 0, finished.err
    *said, last = finished.out.splitlines()
    assert last == str(directory / "index.html")
    assert (directory / "index.html").is_file()
    assert said[0].startswith(("statistics: passes: ", "statistics: unusual: "))
    assert finished.err.splitlines()[0] == "testing the module"
    again = command("rng", "evidence", directory)
    assert again.sentence.endswith("name a new one.")


def test_evidence_of_a_failed_test_is_told_by_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = Test("ent: mean of bytes", "normal", 9.0, None, 1e-18)
    found = battery.Battery((), (), judge([low], lambda _: [low]))
    monkeypatch.setattr(battery, "battery", lambda *_: found)
    monkeypatch.setattr(battery, "plan", lambda *_, **__: [object()])
    finished = command("rng", "evidence", tmp_path / "new", "--deals=3e4", "--bytes=1048576", "--battery")
    assert finished.code == 1
    assert "external batteries: fails: " in finished.out
    assert (tmp_path / "new" / "index.html").is_file()
