"""A process of the version before commitments, which still runs after the migration, is refused and not misled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from casino_brag.catalogue.sessions import hash_of
from casino_brag.game.settlement import Decision, Stakes
from casino_brag.rounds import deciding, opening
from casino_brag.wallet.answers import Request, carry_out
from tests.books import broken_laws
from tests.inprocess import AppHouse

CALLER = (
    "token_hash session_id operator_id operator player_id player account_id currency mode session_game jurisdiction"
    " language return_url test session_opened_at expires_at balance_minor live read_at"
)
"""The columns of the view, by whose places such a process reads them."""


@pytest.fixture
def law_abiding(app_house: AppHouse) -> Iterator[AppHouse]:
    yield app_house
    with app_house.connect() as conn:
        assert broken_laws(conn) == {}


def test_it_reads_who_calls_as_it_did(app_house: AppHouse) -> None:
    with app_house.connect() as conn:
        described = conn.execute("SELECT * FROM caller LIMIT 0").description
    assert described is not None
    assert [column.name for column in described] == CALLER.split()


def test_it_opens_no_round(law_abiding: AppHouse) -> None:
    player, house = law_abiding.player(), law_abiding.service.house
    ask = opening.Ask(hash_of(player.token), Request("k", b"f"), Stakes(100))
    with law_abiding.service.database.connection() as conn:
        (seen,) = opening.read_for_opening(conn, [ask])
        assert seen is not None
        assert seen.version_id is not None
        assert seen.latest is not None
        version = house.shelf.version(conn, seen.version_id)
        op = dict(opening.prepare_opening(house, ask, seen, version, seen.latest))
        older = {name: value for name, value in op.items() if name != "seconds_between_starts"}
        assert [outcome.name for outcome in carry_out(conn, "round_open", [older])] == ["request_in_progress"]
        assert [outcome.name for outcome in carry_out(conn, "round_open", [op])] == ["opened"]


def test_it_settles_no_round_without_revealing_its_seed(law_abiding: AppHouse) -> None:
    player, house = law_abiding.player(), law_abiding.service.house
    round_id = UUID(player.open(100).json()["round_id"])
    ask = deciding.Ask(hash_of(player.token), Request("k", b"f"), round_id, Decision.PLAY)

    def decided(op: dict[str, Any]) -> list[str]:
        return [outcome.name for outcome in carry_out(conn, "round_decide", [op])]

    with law_abiding.service.database.connection() as conn:
        (seen,) = deciding.read_for_deciding(conn, [ask])
        assert seen is not None
        assert seen.round is not None
        op = dict(deciding.prepare_decision(conn, house, ask, seen, seen.round))
        older = {name: value for name, value in op.items() if name not in ("seed", "next", "next_audit")}
        assert decided(older) == ["request_in_progress"]
        # Nor does one whose next commitment is not the next of the series, as when somebody else made that.
        assert op["next"]["number"] == 2
        assert decided({**op, "next": {**op["next"], "number": 3}}) == ["request_in_progress"]
        assert decided(op) == ["settled"]
        assert decided(older) == ["replayed"]
