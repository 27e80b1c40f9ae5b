"""A key names one request of one player for ever: its answer is repeated, and another request is refused."""

from __future__ import annotations

import json
import secrets
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.running import Operator, Player, RunningService, code_of

WAIT_SECONDS = 10


def is_replay_of(answer: requests.Response, first: requests.Response) -> bool:
    return (
        answer.headers.get("Idempotency-Replayed") == "true"
        and (answer.status_code, answer.content) == (first.status_code, first.content)
        and answer.headers["Content-Type"] == first.headers["Content-Type"]
    )


def rounds_of(player: Player) -> list[dict[str, Any]]:
    return list(player.get("/v1/rounds").json()["items"])


def wait_for_answer(service: RunningService, key: str) -> str:
    """The body stored under a key, as soon as it is committed."""
    with service.connect() as conn:
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            row = conn.execute("SELECT body FROM answer WHERE idempotency_key = %s", [key]).fetchone()
            if row is not None:
                return str(row[0])
            time.sleep(0.01)
    raise AssertionError(f"nothing was stored under {key} in {WAIT_SECONDS} s")


def test_the_same_request_again_gets_the_first_answer(operator: Operator) -> None:
    player = operator.player()
    first = player.open(100, 50, key="k")
    assert first.status_code == 201
    assert "Idempotency-Replayed" not in first.headers
    assert is_replay_of(player.open(100, 50, key="k"), first)
    settled = player.decide(first.json()["round_id"], "play")
    assert is_replay_of(player.open(100, 50, key="k"), first), "the first answer, not the round as it is now"
    assert len(rounds_of(player)) == 1
    assert player.balance_minor() == settled.json()["balance_minor"]


def test_layout_and_defaults_do_not_make_another_request(operator: Operator) -> None:
    player = operator.player()
    first = player.post("/v1/rounds", b'{"ante_minor":100,"pair_bonus_minor":50}', key="k")
    laid_out = b'{\n "pair_bonus_minor" : 50 ,\n "ante_minor" : 100\n}'
    assert is_replay_of(player.post("/v1/rounds", laid_out, key="k"), first)

    other = operator.player()
    first = other.post("/v1/rounds", {"ante_minor": 100}, key="k")
    assert is_replay_of(other.post("/v1/rounds", {"ante_minor": 100, "pair_bonus_minor": 0}, key="k"), first)


@pytest.mark.parametrize(
    "changed",
    [
        {"ante_minor": 105},
        {"pair_bonus_minor": 55},
        {"pair_bonus_minor": 0},
        {"game": "double-play-brag"},
    ],
    ids=str,
)
def test_a_key_that_opened_a_round_opens_no_other(operator: Operator, changed: dict[str, Any]) -> None:
    player = operator.player_of_any_game()
    wanted = {"ante_minor": 100, "pair_bonus_minor": 50, "game": "three-card-brag"}
    first = player.post("/v1/rounds", wanted, key="k")
    assert first.status_code == 201
    before = player.balance_minor()
    assert code_of(player.post("/v1/rounds", wanted | changed, key="k")) == "idempotency_key_reused"
    assert len(rounds_of(player)) == 1
    assert player.balance_minor() == before
    assert is_replay_of(player.post("/v1/rounds", wanted, key="k"), first)


def test_a_key_serves_one_address(operator: Operator) -> None:
    player = operator.player_of_any_game()
    opened = player.post("/v1/rounds", {"ante_minor": 100, "game": "three-card-brag"}, key="open").json()
    other = player.post("/v1/rounds", {"ante_minor": 100, "game": "double-play-brag"}, key="other").json()
    assert code_of(player.decide(opened["round_id"], "fold", key="open")) == "idempotency_key_reused"
    assert player.get(f"/v1/rounds/{opened['round_id']}").json()["state"] == "awaiting_decision"

    assert player.decide(opened["round_id"], "fold", key="decide").status_code == 200
    assert code_of(player.decide(opened["round_id"], "play", key="decide")) == "idempotency_key_reused"
    assert code_of(player.decide(other["round_id"], "fold", key="decide")) == "idempotency_key_reused"
    assert player.get(f"/v1/rounds/{other['round_id']}").json()["state"] == "awaiting_decision"


def test_a_key_that_moved_money_moves_no_other(operator: Operator) -> None:
    name = secrets.token_hex(6)
    first = operator.deposit(name, 500, key="k")
    assert code_of(operator.deposit(name, 501, key="k")) == "idempotency_key_reused"
    assert code_of(operator.deposit(name, 500, "EUR", key="k")) == "idempotency_key_reused"
    assert code_of(operator.withdraw(name, 500, key="k")) == "idempotency_key_reused"
    assert code_of(operator.player(player=name, mode="real").open(100, key="k")) == "idempotency_key_reused"
    assert is_replay_of(operator.deposit(name, 500, key="k"), first)
    held = operator.send("GET", f"/v1/operator/players/{name}/balance?currency=GBP").json()
    assert held["balance_minor"] == 500


def test_players_and_operators_share_keys_without_meeting(
    operator: Operator, other_operator: Operator
) -> None:
    name, key = secrets.token_hex(6), secrets.token_hex(6)
    assert operator.deposit(name, 500, key=key).status_code == 201
    elsewhere = other_operator.deposit(name, 700, key=key)
    assert elsewhere.status_code == 201
    assert elsewhere.json()["balance_minor"] == 700
    neighbour = operator.deposit(name + "-2", 900, key=key)
    assert (neighbour.status_code, neighbour.json()["balance_minor"]) == (201, 900)

    here = operator.player(player=name, mode="real")
    there = other_operator.player(player=name, mode="real")
    opened = [player.open(stake, key="round") for player, stake in ((here, 100), (there, 200))]
    assert [answer.status_code for answer in opened] == [201, 201]
    assert [answer.json()["balance_minor"] for answer in opened] == [400, 500]
    assert not any("Idempotency-Replayed" in answer.headers for answer in opened)
    assert [len(rounds_of(player)) for player in (here, there)] == [1, 1]


def hang_up(connection: socket.socket) -> None:
    """Closes in good order."""
    connection.close()


def reset(connection: socket.socket) -> None:
    """Closes as a client that crashed."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("leave", [hang_up, reset])
def test_a_client_that_leaves_before_the_answer_gets_it_on_return(
    operator: Operator, leave: Callable[[socket.socket], None]
) -> None:
    for _ in range(5):
        player, key = operator.player(), secrets.token_hex(8)
        leave(player.send_only("/v1/rounds", {"ante_minor": 100}, key))
        answer = player.open(100, key=key)
        assert answer.status_code == 201
        (only,) = rounds_of(player)
        assert only["round_id"] == answer.json()["round_id"]
        assert player.balance_minor() == 100_000 - 100


@pytest.mark.parametrize("leave", [hang_up, reset])
def test_an_answer_lost_after_the_commit_is_given_again(
    service: RunningService, operator: Operator, leave: Callable[[socket.socket], None]
) -> None:
    player, key = operator.player(), secrets.token_hex(8)
    lost = player.send_only("/v1/rounds", {"ante_minor": 100}, key)
    stored = wait_for_answer(service, key)
    leave(lost)
    answer = player.open(100, key=key)
    assert (answer.status_code, answer.text) == (201, stored)
    assert answer.headers["Idempotency-Replayed"] == "true"

    round_id, key = answer.json()["round_id"], secrets.token_hex(8)
    lost = player.send_only(f"/v1/rounds/{round_id}/decision", {"decision": "play"}, key)
    stored = wait_for_answer(service, key)
    leave(lost)
    answer = player.decide(round_id, "play", key=key)
    assert (answer.status_code, answer.text) == (200, stored)
    assert json.loads(stored)["balance_minor"] == player.balance_minor()
    assert len(rounds_of(player)) == 1


@pytest.mark.parametrize(
    "refused_first",
    [{"ante_minor": 100}, {"ante_minor": 101}, {"ante_minor": 300_000}, {"ante_minor": "100"}],
    ids=["no funds", "off step", "no funds for much", "no number"],
)
def test_a_refusal_leaves_the_key_free(
    service: RunningService, operator: Operator, refused_first: dict[str, Any]
) -> None:
    name = secrets.token_hex(6)
    player = operator.player(player=name, mode="real")
    assert code_of(player.post("/v1/rounds", refused_first, key="k")) in {
        "insufficient_funds",
        "stake_out_of_limits",
        "invalid",
    }
    assert rounds_of(player) == []
    operator.deposit(name, 150)
    answer = player.open(100, key="k")
    assert (answer.status_code, answer.json()["balance_minor"]) == (201, 50)
    assert "Idempotency-Replayed" not in answer.headers
    assert service.broken_laws() == {}


def test_a_key_refused_because_a_round_was_open_serves_afterwards(operator: Operator) -> None:
    player = operator.player()
    first = player.open(100).json()
    assert code_of(player.open(200, key="k")) == "round_open"
    assert player.decide(first["round_id"], "fold").status_code == 200
    assert player.open(200, key="k").status_code == 201


@pytest.mark.parametrize(
    "key",
    [None, "k" * 256, "clé".encode("latin-1"), "ключ".encode(), "a\tb"],
    ids=["missing", "overlong", "latin-1", "utf-8", "tab"],
)
def test_a_key_that_will_not_do_is_refused(operator: Operator, key: str | bytes | None) -> None:
    player, name = operator.player(), secrets.token_hex(6)
    headers: dict[str, Any] = player.headers() | ({} if key is None else {"Idempotency-Key": key})
    answer = requests.post(player.base + "/v1/rounds", b'{"ante_minor": 100}', headers=headers, timeout=10)
    assert code_of(answer) == "idempotency_key_missing"
    assert rounds_of(player) == []

    headers = {} if key is None else {"Idempotency-Key": key}
    wanted = {"amount_minor": 100, "currency": "GBP"}
    answer = operator.send("POST", f"/v1/operator/players/{name}/deposits", wanted, headers=headers)
    assert code_of(answer) == "idempotency_key_missing"


def test_the_longest_key_serves(operator: Operator) -> None:
    player, key = operator.player(), "~" * 255
    first = player.open(100, key=key)
    assert first.status_code == 201
    assert is_replay_of(player.open(100, key=key), first)
