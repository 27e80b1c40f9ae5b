"""``simulate``: a paytable played by the thousand million, and whether that agrees with its exact figures."""

from __future__ import annotations

import json
import re
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import click

from casino_brag.cli.arguments import PAYTABLE, Parsed, json_option, whole
from casino_brag.cli.runs import WORKERS_MAX, cores, run, state_option
from casino_brag.errors import SetUpError
from casino_brag.game.paytable import Paytable
from casino_brag.odds.strategies import MAX_EXPECTATION, Strategy
from casino_brag.simulation.ctr_drbg import SEED_BYTES
from casino_brag.simulation.engines import dask, local
from casino_brag.simulation.plan import ROUNDS_MAX, ROUNDS_MIN, Plan, StakePattern
from casino_brag.simulation.state import Progress, differences
from casino_brag.simulation.verdict import Cell, Conclusion, Figure, Fit, Verdict, judge
from casino_brag.statefile import StateFile

CONFIDENCE_MIN: Final = 0.5
CONFIDENCE_MAX: Final = 0.999999

_SENTENCES: Final = {
    Conclusion.AGREES: "The simulation agrees with the exact figures.",
    Conclusion.REPEAT: "A test is unusual, which chance does now and then: run again with another seed before "
    "concluding anything.",
    Conclusion.DISAGREES: "The simulation disagrees with the exact figures, and chance does not explain it.",
}


def _seed(text: str) -> bytes:
    if not re.fullmatch(rf"[0-9a-fA-F]{{{2 * SEED_BYTES}}}", text):
        raise ValueError(f"a seed has {2 * SEED_BYTES} hexadecimal digits")
    return bytes.fromhex(text)


def _confidence(text: str) -> float:
    try:
        confidence = float(text)
    except ValueError:
        confidence = 0.0
    if not CONFIDENCE_MIN <= confidence <= CONFIDENCE_MAX:  # so that nan, too, is refused
        raise ValueError(
            f"{text!r} is no confidence: write {CONFIDENCE_MIN} to {CONFIDENCE_MAX}, such as 0.95"
        )
    return confidence


def _engine(text: str) -> str | None:
    """The address of a Dask scheduler, None for this machine."""
    if text == "local":
        return None
    address = re.fullmatch(r"dask://((?:\[[0-9a-fA-F:]+\]|[\w.-]{1,253}):([0-9]{1,5}))", text)
    if address is None or not 0 < int(address[2]) < 1 << 16:
        raise ValueError(f"{text!r} is no engine: write local or dask://host:port")
    return address[1]


@click.command()
@click.argument("paytable", metavar="FILE", type=PAYTABLE)
@click.option(
    "--rounds",
    type=whole("rounds", ROUNDS_MIN, ROUNDS_MAX),
    required=True,
    help="How many, such as 10_000_000 or 1e9.",
)
@click.option(
    "--strategy",
    type=Parsed("strategy", Strategy.parse),
    default=str(MAX_EXPECTATION),
    show_default=True,
    help="How the player decides: max_expectation, max_rtp, dealer_mimic, always_play, or fold_below: and a hand.",
)
@click.option(
    "--stakes",
    "pattern",
    type=Parsed("pattern", StakePattern.parse),
    show_default="the smallest that odds pay in whole units, on the Pair Bonus too",
    help="Stakes to play in turn, in minor units: 100, or with a Pair Bonus 100+50, or 100x3,200+50.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, WORKERS_MAX),
    show_default="one for each core",
    help="Processes of the local engine.",
)
@click.option(
    "--engine",
    "address",
    type=Parsed("engine", _engine),
    default="local",
    show_default=True,
    help="Where it runs: local, or dask://host:port for a Dask cluster.",
)
@click.option(
    "--seed",
    type=Parsed("hex", _seed),
    show_default="a fresh one",
    help="The seed of an earlier run.",
)
@state_option
@click.option(
    "--confidence",
    type=Parsed("number", _confidence),
    default="0.95",
    show_default=True,
    help="The probability with which an interval holds the true figure.",
)
@json_option
def simulate(
    paytable: Paytable,
    rounds: int,
    strategy: Strategy,
    pattern: StakePattern | None,
    workers: int | None,
    address: str | None,
    seed: bytes | None,
    state: Path | None,
    confidence: float,
    as_json: bool,
) -> None:
    """Play the paytable in FILE and compare what is counted with the exact figures.

    The same seed gives the same report, whatever plays it.  The exit code is 0 when they agree or another run should
    decide, 1 when they disagree, and 2 when there is no verdict.
    """
    if address is not None and workers is not None:
        raise click.UsageError("--workers belongs to the local engine: a cluster has its own.")
    keeper = StateFile(state, Progress.from_document) if state else None
    with run(state):
        progress = _begin(keeper, paytable, strategy, pattern, rounds, seed)
        click.echo(f"Seed {progress.plan.seed.hex()}", err=True)
        _play(progress, keeper, address, workers or cores())
    verdict = judge(progress.plan, progress.tally, confidence)
    click.echo(json.dumps(verdict.document(), indent=1) if as_json else "\n".join(_report(verdict)))
    sys.exit(1 if verdict.conclusion is Conclusion.DISAGREES else 0)


def _begin(
    keeper: StateFile[Progress] | None,
    paytable: Paytable,
    strategy: Strategy,
    pattern: StakePattern | None,
    rounds: int,
    seed: bytes | None,
) -> Progress:
    """Where to begin: from nothing, or from what the state file has of this very run."""
    saved = keeper.load() if keeper else None
    seed = seed or (saved.plan.seed if saved else secrets.token_bytes(SEED_BYTES))
    try:
        plan = Plan(paytable, strategy, pattern or StakePattern.smallest(paytable), rounds, seed)
    except ValueError as wrong:
        raise click.UsageError(f"{wrong}.") from wrong
    if keeper and saved and saved.plan != plan:
        differ = ", ".join(differences(saved.plan, plan))
        raise SetUpError(f"{keeper.path} belongs to another run, of another {differ}: name another --state.")
    return saved or Progress(plan)


def _play(progress: Progress, keeper: StateFile[Progress] | None, address: str | None, workers: int) -> None:
    """Plays what is left; whatever ends it, what was played is kept."""
    plan, chunks = progress.plan, progress.remaining()
    if keeper:
        keeper.save(progress)
    if not chunks:
        return
    tallies = dask(plan, chunks, address) if address else local(plan, chunks, min(workers, len(chunks)))
    hidden = not sys.stderr.isatty()
    try:
        with (
            closing(tallies),
            click.progressbar(length=plan.rounds, show_pos=True, file=sys.stderr, hidden=hidden) as bar,
        ):
            bar.update(progress.tally.rounds)
            for chunk, tally in tallies:
                progress.add(chunk, tally)
                bar.update(tally.rounds)
                if keeper:
                    keeper.save_if_due(progress)
    finally:
        if keeper:
            keeper.save(progress)


def _report(verdict: Verdict) -> Iterator[str]:
    """The verdict as lines for a person."""
    plan = verdict.plan
    yield f"{plan.paytable.game}, paytable {plan.paytable.digest}"
    yield f"{plan.strategy}, stakes {plan.pattern}, {plan.rounds:,} rounds"
    yield f"seed {plan.seed.hex()}"
    yield f"staked {verdict.staked_minor:,}, returned {verdict.returned_minor:,} minor units"
    yield ""
    adjusted = iter(verdict.adjusted)
    head = ("", "simulated", f"{100 * verdict.confidence:g} % from", "to", "exact", "z", "p adjusted")
    yield from _table(head, [_figure_row(figure, next(adjusted)) for figure in verdict.figures])
    yield ""
    yield from _table(
        ("", "player's", "expected", "dealer's", "expected"),
        [
            (*_cell_row(of_player), *_cell_row(of_dealer)[1:])
            for of_player, of_dealer in zip(verdict.fits[0].cells, verdict.fits[1].cells, strict=True)
        ],
    )
    yield ""
    yield from _table(("", "rounds", "expected"), [_cell_row(cell) for cell in verdict.fits[2].cells])
    yield ""
    yield from _table(
        ("", "chi-square", "degrees", "p adjusted"), [_fit_row(fit, next(adjusted)) for fit in verdict.fits]
    )
    yield ""
    for ending in verdict.impossible:
        yield f"Impossible, and yet counted: {ending}."
    yield f"{verdict.conclusion.value}: {_SENTENCES[verdict.conclusion]}"


def _figure_row(figure: Figure, adjusted: float) -> tuple[str, ...]:
    percents = (figure.simulated, figure.low, figure.high, figure.expected)
    return (
        _words(figure.name),
        *(f"{float(part):.6%}" for part in percents),
        f"{figure.z:+.2f}",
        f"{adjusted:.3g}",
    )


def _cell_row(cell: Cell) -> tuple[str, ...]:
    return _words(cell.name), f"{cell.counted:,}", f"{float(cell.expected):,.1f}"


def _fit_row(fit: Fit, adjusted: float) -> tuple[str, ...]:
    return _words(fit.name), f"{fit.chi_square:.2f}", f"{fit.degrees}", f"{adjusted:.3g}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns set to the right, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for first, *others in (head, *rows):
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join((first.ljust(widths[0]), *cells))
