"""``report``: the reports over the whole installation."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from casino_brag.audit import EntryType
from casino_brag.cli.arguments import MOMENT
from casino_brag.cli.installation import data_dir_option, database, migrated_connection
from casino_brag.reports import pages
from casino_brag.reports.kinds import ReportName
from casino_brag.reports.making import ITEMS_MAX, Wanted, make_report
from casino_brag.rounds.reports import Period


@click.command()
@click.argument("name", type=click.Choice([name.value for name in ReportName]))
@click.option(
    "--period",
    type=click.Choice([period.value for period in Period]),
    help="To date, by UTC: instead of --from and --to; day at first.",
)
@click.option(
    "--from",
    "since",
    type=MOMENT,
    help="From this time on, UTC if it says none; with --to unless that is now.",
)
@click.option("--to", "until", type=MOMENT, help="Before this time; now unless it is given.")
@click.option("--operator", help="Of this operator alone.")
@click.option(
    "--type",
    "types",
    type=click.Choice([kind.value for kind in EntryType]),
    multiple=True,
    metavar="TYPE",
    help="Of significant-events: only this type, which may be any of the log's; may be repeated.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv", "html"]),
    default="json",
    show_default=True,
    help="html is a page fit to print.",
)
@data_dir_option
def report(
    name: str,
    period: str | None,
    since: datetime | None,
    until: datetime | None,
    operator: str | None,
    types: tuple[str, ...],
    form: str,
    data_dir: Path,
) -> None:
    """Print a report over all operators, or of one: JSON, CSV, or a page fit to print."""
    if period is not None and (since or until):
        raise click.UsageError("Give --period, or --from and --to.")
    if until is not None and since is None:
        raise click.UsageError("Give --from as well.")
    wanted = Wanted(
        period=None if period is None else Period(period),
        since=since,
        until=until,
        operator=operator,
        types=frozenset(map(EntryType, types)),
        limit=pages.ROWS_MAX if form == "html" else ITEMS_MAX,
    )
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        made = make_report(conn, ReportName(name), wanted)
    match form:
        case "json":
            click.echo(made.json())
        case "csv":
            click.echo(made.csv(), nl=False)
        case _:
            click.echo(pages.html(made), nl=False)
