"""The log: what cannot be written is lost, and nothing else with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WRITES = """
import structlog
from casino_brag.web.logs import configure
configure("json")
structlog.get_logger("test").error("told")
print("went on", file=__import__("sys").stderr)
"""


def test_a_full_disk_stops_nobody_who_tells_something() -> None:
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            [sys.executable, "-c", WRITES],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert told.stderr.startswith("went on\n")


def test_a_line_is_told_where_it_can_be() -> None:
    told = subprocess.run(
        [sys.executable, "-c", WRITES], capture_output=True, text=True, timeout=30, check=True
    )
    assert '"event": "told"' in told.stdout
