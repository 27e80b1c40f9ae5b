"""``rng``: what a test laboratory asks of the random number module."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

import click

from casino_brag.cli.arguments import json_option, whole
from casino_brag.errors import SetUpError
from casino_brag.laboratory import battery as batteries
from casino_brag.laboratory import byte_tests, collectors, statistics, vectors
from casino_brag.laboratory import evidence as folders
from casino_brag.laboratory.health import Health, examine
from casino_brag.laboratory.judging import Conclusion, Judgement
from casino_brag.rng import MODULE_DIGEST, Generator, RngUnavailable, known_answers

NO_BATTERY: Final = 2
"""The exit code when no program of a battery is installed; 1 is kept for a generator that fails."""

BYTES_MAX: Final = 10**13
DEALS_MAX: Final = 10**10

QUICK_BYTES: Final = 10_000_000

LINES_AT_ONCE: Final = 1_000

_SENTENCES: Final = {
    Conclusion.PASSES: "No test found anything.",
    Conclusion.UNUSUAL: "A test is unusual, which chance does once in a hundred times: run again before concluding"
    " anything.",
    Conclusion.FAILS: "A test is far beyond chance, and was so again on fresh output.",
}


@contextmanager
def _module() -> Iterator[None]:
    """Says in a sentence that the module does not serve."""
    try:
        yield
    except RngUnavailable as failed:
        raise SetUpError(
            f"The random number module gives nothing: {failed}. See casino-brag rng health."
        ) from failed


def _tell(line: str) -> None:
    click.echo(line, err=True)


@click.group()
def rng() -> None:
    """The random number module as a laboratory asks for it: samples, known answers, health, batteries, evidence."""


@rng.command()
@click.argument("size", metavar="N", type=whole("bytes", 1, BYTES_MAX))
def raw(size: int) -> None:
    """Write N bytes of the generator's output, such as 1e9, as they are before any scaling."""
    if sys.stdout.isatty():
        raise SetUpError(
            "Raw output is not for a terminal: send it to a file or a program, as in"
            f" casino-brag rng raw {size} > raw.bin"
        )
    out = sys.stdout.buffer
    with _module():
        for block in collectors.raw(Generator(), size):
            out.write(block)
    out.flush()


@rng.command()
@click.argument("count", metavar="N", type=whole("deals", 1, DEALS_MAX))
@click.option("--index", "with_index", is_flag=True, help="Begin each line with the deal's index.")
def deals(count: int, with_index: bool) -> None:
    """Deal N rounds as they are dealt to players, a line each: the player's three cards, then the dealer's."""
    with _module():
        lines = (
            collectors.line(draw, with_index=with_index) for draw in collectors.deals(Generator(), count)
        )
        while some := "".join(islice(lines, LINES_AT_ONCE)):
            sys.stdout.write(some)
    sys.stdout.flush()


@rng.command()
@click.argument(
    "files", metavar="[FILE]...", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@json_option
def kat(files: tuple[Path, ...], as_json: bool) -> None:
    """Compute NIST's known answers: the module's own, and every case in each FILE of NIST's or OpenSSL's.

    The exit code is 1 when an answer is another than the known one.
    """
    try:
        own, failure = known_answers.run(), None
    except known_answers.KnownAnswerMismatch as mismatch:
        own, failure = 0, str(mismatch)
    try:
        reports = {str(path): vectors.check_file(path) for path in files}
    except vectors.VectorsUnusable as unusable:
        raise SetUpError(f"{unusable}.") from unusable
    if as_json:
        of_files = {
            path: {
                "passed": dict(report.passed),
                "failed": dict(report.failed),
                "not_applicable": dict(report.not_applicable),
                "failures": list(report.failures),
            }
            for path, report in reports.items()
        }
        click.echo(json.dumps({"known_answers": own, "failure": failure, "files": of_files}, indent=1))
    else:
        click.echo(f"the module's own: {failure or f'{own} passed'}")
        for path, report in reports.items():
            for kind in sorted(report.passed.keys() | report.failed.keys()):
                passed, failed = report.passed.get(kind, 0), report.failed.get(kind, 0)
                click.echo(f"{path}: {kind}: {passed:,} passed, {failed:,} failed")
            if report.not_applicable:
                others = sum(report.not_applicable.values())
                click.echo(f"{path}: {others:,} cases of other generators, which do not apply")
            for name in report.failures:
                click.echo(f"{path}: another answer than the known one: {name}")
    sys.exit(1 if failure or any(report.failed for report in reports.values()) else 0)


@rng.command()
@json_option
def health(as_json: bool) -> None:
    """Run the module's tests before first use, and tell its state and what the kernel says of its entropy.

    The exit code is 1 when it would not deal.
    """
    found = examine(Generator())
    click.echo(json.dumps(found.document(), indent=1) if as_json else "\n".join(_health_lines(found)))
    sys.exit(0 if found.ready else 1)


def _health_lines(found: Health) -> Iterator[str]:
    yield f"state           {found.state.value}"
    if not found.ready:
        yield f"failure         {found.failure}"
    yield f"module          {MODULE_DIGEST}"
    for name, number in found.tested.items():
        yield f"{name.replace('_', ' '):15} {number:,} tested"
    for name, value in found.kernel.items():
        yield f"{f'kernel {name}'.replace('_', ' '):21} {value}"


@rng.command()
@click.option(
    "--bytes",
    "size",
    type=whole("bytes", batteries.BYTES_MIN, batteries.BYTES_MAX),
    show_default="1e8, or 1e7 with --quick",
    help="What ent and rngtest are given; dieharder takes what it needs.",
)
@click.option(
    "--quick", is_flag=True, help="A quarter of a minute instead of some minutes: fewer tests, less output."
)
@json_option
def battery(size: int | None, quick: bool, as_json: bool) -> None:
    """Run ent, rngtest and dieharder, as far as they are installed, on raw output, and judge them as one family.

    The exit code is 0 when nothing was found, 1 when a test failed, and again on fresh output, and 2 when none of them
    is installed.
    """
    runs = batteries.plan(size or (QUICK_BYTES if quick else 10 * QUICK_BYTES), quick=quick)
    for absent in batteries.missing():
        _tell(f"not installed, and so not run: {absent}")
    if not runs:
        _tell("casino-brag: There is nothing to run: install one of the packages named above.")
        sys.exit(NO_BATTERY)
    with _module():
        found = batteries.battery(Generator(), runs, _tell)
    conclusion = found.judgement.conclusion
    if as_json:
        click.echo(json.dumps({"module_digest": MODULE_DIGEST, **found.document()}, indent=1))
    else:
        click.echo("\n".join(_judgement_lines(found.judgement)))
        click.echo(f"{conclusion.value}: {_SENTENCES[conclusion]}")
    sys.exit(1 if conclusion is Conclusion.FAILS else 0)


def _judgement_lines(judgement: Judgement) -> Iterator[str]:
    width = max(len(judged.test.name) for judged in judgement.tests)
    yield f"{'':{width}}  {'p':>10}  {'p adjusted':>10}"
    for judged in judgement.tests:
        again = f"  run again {judged.again.p:.4g}" if judged.again else ""
        yield f"{judged.test.name:{width}}  {judged.test.p:>10.4g}  {judged.adjusted:>10.4g}{again}"


@rng.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--deals",
    "count",
    type=whole("deals", statistics.DEALS_MIN, statistics.DEALS_MAX),
    default="1e5",
    show_default=True,
    help="Rounds to deal, test and enclose.",
)
@click.option(
    "--bytes",
    "size",
    type=whole("bytes", byte_tests.BYTES_MIN, folders.BYTES_MAX),
    default="1e7",
    show_default=True,
    help="Raw output to draw, test and enclose.",
)
@click.option(
    "--battery/--no-battery",
    "with_battery",
    default=False,
    show_default=True,
    help="Run the external batteries too, which takes some minutes.",
)
def evidence(directory: Path, count: int, size: int, with_battery: bool) -> None:
    """Write the folder DIR to send to a laboratory: description, clauses, digests, tests and samples.

    It begins with index.html.  The exit code is 1 when a test failed, and again on fresh output.
    """
    if with_battery and not batteries.plan(size):
        raise SetUpError(f"No battery is installed: install one of {', '.join(batteries.missing())}.")
    with _module():
        findings = folders.write(directory, count, size, with_battery=with_battery, tell=_tell)
    for family, judgement in findings.families.items():
        click.echo(f"{family}: {judgement.conclusion.value}: {_SENTENCES[judgement.conclusion]}")
    click.echo(f"{directory / 'index.html'}")
    failed = any(judgement.conclusion is Conclusion.FAILS for judgement in findings.families.values())
    sys.exit(1 if failed else 0)
