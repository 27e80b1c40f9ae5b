"""``audit rotate-key``: a new key for the log's checkpoints beside the old one, and the end of the old one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from casino_brag.audit.notes import NoteError, SigningKey
from casino_brag.cli.installation import data_dir_option, log_keys, log_keys_file, write_secret
from casino_brag.errors import SetUpError


@click.command("rotate-key")
@click.option("--drop-old", is_flag=True, help="Make no new key, and keep the present one alone.")
@click.option(
    "--name", help="Print a key for a log of this name, and change nothing: for a first key, or a lost one."
)
@data_dir_option
def rotate_key(drop_old: bool, name: str | None, data_dir: Path) -> None:
    """Give the log's checkpoints a new key.  The old one signs beside it until --drop-old.

    Where CASINO_BRAG_LOG_KEYS gives the keys, its new value is printed and nothing is changed.  Restart the job
    workers afterwards.
    """
    if name is not None:
        _print_value([_new_key(name)])
        return
    present = log_keys(data_dir)
    keys = present[:1] if drop_old else (_new_key(present[0].name), *present)
    if os.environ.get("CASINO_BRAG_LOG_KEYS"):
        _print_value(keys)
        return
    file = log_keys_file(data_dir)
    try:
        write_secret(file, _value(keys), anew=True)
    except OSError as failure:
        raise SetUpError(f"The log's keys in {file} cannot be written: {failure.strerror}.") from failure
    _print_verifiers(keys)
    click.echo("Restart the service, or every job worker: they read the keys when they start.")


def _new_key(name: str) -> SigningKey:
    try:
        return SigningKey.generate(name)
    except NoteError as wrong:
        raise SetUpError(f"{name!r} is no name of a log: {wrong}.") from wrong


def _print_value(keys: Sequence[SigningKey]) -> None:
    click.echo(f"CASINO_BRAG_LOG_KEYS={_value(keys)}")
    _print_verifiers(keys)


def _print_verifiers(keys: Sequence[SigningKey]) -> None:
    for key in keys:
        click.echo(f"checked by {key.verifier.text()}")


def _value(keys: Sequence[SigningKey]) -> str:
    return ",".join(key.text() for key in keys)
