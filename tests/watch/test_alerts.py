"""Play that breaks its rules is noticed, told, followed up and stopped; play that keeps them is left alone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest
from psycopg import errors as pg
from psycopg.rows import dict_row

from casino_brag.audit import EntryType
from casino_brag.catalogue.closures import ClosureState, close, closures, open_again, scope_named
from casino_brag.catalogue.webhooks import set_endpoint
from casino_brag.errors import SetUpError
from casino_brag.game.cards import PACK
from casino_brag.game.hands import AceLowRun, Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Unqualified
from casino_brag.game.settlement import settle
from casino_brag.rng import Draw, rank, seeds
from casino_brag.rounds import settling
from casino_brag.watch.alerts import Suspension
from casino_brag.watch.cases import CaseState, case_of, cases, change_case, changes_of
from tests.inprocess import AppHouse, app_house_in, deal_next
from tests.running import code_of
from tests.watch.played import add_up, void

GAME = "three-card-brag"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("alerts")) as house:
        yield house


@pytest.fixture
def house(watched: AppHouse) -> Iterator[AppHouse]:
    """The house without evidence, and after the test without what followed from it."""
    yield watched
    add_up(watched, suspension=Suspension.NONE)
    with watched.connect() as conn:
        for case in cases(conn):
            if case.state != CaseState.CLOSED:
                change_case(conn, case.case_id, CaseState.CLOSED, "The test is over.", actor="system:tests")
        scope = scope_named(conn, game=GAME, version=1, operator=None)
        open_again(conn, scope, "The test is over.", actor="system:tests")
        for (round_id,) in conn.execute(
            "SELECT round_id FROM round WHERE state = 'awaiting_decision'"
        ).fetchall():
            void(watched.operator, str(round_id))
        conn.execute("DELETE FROM rtp_evidence")


def settling_by(monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Paytable, Any], Paytable]) -> None:
    """Makes this process settle by other rules than those that a round was dealt under."""
    monkeypatch.setattr(
        settling,
        "settle",
        lambda paytable, stakes, deal, decision: settle(wrong(paytable, stakes), stakes, deal, decision),
    )


def dealing(monkeypatch: pytest.MonkeyPatch, deals: Iterable[list[int]]) -> None:
    """Makes this process deal these deals one after the other."""
    left = iter(deals)
    current: dict[Any, Draw] = {}

    def deal(seed: bytes, *_: Any) -> Draw:
        if seed not in current:
            current[seed] = Draw(rank(tuple(next(left))), 0)
        return current[seed]

    monkeypatch.setattr(seeds, "deal", deal)


def fair_deals(seed: int) -> Iterator[list[int]]:
    chance = random.Random(seed)
    while True:
        yield chance.sample(range(len(PACK)), 6)


def play(house: AppHouse, rounds: int, decide: Callable[[dict[str, Any]], str], *stakes: int) -> None:
    player = house.operator.real_player(100_000_000)
    for _ in range(rounds):
        opened = player.open(*(stakes or (100, 50)))
        assert opened.status_code == 201, opened.text
        round_ = opened.json()
        assert player.decide(round_["round_id"], decide(round_)).status_code == 200


def always(_: dict[str, Any]) -> str:
    return "play"


def evidence(house: AppHouse) -> dict[str, Any]:
    with house.connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(
            "SELECT e.* FROM rtp_evidence AS e JOIN game AS g ON g.active_version_id = e.paytable_version_id"
            " WHERE g.game = %s",
            [GAME],
        ).fetchone()
    assert row is not None
    return row


def entries(house: AppHouse, *types: EntryType) -> list[dict[str, Any]]:
    with house.connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            "SELECT type, actor, authoriser, reason, before, after, payload, operator_id FROM audit_entry"
            " WHERE type = ANY (%s) ORDER BY entry_id",
            [list(types)],
        ).fetchall()


def pair_bonus_flush_pays_3(paytable: Paytable, _: Any) -> Paytable:
    bonus = paytable.pair_bonus
    assert bonus is not None
    return replace(paytable, pair_bonus=replace(bonus, pays={**bonus.pays, Category.FLUSH: Fraction(3)}))


def one_band_pays_double(paytable: Paytable, stakes: Any) -> Paytable:
    return replace(paytable, ante_pays=Fraction(2)) if 1_000 <= stakes.ante_minor < 2_000 else paytable


def ante_pushes_unqualified(paytable: Paytable, _: Any) -> Paytable:
    return replace(paytable, not_qualified=replace(paytable.not_qualified, ante=Unqualified.PUSH))


def ace_low_run_is_lowest(paytable: Paytable, _: Any) -> Paytable:
    return replace(paytable, ranking=replace(paytable.ranking, ace_low_run=AceLowRun.LOWEST))


def test_a_bonus_that_pays_something_else_is_noticed_at_once(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    settling_by(monkeypatch, pair_bonus_flush_pays_3)
    deal_next(monkeypatch, "As Js 9s", "Kd Qc 2h")
    play(house, 1, always)
    add_up(house)
    found = evidence(house)
    assert (found["level"], found["state"]["impossible"]) == ("suspend", 1)
    assert code_of(house.operator.real_player(1_000).open(100)) == "game_unavailable"


def test_a_wrong_payout_at_some_stakes_only_is_noticed(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    settling_by(monkeypatch, one_band_pays_double)
    deal_next(monkeypatch, "As Kd Jc", "Qs Jd 9h")
    play(house, 3, always, 100)
    add_up(house)
    assert evidence(house)["level"] == "none"
    play(house, 1, always, 1_500)
    add_up(house)
    assert evidence(house)["level"] == "suspend"


def test_an_ante_that_is_not_paid_when_the_dealer_does_not_qualify_is_noticed(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    settling_by(monkeypatch, ante_pushes_unqualified)
    dealing(monkeypatch, fair_deals(1))
    play(house, 100, always)
    add_up(house)
    found = evidence(house)
    assert found["level"] == "suspend"
    assert max(found["state"]["streams"], key=found["state"]["streams"].get) in ("main", "band 2", "rankings")


def test_hands_in_another_order_are_noticed(house: AppHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    settling_by(monkeypatch, ace_low_run_is_lowest)
    # Only hands that the mistake is about: in fair play they are 1 in 345, and it takes so much longer.
    held = [card.index for card in map(PACK.__getitem__, range(52)) if str(card) in ("As", "2d", "3h")]
    chance = random.Random(1)
    rest = [card for card in range(52) if card not in held]
    runs = [cards for cards in (chance.sample(rest, 3) for _ in range(20_000)) if is_run(cards)]
    dealing(monkeypatch, (held + cards for cards in runs))
    play(house, 40, always)
    add_up(house)
    streams = evidence(house)["state"]["streams"]
    assert streams["rankings"] > 10


def is_run(cards: list[int]) -> bool:
    ranks = sorted(card // 4 for card in cards)
    return ranks == list(range(ranks[0], ranks[0] + 3)) and len({card % 4 for card in cards}) > 1


def test_a_biased_deal_is_noticed(house: AppHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def biased() -> Iterator[list[int]]:
        """One card comes to the player in every third round."""
        for cards in fair_deals(3):
            yield cards if random.Random(cards[0]).random() < 0.7 or 51 in cards else [51, *cards[1:]]

    dealing(monkeypatch, biased())
    play(house, 100, always)
    add_up(house)
    found = evidence(house)
    assert found["level"] == "suspend"
    assert max(found["state"]["streams"], key=found["state"]["streams"].get) in (
        "single cards",
        "cards by position",
    )


@pytest.mark.parametrize(
    "decide",
    [always, lambda _: "fold", lambda round_: "play" if round_["player_category"] != "high_card" else "fold"],
    ids=["always play", "always fold", "fold too much"],
)
def test_players_who_play_badly_raise_nothing(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, decide: Callable[[dict[str, Any]], str]
) -> None:
    dealing(monkeypatch, fair_deals(4))
    play(house, 100, decide)
    add_up(house)
    found = evidence(house)
    assert (found["level"], found["rounds"]) == ("none", 100)
    assert house.operator.real_player(1_000).open(100).status_code == 201


def test_neither_demonstration_nor_tests_are_evidence(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    settling_by(monkeypatch, pair_bonus_flush_pays_3)
    deal_next(monkeypatch, "As Js 9s", "Kd Qc 2h")
    for player in (house.operator.player(), house.operator.real_player(1_000, test=True)):
        player.decide(player.open(100, 50).json()["round_id"], "play")
    add_up(house)
    with house.connect() as conn:
        assert conn.execute("SELECT FROM rtp_evidence").fetchall() == []


def one_proof(house: AppHouse, monkeypatch: pytest.MonkeyPatch, suspension: Suspension) -> None:
    settling_by(monkeypatch, pair_bonus_flush_pays_3)
    deal_next(monkeypatch, "As Js 9s", "Kd Qc 2h")
    play(house, 1, always)
    monkeypatch.undo()
    add_up(house, suspension=suspension)


def test_an_alert_is_told_followed_up_and_acted_on(house: AppHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    listening = house.new_operator()
    with house.connect() as conn:
        set_endpoint(conn, house.sealer, listening.name, "http://127.0.0.1:1/", actor="system:tests")
    one_proof(house, monkeypatch, Suspension.DISABLE)
    alert = entries(house, EntryType.RTP_ALERT)[-1]
    assert (alert["actor"], alert["operator_id"]) == ("system:rtp watch", None)
    assert (
        alert["payload"].items() >= {"game": GAME, "version": 1, "level": "suspend", "impossible": 1}.items()
    )
    opened = entries(house, EntryType.RTP_CASE_OPENED)[-1]
    assert opened["after"].items() >= {"game": GAME, "state": "open", "level": "suspend"}.items()
    assert {sums["wager"] for sums in opened["payload"]["real_play"]} == {"main", "pair_bonus"}
    closed = entries(house, EntryType.GAME_DISABLED)[-1]
    assert closed["after"].items() >= {"game": GAME, "version": 1, "state": "disabled"}.items()
    assert (closed["actor"], closed["authoriser"]) == ("system:rtp watch", "policy:rtp suspension disable")
    assert closed["reason"] == alert["reason"] == opened["reason"]
    assert "1 of 1 rounds paid what no cards" in alert["reason"]
    with house.connect() as conn:
        (case,) = [case for case in cases(conn) if case.state != CaseState.CLOSED]
        assert (case.game, case.version, case.level, str(case.case_id)) == (
            GAME,
            1,
            "suspend",
            opened["after"]["case_id"],
        )
        assert [(step.actor, step.state) for step in changes_of(conn, case.case_id)] == [
            ("system:rtp watch", "open")
        ]
        bodies = conn.execute(
            "SELECT m.body FROM webhook_message AS m JOIN operator AS o USING (operator_id)"
            " WHERE o.name = %s AND m.type = 'rtp.alert'",
            [listening.name],
        ).fetchall()
    ((body,),) = bodies
    told = json.loads(body)["data"]
    assert told.items() >= {"game": GAME, "version": 1, "level": "suspend", "reason": alert["reason"]}.items()
    assert "staked" not in body, "what all operators took is not each operator's to know"


def test_an_alert_is_raised_once_and_a_higher_one_joins_the_case(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(entries(house, EntryType.RTP_ALERT))
    one_proof(house, monkeypatch, Suspension.NONE)
    play(house, 2, always)
    add_up(house)
    assert len(entries(house, EntryType.RTP_ALERT)) == before + 1
    with house.connect() as conn:  # as if it had been less
        conn.execute('UPDATE rtp_evidence SET state = state || \'{"impossible": 0, "log_highest": 5}\'')
    one_proof(house, monkeypatch, Suspension.NONE)
    assert len(entries(house, EntryType.RTP_ALERT)) == before + 2
    joined = entries(house, EntryType.RTP_CASE_CHANGED)[-1]
    assert joined["before"]["case_id"] == entries(house, EntryType.RTP_CASE_OPENED)[-1]["after"]["case_id"]


@pytest.mark.parametrize(
    ("suspension", "answer"),
    [(Suspension.NONE, None), (Suspension.DRAIN, "decided"), (Suspension.DISABLE, "game_unavailable")],
)
def test_a_version_is_closed_as_far_as_the_house_has_said(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, suspension: Suspension, answer: str | None
) -> None:
    player = house.operator.real_player(1_000)
    waiting = player.open(100).json()["round_id"]
    one_proof(house, monkeypatch, suspension)
    new = house.operator.real_player(1_000).open(100)
    decided = player.decide(waiting, "fold")
    if suspension is Suspension.NONE:
        assert (new.status_code, decided.status_code) == (201, 200)
    elif suspension is Suspension.DRAIN:
        assert (code_of(new), decided.status_code) == ("game_unavailable", 200)
    else:
        assert (code_of(new), code_of(decided)) == ("game_unavailable", "game_unavailable")


def test_what_somebody_has_disabled_is_not_opened_halfway(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    settling_by(monkeypatch, pair_bonus_flush_pays_3)
    deal_next(monkeypatch, "As Js 9s", "Kd Qc 2h")
    play(house, 1, always)
    with house.connect() as conn:
        scope = scope_named(conn, game=GAME, version=1, operator=None)
        close(conn, scope, ClosureState.DISABLED, "Somebody was first.", actor="system:tests")
        add_up(house, suspension=Suspension.DRAIN)
        (closure,) = closures(conn)
    assert (closure.state, closure.reason) == ("disabled", "Somebody was first.")


def test_a_case_is_investigated_and_closed_and_the_evidence_begins_anew(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_proof(house, monkeypatch, Suspension.NONE)
    with house.connect() as conn:
        case_id = cases(conn)[0].case_id
        for state, note in (
            (CaseState.INVESTIGATED, "The module paid by an old table."),
            (CaseState.INVESTIGATED, "Players were paid the rest."),
            (CaseState.CLOSED, "A new release is in place."),
        ):
            assert change_case(conn, case_id, state, note, actor="staff:J. Doe").state == state
        assert [(step.state, step.actor) for step in changes_of(conn, case_id)] == [
            ("open", "system:rtp watch"),
            ("investigated", "staff:J. Doe"),
            ("investigated", "staff:J. Doe"),
            ("closed", "staff:J. Doe"),
        ]
        changed = entries(house, EntryType.RTP_CASE_CHANGED)[-1]
        assert (changed["before"]["state"], changed["after"]["state"]) == ("investigated", "closed")
        assert (changed["actor"], changed["reason"]) == ("staff:J. Doe", "A new release is in place.")
        assert conn.execute("SELECT FROM rtp_evidence").fetchall() == []
        with pytest.raises(SetUpError, match="closed, which is final"):
            change_case(conn, case_id, CaseState.OPEN, "Again.", actor="staff:J. Doe")
        with pytest.raises(SetUpError, match="1 to 500"):
            change_case(conn, case_id, CaseState.CLOSED, "", actor="staff:J. Doe")
        with pytest.raises(SetUpError, match="There is no case"):
            case_of(conn, UUID(int=1))
    one_proof(house, monkeypatch, Suspension.NONE)
    with house.connect() as conn:
        assert [case.state for case in cases(conn)][:2] == ["open", "closed"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rtp_case SET state = 'open'",
        "DELETE FROM rtp_case",
        "TRUNCATE rtp_case CASCADE",
        "UPDATE rtp_case_change SET note = 'Other.'",
        "DELETE FROM rtp_case_change",
        "TRUNCATE rtp_case_change",
    ],
)
def test_what_became_of_a_case_is_not_rewritten(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    one_proof(house, monkeypatch, Suspension.NONE)
    with house.connect() as conn:
        change_case(conn, cases(conn)[0].case_id, CaseState.CLOSED, "Done.", actor="system:tests")
        with pytest.raises(pg.RestrictViolation):
            conn.execute(statement)


def test_deals_are_taken_in_their_order_up_to_a_round_that_waits(house: AppHouse) -> None:
    def dealt() -> int:
        add_up(house)
        return sum(evidence(house)["state"]["cards"]["life"]["player"])

    play(house, 3, always)
    assert dealt() == 3
    player = house.operator.real_player(1_000)
    waiting = player.open(100).json()["round_id"]
    play(house, 2, always)
    assert (dealt(), evidence(house)["rounds"]) == (3, 5)
    assert player.decide(waiting, "fold").status_code == 200
    assert (dealt(), evidence(house)["rounds"]) == (6, 6)
    abandoned = house.operator.real_player(1_000).open(100).json()["round_id"]
    play(house, 1, always)
    assert dealt() == 6
    void(house.operator, abandoned)  # what it was dealt counts all the same
    assert (dealt(), evidence(house)["rounds"]) == (8, 7)
