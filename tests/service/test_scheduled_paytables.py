"""A running service: files it leaves alone, and a version that comes into force although its worker was killed."""

from __future__ import annotations

import os
import shutil
import signal
import time
from datetime import timedelta
from pathlib import Path

import psycopg
import requests

from casino_brag.catalogue.activations import activate
from casino_brag.config import shipped
from casino_brag.db.clock import clock
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.staff.people import Role
from tests.catalogue.persons import GAME, approved, person, revised
from tests.running import RunningService

SECONDS = 40


def offered(service: RunningService) -> int:
    """The version that the game offers to new rounds."""
    told = requests.get(f"{service.base}/v1/games/{GAME}", timeout=5).json()
    return int(told["paytable"]["version"])


def test_what_is_scheduled_comes_into_force_once_and_a_file_does_not(tmp_path: Path) -> None:
    directory = Path(shutil.copytree(shipped("paytables"), tmp_path / "paytables"))
    with (
        RunningService.start(tmp_path, workers=1, paytables=directory) as service,
        psycopg.connect(service.server.url(DatabaseRole.OWNER), autocommit=True) as conn,
    ):
        editor, approver, operations = (
            person(conn, role) for role in (Role.EDITOR, Role.APPROVER, Role.OPERATIONS)
        )
        version = approved(conn, editor, approver)
        at = clock(conn) + timedelta(seconds=4)
        activate(conn, operations, GAME, version, reason="At night.", at=at)
        for pid in service.job_worker_pids():
            os.kill(pid, signal.SIGKILL)
        service.stop()
        (directory / f"{GAME}.toml").write_text(revised())
        service.launch()
        assert f"{GAME} offers version" in service.log()
        assert "paytables import" in service.log()
        deadline = time.monotonic() + SECONDS
        while offered(service) != version:
            assert time.monotonic() < deadline, service.log()
            time.sleep(0.2)
        entries = conn.execute(
            "SELECT actor, authoriser FROM audit_entry WHERE type = 'paytable.activated'"
            " AND after ->> 'version' = %s",
            [str(version)],
        ).fetchall()
        assert entries == [(operations.actor, approver.actor)]
        assert clock(conn) >= at
