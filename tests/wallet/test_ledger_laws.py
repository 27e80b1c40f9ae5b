"""The set-based functions that move money, against a model: batches in, an outcome for each item out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from ledger_books import BALANCE_MAX, PLAYERS, Books, Member, Op, Round

from casino_brag.db.embedded import Role
from casino_brag.wallet.answers import Outcome, carry_out
from tests.books import broken_laws
from tests.inprocess import AppHouse, app_house_in

KEYS = st.sampled_from(["a", "b", "c", "d", "e", "f"])


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    """A house whose rounds nobody else reads: their cards and payouts are made up."""
    with app_house_in(tmp_path_factory.mktemp("ledger")) as house:
        yield house


@pytest.fixture
def books(house: AppHouse) -> Iterator[Books]:
    with house.connect(Role.APP) as conn:
        yield Books(house, conn)


def names(outcomes: list[Outcome]) -> list[str]:
    return [outcome.name for outcome in outcomes]


class Machine(RuleBasedStateMachine):
    """Random batches; the model says what becomes of each item and what every player then holds."""

    house: AppHouse
    conn: psycopg.Connection[Any]

    @initialize()
    def begin(self) -> None:
        self.books = Books(self.house, self.conn)

    @rule(
        asks=st.lists(
            st.tuples(
                st.integers(0, PLAYERS - 1),
                KEYS,
                st.sampled_from(["deposit", "withdrawal"]),
                st.integers(1, 120),
            ),
            min_size=1,
            max_size=6,
        )
    )
    def move(self, asks: list[tuple[int, str, Literal["deposit", "withdrawal"], int]]) -> None:
        batch = []
        for who, key, direction, amount in asks:
            member = self.books.members[who]

            def judge(member: Member = member, direction: str = direction, amount: int = amount) -> str:
                if direction == "withdrawal":
                    return "moved" if member.balance >= amount else "insufficient_funds"
                return "moved" if member.balance + amount <= BALANCE_MAX else "balance_limit_exceeded"

            def effect(member: Member = member, direction: str = direction, amount: int = amount) -> None:
                member.balance += amount if direction == "deposit" else -amount

            batch.append((member, self.books.move(member, key, direction, amount), judge, effect))
        self._carry_out("wallet_move", batch)

    @rule(
        asks=st.lists(
            st.tuples(st.integers(0, PLAYERS - 1), KEYS, st.integers(1, 30), st.integers(0, 20)),
            min_size=1,
            max_size=5,
        )
    )
    def open(self, asks: list[tuple[int, str, int, int]]) -> None:
        batch = []
        for who, key, ante, pair_bonus in asks:
            member = self.books.members[who]
            op = self.books.open(member, key, ante, pair_bonus)
            round_ = Round(op["round_id"], ante, pair_bonus, op["payout_max_minor"])

            def judge(member: Member = member, round_: Round = round_) -> str:
                if member.open_round is not None:
                    return "round_open"
                if member.balance < round_.ante + round_.pair_bonus:
                    return "insufficient_funds"
                return (
                    "opened"
                    if member.balance + round_.payout_max <= BALANCE_MAX
                    else "balance_limit_exceeded"
                )

            def effect(member: Member = member, round_: Round = round_) -> None:
                member.balance -= round_.ante + round_.pair_bonus
                member.rounds.append(round_)
                member.offered = None

            batch.append((member, op, judge, effect))
        self._carry_out("round_open", batch)

    @rule(
        asks=st.lists(
            st.tuples(
                st.integers(0, PLAYERS - 1),
                KEYS,
                st.integers(0, 3),
                st.sampled_from(["play", "fold"]),
                st.floats(0, 1, width=16),
                st.booleans(),
            ),
            min_size=1,
            max_size=5,
        )
    )
    def decide(self, asks: list[tuple[int, str, int, str, float, bool]]) -> None:
        batch = []
        for who, key, back, decision, share, go_on in asks:
            member = self.books.members[who]
            if not member.rounds:
                continue
            round_ = member.rounds[-1 - back % len(member.rounds)]
            payout = int(share * round_.payout_max)
            op = self.books.decide(member, key, round_, decision, payout, go_on=go_on)

            def judge(member: Member = member, round_: Round = round_, decision: str = decision) -> str:
                if round_.decision is not None:
                    return "replayed" if round_.decision == decision else "already_decided"
                short = decision == "play" and member.balance < round_.ante
                return "insufficient_funds" if short else "settled"

            def effect(
                member: Member = member,
                round_: Round = round_,
                decision: str = decision,
                payout: int = payout,
                following: Op | None = op["next"],
            ) -> None:
                round_.decision = decision
                member.balance += payout - (round_.ante if decision == "play" else 0)
                member.offered = None if following is None else following["round_id"]

            batch.append((member, op, judge, effect))
        if batch:
            self._carry_out("round_decide", batch)

    def _carry_out(self, function: Any, batch: list[tuple[Member, Op, Any, Any]]) -> None:
        expected, seen, accepted = [], set(), []
        for member, op, judge, effect in batch:
            known = member.answers.get(op["idempotency_key"])
            if known is not None:
                expected.append("replayed" if known[0] == op["fingerprint"] else "idempotency_key_reused")
            elif id(member) in seen:
                expected.append("request_in_progress")
            else:
                expected.append(judge())
                if expected[-1] in ("moved", "opened", "settled"):
                    accepted.append((member, op, effect))
            seen.add(id(member))
        outcomes = carry_out(self.books.conn, function, [op for _, op, *_ in batch])
        assert names(outcomes) == expected
        for member, op, effect in accepted:
            effect()
            member.answers[op["idempotency_key"]] = (
                op["fingerprint"],
                f"{op['body_head']}{member.balance}{op['body_tail']}",
            )
        for (member, op, *_), outcome in zip(batch, outcomes, strict=True):
            self._check_answer(member, op, outcome)

    def _check_answer(self, member: Member, op: Op, outcome: Outcome) -> None:
        if outcome.name in ("moved", "opened", "settled", "replayed"):
            assert outcome.answer is not None
            assert outcome.answer.replayed == (outcome.name == "replayed")
            known = member.answers.get(op["idempotency_key"])
            if known is not None:
                assert outcome.answer.body == known[1]
        else:
            assert outcome.answer is None

    @invariant()
    def everybody_holds_what_the_model_says(self) -> None:
        if hasattr(self, "books"):
            held = [member.balance for member in self.books.members]
            assert self.books.balances() == held
            assert min(held) >= 0

    def teardown(self) -> None:
        with self.house.connect() as owner:
            assert broken_laws(owner) == {}


def test_random_batches_do_what_the_model_says_and_break_no_law(house: AppHouse) -> None:
    with house.connect(Role.APP) as conn:
        Machine.house, Machine.conn = house, conn
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=40,
                stateful_step_count=25,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate],  # a database is slow to shrink on
                suppress_health_check=list(HealthCheck),
            ),
        )


def test_a_refusal_disturbs_no_other_item_and_the_order_is_kept(books: Books) -> None:
    first, second, third = books.members
    outcomes = carry_out(
        books.conn,
        "wallet_move",
        [
            books.move(third, "k", "deposit", 30),
            books.move(first, "k", "withdrawal", 1),
            books.move(second, "k", "deposit", 20),
        ],
    )
    assert names(outcomes) == ["moved", "insufficient_funds", "moved"]
    assert books.balances() == [0, 20, 30]
    assert [outcome.answer and json.loads(outcome.answer.body)["balance_minor"] for outcome in outcomes] == [
        30,
        None,
        20,
    ]


def test_of_two_items_of_one_player_the_second_has_to_come_again(books: Books) -> None:
    first, second, _ = books.members
    ops = [
        books.move(first, "k1", "deposit", 10),
        books.move(second, "k1", "deposit", 10),
        books.move(first, "k2", "deposit", 10),
        books.move(first, "k1", "deposit", 10),
    ]
    assert names(carry_out(books.conn, "wallet_move", ops)) == [
        "moved",
        "moved",
        "request_in_progress",
        "request_in_progress",
    ]
    assert names(carry_out(books.conn, "wallet_move", ops[2:])) == ["moved", "replayed"]
    assert books.balances() == [20, 10, 0]


def test_two_rounds_of_one_player_in_a_batch_are_one_round(books: Books) -> None:
    member = books.members[0]
    carry_out(books.conn, "wallet_move", [books.move(member, "k", "deposit", 100)])
    opens = [books.open(member, "k1", 10, 0), books.open(member, "k2", 10, 0)]
    assert names(carry_out(books.conn, "round_open", opens)) == ["opened", "request_in_progress"]
    assert names(carry_out(books.conn, "round_open", opens[1:])) == ["round_open"]
    assert books.balances()[0] == 90


def test_play_and_fold_of_one_round_in_a_batch_are_one_decision(books: Books) -> None:
    member = books.members[0]
    carry_out(books.conn, "wallet_move", [books.move(member, "k", "deposit", 100)])
    opened = books.open(member, "k1", 10, 5)
    carry_out(books.conn, "round_open", [opened])
    round_ = Round(opened["round_id"], 10, 5, opened["payout_max_minor"])
    decisions = [
        books.decide(member, "k2", round_, "fold", 0),
        books.decide(member, "k3", round_, "play", 45),
    ]
    outcomes = carry_out(books.conn, "round_decide", decisions)
    assert names(outcomes) == ["settled", "request_in_progress"]
    assert outcomes[1].answer is None, "the first item's answer is not the second's"
    assert names(carry_out(books.conn, "round_decide", decisions[1:])) == ["already_decided"]
    assert books.balances()[0] == 85


def test_a_batch_of_many_players_is_answered_item_by_item(house: AppHouse) -> None:
    with house.connect(Role.APP) as conn:
        shelf = [Books(house, conn) for _ in range(10)]
        members = [(books, member) for books in shelf for member in books.members]
        ops = [
            books.move(member, "k", "deposit", number + 1) for number, (books, member) in enumerate(members)
        ]
        outcomes = carry_out(conn, "wallet_move", ops[::-1])
        bodies = [json.loads(outcome.answer.body) for outcome in outcomes if outcome.answer is not None]
    assert [body["balance_minor"] for body in bodies] == list(range(len(members), 0, -1))


def test_the_next_commitment_of_a_series_is_made_and_no_other(books: Books) -> None:
    member, other, _ = books.members
    first = books.commitment(member, None)
    assert books.make(first, books.commitment(other, None)) == ["made", "made"]
    second = books.commitment(member, first["round_id"])
    wrong = [
        (books.commitment(member, None), "commitment_changed"),  # there is a number 1
        (second, "commitment_changed"),  # number 1 waits, and this does not replace it
        (second | replacing(books, other.offered), "commitment_changed"),
        (second | {"number": 3} | replacing(books, first["round_id"]), "commitment_changed"),
        (second | {"previous": bytes(32)} | replacing(books, first["round_id"]), "commitment_changed"),
    ]
    for op, outcome in wrong:
        assert books.make(op) == [outcome]
    replaced = replacing(books, first["round_id"])
    assert books.make(second | replaced, second | replaced) == ["made", "request_in_progress"]
    rows = books.conn.execute(
        "SELECT number, seed, ended_at IS NOT NULL FROM commitment WHERE player_id = %s ORDER BY number",
        [member.account.player_id],
    ).fetchall()
    assert rows == [(1, books.commitments[first["round_id"]].seed, True), (2, None, False)]


def replacing(books: Books, round_id: UUID | None) -> Op:
    """What `commitment_make` is given to replace a commitment, so far as there is one."""
    if round_id is None:
        return {"replaced_id": uuid4()}
    seed = books.commitments[round_id].seed
    return {
        "replaced_id": round_id,
        "replaced_seed": seed,
        "replaced_audit": books.expired(round_id).text(),
    }


def test_a_commitment_in_play_is_not_replaced(books: Books) -> None:
    member = books.members[0]
    carry_out(books.conn, "wallet_move", [books.move(member, "k", "deposit", 100)])
    opened = books.open(member, "k1", 10, 0)
    assert names(carry_out(books.conn, "round_open", [opened])) == ["opened"]
    following = books.commitment(member, opened["round_id"])
    assert books.make(following | replacing(books, opened["round_id"])) == ["commitment_changed"]


def test_a_round_is_opened_from_nothing_but_its_player_s_waiting_commitment(books: Books) -> None:
    member, other, _ = books.members
    for rich in (member, other):
        carry_out(books.conn, "wallet_move", [books.move(rich, "k", "deposit", 100)])
    mine, others = books.open(member, "k1", 10, 0), books.open(other, "k1", 10, 0)
    from_another = others | {name: mine[name] for name in ("player_id", "account_id", "session_id")}
    for op in (from_another, mine | {"round_id": uuid4()}):
        assert names(carry_out(books.conn, "round_open", [op])) == ["commitment_changed"]
    following = books.commitment(member, mine["round_id"])
    assert books.make(following | replacing(books, mine["round_id"])) == ["made"]
    assert names(carry_out(books.conn, "round_open", [mine])) == ["commitment_changed"], "it was revealed"
    assert books.balances()[:2] == [100, 100]


@pytest.mark.parametrize("function", ["wallet_move", "round_open", "round_decide"])
def test_an_empty_batch_is_answered_with_nothing(books: Books, function: Any) -> None:
    assert carry_out(books.conn, function, []) == []


def test_an_item_that_breaks_a_law_takes_its_whole_batch_with_it(books: Books) -> None:
    """Such an item is a programmer's error, not a refusal: nothing of its transaction may stay."""
    first, second, _ = books.members
    carry_out(books.conn, "wallet_move", [books.move(first, "k", "deposit", 100)])
    opened = books.open(first, "k1", 10, 0)
    carry_out(books.conn, "round_open", [opened])
    round_ = Round(opened["round_id"], 10, 0, opened["payout_max_minor"])
    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        carry_out(
            books.conn, "round_decide", [books.decide(first, "k2", round_, "play", round_.payout_max + 1)]
        )
    assert refused.value.diag.constraint_name == "round_payout_is_bounded"
    negative = books.move(second, "k", "deposit", 5) | {"amount_minor": -5}
    with pytest.raises(psycopg.errors.CheckViolation):
        carry_out(books.conn, "wallet_move", [books.move(first, "k3", "deposit", 5), negative])
    assert books.balances() == [90, 0, 0]
    assert names(carry_out(books.conn, "round_decide", [books.decide(first, "k2", round_, "fold", 0)])) == [
        "settled"
    ]
