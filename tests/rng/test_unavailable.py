"""Without random numbers no round is opened: the caller is told, and nothing is taken."""

from __future__ import annotations

import os

import pytest

from tests.books import broken_laws
from tests.inprocess import AppHouse
from tests.running import code_of


def fail(size: int, flags: int = 0) -> bytes:
    raise OSError(38, "Function not implemented")


def short(size: int, flags: int = 0) -> bytes:
    return b"\0" * (size - 1)


def stuck(size: int, flags: int = 0) -> bytes:
    return b"\xff" * size


@pytest.mark.parametrize("kernel", [fail, short, stuck], ids=lambda kernel: kernel.__name__)
def test_a_round_without_random_numbers_is_not_opened(
    app_house: AppHouse, kernel: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = app_house.operator.real_player(1_000)
    with monkeypatch.context() as broken:
        broken.setattr(os, "getrandom", kernel)
        refused = player.open(100, 50, key="dealt later")
    assert code_of(refused) == "rng_unavailable"
    assert (refused.status_code, refused.json()["retryable"], refused.headers["Retry-After"]) == (
        503,
        True,
        "5",
    )
    assert player.balance_minor() == 1_000
    assert player.get("/v1/rounds").json()["items"] == []
    with app_house.connect() as conn:
        assert broken_laws(conn) == {}
    opened = player.open(100, 50, key="dealt later")
    assert (opened.status_code, opened.headers.get("Idempotency-Replayed")) == (201, None)


def test_an_open_round_is_settled_without_random_numbers(
    app_house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = app_house.player()
    opened = player.open(100).json()
    monkeypatch.setattr(os, "getrandom", fail)
    assert player.decide(opened["round_id"], "play").status_code == 200
