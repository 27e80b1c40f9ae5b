"""``audit replay``: the rounds of a period derived anew, from seed to payout, and compared with what is on record."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from casino_brag.cli.arguments import ACTOR, MOMENT, json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection
from casino_brag.cli.runs import WORKERS_MAX, cores, run, state_option
from casino_brag.db.clock import rfc3339
from casino_brag.errors import SetUpError
from casino_brag.replay.progress import Progress, begin
from casino_brag.replay.replaying import beside, record, recordable, replayed
from casino_brag.replay.report import Kind, Report
from casino_brag.statefile import StateFile

_KINDS: Final = {
    Kind.SETTLED: "settled",
    Kind.VOIDED_SETTLED: "voided after settlement",
    Kind.VOIDED_OPEN: "voided before a decision",
    Kind.OPEN: "still open",
    Kind.WITHOUT_SEED: "of these from before commitments, without a seed",
    Kind.SEED_LOST: "of these voided because the seed was lost",
}


@click.command()
@click.option(
    "--from", "opened_from", type=MOMENT, help="Rounds opened at or after this time, UTC if it says none."
)
@click.option(
    "--to", "opened_before", type=MOMENT, show_default="now", help="Rounds opened before this time."
)
@click.option(
    "--workers", type=click.IntRange(1, WORKERS_MAX), show_default="one for each core", help="Processes."
)
@state_option
@click.option(
    "--record/--no-record",
    "to_record",
    default=None,
    help="Whether the outcome is put on record in the audit log; it is wherever that can be written.",
)
@json_option
@data_dir_option
def replay(
    opened_from: datetime | None,
    opened_before: datetime | None,
    workers: int | None,
    state: Path | None,
    to_record: bool | None,
    as_json: bool,
    data_dir: Path,
) -> None:
    """Derive the rounds of a period anew and compare them with what was recorded and paid.

    Seed, commitment, deal, categories, settlement, transfers, credits and audit entries are compared.  A round belongs
    to the time in which it was opened.  The exit code is 0 when all of them agree, 1 when something differs, and 2
    when there is no verdict.
    """
    keeper = StateFile(state, Progress.from_document) if state else None
    with run(state), database(data_dir) as addresses:
        with migrated_connection(addresses) as conn:
            writes = recordable(conn)
        if to_record and not writes:
            raise SetUpError("Nothing can be put on record here: replay with --no-record.")
        progress = begin(addresses.app, opened_from, opened_before, keeper)
        _replay(addresses.app, progress, keeper, workers or cores())
        report = progress.report(beside(addresses.app, progress.plan))
        click.echo(report.text() if as_json else "\n".join(_told(report)))
        if writes and to_record is not False:
            with migrated_connection(addresses) as conn:
                record(conn, report, actor=ACTOR)
    if not writes and to_record is None:
        click.echo("Nothing was put on record: the audit log cannot be written here.", err=True)
    sys.exit(1 if report.differing else 0)


def _replay(url: str, progress: Progress, keeper: StateFile[Progress] | None, workers: int) -> None:
    """Replays what is left; what was replayed is kept chunk by chunk."""
    numbers = progress.remaining()
    if keeper:
        keeper.save(progress)
    tallies = replayed(url, progress.plan, numbers, workers)
    hidden = not sys.stderr.isatty()
    with (
        closing(tallies),
        click.progressbar(length=len(progress.plan.chunks), file=sys.stderr, hidden=hidden) as bar,
    ):
        bar.update(len(progress.plan.chunks) - len(numbers))
        for number, tally in tallies:
            progress.add(number, tally)
            bar.update(1)
            if keeper:
                keeper.save(progress)


def _told(report: Report) -> Iterator[str]:
    """The report as lines for a person."""
    yield f"Rounds opened from {rfc3339(report.since)} until before {rfc3339(report.until)}"
    if not report.rounds and not report.differing:
        yield "No Activity"
        return
    for kind, words in _KINDS.items():
        yield f"{words:<50}{report.tally.rounds[kind]:>16,}"
    yield f"{'mode':<6}{'currency':<10}{'staked':>20}{'paid':>20}{'refunded':>20}{'compensated':>20}"
    for (mode, currency), money in sorted(report.tally.money.items()):
        amounts = (money.staked_minor, money.paid_minor, money.refunded_minor, money.compensated_minor)
        yield f"{mode:<6}{currency:<10}" + "".join(f"{amount:>20}" for amount in amounts)
    for what, times in sorted(report.tally.counted.items()):
        yield f"{what} differs in {times:,}"
    for one in report.tally.named:
        yield f"{one.round_id}: {one.what} is recorded as {one.recorded}, and {one.derived} follows"
    if report.differing > len(report.tally.named):
        yield f"The first {len(report.tally.named)} are named."
    yield "Everything agrees." if not report.differing else f"{report.differing:,} differences."
