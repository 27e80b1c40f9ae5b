"""Programs that others wrote: how they are fed, what is read from them, and what stops them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from casino_brag.errors import SetUpError
from casino_brag.laboratory import battery
from casino_brag.laboratory.battery import (
    DIEHARDER_QUICK_TESTS,
    DIEHARDER_TESTS,
    Run,
    feed,
    missing,
    parse_dieharder,
    parse_ent,
    parse_rngtest,
    plan,
)
from casino_brag.laboratory.judging import Conclusion
from casino_brag.rng import Generator, RngUnavailable

ENT = (
    "0,File-bytes,Entropy,Chi-square,Mean,Monte-Carlo-Pi,Serial-Correlation\n"
    "1,20000000,7.999992,225.716838,127.504206,3.141300,0.000023\n"
)
RNGTEST = """rngtest 2.2
Copyright (c) 2004 by Henrique de Moraes Holschuh
This is free software; see the source for copying conditions.  There is NO warranty.

rngtest: starting FIPS tests...
rngtest: entropy source exhausted!
rngtest: bits received from input: 160000000
rngtest: FIPS 140-2 successes: 7993
rngtest: FIPS 140-2 failures: 6
rngtest: FIPS 140-2(2001-10-10) Monobit: 0
rngtest: input channel speed: (min=96.820; avg=15188.533; max=19073.486)Mibits/s
rngtest: Program run time: 744509 microseconds
"""
DIEHARDER = """#=============================================================================#
        diehard_runs,   0,0.88832004
        diehard_runs,   0,0.73092659
          sts_serial,  16,0.69620008
"""


def blocks(number: int) -> Iterator[bytes]:
    for _ in range(number):
        yield bytes(65_536)


def program(directory: Path, name: str, script: str) -> None:
    """A stand-in for one of the programs."""
    file = directory / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory in which programs are looked for; there are none in it."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return directory


@pytest.fixture
def all_programs(programs: Path) -> Path:
    program(programs, "ent", f"/bin/cat >/dev/null; printf '%s' '{ENT}'")
    program(programs, "rngtest", f"/bin/cat >/dev/null; printf '%s' '{RNGTEST}' >&2; exit 1")
    program(
        programs,
        "dieharder",
        f"/usr/bin/head -c 100000 >/dev/null; printf '%s' '{DIEHARDER}'; echo row$2,0,0.5",
    )
    return programs


def test_ent_s_figures_are_read() -> None:
    found = {test.name: test for test in parse_ent(ENT)}
    chi_square = found["ent: chi-square of bytes"]
    # ent itself says that 90.66 % are larger, and bytes can be too even as well as too uneven.
    assert (chi_square.statistic, chi_square.degrees) == (225.716838, 255)
    assert chi_square.p == pytest.approx(2 * (1 - 0.9066), abs=1e-4)
    assert found["ent: mean of bytes"].statistic == pytest.approx(0.254, abs=0.002)
    assert found["ent: Monte Carlo pi"].statistic == pytest.approx(-0.325, abs=0.01)
    assert found["ent: serial correlation of bytes"].statistic == pytest.approx(0.103, abs=0.001)


@pytest.mark.parametrize(
    ("was", "is_", "test"),
    [
        ("225.716838", "9.0", "ent: chi-square of bytes"),
        ("225.716838", "450.0", "ent: chi-square of bytes"),
        ("127.504206", "127.4", "ent: mean of bytes"),
        ("3.141300", "3.15", "ent: Monte Carlo pi"),
        ("0.000023", "-0.002", "ent: serial correlation of bytes"),
        ("0.000023", "-100000", "ent: serial correlation of bytes"),
    ],
)
def test_ent_s_faults_are_seen(was: str, is_: str, test: str) -> None:
    low = [found.name for found in parse_ent(ENT.replace(was, is_)) if found.p < 1e-6]
    assert low == [test]


def test_rngtest_is_judged_by_how_many_blocks_fail() -> None:
    (usual,) = parse_rngtest(RNGTEST)
    assert (usual.statistic, usual.law) == (6, "binomial")
    assert usual.p == pytest.approx(0.61, abs=0.02)
    (many,) = parse_rngtest(RNGTEST.replace("failures: 6", "failures: 30"))
    assert 1e-12 < many.p < 1e-6


def test_dieharder_s_tests_are_told_apart() -> None:
    found = parse_dieharder(DIEHARDER)
    assert [(test.name, test.p) for test in found] == [
        ("dieharder: diehard_runs 0 #1", 0.88832004),
        ("dieharder: diehard_runs 0 #2", 0.73092659),
        ("dieharder: sts_serial 16 #1", 0.69620008),
    ]


@pytest.mark.parametrize("said", ["", "# stdin_input_raw(): Error: EOF\n", "a,b\n", "a,0,2.5\n", "a,0,nan\n"])
def test_what_a_program_says_instead_of_results_stops_the_battery(programs: Path, said: str) -> None:
    program(programs, "dieharder", f"printf '%s' '{said}'")
    (run, *_) = plan(1_000_000)
    with pytest.raises(SetUpError, match=r"dieharder -d 0 .* said what is not understood"):
        run.tests(Generator())


def test_a_program_may_leave_what_it_does_not_need() -> None:
    assert feed(("/usr/bin/head", "-c", "3"), blocks(1_000), 60) == "\0\0\0"


def test_a_program_is_given_all_of_it() -> None:
    assert feed(("/usr/bin/wc", "-c"), blocks(100), 60).strip() == str(100 * 65_536)


@pytest.mark.parametrize("script", ["exec sleep 60", "cat >/dev/null; exec sleep 60"], ids=["deaf", "slow"])
def test_a_program_that_hangs_is_ended(tmp_path: Path, script: str) -> None:
    program(tmp_path, "hangs", f"echo $$ >{tmp_path}/pid\n{script}")
    began = time.monotonic()
    with pytest.raises(SetUpError, match="was not done after 1 seconds"):
        feed((str(tmp_path / "hangs"),), blocks(100), 1)
    assert time.monotonic() - began < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_program_ends_with_the_generator(tmp_path: Path) -> None:
    program(tmp_path, "waits", f"echo $$ >{tmp_path}/pid\n/bin/cat >/dev/null; exec sleep 60")

    def failing() -> Iterator[bytes]:
        yield bytes(1_000)
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        raise RngUnavailable("a fault was found")

    with pytest.raises(RngUnavailable):
        feed((str(tmp_path / "waits"),), failing(), 60)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_program_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "ent").write_text("not a program")
    with pytest.raises(SetUpError, match="ent cannot be run: Permission denied"):
        feed((str(tmp_path / "ent"),), blocks(1), 60)


def test_missing_programs_are_named_with_their_packages(programs: Path) -> None:
    assert missing() == [
        "ent (Debian package ent)",
        "rngtest (Debian package rng-tools-debian)",
        "dieharder (Debian package dieharder)",
    ]
    assert plan(1_000_000) == []
    program(programs, "rngtest", "")
    assert [run.words for run in plan(1_000_000)] == [("rngtest",)]
    assert len(missing()) == 2


def test_the_quick_battery_is_part_of_the_whole_one(all_programs: Path) -> None:
    assert set(DIEHARDER_QUICK_TESTS) < set(DIEHARDER_TESTS)
    assert len(plan(1_000_000)) == 2 + len(DIEHARDER_TESTS)
    assert len(plan(1_000_000, quick=True)) == 2 + len(DIEHARDER_QUICK_TESTS)


def test_a_battery_is_one_family(all_programs: Path) -> None:
    told: list[str] = []
    found = battery.battery(Generator(), plan(1_000_000, quick=True), told.append)
    assert found.judgement.conclusion is Conclusion.PASSES
    assert len(found.judgement.tests) == 4 + 1 + 4 * len(DIEHARDER_QUICK_TESTS)
    assert [ran.command for ran in found.runs] == [line.partition(": ")[2] for line in told]
    assert found.missing == ()
    assert set(found.document()) == {"runs", "missing", "tests", "conclusion"}


def test_what_fails_is_run_again_once_with_the_command_it_came_from(
    all_programs: Path, tmp_path: Path
) -> None:
    count = f"echo run >>{tmp_path}/runs"
    program(
        all_programs,
        "rngtest",
        f"/bin/cat >/dev/null; {count}; printf '%s' '{RNGTEST.replace(': 6', ': 90')}' >&2",
    )
    told: list[str] = []
    found = battery.battery(Generator(), plan(1_000_000, quick=True), told.append)
    assert found.judgement.conclusion is Conclusion.FAILS
    assert (tmp_path / "runs").read_text() == "run\nrun\n"
    assert told[-1] == "once more, as laid down beforehand: rngtest"
    assert [judged.test.name for judged in found.judgement.tests if judged.again] == [
        "rngtest: failed blocks"
    ]


def test_a_run_draws_from_the_module(programs: Path) -> None:
    generator = Generator()
    generator.fail("a fault was found")
    with pytest.raises(RngUnavailable):
        Run(("/bin/cat",), 10, parse_ent).tests(generator)
