"""A service and its log: it is sealed by itself, and where it is not, nothing new is played."""

from __future__ import annotations

import base64
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from casino_brag.audit import sealer
from casino_brag.audit.notes import SigningKey, VerifierKey, opened
from casino_brag.audit.sealer import LogBroken
from casino_brag.cli.worker import worker
from casino_brag.db.embedded import Role
from casino_brag.errors import SetUpError
from casino_brag.web.service import EXTENSION
from tests.books import broken_laws
from tests.inprocess import AppHouse
from tests.running import RunningService, code_of

LAG_SECONDS = 10


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[RunningService]:
    """A service that gives its log few seconds, and publishes what it can."""
    environment = {
        "CASINO_BRAG_SEALING_LAG_SECONDS": str(LAG_SECONDS),
        "CASINO_BRAG_CHECKPOINT_SECONDS": "1",
    }
    with RunningService.start(tmp_path, workers=2, environment=environment) as running:
        yield running


def until(holds: Callable[[], bool], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)


def unsealed(service: RunningService) -> int:
    with service.connect() as conn:
        row = conn.execute(
            "SELECT count(*) FROM audit_entry WHERE entry_id NOT IN (SELECT entry_id FROM audit_leaf)"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_service_seals_its_log_and_publishes_it_without_being_told(hasty: RunningService) -> None:
    player = hasty.operator().player()
    for _ in range(5):
        player.played()
    until(lambda: unsealed(hasty) == 0)
    with hasty.connect() as conn:
        keys = [VerifierKey.parse(text) for (text,) in conn.execute("SELECT verifier_key FROM audit_key")]
        checkpoints = dict(conn.execute("SELECT tree_size, note FROM audit_checkpoint").fetchall())
        (leaves,) = conn.execute("SELECT count(*) FROM audit_leaf").fetchone() or (0,)
    directory = hasty.data_dir / "checkpoints"
    until(lambda: f"{leaves:020}.checkpoint" in [path.name for path in directory.rglob("*")])
    files = sorted(directory.glob("*/*/*/*.checkpoint"))
    for path in files:
        assert path.read_text() == checkpoints[int(path.stem)]
        assert opened(path.read_text(), keys)[0].size == int(path.stem)
    (key_file,) = (directory / "keys").iterdir()
    assert VerifierKey.parse(key_file.read_text().strip()) == keys[0]
    assert stat.S_IMODE((hasty.data_dir / "log.keys").stat().st_mode) == 0o600
    assert hasty.broken_laws() == {}


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    """Processes that hang for the length of the block."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_no_round_is_opened_while_the_log_is_not_sealed_and_open_ones_go_on(hasty: RunningService) -> None:
    operator = hasty.operator()
    waiting, other = operator.player(), operator.player()
    round_id = waiting.open(100).json()["round_id"]
    with stopped(hasty.job_worker_pids()):
        until(lambda: requests.get(hasty.base + "/readyz", timeout=5).status_code == 503)
        (obstacle,) = requests.get(hasty.base + "/readyz", timeout=5).json()["obstacles"]
        assert obstacle.startswith("The log was last sealed at ")
        before = other.balance_minor()
        refused = other.open(100, key="one")
        assert code_of(refused) == "sealing_behind"
        assert refused.headers["Retry-After"] == "5"
        assert other.balance_minor() == before
        assert waiting.decide(round_id, "play").json()["state"] == "settled"
        assert code_of(waiting.again().open(100)) == "sealing_behind"
    until(lambda: requests.get(hasty.base + "/readyz", timeout=5).status_code == 200)
    assert other.open(100, key="one").status_code == 201
    until(lambda: unsealed(hasty) == 0)
    assert hasty.broken_laws() == {}


def test_worker_once_seals_what_there_is(own_service: RunningService) -> None:
    own_service.operator().player().played()
    said = own_service.command("worker", "--once")
    names = [line[:20].rstrip() for line in said.splitlines()]
    assert {"sealer", "log parts"} < {*names}


def test_worker_once_says_what_is_wrong_with_the_log(
    app_house: AppHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise LogBroken("The log is one, and the keys are those of another.")

    monkeypatch.setattr(sealer, "seal", broken)
    monkeypatch.setenv("DATABASE_URL", app_house.server.url(Role.APP))
    monkeypatch.setenv("CASINO_BRAG_LOG_KEYS", SigningKey.generate("tests/log").text())
    (tmp_path / "seal.keys").write_text(f"k1:{base64.b64encode(app_house.config.seal_keys['k1']).decode()}\n")
    told = CliRunner().invoke(worker, ["--once", "--data-dir", str(tmp_path)])
    assert isinstance(told.exception, SetUpError)
    assert str(told.exception) == "The log is one, and the keys are those of another."


@pytest.fixture
def limited(app_house: AppHouse) -> Iterator[AppHouse]:
    """The application with a limit, on a log that nobody has sealed for ten minutes."""
    before = app_house.service
    house = replace(before.house, sealing_lag_seconds=300)
    app_house.app.extensions[EXTENSION] = replace(before, house=house)
    with app_house.connect() as conn:
        conn.execute("UPDATE audit_sealing SET attended_at = now() - interval '10 minutes'")
        yield app_house
        conn.execute("UPDATE audit_sealing SET attended_at = now()")
        app_house.app.extensions[EXTENSION] = before
        assert broken_laws(conn) == {}


def test_a_lag_beyond_the_limit_stops_new_rounds_alone(limited: AppHouse) -> None:
    player = limited.player()
    assert code_of(player.open(100, key="one")) == "sealing_behind"
    with limited.connect() as conn:
        conn.execute("UPDATE audit_sealing SET attended_at = now() - interval '200 seconds'")
        opened_ = player.open(100, key="one")
        assert opened_.status_code == 201
        conn.execute("UPDATE audit_sealing SET attended_at = now() - interval '400 seconds'")
    # What was answered is answered again; what is open is decided, and can be voided.
    again = player.open(100, key="one")
    assert (again.status_code, again.content) == (201, opened_.content)
    round_id = opened_.json()["round_id"]
    assert player.decide(round_id, "fold").status_code == 200
    voided = limited.operator.send(
        "POST",
        f"/v1/operator/rounds/{round_id}/void",
        {"reason": "A test.", "approver": "A tester"},
        headers={"Idempotency-Key": "void"},
    )
    assert voided.status_code == 200, voided.text
    assert limited.operator.deposit("somebody", 100).status_code == 201


def test_other_things_that_are_wrong_are_told_first(limited: AppHouse) -> None:
    player = limited.player()
    assert code_of(player.open(0)) == "invalid"
    assert code_of(player.open(10**9)) == "stake_out_of_limits"


def test_without_a_limit_the_log_is_nobodys_obstacle(limited: AppHouse) -> None:
    service = limited.service
    unlimited = replace(service, house=replace(service.house, sealing_lag_seconds=0))
    limited.app.extensions[EXTENSION] = unlimited
    assert limited.player().open(100).status_code == 201
