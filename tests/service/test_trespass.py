"""What is somebody else's, and what is not the client's to say."""

from __future__ import annotations

import secrets
import uuid
from functools import partial
from typing import Any

import pytest
import requests

from tests.running import Operator, Player, RunningService, code_of, together

NOT_THE_CLIENTS = {
    "player_cards": ["As", "Ah", "Ad"],
    "dealer_cards": ["2s", "3h", "5d"],
    "cards": ["As", "Ah", "Ad"],
    "deal_index": 0,
    "seed": "00",
    "total_payout_minor": 1_000_000,
    "payout_max_minor": 1_000_000,
    "wagers": [{"spot": "ante", "stake_minor": 100}],
    "play_minor": 1,
    "balance_minor": 1_000_000,
    "paytable": {"version": 1, "digest": "0"},
    "paytable_version_id": str(uuid.UUID(int=0)),
    "version": 1,
    "state": "settled",
    "result": "win",
    "settlement": {},
    "settled_at": "2026-01-01T00:00:00Z",
    "opened_at": "2026-01-01T00:00:00Z",
    "round_id": str(uuid.UUID(int=0)),
    "session_id": str(uuid.UUID(int=0)),
    "player_id": str(uuid.UUID(int=0)),
    "operator_id": str(uuid.UUID(int=0)),
    "account_id": str(uuid.UUID(int=0)),
    "mode": "demo",
    "currency": "JPY",
    "__proto__": {},
    "Ante_minor": 100,
    "": 100,
}


def seen(answer: requests.Response) -> tuple[Any, ...]:
    """Everything a caller can tell one answer from another by, but for its number and its time."""
    told = {name: value for name, value in answer.headers.items() if name not in {"X-Request-ID", "Date"}}
    return answer.status_code, told, answer.content


@pytest.mark.parametrize("field", NOT_THE_CLIENTS)
def test_a_field_that_is_not_the_clients_is_refused_and_nothing_happens(
    service: RunningService, operator: Operator, field: str
) -> None:
    player = operator.player()
    named = {field: NOT_THE_CLIENTS[field]}
    answer = player.post("/v1/rounds", {"ante_minor": 100} | named)
    assert (code_of(answer), list(answer.json()["errors"])) == ("invalid", [field])
    assert player.get("/v1/rounds").json()["items"] == []

    opened = player.open(100).json()
    answer = player.post(f"/v1/rounds/{opened['round_id']}/decision", {"decision": "play"} | named)
    assert (code_of(answer), list(answer.json()["errors"])) == ("invalid", [field])
    assert player.get("/v1/session").json()["open_round"]["round_id"] == opened["round_id"]
    assert player.balance_minor() == 100_000 - 100


@pytest.mark.parametrize("decision", ["raise", "PLAY", "play ", "", None, True, 1, ["play"], {"play": 1}])
def test_a_decision_that_is_none_is_refused(operator: Operator, decision: Any) -> None:
    player = operator.player()
    round_id = player.open(100).json()["round_id"]
    answer = player.post(f"/v1/rounds/{round_id}/decision", {"decision": decision})
    assert (code_of(answer), list(answer.json()["errors"])) == ("invalid", ["decision"])
    assert player.get(f"/v1/rounds/{round_id}").json()["state"] == "awaiting_decision"


def test_another_players_round_looks_like_one_that_does_not_exist(
    operator: Operator, other_operator: Operator
) -> None:
    name = secrets.token_hex(6)
    owner = operator.player(player=name)
    waiting = owner.open(100).json()["round_id"]
    strangers = [operator.player(), other_operator.player(player=name)]
    for stranger in strangers:
        before = stranger.balance_minor()
        nowhere = str(uuid.uuid4())
        missing = stranger.get(f"/v1/rounds/{nowhere}")
        assert code_of(missing) == "round_not_found"
        assert seen(stranger.get(f"/v1/rounds/{waiting}")) == seen(missing)
        missing = stranger.decide(nowhere, "fold")
        assert code_of(missing) == "round_not_found"
        for decision in ("play", "fold"):
            assert seen(stranger.decide(waiting, decision)) == seen(missing)
        assert stranger.get("/v1/rounds").json()["items"] == []
        # A cursor is a place in one's own list, whoever's round it names.
        assert stranger.get(f"/v1/rounds?cursor={waiting}").json()["items"] == []
        assert stranger.balance_minor() == before
    assert owner.get(f"/v1/rounds/{waiting}").json()["state"] == "awaiting_decision"

    assert owner.decide(waiting, "play").status_code == 200
    for stranger in strangers:
        missing = stranger.get(f"/v1/rounds/{uuid.uuid4()}")
        assert seen(stranger.get(f"/v1/rounds/{waiting}")) == seen(missing)
        assert code_of(stranger.decide(waiting, "play")) == "round_not_found"


def test_an_operator_cannot_touch_what_is_another_operators(
    service: RunningService, operator: Operator, other_operator: Operator
) -> None:
    name = secrets.token_hex(6)
    operator.deposit(name, 500)
    session = operator.open_session(player=name, mode="real").json()
    missing = other_operator.send("DELETE", f"/v1/operator/sessions/{uuid.uuid4()}")
    assert code_of(missing) == "not_found"
    theirs = other_operator.send("DELETE", f"/v1/operator/sessions/{session['session_id']}")
    assert seen(theirs) == seen(missing)
    assert Player(service.base, session["token"]).balance_minor() == 500

    held = other_operator.send("GET", f"/v1/operator/players/{name}/balance?currency=GBP").json()
    assert held["balance_minor"] == 0
    assert code_of(other_operator.withdraw(name, 1)) == "insufficient_funds"


def altered(token: str) -> list[str]:
    other = next(letter for letter in "ABC" if letter not in (token[0], token[-1]))
    half = len(token) // 2
    return [
        token[:-1] + other,
        other + token[1:],
        token[:-1],
        token + other,
        token.swapcase(),
        token[half:] + token[:half],
        f"{token}, {token}",
        f"{token}' OR '1'='1",
        "",
        "\xff" * 43,
    ]


def test_a_token_that_was_altered_is_nobodys(operator: Operator) -> None:
    player = operator.player()
    round_id = player.open(100).json()["round_id"]
    for token in altered(player.token):
        stranger = Player(player.base, token)
        for answer in (
            stranger.get("/v1/session"),
            stranger.get("/v1/rounds"),
            stranger.get(f"/v1/rounds/{round_id}"),
            stranger.open(100),
            stranger.decide(round_id, "fold"),
        ):
            assert code_of(answer) == "unauthenticated"
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert player.get(f"/v1/rounds/{round_id}").json()["state"] == "awaiting_decision"


@pytest.mark.parametrize("scheme", ["", "bearer ", "Basic ", "Token "])
def test_a_token_comes_as_a_bearer(operator: Operator, scheme: str) -> None:
    player = operator.player()
    headers = {"Authorization": scheme + player.token}
    answer = requests.get(player.base + "/v1/session", headers=headers, timeout=10)
    # The scheme's name may be written in either case (RFC 9110, section 11.1).
    assert answer.status_code == (200 if scheme.strip() == "bearer" else 401)


def test_players_and_operators_proofs_do_not_serve_each_other(operator: Operator) -> None:
    player = operator.player()
    wanted = {"player": "p", "currency": "GBP", "mode": "demo"}
    assert code_of(player.post("/v1/operator/sessions", wanted)) == "unauthenticated"
    assert code_of(operator.send("GET", "/v1/session")) == "unauthenticated"
    answer = operator.send("POST", "/v1/rounds", {"ante_minor": 100}, headers={"Idempotency-Key": "k"})
    assert code_of(answer) == "unauthenticated"


def test_of_parallel_requests_with_one_nonce_one_is_served(operator: Operator) -> None:
    name, nonce = secrets.token_hex(6), secrets.token_hex(16)
    path = f"/v1/operator/players/{name}/balance?currency=GBP"
    answers = together([partial(operator.send, "GET", path, nonce=nonce) for _ in range(20)])
    refused = [answer for answer in answers if answer.status_code != 200]
    assert len(refused) == 19
    assert {code_of(answer) for answer in refused} == {"nonce_reused"}
