"""``audit``: the log verified, proven and exported."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import click
import psycopg

from casino_brag.audit.exporting import export_log
from casino_brag.audit.findings import Verification
from casino_brag.audit.kept import kept_checkpoints, kept_keys
from casino_brag.audit.notes import VerifierKey
from casino_brag.audit.proving import consistency, inclusion, leaves_of
from casino_brag.audit.records import checkpoint_of, newest_checkpoint, verifier_keys
from casino_brag.audit.verifying import verify_log
from casino_brag.cli.arguments import MOMENT, Parsed, json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection
from casino_brag.cli.log_keys import rotate_key
from casino_brag.cli.replay import replay
from casino_brag.config import read_sealing_settings
from casino_brag.db.instant import one_instant
from casino_brag.errors import SetUpError

REPLICA_SECONDS: Final = 10
"""How long a replica may be behind what was published."""


@click.group()
def audit() -> None:
    """The audit log: verify it, prove what is in it, take it elsewhere."""


audit.add_command(replay)
audit.add_command(rotate_key)


@audit.command()
@click.option(
    "--checkpoints",
    "places",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="Checkpoints that were kept elsewhere: a directory of published ones, or a file. May be repeated."
    "  [default: the directory of this installation, if it is there]",
)
@click.option(
    "--key",
    "keys",
    type=Parsed("key", VerifierKey.parse),
    multiple=True,
    help="A key whose signatures count, as it was published elsewhere. May be repeated."
    "  [default: those beside the checkpoints, else those of the database]",
)
@click.option("--workers", type=click.IntRange(1, 256), show_default="one for each core", help="Processes.")
@json_option
@data_dir_option
def verify(
    places: Sequence[Path], keys: Sequence[VerifierKey], workers: int | None, as_json: bool, data_dir: Path
) -> None:
    """Verify the whole log: every entry, the tree, its checkpoints, and these against those kept elsewhere.

    Nothing is written, and play may go on: a replica will do.  Exit code 1 when something is wrong.
    """
    places = places or _published(data_dir)
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        kept = kept_checkpoints(places)  # before the log is looked at: later ones may be of more entries
        _wait_for_replica(conn, kept[-1].size if kept else 0)
        with _progress() as progress:
            found = verify_log(
                addresses.owner, kept=kept, keys=keys or kept_keys(places), workers=workers, progress=progress
            )
    click.echo(json.dumps(found.document()) if as_json else "\n".join(_told(found)))
    sys.exit(0 if found.holds else 1)


def _published(data_dir: Path) -> list[Path]:
    directory = read_sealing_settings().checkpoints_dir or data_dir / "checkpoints"
    return [directory] if directory.is_dir() else []


def _wait_for_replica(conn: psycopg.Connection[Any], size: int) -> None:
    """Lets a replica come up to a checkpoint that was published by the primary, for a while."""
    for _ in range(REPLICA_SECONDS):
        row = conn.execute(
            "SELECT NOT pg_is_in_recovery() OR EXISTS (SELECT FROM audit_checkpoint WHERE tree_size >= %s)",
            [size],
        ).fetchone()
        if row is not None and row[0]:
            return
        time.sleep(1)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, moved by whoever is told how much of how much is done."""
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=1, show_pos=True, file=sys.stderr, hidden=hidden) as bar:

        def progress(done: int, of: int) -> None:
            bar.length = max(of, done)
            bar.update(done - bar.pos)

        yield progress


def _told(found: Verification) -> Iterator[str]:
    waiting = f", of which {found.waiting:,} are not sealed yet" if found.waiting else ""
    yield f"entries      {found.entries:,}{waiting}"
    yield f"leaves       {found.leaves:,}" + (
        f", of which {found.archived:,} are of entries that were archived and let go"
        if found.archived
        else ""
    )
    yield f"checkpoints  {found.checkpoints:,}; {found.published:,} kept elsewhere were compared"
    yield f"root         {found.root_hash} of {found.tree_size:,} entries"
    yield from (f"signed by    {key}" for key in found.keys)
    yield from (f"WRONG {finding.wrong}: {finding}" for finding in found.findings)
    if found.wrong > len(found.findings):
        yield f"WRONG: {found.wrong - len(found.findings):,} more"
    if found.holds and not found.published:
        yield "No checkpoint that was kept elsewhere was compared: an older backup would hold as well."
    yield "THE LOG DOES NOT HOLD" if not found.holds else "The log holds."


@audit.command()
@click.argument("round_id", metavar="ROUND", type=click.UUID)
@json_option
@data_dir_option
def prove(round_id: UUID, as_json: bool, data_dir: Path) -> None:
    """Prove that a round's entries are in the log, by the newest checkpoint."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn, one_instant(conn):
        leaves = leaves_of(conn, round_id=round_id)
        newest = newest_checkpoint(conn)
        if not leaves:
            raise SetUpError(f"The log has no entry of a round {round_id}.")
        if newest is None or not all(leaf.is_in(newest) for leaf in leaves):
            raise SetUpError("Not all entries of this round are sealed yet: try again in a few seconds.")
        proof = inclusion(conn, leaves, newest)
    if as_json:
        click.echo(json.dumps(proof))
        return
    for leaf in leaves:
        entry = json.loads(leaf.content)
        click.echo(f"leaf {leaf.leaf_index}  {entry['occurred_at']}  {entry['type']}  {entry['entry_id']}")
    click.echo(f"\n{newest.note}")


@audit.command("consistency")
@click.argument("old", metavar="SIZE", type=click.IntRange(1))
@click.argument("new", metavar="SIZE", type=click.IntRange(1))
@json_option
@data_dir_option
def consistency_command(old: int, new: int, as_json: bool, data_dir: Path) -> None:
    """Prove that the log of one checkpoint begins with that of an older one; both by their number of entries."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn, one_instant(conn):
        checkpoints = []
        for size in sorted((old, new)):
            checkpoint = checkpoint_of(conn, size)
            if checkpoint is None:
                raise SetUpError(f"There is no checkpoint of {size} entries: give the size of one there is.")
            checkpoints.append(checkpoint)
        proof = consistency(conn, *checkpoints)
    if as_json:
        click.echo(json.dumps(proof))
    else:
        click.echo("\n".join([proof["old"], proof["new"], *proof["proof"]]))


@audit.command()
@click.option(
    "--to",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="A directory that is not there yet, or empty.",
)
@click.option("--from", "since", type=MOMENT, help="Entries of this time and later, UTC if it says none.")
@click.option("--to-date", "until", type=MOMENT, help="Entries before this time.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet"]),
    default="csv",
    show_default=True,
    help="Of the entries.",
)
@data_dir_option
def export(
    directory: Path, since: datetime | None, until: datetime | None, form: str, data_dir: Path
) -> None:
    """Export the log, or a period of it, as files that prove themselves by verification/verify_log.py."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn, _progress() as progress:
        exported = export_log(conn, directory, since=since, until=until, form=form, progress=progress)
    count = exported.end - exported.first
    click.echo(f"{count:,} entries, leaves {exported.first} to {exported.end - 1}, in {directory}")


@audit.command()
@data_dir_option
def keys(data_dir: Path) -> None:
    """List the keys that have signed checkpoints, the newest first.  Compare them with what was published elsewhere."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        for key in reversed(verifier_keys(conn)):
            click.echo(key.text())
