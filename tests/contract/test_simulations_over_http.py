"""Simulations over HTTP: queued, followed and cancelled by anybody of staff."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
import requests

from casino_brag.catalogue.simulations import QUEUE_MAX, ROUNDS_MAX, ROUNDS_MIN
from casino_brag.jobs.simulations import Simulations
from tests.inprocess import AppHouse, app_house_in
from tests.running import CALL_SECONDS, Player, code_of

PATH = "/v1/simulations"
GAME = "three-card-brag"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("simulations-http")) as started:
        yield started


@pytest.fixture(scope="module")
def caller(house: AppHouse) -> Player:
    return house.staff("editor")


@pytest.fixture(autouse=True)
def nothing_waits(caller: Player) -> Iterator[None]:
    yield
    for found in call(caller, "GET", PATH, limit=200).json()["items"]:
        if found["state"] in ("queued", "running"):
            assert call(caller, "POST", f"{PATH}/{found['simulation_id']}/cancel").status_code == 200


def call(caller: Player, method: str, path: str, body: Any = None, **query: Any) -> requests.Response:
    return caller.http.request(
        method,
        caller.base + path,
        json=body,
        params=query,
        headers={"Authorization": f"Bearer {caller.token}"},
        timeout=CALL_SECONDS,
    )


def queued(caller: Player, **wanted: Any) -> dict[str, Any]:
    answer = call(caller, "POST", PATH, {"game": GAME, "rounds": ROUNDS_MIN} | wanted)
    assert answer.status_code == 202, answer.text
    told: dict[str, Any] = answer.json()
    assert answer.headers["Location"] == f"{PATH}/{told['simulation_id']}"
    return told


def played(house: AppHouse, caller: Player, simulation_id: str) -> dict[str, Any]:
    """The simulation, once a worker has played it."""
    job = Simulations(house.config.database_url)
    deadline = time.monotonic() + 120
    while True:
        job.attend(house.service.database.connection)
        told: dict[str, Any] = call(caller, "GET", f"{PATH}/{simulation_id}").json()
        if told["state"] not in ("queued", "running"):
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if job.pid is not None:  # what it played last is kept, and nothing waits any more
        os.kill(job.pid, signal.SIGKILL)
        while job.pid is not None:
            time.sleep(0.01)
    return told


def test_a_simulation_is_queued_played_and_read(house: AppHouse, caller: Player) -> None:
    told = queued(caller, rounds=300_000, strategy="fold_below:Q-6-4")
    assert (told["state"], told["rounds_done"], told["result"], told["course"]) == ("queued", 0, None, [])
    assert (told["queued_by"], told["version"], told["draft"]) == (caller.name, 1, None)
    done = played(house, caller, told["simulation_id"])
    assert (done["state"], done["rounds_done"]) == ("done", 300_000)
    assert done["conclusion"] in ("agrees", "repeat", "disagrees")
    figures = done["result"]["figures"]
    assert figures.keys() >= {"main_rtp", "main_house_edge", "pair_bonus_rtp", "total_rtp"}
    main = figures["main_rtp"]
    assert float(main["low"]) < float(main["simulated"]) < float(main["high"])
    assert Fraction(main["expected_exact"]) == pytest.approx(float(main["expected"]))
    assert [point["rounds"] for point in done["course"]] == [100_000, 200_000, 300_000]
    assert done["course"][-1]["figures"]["main_rtp"]["simulated"] == main["simulated"]


def test_the_same_seed_gives_the_same_figures(house: AppHouse, caller: Player) -> None:
    first, then = (queued(caller, seed="5a" * 48)["simulation_id"] for _ in range(2))
    one, other = played(house, caller, first), played(house, caller, then)
    assert one["seed"] == "5a" * 48
    assert one["result"] == other["result"]


@pytest.mark.parametrize("role", ["editor", "approver", "auditor", "operations"])
def test_anybody_of_staff_may(house: AppHouse, role: str) -> None:
    person = house.staff(role)
    told = queued(person)
    assert call(person, "GET", f"{PATH}/{told['simulation_id']}").status_code == 200
    assert call(person, "GET", PATH).json()["items"][0]["simulation_id"] == told["simulation_id"]
    cancelled = call(person, "POST", f"{PATH}/{told['simulation_id']}/cancel")
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")


def test_what_has_ended_is_not_cancelled(caller: Player) -> None:
    path = f"{PATH}/{queued(caller)['simulation_id']}/cancel"
    assert call(caller, "POST", path).status_code == 200
    assert code_of(call(caller, "POST", path)) == "wrong_state"


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("rounds", ROUNDS_MIN - 1),
        ("rounds", ROUNDS_MAX + 1),
        ("rounds", "1e6"),
        ("rounds", 1e6),
        ("rounds", None),
        ("strategy", "best"),
        ("strategy", "fold_below:"),
        ("strategy", "fold_below:9-9-9-9"),
        ("seed", "5A" * 48),
        ("seed", "5a" * 47),
        ("version", 0),
        ("version", 2**31),
        ("draft", -1),
        ("game", ""),
        ("game", "a b"),
        ("stakes", "100"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(caller: Player, field: str, wrong: Any) -> None:
    answer = call(caller, "POST", PATH, {"game": GAME, "rounds": ROUNDS_MIN, field: wrong})
    assert code_of(answer) == "invalid"
    assert answer.json()["errors"].keys() == {field}


def test_a_version_and_a_draft_are_not_one_simulation(caller: Player) -> None:
    answer = call(caller, "POST", PATH, {"game": GAME, "rounds": ROUNDS_MIN, "version": 1, "draft": 1})
    assert code_of(answer) == "invalid"


@pytest.mark.parametrize("wanted", [{"game": "nothing"}, {"version": 77}, {"draft": 77}])
def test_what_there_is_not_is_not_found(caller: Player, wanted: dict[str, Any]) -> None:
    answer = call(caller, "POST", PATH, {"game": GAME, "rounds": ROUNDS_MIN} | wanted)
    assert code_of(answer) == "not_found"
    assert code_of(call(caller, "GET", f"{PATH}/00000000-0000-7000-8000-000000000000")) == "not_found"


def test_a_full_queue_says_when_to_come_again(caller: Player) -> None:
    for _ in range(QUEUE_MAX):
        queued(caller)
    answer = call(caller, "POST", PATH, {"game": GAME, "rounds": ROUNDS_MIN})
    assert (answer.status_code, code_of(answer)) == (429, "rate_limited")
    assert answer.headers["Retry-After"] == "60"


def test_the_list_goes_on_where_a_page_ends(caller: Player) -> None:
    made = [queued(caller)["simulation_id"] for _ in range(3)][::-1]
    first = call(caller, "GET", PATH, limit=2).json()
    assert [found["simulation_id"] for found in first["items"]] == made[:2]
    then = call(caller, "GET", PATH, limit=1, cursor=first["next_cursor"]).json()
    assert [found["simulation_id"] for found in then["items"]] == made[2:]
    assert "course" not in then["items"][0]


def test_without_a_token_nothing_is_told(house: AppHouse) -> None:
    told: list[Callable[[], requests.Response]] = [
        lambda: requests.get(house.base + PATH, timeout=CALL_SECONDS),
        lambda: requests.post(house.base + PATH, json={}, timeout=CALL_SECONDS),
    ]
    for ask in told:
        assert ask().status_code in (401, 422)
