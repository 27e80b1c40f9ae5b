"""Receipts of rounds, checked as their player would: by the program of `verification/`, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

VERIFY_ROUND = Path(__file__).parents[1] / "verification" / "verify_round.py"

Receipt = dict[str, Any]


def problems_of(*receipts: Receipt, commitment: str | None = None) -> list[str]:
    """What does not hold of receipts; `commitment` is the value that was shown before, for one receipt."""
    with tempfile.TemporaryDirectory() as directory:
        files = [Path(directory) / f"{place}.json" for place, _ in enumerate(receipts)]
        for file, receipt in zip(files, receipts, strict=True):
            file.write_text(json.dumps(receipt))
        command = [sys.executable, "-I", str(VERIFY_ROUND), *map(str, files)]
        if commitment is not None:
            command += ["--commitment", commitment]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("DOES NOT HOLD: ")]
    assert done.returncode == bool(found), done.stdout + done.stderr
    return found
