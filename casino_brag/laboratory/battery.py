"""The batteries that come as Debian packages, run on the raw collector's output as it is drawn.

ent counts, rngtest runs the tests that FIPS 140-2 once asked of every 20,000 bits, dieharder has Marsaglia's tests
and some of NIST's.  Each reads its standard input.  All their p-values are judged as one family.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import pi, sqrt
from signal import SIGKILL
from threading import Timer
from typing import Any, Final

from casino_brag.errors import SetUpError
from casino_brag.laboratory.collectors import raw
from casino_brag.laboratory.forms import normal
from casino_brag.laboratory.judging import Judgement, Test, judge
from casino_brag.odds.tails import binomial_p, chi_square_p
from casino_brag.rng.generator import Generator

PACKAGES: Final[Mapping[str, str]] = {"ent": "ent", "rngtest": "rng-tools-debian", "dieharder": "dieharder"}
"""Programs, and the Debian package of each."""

BYTES_MIN: Final = 1_000_000
BYTES_MAX: Final = 10_000_000_000
"""What ent and rngtest can be given."""

DIEHARDER_TESTS: Final = (0, 1, 2, 3, 8, 10, 15, 16, 100, 101, 102)
DIEHARDER_QUICK_TESTS: Final = (0, 8, 10, 15, 100)
"""Tests of dieharder by its numbers: those that take minutes and not hours, and of these the shortest."""

DIEHARDER_BYTES_MAX: Final = 2_000_000_000
"""More than any of these tests takes; each takes what it needs and closes the pipe."""

BLOCK_FAILS: Final = 8.05e-4
"""How often an ideal block fails rngtest: 3,862 of 4,799,999 blocks of AES-256 in counter mode did."""

DIEHARDER_SECONDS_MAX: Final = 1_800
OUTPUT_BYTES_MAX: Final = 1 << 20

Parser = Callable[[str], list[Test]]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a program: its command line, the most bytes that it is given, and how its output is read."""

    words: tuple[str, ...]
    size: int
    parse: Parser

    def tests(self, generator: Generator) -> list[Test]:
        """Runs it on fresh output.  Raises `RngUnavailable`, and `SetUpError` when the program does not do its part."""
        seconds = DIEHARDER_SECONDS_MAX if self.words[0] == "dieharder" else 60 + self.size // 1_000_000
        said = feed(self.words, raw(generator, self.size), seconds)
        try:
            return self.parse(said)
        except (ValueError, KeyError, IndexError) as unreadable:
            raise SetUpError(
                f"{' '.join(self.words)} said what is not understood: is it Debian's? It ended with"
                f" {said.strip()[-200:]!r}."
            ) from unreadable


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that was made: the command line, the package and its version, the most bytes that it could take, and how
    long it took."""

    command: str
    package: str
    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Battery:
    """All runs, and what their tests say together."""

    runs: tuple[Ran, ...]
    missing: tuple[str, ...]
    judgement: Judgement

    def document(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "runs": [
                {
                    "command": ran.command,
                    "package": ran.package,
                    "bytes_max": ran.size,
                    "seconds": round(ran.seconds, 1),
                }
                for ran in self.runs
            ],
            "missing": list(self.missing),
            **self.judgement.document(),
        }


def missing() -> list[str]:
    """What to install for the programs that are not there, such as ``rngtest (Debian package rng-tools-debian)``."""
    return [
        f"{program} (Debian package {package})"
        for program, package in PACKAGES.items()
        if shutil.which(program) is None
    ]


def plan(size: int, *, quick: bool = False) -> list[Run]:
    """The runs of all programs that are installed; ``size`` is what ent and rngtest are given."""
    options = ("-g", "200", "-c", ",", "-D", "test_name", "-D", "ntuple", "-D", "pvalues")
    runs = [
        Run(("ent", "-t"), size, parse_ent),
        Run(("rngtest",), size, parse_rngtest),
        *(
            Run(("dieharder", "-d", str(number), *options), DIEHARDER_BYTES_MAX, parse_dieharder)
            for number in (DIEHARDER_QUICK_TESTS if quick else DIEHARDER_TESTS)
        ),
    ]
    return [run for run in runs if shutil.which(run.words[0])]


def battery(generator: Generator, runs: Sequence[Run], tell: Tell) -> Battery:
    """Makes the runs, tells each one's beginning, and judges.  Raises as :meth:`Run.tests` does."""
    by_test: dict[str, Run] = {}
    tests: list[Test] = []
    made: list[Ran] = []
    for number, run in enumerate(runs, start=1):
        command = " ".join(run.words)
        tell(f"{number} of {len(runs)}: {command}")
        began = time.monotonic()
        found = run.tests(generator)
        made.append(Ran(command, _package(run.words[0]), run.size, time.monotonic() - began))
        tests += found
        by_test |= {test.name: run for test in found}

    def rerun(names: Collection[str]) -> list[Test]:
        again: list[Test] = []
        for run in dict.fromkeys(by_test[name] for name in names):
            tell(f"once more, as laid down beforehand: {' '.join(run.words)}")
            again += run.tests(generator)
        return again

    return Battery(tuple(made), tuple(missing()), judge(tests, rerun))


def feed(words: Sequence[str], blocks: Iterable[bytes], seconds: float) -> str:
    """What a program says to these blocks, of which it may leave some.

    `SetUpError` when it takes longer than so many seconds, or cannot be run.  Whatever happens, it has ended.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(  # noqa: S603 - the words are this file's
                words,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=os.environ | {"LC_ALL": "C"},
            )
        except OSError as failure:
            raise SetUpError(f"{words[0]} cannot be run: {failure.strerror}.") from failure
        limit = Timer(seconds, process.kill)
        limit.start()
        try:
            assert process.stdin
            with suppress(BrokenPipeError), process.stdin:
                for block in blocks:
                    process.stdin.write(block)
            if process.wait() == -SIGKILL:
                raise SetUpError(f"{' '.join(words)} was not done after {seconds:.0f} seconds, or was ended.")
        finally:
            limit.cancel()
            process.kill()
            process.wait()
        said.seek(0)
        return said.read(OUTPUT_BYTES_MAX).decode("ascii", "replace")


def parse_ent(said: str) -> list[Test]:
    """The tests in what ``ent -t`` says; its entropy says the same as chi-square, in other units.

    Chi-square is tested on both sides: bytes can be too even.
    """
    heads, figures = (line.split(",") for line in said.strip().splitlines())
    told = dict(zip(heads, figures, strict=True))
    size = int(told["File-bytes"])
    statistic = float(told["Chi-square"])
    above = chi_square_p(statistic, 255)
    points = size // 6
    return [
        Test("ent: chi-square of bytes", "chi-square", statistic, 255, min(1.0, 2 * min(above, 1 - above))),
        normal("ent: mean of bytes", float(told["Mean"]), 127.5, sqrt((256**2 - 1) / 12 / size)),
        normal("ent: Monte Carlo pi", float(told["Monte-Carlo-Pi"]), pi, sqrt(pi * (4 - pi) / points)),
        normal("ent: serial correlation of bytes", float(told["Serial-Correlation"]), 0, 1 / sqrt(size)),
    ]


def parse_rngtest(said: str) -> list[Test]:
    """The test in what ``rngtest`` says: whether more blocks failed than ideal ones would."""
    told = dict(
        line.removeprefix("rngtest: ").split(": ", 1) for line in said.splitlines() if line.count(": ") > 1
    )
    failed = int(told["FIPS 140-2 failures"])
    blocks = failed + int(told["FIPS 140-2 successes"])
    if not blocks:
        raise ValueError("no block was tested")
    return [Test("rngtest: failed blocks", "binomial", failed, None, binomial_p(failed, blocks, BLOCK_FAILS))]


def parse_dieharder(said: str) -> list[Test]:
    """The tests in what ``dieharder`` says as comma-separated values: some have several."""
    tests: list[Test] = []
    times: Counter[str] = Counter()
    for line in said.splitlines():
        if line.startswith("#"):
            continue
        name, ntuple, p = (cell.strip() for cell in line.split(","))
        if not 0 <= float(p) <= 1:
            raise ValueError(f"{p} is no probability")
        label = f"dieharder: {name} {ntuple}"
        times[label] += 1
        tests.append(Test(f"{label} #{times[label]}", "Kolmogorov-Smirnov", None, None, float(p)))
    if not tests:
        raise ValueError("no test was made")
    return tests


def _package(program: str) -> str:
    """The Debian package of a program and its version, where Debian's tools can tell it."""
    package = PACKAGES[program]
    query = shutil.which("dpkg-query")
    if query is None:
        return package
    asked = subprocess.run(  # noqa: S603 - the words are this file's
        [query, "--show", package], capture_output=True, text=True, timeout=30, check=False
    )
    return " ".join(asked.stdout.split()) or package
