"""Requests that arrive at the same instant: one key has one effect, and a balance is never spent twice."""

from __future__ import annotations

import secrets
from collections import Counter
from functools import partial

import requests

from tests.running import Operator, Player, RunningService, code_of, together

PARALLEL = 50


def moved(service: RunningService, player: Player) -> list[tuple[str, int]]:
    """What rounds have moved for a player, in no order."""
    with service.connect() as conn:
        return sorted(
            conn.execute(
                "SELECT t.kind, t.amount_minor FROM transfer AS t JOIN round AS r USING (round_id)"
                " JOIN session AS s USING (player_id) WHERE s.token_hash = sha256(convert_to(%s, 'UTF8'))",
                [player.token],
            ).fetchall()
        )


def replayed(answer: requests.Response) -> bool:
    return answer.headers.get("Idempotency-Replayed") == "true"


def test_parallel_opens_with_one_key_are_one_round(service: RunningService, operator: Operator) -> None:
    player = operator.player()
    before = player.balance_minor()
    answers = service.piled_up(
        player, [partial(player.again().open, 100, 50, key="one") for _ in range(PARALLEL)]
    )

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert Counter(map(replayed, answers)) == {False: 1, True: PARALLEL - 1}
    assert {answer.headers["Content-Type"] for answer in answers} == {"application/json"}

    assert len(player.get("/v1/rounds").json()["items"]) == 1
    assert moved(service, player) == [("ante", 100), ("pair_bonus", 50)]
    assert player.balance_minor() == before - 150 == answers[0].json()["balance_minor"]
    assert service.broken_laws() == {}


def test_parallel_opens_with_different_keys_are_one_round(
    service: RunningService, operator: Operator
) -> None:
    player = operator.player()
    before = player.balance_minor()
    answers = service.piled_up(player, [partial(player.again().open, 100) for _ in range(PARALLEL)])

    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: PARALLEL - 1}
    assert {code_of(answer) for answer in answers if answer.status_code == 409} == {"round_open"}
    assert len(player.get("/v1/rounds").json()["items"]) == 1
    assert moved(service, player) == [("ante", 100)]
    assert player.balance_minor() == before - 100
    assert service.broken_laws() == {}


def test_parallel_opens_on_several_sessions_of_a_player_are_one_round(
    service: RunningService, operator: Operator
) -> None:
    name = secrets.token_hex(6)
    sessions = [operator.player(player=name) for _ in range(10)]
    answers = service.piled_up(sessions[0], [partial(session.again().open, 100) for session in sessions])
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 9}
    assert {session.balance_minor() for session in sessions} == {100_000 - 100}
    assert service.broken_laws() == {}


def test_parallel_deposits_with_one_key_are_one_deposit_even_to_a_player_never_heard_of(
    service: RunningService, operator: Operator
) -> None:
    name = secrets.token_hex(6)
    answers = together([partial(operator.deposit, name, 700, key="one") for _ in range(PARALLEL)])
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert Counter(map(replayed, answers)) == {False: 1, True: PARALLEL - 1}
    assert operator.player(player=name, mode="real").balance_minor() == 700
    assert service.broken_laws() == {}


def test_parallel_deposits_with_different_keys_all_count(service: RunningService, operator: Operator) -> None:
    name = secrets.token_hex(6)
    answers = together([partial(operator.deposit, name, 10) for _ in range(PARALLEL)])
    assert {answer.status_code for answer in answers} == {201}
    assert sorted(answer.json()["balance_minor"] for answer in answers) == [
        10 * count for count in range(1, PARALLEL + 1)
    ]
    assert service.broken_laws() == {}


def test_parallel_sessions_of_a_new_demo_player_fill_its_account_once(
    service: RunningService, operator: Operator
) -> None:
    name = secrets.token_hex(6)
    answers = together([partial(operator.open_session, player=name) for _ in range(20)])
    assert {answer.status_code for answer in answers} == {201}
    assert Player(service.base, answers[0].json()["token"]).balance_minor() == 100_000
    assert service.broken_laws() == {}


def test_a_balance_is_never_overdrawn_by_withdrawals_opens_and_deposits_that_race(
    service: RunningService, operator: Operator
) -> None:
    players = {}
    for _ in range(6):
        name = secrets.token_hex(6)
        operator.deposit(name, 300)
        players[name] = operator.player(player=name, mode="real")

    def races(name: str, player: Player) -> list[partial[requests.Response]]:
        return [
            *(partial(operator.withdraw, name, 200) for _ in range(4)),
            partial(operator.deposit, name, 50),
            *(partial(player.again().open, 200) for _ in range(2)),
            partial(player.again().open, 150, 100),
        ]

    calls = [(name, call) for name, player in players.items() for call in races(name, player)]
    answers = together([call for _, call in calls])

    spent: dict[str, list[int]] = {name: [] for name in players}
    for (name, _), answer in zip(calls, answers, strict=True):
        if answer.status_code != 201:
            assert code_of(answer) in {"insufficient_funds", "round_open"}
            continue
        given = answer.json()
        assert given["balance_minor"] >= 0
        if "round_id" in given:
            spent[name].append(sum(wager["stake_minor"] for wager in given["wagers"]))
        elif given["amount_minor"] != 50:
            spent[name].append(given["amount_minor"])
    for name, player in players.items():
        (amount,) = spent[name]  # each had enough for one, and never for two
        assert player.balance_minor() == 300 + 50 - amount
    assert service.broken_laws() == {}
