"""What stands on record of random numbers: each test, each instance, each draw, each failure; once, and no secret."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import requests
from psycopg import sql

import casino_brag
from casino_brag.audit import Entry, EntryType
from casino_brag.db.embedded import Role
from casino_brag.rng import MODULE_DIGEST, RngUnavailable, generator
from casino_brag.rounds import integrity, upkeep
from tests.books import broken_laws
from tests.inprocess import AppHouse, app_house_in
from tests.running import CALL_SECONDS, Player, RunningService, code_of, copy_of_program, together

ROOT = Path(casino_brag.__file__).parents[1]
A_DAY = 24 * 60 * 60 + 1
MODULE_EVENTS = re.compile(r"(rng|integrity)\.")
ANY_CARD = re.compile(r"(?<![0-9A-Za-z_-])[2-9TJQKA][shdc](?![0-9A-Za-z_-])")

OF_MODULE = frozenset({"module", "process", "instance"})
MEMBERS = {
    "rng.self_tested": OF_MODULE | {"files", "known_answers"},
    "rng.instantiated": OF_MODULE,
    "rng.integrity_checked": OF_MODULE | {"files", "known_answers"},
    "rng.failed": OF_MODULE | {"reason"},
    "integrity.checked": {"manifest_digest", "files", "paytables", "problems"},
    "integrity.failed": {"manifest_digest", "files", "paytables", "problems"},
}

Told = tuple[str, str, dict[str, Any]]


def recorded(conn: psycopg.Connection[Any], kind: str = "", *, after: int = 0) -> list[Told]:
    """What modules and checks put on record after the first so many: type, actor and payload."""
    rows: list[Told] = conn.execute(
        "SELECT type, actor, payload FROM audit_entry WHERE type ~ '^(rng|integrity)[.]' AND type LIKE %s"
        " ORDER BY occurred_at, entry_id OFFSET %s",
        [f"{kind}%", after],
    ).fetchall()
    return rows


def refused(player: Player) -> None:
    """A deal is refused for now, and nothing is taken."""
    before = player.get("/v1/session").json()
    answer = player.open(100, 50)
    assert code_of(answer) == "rng_unavailable"
    assert answer.headers["Retry-After"] == "5"
    after = player.get("/v1/session").json()
    assert (after["balance_minor"], after["open_round"]) == (before["balance_minor"], before["open_round"])


# Workers


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with RunningService.start(tmp_path_factory.mktemp("records"), workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def busy(running: RunningService) -> RunningService:
    """The service when both workers have dealt."""
    operator = running.operator()
    workers = {f"system:process-{pid}" for pid in running.worker_pids()}
    assert len(workers) == 2
    with running.connect() as conn:
        for _ in range(200):
            operator.player().played()
            if workers <= {actor for _, actor, _ in recorded(conn, "rng.instantiated")}:
                break
    players = [operator.player() for _ in range(6)]
    for _ in range(3):
        together([player.again().played for player in players])
    return running


def test_each_process_puts_its_tests_on_record_once(busy: RunningService) -> None:
    """Each worker, and the command that starts them, which commits to the first round."""
    with busy.connect() as conn:
        told = recorded(conn)
    processes = {actor for _, actor, _ in told}
    assert len(processes) == 3
    assert processes > {f"system:process-{pid}" for pid in busy.worker_pids()}
    kinds = ("integrity.checked", "rng.self_tested", "rng.instantiated")
    assert Counter((kind, actor) for kind, actor, _ in told) == {
        (kind, process): 1 for kind in kinds for process in processes
    }
    for kind, actor, payload in told:
        assert kind == "integrity.checked" or actor == f"system:process-{payload['process']}"


def test_each_draw_is_on_record_with_its_place_in_its_generators_life(busy: RunningService) -> None:
    with busy.connect() as conn:
        made = conn.execute("SELECT payload FROM audit_entry WHERE type = 'commitment.made'").fetchall()
        (commitments,) = conn.execute("SELECT count(*) FROM commitment").fetchone() or (0,)
        instances = {payload["instance"] for _, _, payload in recorded(conn, "rng.instantiated")}
    draws = [(told["rng_instance"], told["rng_request"]) for (told,) in made]
    assert len(draws) == commitments > 6 * 3
    assert len(set(draws)) == len(draws)
    assert all(told["rng_reseeds"] == told["rng_request"] for (told,) in made)
    assert {instance for instance, _ in draws} == instances
    for instance in instances:  # no request was answered that no record tells of
        numbers = sorted(request for name, request in draws if name == instance)
        assert numbers == list(range(1, len(numbers) + 1))


def test_what_is_on_record_of_a_module_holds_no_secret(busy: RunningService) -> None:
    """Each entry has the members of its kind, and nothing long in hexadecimal but digests and names."""
    with busy.connect() as conn:
        told = recorded(conn)
        rows = conn.execute("SELECT type, convert_from(bytes, 'UTF8') FROM audit_entry").fetchall()
    for kind, _, payload in told:
        assert payload.keys() == MEMBERS[kind]
    harmless = {payload.get(name) for _, _, payload in told for name in ("instance", "manifest_digest")}
    texts = [text for kind, text in rows if MODULE_EVENTS.match(kind)]
    assert len(texts) == len(told)
    for text in texts:
        assert set(re.findall(r"(?<![0-9a-f-])[0-9a-f]{16,}", text)) <= harmless | {MODULE_DIGEST}
        assert ANY_CARD.search(text) is None


# The command


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of everything that runs."""
    return copy_of_program(tmp_path)


def verify(running: RunningService, tree: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "casino_brag", "integrity", "verify", *options]
    return subprocess.run(
        [*command, "--data-dir", str(running.data_dir)],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=False,
    )


def of_command(running: RunningService) -> list[Told]:
    with running.connect() as conn:
        return [entry for entry in recorded(conn) if entry[1] == "system:cli"]


def test_the_command_compares_and_puts_the_result_on_record(running: RunningService, tree: Path) -> None:
    so_far = len(of_command(running))
    done = verify(running, tree, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["agrees"], told["problems"], told["paytables"]) == (True, [], 2)
    assert told["files"] == len((tree / "casino_brag/MANIFEST.sha256").read_text().splitlines())
    plain = verify(running, tree)
    assert (plain.returncode, plain.stdout.splitlines()[-1]) == (0, "agrees")
    ours = of_command(running)[so_far:]
    assert [kind for kind, _, _ in ours] == ["integrity.checked"] * 2
    assert ours[0][2] == {name: told[name] for name in MEMBERS["integrity.checked"]}


def test_the_command_fails_when_something_differs(running: RunningService, tree: Path) -> None:
    so_far = len(of_command(running))
    file = tree / "casino_brag/rng/deal.py"
    file.write_bytes(file.read_bytes() + b"\n")
    done, plain = verify(running, tree, "--json"), verify(running, tree)
    assert (done.returncode, plain.returncode) == (1, 1)
    package = "Not as in the package's manifest: casino_brag/rng/deal.py."
    module = "not as in the module's manifest: deal.py"
    told = json.loads(done.stdout)
    assert (told["agrees"], told["problems"]) == (False, [package, module])
    assert plain.stdout.splitlines()[-1].startswith("DOES NOT AGREE: ")
    assert plain.stderr.splitlines() == [package, module]
    ours = of_command(running)[so_far:]
    assert [(kind, payload["problems"]) for kind, _, payload in ours] == [("integrity.failed", [package])] * 2


# The service inside this process


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("told")) as house:
        yield house


@pytest.fixture(autouse=True)
def laws_hold(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "house" in request.fixturenames:
        with request.getfixturevalue("house").connect() as conn:
            assert broken_laws(conn) == {}


def since(house: AppHouse, so_far: int) -> list[Told]:
    with house.connect() as conn:
        return recorded(conn, after=so_far)


def count(house: AppHouse) -> int:
    return len(since(house, 0))


def fails(size: int, flags: int = 0) -> bytes:
    raise OSError(38, "Function not implemented")


def short(size: int, flags: int = 0) -> bytes:
    return bytes(range(size - 1))


def constant(size: int, flags: int = 0) -> bytes:
    return bytes(size)


def repeated(size: int, flags: int = 0) -> bytes:
    return bytes(range(size))


REMEDY = "The process has to be started again, once it is mended."

REASONS = {
    fails: "the operating system gave no random bytes",
    short: "the operating system gave 15 random bytes of 16",
    constant: "7 equal bytes in a row",
    repeated: "two draws from the operating system began with the same 16 bytes",
}


@pytest.mark.parametrize("kernel", REASONS, ids=lambda kernel: kernel.__name__)
def test_a_failure_of_entropy_is_on_record_once_with_its_reason(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, kernel: Callable[..., bytes]
) -> None:
    waiting, player = house.player(), house.operator.real_player(1_000)
    with house.restarted() as started:
        opened = waiting.open(100).json()
        so_far = count(house)
        with monkeypatch.context() as broken:
            broken.setattr(os, "getrandom", kernel)
            if kernel is repeated:
                started.generator.check()  # the first of two that are alike
            refused(player)
            late = house.player()  # a session is opened all the same
            assert late.next_commitment() is None
            assert waiting.decide(opened["round_id"], "fold").json()["next_commitment"] is None
        for _ in range(3):  # the kernel is well again, and nothing is dealt
            refused(player)
            refused(late)
        ready = requests.get(house.base + "/readyz", timeout=CALL_SECONDS)
        assert ready.json()["obstacles"] == [f"No random numbers can be had: {REASONS[kernel]}. {REMEDY}"]
        ((kind, actor, payload),) = since(house, so_far)
    assert (kind, actor) == ("rng.failed", f"system:process-{os.getpid()}")
    assert payload["reason"] == REASONS[kernel]
    assert payload.keys() == MEMBERS[kind]
    with house.restarted():
        assert player.open(100).status_code == late.open(100).status_code == 201


@pytest.mark.parametrize("kernel", [fails, constant])
def test_a_session_is_opened_when_random_numbers_fail_at_that_moment(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, kernel: Callable[..., bytes]
) -> None:
    with house.restarted():
        house.player()
        so_far = count(house)
        with monkeypatch.context() as broken:
            broken.setattr(os, "getrandom", kernel)
            assert house.player().next_commitment() is None
        assert [kind for kind, _, _ in since(house, so_far)] == ["rng.failed"]


def test_what_cannot_be_put_on_record_is_kept_and_written_once(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is gone; then there is a standby, which cannot be written to; then it is back."""
    with house.restarted() as started:
        so_far = count(house)
        with house.connect(Role.APP) as gone:
            gone.close()
            with pytest.raises(psycopg.OperationalError):
                started.upkeep.attend(gone, started.generator)
        with house.connect(Role.APP) as standby:
            standby.execute("SET default_transaction_read_only = on")
            for _ in range(3):
                with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                    started.upkeep.attend(standby, started.generator)
        with monkeypatch.context() as broken:
            broken.setattr(os, "getrandom", fails)
            with pytest.raises(RngUnavailable):
                started.generator.check()
        assert since(house, so_far) == []
        with house.connect(Role.APP) as back:
            for _ in range(3):
                started.upkeep.attend(back, started.generator)
        told = sorted(kind for kind, _, _ in since(house, so_far))
    assert told == ["integrity.checked", "rng.failed", "rng.instantiated", "rng.self_tested"]


def test_requests_at_the_same_instant_put_it_on_record_once(house: AppHouse) -> None:
    players = [house.player() for _ in range(8)]
    with house.restarted():
        so_far = count(house)
        answers = together([partial(player.again().open, 100) for player in players])
        assert {answer.status_code for answer in answers} == {201}
        told = Counter(kind for kind, _, _ in since(house, so_far))
    assert told == {"integrity.checked": 1, "rng.self_tested": 1, "rng.instantiated": 1}


def test_the_applications_role_records_nothing_else_that_way(house: AppHouse) -> None:
    others = [kind for kind in EntryType if not MODULE_EVENTS.match(kind)]
    allowed = [kind for kind in EntryType if kind not in others]
    assert (len(others) >= 14, len(allowed)) == (True, 7)

    def text(kind: EntryType) -> str:
        return Entry(type=kind, occurred_at=datetime.now(UTC), actor="system:tests").text()

    with house.connect(Role.APP) as conn:
        conn.execute("SET ROLE casino_brag_app")
        everything = conn.execute("SELECT count(*) FROM audit_entry").fetchone()
        for kind in others:
            with pytest.raises(psycopg.errors.CheckViolation):
                conn.execute("SELECT module_events_record(%s)", [[text(allowed[0]), text(kind)]])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("INSERT INTO audit_entry SELECT * FROM audit_entry_of(%s)", [text(allowed[0])])
        assert conn.execute("SELECT count(*) FROM audit_entry").fetchone() == everything
        so_far = count(house)
        conn.execute("SELECT module_events_record(%s)", [[text(kind) for kind in allowed]])
    assert sorted(kind for kind, _, _ in since(house, so_far)) == sorted(allowed)


# A program, or rules, that differ


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, in which this process's checks look from now on."""
    package = ROOT / "casino_brag"
    copied = shutil.copytree(package, tmp_path / "casino_brag", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(integrity, "PACKAGE", copied)
    monkeypatch.setattr(integrity, "MANIFEST", copied / "MANIFEST.sha256")
    return copied


def test_a_program_that_differs_commits_to_no_further_round_even_where_a_decision_comes_first(
    house: AppHouse, copy: Path
) -> None:
    player = house.player()
    opened = player.open(100).json()
    (copy / "game" / "hands.py").unlink()
    with house.restarted():
        settled = player.decide(opened["round_id"], "fold").json()
        assert (settled["state"], settled["next_commitment"]) == ("settled", None)


OWN_DIGEST = sql.Identifier("paytable_version_digest_is_of_its_document")
ALTERED = "Version 1 of double-play-brag was altered."


@contextmanager
def altered(house: AppHouse) -> Iterator[None]:
    """Published rules as somebody left them who may do anything to the database."""
    with house.connect(Role.SUPERUSER) as conn:
        find = "SELECT document FROM paytable_version WHERE game = 'double-play-brag'"
        (document,) = conn.execute(find).fetchone() or ("",)
        find = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s"
        (constraint,) = conn.execute(find, [OWN_DIGEST.as_string().strip('"')]).fetchone() or ("",)

        def put(text: str) -> None:
            conn.execute("ALTER TABLE paytable_version DISABLE TRIGGER USER")
            conn.execute("UPDATE paytable_version SET document = %s WHERE game = 'double-play-brag'", [text])
            conn.execute("ALTER TABLE paytable_version ENABLE ALWAYS TRIGGER paytable_version_is_immutable")

        more = document.replace('"prial":40', '"prial":41')
        assert more != document
        conn.execute(sql.SQL("ALTER TABLE paytable_version DROP CONSTRAINT {}").format(OWN_DIGEST))
        put(more)
        try:
            yield
        finally:
            put(document)
            again = sql.SQL("ALTER TABLE paytable_version ADD CONSTRAINT {} {}")
            conn.execute(again.format(OWN_DIGEST, sql.SQL(constraint)))


def test_rules_that_are_altered_meanwhile_are_noticed_within_a_day(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    player, waiting = house.player(game="three-card-brag"), house.player(game="double-play-brag")
    with house.restarted():
        opened = waiting.open(100).json()
        with altered(house):
            player.played()
            so_far = count(house)
            later = SimpleNamespace(monotonic=lambda: time.monotonic() + A_DAY)
            monkeypatch.setattr(upkeep, "time", later)
            monkeypatch.setattr(generator, "time", later)
            refused(player)
            told = {kind: payload for kind, _, payload in since(house, so_far)}
            assert told["integrity.failed"]["problems"] == [ALTERED]
            assert told["rng.failed"]["reason"] == ALTERED
            assert "integrity.checked" not in told
        refused(player)  # what was noticed once is not forgotten
        settled = waiting.decide(opened["round_id"], "play").json()
        assert (settled["state"], settled["next_commitment"]) == ("settled", None)
    with house.restarted():
        assert player.open(100).status_code == 201
