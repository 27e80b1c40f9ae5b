"""What commands have in common that run for long, in several processes, and go on after an interruption."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from casino_brag.errors import SetUpError

NO_VERDICT: Final = 2
"""The exit code when something stopped the run; 1 is kept for a verdict that is not what one hopes for."""

INTERRUPTED: Final = 130

WORKERS_MAX: Final = 256

state_option: Final = click.option(
    "--state",
    "state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that keeps what was done; given again, the command goes on from there.",
)


@contextmanager
def run(state: Path | None) -> Iterator[None]:
    """Ends the command, and says why, when what is within cannot go on or is interrupted."""
    try:
        yield
    except SetUpError as stopped:
        click.echo(f"casino-brag: {stopped}", err=True)
        sys.exit(NO_VERDICT)
    except KeyboardInterrupt:
        on = (
            f"the same command goes on from {state}"
            if state
            else "with --state FILE it could have been gone on"
        )
        click.echo(f"Interrupted: {on}.", err=True)
        sys.exit(INTERRUPTED)


def cores() -> int:
    """One worker for each core that this process may use."""
    return min(len(os.sched_getaffinity(0)), WORKERS_MAX)
