"""Voids: what goes back, once, whoever races for the round."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import requests
from click.testing import CliRunner, Result

from casino_brag.cli import commands
from casino_brag.db.embedded import Role
from casino_brag.errors import Code, SetUpError
from casino_brag.sealing import SealBroken, Sealer
from tests.books import broken_laws
from tests.inprocess import AppHouse, deal_next
from tests.running import Operator, Player, code_of, together

WHY = {"reason": "The table's screen went dark.", "approver": "J. Doe, shift manager"}

# Play wins even money on both wagers here: the dealer qualifies, and has the weaker hand.
WINNING = ("As Kd Jc", "Qs Jd 9h")
LOSING = ("Qs Jd 9h", "As Kd Jc")


@pytest.fixture
def operator(app_house: AppHouse) -> Iterator[Operator]:
    yield app_house.operator
    with app_house.connect() as conn:
        assert broken_laws(conn) == {}


def void(operator: Operator, round_id: str, *, key: str = "", **said: Any) -> requests.Response:
    named = {"Idempotency-Key": key or secrets.token_hex(8)}
    return operator.send("POST", f"/v1/operator/rounds/{round_id}/void", WHY | said, headers=named)


def opened(player: Player, *stakes: int) -> str:
    answer = player.open(*stakes)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["round_id"])


def test_the_stakes_of_an_open_round_go_back(operator: Operator) -> None:
    player = operator.real_player(1_000)
    round_id = opened(player, 100, 50)
    voided = void(operator, round_id, key="one")
    assert voided.status_code == 200, voided.text
    assert voided.json()["state"] == "voided"
    assert (voided.json()["refund_minor"], voided.json()["compensation_minor"]) == (150, 0)
    assert voided.json()["void_reason"] == WHY["reason"]
    assert player.balance_minor() == 1_000
    assert player.get(f"/v1/rounds/{round_id}").json() == voided.json()
    assert void(operator, round_id, key="one").content == voided.content
    assert code_of(void(operator, round_id, key="one", reason="Another.")) == "idempotency_key_reused"
    assert player.get("/v1/session").json()["open_round"] is None
    assert player.get("/v1/session").json()["net_position_minor"] == 0
    assert opened(player, 100)


@pytest.mark.parametrize("policy", ["refund", "better"])
@pytest.mark.parametrize(("cards", "won"), [(WINNING, 200), (LOSING, 0)])
def test_the_better_of_refund_and_result_is_paid_where_that_is_asked_for(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, policy: str, cards: tuple[str, str], won: int
) -> None:
    player = operator.real_player(1_000)
    deal_next(monkeypatch, *cards)
    voided = void(operator, opened(player, 100), policy=policy).json()
    more = won if policy == "better" else 0
    assert (voided["refund_minor"], voided["compensation_minor"]) == (100, more)
    assert player.balance_minor() == 1_000 + more
    assert player.get("/v1/session").json()["net_position_minor"] == more


@pytest.mark.parametrize(
    ("cards", "returned", "left"), [(WINNING, 0, 1_200), (LOSING, 200, 1_000)], ids=["won", "lost"]
)
def test_of_a_settled_round_what_was_lost_goes_back_and_nothing_won_is_taken(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, cards: tuple[str, str], returned: int, left: int
) -> None:
    player = operator.real_player(1_000)
    deal_next(monkeypatch, *cards)
    round_id = opened(player, 100)
    settled = player.decide(round_id, "play", key="k")
    voided = void(operator, round_id).json()
    assert (voided["state"], voided["refund_minor"]) == ("voided", returned)
    assert voided["wagers"] == settled.json()["wagers"]
    assert player.balance_minor() == left
    assert player.get("/v1/session").json()["net_position_minor"] == left - 1_000
    assert player.decide(round_id, "play", key="k").content == settled.content


def test_a_round_is_voided_once(operator: Operator) -> None:
    player = operator.real_player(1_000)
    round_id = opened(player, 100)
    answers = together([lambda: void(operator, round_id)] * 8)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert void(operator, round_id, reason="Another reason.").content == answers[0].content
    assert player.balance_minor() == 1_000


def test_of_decisions_and_a_void_at_the_same_instant_one_wins(operator: Operator) -> None:
    for _ in range(6):
        player = operator.real_player(1_000)
        round_id = opened(player, 100)
        twin = player.again()
        played, voided, folded = together(
            [
                lambda: player.decide(round_id, "play"),  # noqa: B023 - called before the loop goes on
                lambda: void(operator, round_id),  # noqa: B023
                lambda: twin.decide(round_id, "fold"),  # noqa: B023
            ]
        )
        assert voided.status_code == 200  # a settled round can be voided as well
        decided = [answer for answer in (played, folded) if answer.status_code == 200]
        assert len(decided) <= 1
        for answer in (played, folded):
            assert answer in decided or code_of(answer) in (
                "round_voided",
                "already_decided",
                "request_in_progress",
            )
        staked = decided[0].json()["total_staked_minor"] if decided else 0
        net = decided[0].json()["net_minor"] if decided else 0
        assert staked >= 0
        assert player.balance_minor() == 1_000 + max(0, net)


def test_a_voided_round_takes_no_decision_and_is_proven(operator: Operator) -> None:
    player = operator.real_player(1_000)
    commitment = player.next_commitment()
    round_id = opened(player, 100)
    assert code_of(player.proof(round_id)) == "proof_unavailable"
    void(operator, round_id)
    assert code_of(player.decide(round_id, "fold")) == "round_voided"
    proof = player.proof(round_id).json()
    assert proof["state"] == "voided"
    assert proof["commitment"]["value"] == commitment["value"]
    assert proof["player_cards"] == player.get(f"/v1/rounds/{round_id}").json()["player_cards"]
    shown = player.get(f"/v1/rounds/{round_id}").json()["proof"]
    assert (shown["seed"], shown["deal_index"]) == (proof["seed"], proof["deal_index"])


def test_a_round_whose_deal_cannot_be_opened_any_more_is_refunded(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = operator.real_player(1_000)
    round_id = opened(player, 100, 50)
    unbroken = Sealer.open

    def damaged(sealer: Sealer, sealed: bytes, *, context: str) -> bytes:
        if context.startswith("deal of round "):
            raise SealBroken("damaged")
        return unbroken(sealer, sealed, context=context)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Sealer, "open", damaged)
        assert code_of(player.decide(round_id, "fold")) == "internal_error"
        assert code_of(void(operator, round_id, policy="better")) == "internal_error"
        voided = void(operator, round_id).json()
    assert (voided["refund_minor"], voided["proof"]) == (150, None)
    assert player.balance_minor() == 1_000
    assert code_of(player.proof(round_id)) == "proof_unavailable"
    assert player.played()["state"] == "settled"


def test_who_voided_and_who_approved_is_on_record(app_house: AppHouse, operator: Operator) -> None:
    round_id = opened(operator.real_player(1_000), 100)
    void(operator, round_id)
    with app_house.connect() as conn:
        found = conn.execute(
            "SELECT actor, authoriser, reason, before, after FROM audit_entry"
            " WHERE round_id = %s AND type = 'round.voided'",
            [round_id],
        ).fetchall()
    assert found == [
        (
            f"operator:{operator.name}",
            WHY["approver"],
            WHY["reason"],
            {"state": "awaiting_decision"},
            {"state": "voided"},
        )
    ]


def test_another_operators_round_is_not_voided(app_house: AppHouse, operator: Operator) -> None:
    player = operator.real_player(1_000)
    round_id = opened(player, 100)
    assert code_of(void(app_house.new_operator(), round_id)) == "round_not_found"
    assert player.get(f"/v1/rounds/{round_id}").json()["state"] == "awaiting_decision"


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": ""},
        {"reason": " "},
        {"reason": "x" * 501},
        {"reason": "two\nlines"},
        {"reason": None},
        {"approver": ""},
        {"approver": 7},
        {"policy": "all"},
        {"refund_minor": 100_000},
    ],
)
def test_a_void_without_a_reason_or_an_approver_is_refused(operator: Operator, wrong: dict[str, Any]) -> None:
    round_id = opened(operator.real_player(1_000), 100)
    answer = void(operator, round_id, **wrong)
    assert code_of(answer) == Code.INVALID
    assert list(answer.json()["errors"]) == list(wrong)


def test_whoever_runs_the_service_can_void_a_round_by_a_command(
    app_house: AppHouse, operator: Operator
) -> None:
    player = operator.real_player(1_000)
    round_id = opened(player, 100)

    def command(*arguments: str) -> Result:
        keys = ",".join(
            f"{name}:{b64encode(key).decode()}" for name, key in app_house.config.seal_keys.items()
        )
        environment = {"DATABASE_URL": app_house.server.url(Role.OWNER), "CASINO_BRAG_SEAL_KEYS": keys}
        return CliRunner().invoke(commands, ["rounds", "void", *arguments], env=environment)

    said = ("--operator", operator.name, "--reason", WHY["reason"], "--approver", WHY["approver"])
    told = command(round_id, *said)
    assert (told.exit_code, told.stdout) == (
        0,
        f"Round {round_id} is voided: {WHY['reason']} 100 minor units of GBP go back to the player.\n",
    )
    assert player.balance_minor() == 1_000
    assert command(round_id, *said).stdout == told.stdout
    assert isinstance(command(str(UUID(int=1)), *said).exception, SetUpError)
    assert command(round_id, *said[:-1], " ").exit_code == 2
