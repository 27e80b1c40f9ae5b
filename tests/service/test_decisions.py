"""One decision wins, once; and a round waits for it, whatever became of the session it began on."""

from __future__ import annotations

import secrets
from collections import Counter
from functools import partial
from typing import Any

import pytest

from tests.running import Operator, Player, RunningService, code_of, together

DUELS = 40


def to_be_read_later(answer: dict[str, Any]) -> dict[str, Any]:
    """What of an answer is about the round, and not about what comes after it."""
    return {name: value for name, value in answer.items() if name not in ("balance_minor", "next_commitment")}


def test_of_play_and_fold_at_the_same_instant_one_wins(service: RunningService, operator: Operator) -> None:
    left = operator.player()
    right = left.again()
    winners: Counter[str] = Counter()
    for _ in range(DUELS):
        round_id = left.open(100, 50).json()["round_id"]
        before = left.balance_minor()
        answers = together([partial(left.decide, round_id, "play"), partial(right.decide, round_id, "fold")])
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        won, lost = sorted(answers, key=lambda answer: answer.status_code)
        assert code_of(lost) == "already_decided"
        end = won.json()
        winners[end["decision"]] += 1
        assert end["decision"] == ("play" if won is answers[0] else "fold")
        play_minor = 100 if end["decision"] == "play" else 0
        assert left.balance_minor() == before - play_minor + end["total_payout_minor"] == end["balance_minor"]
        assert left.get(f"/v1/rounds/{round_id}").json() == to_be_read_later(end)
    assert set(winners) == {"play", "fold"}, "neither was always first, so they did race"
    assert service.broken_laws() == {}


@pytest.mark.parametrize("decision", ["play", "fold"])
def test_the_same_decision_many_times_at_once_is_one_settlement(
    service: RunningService, operator: Operator, decision: str
) -> None:
    player = operator.player()
    round_id = player.open(100, 50).json()["round_id"]
    answers = service.piled_up(
        player, [partial(player.again().decide, round_id, decision) for _ in range(20)]
    )
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    assert player.balance_minor() == answers[0].json()["balance_minor"]
    with service.connect() as conn:
        settled = conn.execute(
            "SELECT count(*) FROM audit_entry WHERE round_id = %s AND type = 'round.settled'", [round_id]
        ).fetchone()
    assert settled == (1,)
    assert service.broken_laws() == {}


def test_a_decision_repeated_later_is_a_replay_and_the_other_one_is_refused(operator: Operator) -> None:
    player = operator.player()
    round_id = player.open(100).json()["round_id"]
    first = player.decide(round_id, "play")
    again = player.decide(round_id, "play")
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert code_of(player.decide(round_id, "fold")) == "already_decided"
    assert player.balance_minor() == first.json()["balance_minor"]


def test_a_play_that_cannot_be_paid_leaves_the_round_at_its_decision(
    service: RunningService, operator: Operator
) -> None:
    player = operator.real_player(150)
    opened = player.open(100, 50).json()
    assert opened["balance_minor"] == 0
    assert code_of(player.decide(opened["round_id"], "play", key="k")) == "insufficient_funds"
    waiting = player.get("/v1/session").json()
    assert waiting["balance_minor"] == 0
    assert waiting["open_round"] == to_be_read_later(opened)

    folded = player.decide(opened["round_id"], "fold", key="k")
    assert (folded.status_code, folded.json()["result"]) == (200, "fold")
    assert service.broken_laws() == {}


def test_a_play_that_could_not_be_paid_succeeds_after_a_deposit(operator: Operator) -> None:
    name = secrets.token_hex(6)
    operator.deposit(name, 199)
    player = operator.player(player=name, mode="real")
    round_id = player.open(100).json()["round_id"]
    assert code_of(player.decide(round_id, "play", key="k")) == "insufficient_funds"
    operator.deposit(name, 1)
    settled = player.decide(round_id, "play", key="k")
    assert settled.status_code == 200
    assert settled.json()["balance_minor"] == settled.json()["total_payout_minor"]


@pytest.mark.parametrize("decision", ["play", "fold"])
def test_an_ended_session_decides_its_open_round_and_opens_none(
    service: RunningService, operator: Operator, decision: str
) -> None:
    session = operator.open_session().json()
    player = Player(service.base, session["token"])
    opened = player.open(100).json()
    assert operator.send("DELETE", f"/v1/operator/sessions/{session['session_id']}").status_code == 204
    assert code_of(player.get("/v1/session")) == "session_expired"
    assert code_of(player.get("/v1/rounds")) == "session_expired"
    assert player.get(f"/v1/rounds/{opened['round_id']}").json() == to_be_read_later(opened)

    settled = player.decide(opened["round_id"], decision)
    assert settled.status_code == 200
    assert settled.json()["player_cards"] == opened["player_cards"]
    assert code_of(player.open(100)) == "session_expired"
    again = operator.send("DELETE", f"/v1/operator/sessions/{session['session_id']}")
    assert code_of(again) == "not_found", "it has ended"


def test_a_round_is_offered_again_on_another_session_with_the_same_cards(operator: Operator) -> None:
    name = secrets.token_hex(6)
    first = operator.player(player=name)
    opened = first.open(100, 50).json()
    second = operator.player(player=name)
    offered = second.get("/v1/session").json()["open_round"]
    assert offered == to_be_read_later(opened)
    settled = second.decide(opened["round_id"], "play")
    assert settled.status_code == 200
    assert settled.json()["player_cards"] == opened["player_cards"]
    for session in (first, second):
        assert session.get("/v1/session").json()["open_round"] is None
        assert session.balance_minor() == settled.json()["balance_minor"]
        assert session.get("/v1/rounds").json()["items"] == [to_be_read_later(settled.json())]


def test_a_player_has_one_open_round_in_each_game_over_all_sessions(
    service: RunningService, operator: Operator
) -> None:
    name = secrets.token_hex(6)
    first, second = operator.player(player=name), operator.player(player=name)
    elsewhere = operator.player(player=name, game="double-play-brag")
    opened = first.open(100).json()
    assert code_of(second.open(100)) == "round_open"
    assert code_of(first.open(100)) == "round_open"
    other = elsewhere.open(100)
    assert other.status_code == 201, "another game is another table"
    assert code_of(elsewhere.open(100)) == "round_open"

    assert second.decide(opened["round_id"], "fold").status_code == 200
    assert second.open(100).status_code == 201
    assert service.broken_laws() == {}


def test_a_session_of_one_game_is_offered_the_round_of_that_game(operator: Operator) -> None:
    name = secrets.token_hex(6)
    sessions = [operator.player(player=name, game=game) for game in ("three-card-brag", "double-play-brag")]
    opened = [session.open(100).json() for session in sessions]
    offered = [session.get("/v1/session").json()["open_round"] for session in sessions]
    assert offered == list(map(to_be_read_later, opened))


def test_demonstration_and_real_play_of_one_player_do_not_meet(
    service: RunningService, operator: Operator
) -> None:
    name = secrets.token_hex(6)
    operator.deposit(name, 1_000)
    real, demo = operator.player(player=name, mode="real"), operator.player(player=name)
    at_stake = real.open(100).json()
    for_nothing = demo.open(100)
    assert for_nothing.status_code == 201
    for session, other in ((demo, at_stake), (real, for_nothing.json())):
        assert code_of(session.get(f"/v1/rounds/{other['round_id']}")) == "round_not_found"
        assert code_of(session.decide(other["round_id"], "fold")) == "round_not_found"
    assert real.get("/v1/session").json()["open_round"]["round_id"] == at_stake["round_id"]
    assert service.broken_laws() == {}
