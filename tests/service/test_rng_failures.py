"""A process that cannot trust its random numbers, its files or its paytables deals to nobody, and says why."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from casino_brag.db.embedded import Role
from casino_brag.rng import State, generator
from casino_brag.rounds import integrity, upkeep
from tests.books import broken_laws
from tests.inprocess import AppHouse, app_house_in
from tests.running import CALL_SECONDS, Player, RunningService, code_of, copy_of_program, together

ROOT = Path(__file__).parents[2]
WORKERS = 3
TRIES = 40
"""How often a call is made over a connection of its own until every worker has had one."""

SWITCHED = """
import os
from pathlib import Path

kernel = os.getrandom


def getrandom(size, flags=0):
    if Path({switch!r}).exists():
        raise OSError(38, "Function not implemented")
    return kernel(size, flags)


os.getrandom = getrandom
"""
"""What every Python of a service runs first, so that its kernel can be made to fail from outside."""


def entries(service: RunningService | AppHouse, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
    """The actors and payloads of types of audit entries, oldest first."""
    with service.connect() as conn:
        return conn.execute(
            "SELECT actor, payload FROM audit_entry WHERE type = ANY (%s) ORDER BY entry_id", [[*kinds]]
        ).fetchall()


def actors(service: RunningService) -> set[str]:
    """How the audit log names the workers that run now."""
    return {f"system:process-{pid}" for pid in service.worker_pids()}


def until(done: Callable[[], bool], call: Callable[[], object]) -> None:
    """Makes calls, some at once, until what is to come of them has come."""
    for _ in range(TRIES):
        together([call] * (2 * WORKERS))
        if done():
            return
    raise AssertionError("not every worker was reached")


def readiness(base: str) -> tuple[int, list[str]]:
    answer = requests.get(base + "/readyz", timeout=CALL_SECONDS)
    return answer.status_code, answer.json().get("obstacles", [])


def refused(player: Player) -> None:
    """A deal is refused for now, and takes nothing."""
    answer = player.again().open(100, 50)
    assert code_of(answer) == "rng_unavailable"
    assert answer.headers["Retry-After"] == "5"


# Several workers whose kernel fails


@pytest.fixture
def switch(tmp_path: Path) -> Path:
    """A file; while it is there, the services of this test have no random numbers."""
    return tmp_path / "no-random-numbers"


@pytest.fixture
def switched(tmp_path: Path, switch: Path) -> Iterator[RunningService]:
    first = tmp_path / "first"
    first.mkdir()
    (first / "sitecustomize.py").write_text(SWITCHED.format(switch=str(switch)))
    with RunningService.start(tmp_path, workers=WORKERS, environment={"PYTHONPATH": str(first)}) as running:
        yield running


def test_workers_without_random_numbers_deal_to_nobody_until_they_are_started_again(
    switched: RunningService, switch: Path
) -> None:
    service, operator = switched, switched.operator()
    players = [operator.player() for _ in range(2)]
    waiting = [player.open(100).json() for player in players]
    idle = operator.real_player(1_000)
    until(
        lambda: actors(service) <= {actor for actor, _ in entries(service, "integrity.checked")},
        lambda: readiness(service.base),
    )

    switch.touch()
    until(
        lambda: actors(service) == {actor for actor, _ in entries(service, "rng.failed")},
        lambda: refused(idle),
    )
    for _ in range(TRIES):
        status, obstacles = readiness(service.base)
        assert (status, obstacles) == (
            503,
            [
                "No random numbers can be had: the operating system gave no random bytes."
                " The process has to be started again, once it is mended."
            ],
        )
    newcomer = operator.player()
    assert newcomer.next_commitment() is None
    refused(newcomer)

    switch.unlink()
    together([partial(refused, idle)] * TRIES)  # the cause is gone, and the error stays
    for player, round_, decision in zip(players, waiting, ("play", "fold"), strict=True):
        settled = player.decide(round_["round_id"], decision).json()
        assert (settled["state"], settled["next_commitment"]) == ("settled", None)
    assert idle.balance_minor() == 1_000
    assert len(entries(service, "rng.failed")) == WORKERS
    assert service.broken_laws() == {}

    assert service.stop() == 0
    service.launch()
    for player in (*players, idle, newcomer):
        assert player.again().open(100).status_code == 201
    assert readiness(service.base) == (200, [])
    assert len(entries(service, "rng.failed")) == WORKERS
    assert service.broken_laws() == {}


def test_a_service_that_starts_without_random_numbers_deals_to_nobody(
    switched: RunningService, switch: Path
) -> None:
    player = switched.operator().player()
    round_id = player.open(100).json()["round_id"]
    assert switched.stop() == 0
    switch.touch()
    switched.launch(sound=False)
    assert readiness(switched.base)[0] == 503
    assert player.again().decide(round_id, "play").json()["next_commitment"] is None
    refused(player)
    assert switched.broken_laws() == {}


# Files that are not those of the manifests


@dataclass
class Sound:
    """A service that was started from a tree as it should be, has stopped, and left rounds open."""

    service: RunningService
    idle: Player
    waiting: list[tuple[Player, str]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sound]:
    with RunningService.start(tmp_path_factory.mktemp("trees"), workers=2) as service:
        operator = service.operator()
        players = [operator.player() for _ in ALTERED]
        waiting = [(player, player.open(100).json()["round_id"]) for player in players]
        idle = operator.real_player(500)
        service.stop()
        yield Sound(service, idle, waiting)


@contextmanager
def served_from(service: RunningService, tree: Path, *, sound: bool = False) -> Iterator[None]:
    """The service run from another tree, for the length of the block."""
    own, service.checkout = service.checkout, tree
    try:
        service.launch(sound=sound)
        yield
    finally:
        service.stop()
        service.checkout = own


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of everything that runs."""
    return copy_of_program(tmp_path)


def append(name: str) -> Callable[[Path], object]:
    return lambda tree: (tree / name).write_bytes((tree / name).read_bytes() + b"\n")


def add(name: str) -> Callable[[Path], object]:
    return lambda tree: (tree / name).touch()


ALTERED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a byte more in the package": (append("casino_brag/rounds/house.py"), "casino_brag/rounds/house.py"),
    "a byte more in the module": (append("casino_brag/rng/deal.py"), "deal.py"),
    "a name that is no text": (add(os.fsdecode(b"casino_brag/\xff.py")), "casino_brag/"),
}
"""Many more are tried without a service, in `tests/rounds/test_integrity.py` and `tests/rng/test_module.py`."""


@pytest.mark.parametrize("alteration", ALTERED)
def test_a_program_that_is_not_the_one_of_its_manifests_deals_to_nobody(
    sound: Sound, tree: Path, alteration: str
) -> None:
    alter, named = ALTERED[alteration]
    alter(tree)
    service, (player, round_id) = sound.service, sound.waiting.pop()
    before = len(entries(service, "integrity.failed", "rng.failed"))
    with served_from(service, tree):
        settled = player.again().decide(round_id, "play").json()
        assert (settled["state"], settled["next_commitment"]) == ("settled", None)
        refused(sound.idle)
        assert sound.idle.again().balance_minor() == 500
        status, (obstacle,) = readiness(service.base)
        assert status == 503
        assert named in obstacle
        assert str(tree) not in obstacle
    assert named in json.dumps(entries(service, "integrity.failed", "rng.failed")[before:])
    assert service.broken_laws() == {}


def test_a_manifest_that_was_made_to_agree_is_told_from_the_one_before(sound: Sound, tree: Path) -> None:
    """Whoever can change the program can change its manifest too; the log then has another digest."""
    name, manifest = "casino_brag/rounds/house.py", tree / "casino_brag" / "MANIFEST.sha256"
    digests = []
    for _ in range(2):
        with served_from(sound.service, tree, sound=True):
            assert readiness(sound.service.base) == (200, [])
        digests.append(entries(sound.service, "integrity.checked")[-1][1]["manifest_digest"])
        old = sha256((tree / name).read_bytes()).hexdigest()
        append(name)(tree)
        new = sha256((tree / name).read_bytes()).hexdigest()
        manifest.write_text(manifest.read_text().replace(f"{old}  {name}", f"{new}  {name}"))
    assert len(set(digests)) == 2


# Paytables that are not those that were published

GAME, OTHER = "three-card-brag", "double-play-brag"
TAMPER = [
    "ALTER TABLE paytable_version DROP CONSTRAINT IF EXISTS paytable_version_digest_is_of_its_document",
    "ALTER TABLE paytable_version DISABLE TRIGGER paytable_version_is_immutable",
    "UPDATE paytable_version SET document = replace(document, {0}, {1}) WHERE game = 'three-card-brag'",
    "ALTER TABLE paytable_version ENABLE ALWAYS TRIGGER paytable_version_is_immutable",
]


def tamper(house: RunningService | AppHouse, old: str, new: str) -> None:
    """Alters the published rules as only a superuser can."""
    with house.connect(Role.SUPERUSER) as superuser, superuser.transaction():
        for statement in TAMPER:
            superuser.execute(statement.format(f"'{old}'", f"'{new}'"))


def test_a_paytable_that_was_altered_stops_the_next_process_for_all_games(
    own_service: RunningService,
) -> None:
    operator = own_service.operator()
    players = [operator.player(game=game) for game in (GAME, OTHER)]
    own_service.stop()
    tamper(own_service, '"prial":40', '"prial":41')
    own_service.launch(sound=False)
    status, obstacles = readiness(own_service.base)
    assert status == 503
    assert "Version 1 of three-card-brag was altered" in " ".join(obstacles)
    refused(players[1])
    assert code_of(players[0].again().open(100)) in {"rng_unavailable", "game_unavailable"}
    assert operator.open_session(game=OTHER).status_code == 201
    problems = [told["problems"] for _, told in entries(own_service, "integrity.failed")]
    assert ["Version 1 of three-card-brag was altered."] in problems
    own_service.stop()
    tamper(own_service, '"prial":41', '"prial":40')
    own_service.launch()
    for player in players:
        assert player.again().open(100).status_code == 201
    assert own_service.broken_laws() == {}


# Once a day, and before anything else


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("days")) as house:
        yield house


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the clock by which checks are due, by so many seconds from now."""

    def move(seconds: float) -> None:
        clock = SimpleNamespace(monotonic=lambda: time.monotonic() + seconds)
        monkeypatch.setattr(upkeep, "time", clock)
        monkeypatch.setattr(generator, "time", clock)

    return move


def checks(house: AppHouse) -> tuple[int, int]:
    return len(entries(house, "integrity.checked")), len(entries(house, "rng.integrity_checked"))


def test_files_and_paytables_are_compared_once_a_day(house: AppHouse, later: Callable[[float], None]) -> None:
    day = 24 * 60 * 60
    with house.restarted():
        player = house.player()
        player.played()
        program, module = checks(house)
        later(day - 60)
        player.played()
        assert checks(house) == (program, module)
        later(day + 60)
        for _ in range(3):
            player.played()
        assert checks(house) == (program + 1, module + 1)
        later(2 * day + 120)
        for _ in range(3):
            player.played()
        assert checks(house) == (program + 2, module + 2)


def test_a_file_that_changes_while_the_program_runs_stops_it_within_a_day(
    house: AppHouse, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    altered = tmp_path / "MANIFEST.sha256"
    lines = integrity.MANIFEST.read_text().splitlines(keepends=True)
    altered.write_text("".join(lines[1:]))
    with house.restarted() as started:
        player = house.player()
        opened = player.open(100).json()
        monkeypatch.setattr(integrity, "MANIFEST", altered)
        other = house.player()
        assert other.open(100).status_code == 201, "it is not looked at before each deal"
        later(24 * 60 * 60 + 60)
        newcomer = house.player()
        refused(newcomer)
        assert started.generator.state is State.ERROR
        settled = player.decide(opened["round_id"], "fold").json()
        assert (settled["state"], settled["next_commitment"]) == ("settled", None)
        (told,) = entries(house, "integrity.failed")[-1][1]["problems"]
        assert lines[0].split()[1] in told
    with house.connect() as conn:
        assert broken_laws(conn) == {}


def test_a_module_that_changes_while_the_program_runs_stops_it_within_a_day(
    house: AppHouse, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with house.restarted() as started:
        player = house.player()
        player.played()
        monkeypatch.setattr(generator, "module_digest", lambda: "0" * 64)
        player.played()
        later(24 * 60 * 60 + 60)
        refused(player)
        assert started.generator.failure == "the module's files changed after they were loaded"
        assert entries(house, "rng.failed")[-1][1]["reason"] == started.generator.failure


def test_nobody_is_dealt_to_before_a_process_has_checked_itself(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even while another request has it checked."""
    check = integrity.check_integrity

    def slowly(conn: Any) -> integrity.Integrity:
        time.sleep(0.5)
        found = check(conn)
        return integrity.Integrity(found.manifest_digest, found.files, found.paytables, ("It is not.",))

    players = [house.player() for _ in range(4)]
    monkeypatch.setattr(upkeep, "check_integrity", slowly)
    with house.restarted():
        together([partial(refused, player) for player in players])
