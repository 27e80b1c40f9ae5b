"""``rtp``: live play against theory, and what became of its alerts."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from casino_brag.catalogue.paytables import Shelf
from casino_brag.cli.arguments import ACTOR, Parsed, json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection
from casino_brag.db.clock import clock, rfc3339
from casino_brag.watch.cases import NOTE_LENGTH_MAX, CaseState, case_of, cases, change_case, changes_of
from casino_brag.watch.checking import check
from casino_brag.watch.plots import page
from casino_brag.watch.status import status

_DAY = click.DateTime(["%Y-%m-%d"])
_STATES = {"open": CaseState.OPEN, "investigate": CaseState.INVESTIGATED, "close": CaseState.CLOSED}


def _line(text: str) -> str:
    if not (text.strip() and text.isprintable() and len(text) <= NOTE_LENGTH_MAX):
        raise ValueError(f"write it on one line, of at most {NOTE_LENGTH_MAX} characters")
    return text


@click.group()
def rtp() -> None:
    """Live play against theory: figures, evidence, checks and cases."""


@rtp.command("status")
@click.option("--game", help="This game only.")
@click.option("--since", type=_DAY, help="The first day to look at, UTC; the beginning unless given.")
@click.option("--until", type=_DAY, help="The last day to look at; today unless given.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write plots to this file as well.",
)
@json_option
@data_dir_option
def status_command(
    game: str | None,
    since: datetime | None,
    until: datetime | None,
    html: Path | None,
    as_json: bool,
    data_dir: Path,
) -> None:
    """Show what live play returned, what it should, and the evidence that something is wrong.

    Exit code 0 while nothing has reached the level of an alert, 1 when something has.
    """
    days = [None if day is None else day.date() for day in (since, until)]
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        found = status(conn, game=game, since=days[0], until=days[1])
    if html is not None:
        html.write_text(page(found), encoding="utf-8")
    click.echo(json.dumps(found) if as_json else "\n".join(_told(found)))
    if any(version["evidence"]["level"] in ("alert", "suspend") for version in found["versions"]):
        raise SystemExit(1)


def _told(found: dict[str, Any]) -> list[str]:
    lines = []
    for version in found["versions"]:
        evidence = version["evidence"]
        lines.append(
            f"{version['game']} version {version['version']}, {version['state']}: level {evidence['level']},"
            f" evidence 10^{evidence['log10_e']} over {evidence['rounds']} rounds"
        )
        for figure in version["figures"]:
            value = "" if figure["value"] is None else f" {figure['value']}"
            line = f"  {figure['wager']:<11}{figure['currency'] or '':<5}{figure['by'] + value:<24}"
            line += f"{figure['rounds']:>12} rounds  RTP {figure['actual_rtp']['value']:<12}"
            if figure["rounds"]:
                raw, given = figure["against_theory"], figure["given_cards_and_decisions"]
                line += f"theory {figure['theoretical_rtp']['value']}, raw z {raw['z']:>7} {raw['verdict']};"
                line += f" given cards and decisions z {given['z']:>7} {given['verdict']}"
            lines.append(line.rstrip())
    lines += [_case_line(case) for case in found["cases"]]
    last = found["last_check"]
    lines.append(
        "No check has been made yet." if last is None else f"The last daily check was of {last['day']}."
    )
    if found["behind_leaves"]:
        since = found["behind_since"]
        lines.append(f"{found['behind_leaves']} entries of the log, since {since}, are not added up yet.")
    return lines


@rtp.command("check")
@json_option
@data_dir_option
def check_command(as_json: bool, data_dir: Path) -> None:
    """Compare all play up to now with theory, on record."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        made = check(conn, Shelf(), clock(conn).astimezone(UTC).date(), actor=ACTOR)
    assert made is not None
    if as_json:
        click.echo(json.dumps(made))
        return
    for version in made["versions"]:
        for window in version["windows"]:
            for figure in window["figures"]:
                if figure["by"] == "version":
                    click.echo(
                        f"{version['game']:<24}{version['version']:>4}  {window['window']:<17}{figure['wager']:<11}"
                        f"{figure['currency'] or '':<5}{figure['rounds']:>12}  {figure['verdict']}"
                    )


@rtp.command("cases")
@click.option("--game", help="This game's only.")
@json_option
@data_dir_option
def cases_command(game: str | None, as_json: bool, data_dir: Path) -> None:
    """List what alerts led to: open cases first."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        found = [case.document() for case in cases(conn, game=game)]
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo("\n".join(map(_case_line, found)) or "No Activity")


def _case_line(case: dict[str, Any]) -> str:
    return (
        f"case {case['case_id']}: {case['game']} version {case['version']}, level {case['level']},"
        f" {case['state']} since {case['changed_at']}"
    )


@rtp.command("case")
@click.argument("case_id", type=click.UUID)
@click.argument("step", type=click.Choice(list(_STATES)), required=False)
@click.option("--note", type=Parsed("text", _line), help="What was found or done; kept on record for good.")
@click.option("--by", type=Parsed("text", _line), help="Who takes the step, for the record.")
@json_option
@data_dir_option
def case_command(
    case_id: UUID, step: str | None, note: str | None, by: str | None, as_json: bool, data_dir: Path
) -> None:
    """Show a case, or take a step: open it again with a note, say that it is investigated, or close it.

    A case that is closed stays closed, and the evidence against the version begins anew.
    """
    if step is not None and (note is None or by is None):
        raise click.UsageError("A step needs --note and --by.")
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        if step is not None:
            assert note is not None
            change_case(conn, case_id, _STATES[step], note, actor=f"staff:{by}")
        case, changes = case_of(conn, case_id), changes_of(conn, case_id)
    if as_json:
        click.echo(json.dumps(case.document() | {"changes": [*map(asdict, changes)]}, default=rfc3339))
        return
    click.echo(_case_line(case.document()))
    for change in changes:
        click.echo(f"  {rfc3339(change.changed_at)}  {change.state:<13}{change.actor}: {change.note}")
