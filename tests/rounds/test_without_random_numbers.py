"""Without random numbers no round is opened, open ones are finished, and only a new process begins again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from casino_brag.rng import State, known_answers
from tests.books import broken_laws
from tests.inprocess import AppHouse, app_house_in
from tests.running import CALL_SECONDS, Player, code_of

Kernel = Callable[..., bytes]


def fails(size: int, flags: int = 0) -> bytes:
    raise OSError(38, "Function not implemented")


def short(size: int, flags: int = 0) -> bytes:
    return os.urandom(size - 1)


def stuck(size: int, flags: int = 0) -> bytes:
    return b"\xff" * size


def repeating(size: int, flags: int = 0) -> bytes:
    """As after a snapshot that was restored: varied, and the same each time."""
    return bytes(range(7, 7 + size))


KERNELS = [fails, short, stuck, repeating]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("numbers")) as house:
        yield house


@pytest.fixture(autouse=True)
def laws_hold(house: AppHouse) -> Iterator[None]:
    yield
    with house.connect() as conn:
        assert broken_laws(conn) == {}


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> Callable[[Kernel], None]:
    """Puts another kernel in the place of ours until the test ends."""
    return lambda kernel: monkeypatch.setattr(os, "getrandom", kernel)


def refuses(player: Player, **asked: Any) -> None:
    """A deal is refused for now, and nothing is taken or shown."""
    before = player.get("/v1/session").json()
    refused = player.open(100, 50, **asked)
    assert code_of(refused) == "rng_unavailable"
    assert refused.json()["retryable"] is True
    assert refused.headers["Retry-After"] == "5"
    after = player.get("/v1/session").json()
    for name in ("balance_minor", "open_round", "net_position_minor"):
        assert after[name] == before[name]


def obstacle(house: AppHouse) -> str:
    answer = requests.get(house.base + "/readyz", timeout=CALL_SECONDS)
    assert answer.status_code == 503
    (only,) = answer.json()["obstacles"]
    return str(only)


@every_kernel
def test_a_process_that_starts_without_random_numbers_opens_no_round(
    house: AppHouse, breaks: Callable[[Kernel], None], kernel: Kernel
) -> None:
    breaks(kernel)
    with house.restarted() as started:
        assert started.generator.state is State.ERROR
        player = house.operator.real_player(1_000)
        assert player.next_commitment() is None
        refuses(player)
        assert player.get("/v1/rounds").json()["items"] == []
        assert obstacle(house).startswith("No random numbers can be had: ")


@every_kernel
def test_a_round_is_not_opened_when_random_numbers_fail(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, kernel: Kernel
) -> None:
    """Not even one whose seed was drawn while all was well."""
    player = house.operator.real_player(1_000)
    shown = player.next_commitment()
    assert shown is not None
    with house.restarted() as started:
        with monkeypatch.context() as broken:
            broken.setattr(os, "getrandom", kernel)
            if kernel is repeating:
                started.generator.check()  # the first of two that are alike
            refuses(player, key="dealt later")
        assert started.generator.state is State.ERROR
        refuses(player, key="dealt later")  # the cause is gone, and the error stays
        assert obstacle(house)
    opened = player.open(100, 50, key="dealt later", commitment=shown["value"])
    assert (opened.status_code, opened.headers.get("Idempotency-Replayed")) == (201, None)


@every_kernel
def test_a_commitment_cannot_be_made_when_random_numbers_fail(
    house: AppHouse, breaks: Callable[[Kernel], None], kernel: Kernel
) -> None:
    with house.restarted():
        player = house.player()
        breaks(kernel)
        if kernel is repeating:
            house.service.house.generator.check()
        other = house.player(game="double-play-brag")
        assert other.next_commitment() is None
        refuses(other)
        refuses(player)


@every_kernel
@pytest.mark.parametrize("decision", ["play", "fold"])
def test_an_open_round_is_finished_without_random_numbers(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, kernel: Kernel, decision: str
) -> None:
    player = house.player()
    with house.restarted() as started:
        opened = player.open(100).json()
        with monkeypatch.context() as broken:
            broken.setattr(os, "getrandom", kernel)
            if kernel is repeating:
                started.generator.check()
            settled = player.decide(opened["round_id"], decision)
            assert settled.status_code == 200
            assert settled.json()["next_commitment"] is None
            assert started.generator.state is State.ERROR
        again = player.decide(opened["round_id"], decision)
        assert (again.content, again.headers["Idempotency-Replayed"]) == (settled.content, "true")
        assert player.proof(opened["round_id"]).status_code == 200
        assert player.next_commitment() is None
        refuses(player)
    # A process with random numbers deals the next one of the series.
    assert player.open(100).json()["commitment"]["number"] == opened["commitment"]["number"] + 1


def test_a_round_that_was_settled_without_random_numbers_is_followed_when_a_session_is_opened(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "settled-without"
    player = house.player(player=name)
    with house.restarted():
        opened = player.open(100).json()
        with monkeypatch.context() as broken:
            broken.setattr(os, "getrandom", fails)
            assert player.decide(opened["round_id"], "fold").json()["next_commitment"] is None
    assert house.player(player=name).next_commitment()["number"] == 2


def test_the_self_test_is_run_again_by_each_process(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A known answer that does not come out stops the process at its start."""
    altered = tmp_path / "known_answers.txt"
    altered.write_text(known_answers.FILE.read_text().replace("ReturnedBits = ", "ReturnedBits = 00", 1))
    player = house.player()
    with monkeypatch.context() as broken:
        broken.setattr(known_answers, "FILE", altered)
        with house.restarted() as started:
            assert started.generator.state is State.ERROR
            refuses(player)
    assert player.open(100).status_code == 201
