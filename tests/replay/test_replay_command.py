"""The command: what it says, what it puts on record, how it goes on after it was stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from psycopg import errors as pg

from casino_brag.audit import Entry, EntryType
from casino_brag.cli.replay import replay
from casino_brag.cli.runs import NO_VERDICT
from casino_brag.db.clock import clock
from casino_brag.db.embedded import Role
from casino_brag.errors import SetUpError
from casino_brag.replay import reading
from casino_brag.replay.progress import Plan, Progress
from casino_brag.replay.reading import Chunk, Key
from casino_brag.replay.replaying import record, replayed
from casino_brag.replay.report import Report, Tally
from casino_brag.statefile import content_digest
from tests.inprocess import AppHouse, app_house_in

DAY = timedelta(days=1)
EARLIER = (datetime.now(UTC) - DAY).strftime("%Y-%m-%dT%H:%M:%S+0000")

SLOWLY = """
import time
from casino_brag.audit import Entry, EntryType
from casino_brag.cli.replay import replay
from casino_brag.replay import reading
from casino_brag.statefile import StateFile
reading.CHUNK_ROUNDS = 2
save = StateFile.save
def slowly(keeper, progress):
    save(keeper, progress)
    time.sleep(0.2)
StateFile.save = slowly
if __name__ == "__main__":
    replay()
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    """A house in which twelve rounds were played, one of which was paid wrongly."""
    with app_house_in(tmp_path_factory.mktemp("replayed")) as found:
        player = found.operator.real_player(10_000)
        for number in range(12):
            player.played("play" if number % 2 else "fold", pair_bonus_minor=50)
        yield found


@pytest.fixture
def wrongly_paid(house: AppHouse) -> Iterator[str]:
    """A round whose record was changed, until the test ends."""
    with house.connect(Role.SUPERUSER) as conn:
        conn.execute("ALTER TABLE transfer DISABLE TRIGGER ALL")
        change = "UPDATE transfer SET amount_minor = amount_minor + %s WHERE cause_id = %s AND kind = 'ante'"
        row = conn.execute("SELECT round_id FROM round ORDER BY opened_at OFFSET 7 LIMIT 1").fetchone()
        assert row is not None
        conn.execute(change, [1, row[0]])
        yield str(row[0])
        conn.execute(change, [-1, row[0]])
        conn.execute("ALTER TABLE transfer ENABLE TRIGGER ALL")
        conn.execute("ALTER TABLE transfer ENABLE ALWAYS TRIGGER transfer_is_append_only")


def command(house: AppHouse, *arguments: str, role: Role = Role.OWNER, options: str = "") -> Result:
    """Replays on a house's database; `options` are of the server's settings."""
    named = {"DATABASE_URL": house.server.url(role), "PGOPTIONS": options}
    return CliRunner().invoke(replay, list(arguments), env=named, catch_exceptions=False)


def entries(house: AppHouse) -> list[tuple[str, dict[str, Any]]]:
    with house.connect() as conn:
        return conn.execute(
            "SELECT type, payload FROM audit_entry WHERE type LIKE 'replay.%' ORDER BY entry_id"
        ).fetchall()


def test_a_period_that_agrees_is_told_and_put_on_record(house: AppHouse) -> None:
    before = len(entries(house))
    done = command(house, "--from", EARLIER, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["agrees"] is True
    assert report["rounds"]["settled"] == 12
    (money,) = report["money"]
    assert (money["mode"], money["currency"], money["staked_minor"]) == ("real", "GBP", 12 * 150 + 6 * 100)
    kind, payload = entries(house)[before]
    assert kind == "replay.completed"
    assert payload["report_digest"] == sha256(done.stdout.rstrip("\n").encode()).hexdigest()
    assert (payload["rounds"], payload["differing"]) == (report["rounds"], 0)
    told = command(house, "--from", EARLIER, "--no-record")
    assert told.stdout.splitlines()[-1] == "Everything agrees."
    assert len(entries(house)) == before + 1


def test_a_difference_is_named_and_an_event(house: AppHouse, wrongly_paid: str) -> None:
    done = command(house, "--from", EARLIER)
    assert done.exit_code == 1
    assert "transfers.ante differs in 1\n" in done.stdout
    assert (
        f'{wrongly_paid}: transfers.ante is recorded as "101 player to escrow", and "100 player to escrow" follows'
        in done.stdout
    )
    assert done.stdout.splitlines()[-1] == "1 differences."
    kind, payload = entries(house)[-1]
    assert (kind, payload["differing"]) == ("replay.differed", 1)
    assert payload["differences"][0]["round_id"] == wrongly_paid


def test_an_empty_period_has_no_activity(house: AppHouse) -> None:
    done = command(house, "--from", "2020-01-01", "--to", "2020-02-01")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "No Activity")


def test_a_round_belongs_to_the_time_in_which_it_was_opened(house: AppHouse) -> None:
    with house.connect() as conn:
        rows = conn.execute("SELECT opened_at FROM round ORDER BY opened_at").fetchall()
    with reading.reading(house.server.url(Role.APP)) as conn:
        chunks = reading.chunks_of(conn, rows[3][0], rows[6][0])
        read = [
            row.kept.opened_at
            for chunk in chunks
            for batch in reading.read_chunk(conn, chunk)
            for row in batch
        ]
    assert read == [row[0] for row in rows[3:6]]


@pytest.mark.parametrize("size", [1, 5, 12, 13])
def test_chunks_hold_every_round_once(house: AppHouse, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(reading, "CHUNK_ROUNDS", size)
    now = datetime.now(UTC)
    with reading.reading(house.server.url(Role.APP)) as conn:
        chunks = reading.chunks_of(conn, now - DAY, now)
        read = [
            row.round_id for chunk in chunks for batch in reading.read_chunk(conn, chunk) for row in batch
        ]
        expected = conn.execute("SELECT round_id FROM round ORDER BY opened_at, round_id").fetchall()
    assert len(chunks) == -(-12 // size)
    assert [(round_id,) for round_id in read] == expected


def test_one_worker_and_several_give_the_same_report(
    house: AppHouse, wrongly_paid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK_ROUNDS", 2)
    until = datetime.now(UTC).isoformat()
    said = ("--from", EARLIER, "--to", until, "--json", "--no-record")
    one, several = (command(house, *said, "--workers", number) for number in ("1", "3"))
    assert one.exit_code == several.exit_code == 1
    assert one.stdout == several.stdout
    assert wrongly_paid in one.stdout


def runs(process: str) -> bool:
    """Whether a process has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_replay_that_was_killed_goes_on_and_gives_the_same_report(
    house: AppHouse, wrongly_paid: str, tmp_path: Path
) -> None:
    state, script = tmp_path / "state.json", tmp_path / "slowly.py"
    script.write_text(SLOWLY)
    said = [sys.executable, str(script), "--from", EARLIER, "--json", "--no-record"]
    kept = [*said, "--state", str(state), "--workers", "2"]
    environment = os.environ | {"DATABASE_URL": house.server.url(Role.OWNER), "PYTHONPATH": str(Path.cwd())}
    process = subprocess.Popen(kept, env=environment, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (state.exists() and len(json.loads(state.read_text())["done"]) >= 2):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    while any(map(runs, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    done = json.loads(state.read_text())
    assert 2 <= len(done["done"]) < len(done["chunks"]) == 6
    resumed = command(house, "--state", str(state), "--json", "--no-record")
    assert resumed.exit_code == 1
    until = datetime.fromisoformat(json.loads(resumed.stdout)["to"])
    plan = Plan.of(house.server.url(Role.APP), datetime.fromisoformat(EARLIER), until)
    progress = Progress(plan)
    for number, tally in replayed(house.server.url(Role.APP), plan, progress.remaining(), 1):
        progress.add(number, tally)
    assert resumed.stdout.rstrip("\n") == progress.report(Tally()).text()
    again = command(house, "--state", str(state), "--json", "--no-record")
    assert again.stdout == resumed.stdout


def test_a_state_of_another_replay_is_refused(house: AppHouse, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    said = ("--no-record", "--state", str(state))
    assert command(house, "--from", EARLIER, *said).exit_code == 0
    other = command(house, "--from", "2020-01-01", *said)
    assert (other.exit_code, other.stdout) == (NO_VERDICT, "")
    assert "belongs to another period" in other.stderr
    content = json.loads(state.read_text())
    del content["sha256"]
    content["database"] = "1/another"
    state.write_text(json.dumps(content | {"sha256": content_digest(content)}))
    assert "belongs to another database" in command(house, *said).stderr
    state.write_text(json.dumps(content | {"sha256": "0"}))
    assert "do not belong together" in command(house, *said).stderr
    state.write_text("[]")
    assert "Name another --state" in command(house, *said).stderr
    state.unlink()
    assert "say --from" in command(house, *said).stderr


def test_a_period_that_is_not_over_is_refused(house: AppHouse) -> None:
    later = (datetime.now(UTC) + DAY).strftime("%Y-%m-%d")
    assert "ends in the future" in command(house, "--from", EARLIER, "--to", later).stderr


def test_where_nothing_can_be_written_nothing_is_and_that_is_said(house: AppHouse) -> None:
    before = len(entries(house))
    readonly = "-c default_transaction_read_only=on"
    done = command(house, "--from", EARLIER, options=readonly)
    assert done.exit_code == 0
    assert done.stderr == "Nothing was put on record: the audit log cannot be written here.\n"
    refused = command(house, "--from", EARLIER, "--record", options=readonly)
    assert (refused.exit_code, refused.stdout) == (NO_VERDICT, "")
    assert len(entries(house)) == before


def test_an_outcome_that_cannot_be_put_on_record_is_told(house: AppHouse) -> None:
    now = datetime.now(UTC)
    with (
        reading.reading(house.server.url(Role.APP)) as conn,
        pytest.raises(SetUpError, match="could not be put on record"),
    ):
        record(conn, Report(now, now, Tally()), actor="system:tests")


def test_nothing_else_is_put_on_record_by_it(house: AppHouse) -> None:
    with house.connect(Role.APP) as conn:
        entry = Entry(type=EntryType.ROUND_SETTLED, occurred_at=clock(conn), actor="system:tests")
        with pytest.raises(pg.CheckViolation, match="is none of"):
            conn.execute("SELECT replay_record(%s)", [entry.text()])


def test_the_application_s_role_is_enough(house: AppHouse) -> None:
    assert command(house, "--from", EARLIER, role=Role.APP).exit_code == 0
    assert entries(house)[-1][0] == "replay.completed"


def test_a_database_that_is_not_there_is_told(house: AppHouse) -> None:
    done = CliRunner().invoke(
        replay, ["--from", EARLIER], env={"DATABASE_URL": "postgresql://127.0.0.1:1/none"}
    )
    assert done.exit_code == NO_VERDICT
    assert "The database cannot be used" in done.stderr


def test_a_worker_that_fails_says_why(house: AppHouse) -> None:
    now = datetime.now(UTC)
    nowhere = Chunk(Key(now, UUID(int=0)), Key(now, UUID(int=0)))
    plan = Plan("", now, now, [nowhere] * 2)
    with pytest.raises(SetUpError, match="cannot be used"):
        list(replayed("postgresql://127.0.0.1:1/none", plan, [0, 1], 2))
