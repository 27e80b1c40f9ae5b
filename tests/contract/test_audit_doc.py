"""docs/audit.md is followed as it stands: its shell lines in their order, and its names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from casino_brag.audit.findings import Wrong
from tests.named import ROOT
from tests.running import RunningService

DOCUMENT = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
SCRIPT_SECONDS = 120
SEALED_SECONDS = 30


def blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def followed(own_service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the document's commands print, beside a service on which somebody has played, in an empty directory."""
    player = own_service.operator().real_player(100_000)
    for decision in ("play", "fold", "play"):
        assert player.played(decision, ante_minor=100, pair_bonus_minor=50)["state"] == "settled"
    _wait_until_sealed_after(own_service)
    directory, aside = tmp_path_factory.mktemp("audit"), tmp_path_factory.mktemp("aside")
    (directory / "verification").symlink_to(ROOT / "verification")
    for name, command in (("casino-brag", " -P -m casino_brag"), ("python3", "")):
        (aside / name).write_text(f'#!/bin/sh\nexec {sys.executable}{command} "$@"\n')
        (aside / name).chmod(0o755)
    script = "".join(blocks()).replace("127.0.0.1:8080", f"127.0.0.1:{own_service.port}")
    environment = os.environ | {
        "PATH": f"{aside}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CASINO_BRAG_DATA_DIR": str(own_service.data_dir),
    }
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=directory, env=environment, capture_output=True, text=True, timeout=SCRIPT_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def _wait_until_sealed_after(service: RunningService) -> None:
    """Waits for a checkpoint of all that was played, and for one more."""
    deadline = time.monotonic() + SEALED_SECONDS
    with service.connect() as conn:
        (entries,) = conn.execute("SELECT count(*) FROM audit_entry").fetchone() or (0,)
        while True:
            assert time.monotonic() < deadline, "the log was not sealed"
            found = conn.execute("SELECT max(tree_size), count(*) FROM audit_checkpoint").fetchone()
            if found is not None and (found[0] or 0) >= entries and found[1] > 1:
                return
            time.sleep(0.1)


def test_an_auditor_who_follows_it_gets_to_verified(followed: str) -> None:
    assert followed.count("Everything holds.") == 3, followed
    assert "The log holds." in followed
    assert re.search(r"^settled +3$", followed, re.MULTILINE), followed
    assert "Everything agrees." in followed
    assert "three-card-brag version 1, enabled: level none" in followed


def test_every_finding_is_explained_and_no_other() -> None:
    assert re.findall(r"^\| `(\w+)` \|", DOCUMENT, re.MULTILINE) == [wrong.value for wrong in Wrong]
