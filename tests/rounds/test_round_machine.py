"""Opening, deciding, voiding, expiring, closing and paying, in any order, with processes and wallets that fail."""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, LiteralString, cast
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from casino_brag.catalogue import closures
from casino_brag.catalogue.closures import ClosureState, Scope
from casino_brag.catalogue.operators import (
    Funding,
    InterruptionPolicy,
    SigningOperator,
    set_interruption,
    set_wallet,
    signing_operator,
)
from casino_brag.catalogue.sessions import Mode, NewSession, hash_of, open_session
from casino_brag.db.clock import clock
from casino_brag.errors import Code, ServiceError
from casino_brag.game.settlement import Decision, Stakes
from casino_brag.rounds import deciding, expiry, opening, paying
from casino_brag.rounds.voiding import Voiding, VoidPolicy, void_round
from casino_brag.wallet.answers import Answer, Request
from casino_brag.wallet.builtin import Direction, move
from casino_brag.wallet.seamless import Wallets
from tests.books import broken_laws
from tests.inprocess import AppHouse, app_house_in
from tests.model_wallet import Course, Killed, ModelWallets

FUNDED_MINOR = 1_000
GAME = "three-card-brag"
WALKS = 18
STEPS = 40

WHILE_OPENING = {
    Code.GAME_UNAVAILABLE,
    Code.REQUEST_IN_PROGRESS,
    Code.PAYOUT_PENDING,
    Code.ROUND_OPEN,
    Code.INSUFFICIENT_FUNDS,
    Code.WALLET_UNAVAILABLE,
}
WHILE_DECIDING = {
    Code.GAME_UNAVAILABLE,
    Code.REQUEST_IN_PROGRESS,
    Code.ALREADY_DECIDED,
    Code.ROUND_VOIDED,
    Code.INSUFFICIENT_FUNDS,
    Code.WALLET_UNAVAILABLE,
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    """A house in which an interruption may be over at once."""
    with app_house_in(tmp_path_factory.mktemp("machine")) as house:
        with house.connect() as owner:
            owner.execute("ALTER TABLE operator DROP CONSTRAINT operator_interruption_is_bounded")
        yield house


@dataclass
class Asked:
    """A request that can be made again, and what it was answered."""

    send: Callable[[], Answer]
    allowed: set[Code]
    answer: Answer | None = None


@dataclass
class Process:
    """Connections that are given out until the process is to end."""

    house: AppHouse
    connections_left: int | None = None

    @contextmanager
    def connect(self) -> Iterator[psycopg.Connection[Any]]:
        if self.connections_left is not None:
            self.connections_left -= 1
            if self.connections_left < 0:
                raise Killed
        with self.house.service.database.connection() as conn:
            yield conn


@dataclass
class Table:
    """One operator and one of its players; `owner` is a connection of the database's owner."""

    house: AppHouse
    owner: psycopg.Connection[Any]
    funding: Funding | None
    wallets: ModelWallets = field(default_factory=ModelWallets)
    player: str = field(default_factory=lambda: secrets.token_hex(6))

    def __post_init__(self) -> None:
        self.process = Process(self.house)
        self.rounds = replace(self.house.service.house, wallets=cast(Wallets, self.wallets))
        made = self.house.new_operator()
        if self.funding is not None:
            set_wallet(self.owner, made.name, "http://127.0.0.1:9", self.funding, actor="system:tests")
        found = signing_operator(self.owner, made.name, made.key_id)
        assert found is not None
        self.operator: SigningOperator = found
        if self.funding is None:
            self._deposit()
        else:
            self.wallets.balances[self.player] = FUNDED_MINOR
        wanted = NewSession(player=self.player, currency="GBP", mode=Mode.REAL, game=GAME)
        self.token_hash = hash_of(open_session(self.owner, found, wanted).token)

    def _deposit(self) -> None:
        move(
            self.owner,
            Request.of("funds", "POST", "/", {}),
            direction=Direction.DEPOSIT,
            operator_id=self.operator.operator_id,
            operator=self.operator.name,
            player=self.player,
            currency="GBP",
            amount_minor=FUNDED_MINOR,
            now=self.operator.read_at,
        )

    def value(self, query: LiteralString) -> int:
        """A figure about the operator, whose id the query is given."""
        row = self.owner.execute(query, [self.operator.operator_id]).fetchone()
        assert row is not None
        return int(row[0])


@dataclass(frozen=True)
class Trouble:
    """What goes wrong while something is done: `connections` are given out before the process ends."""

    courses: tuple[Course, ...] = ()
    left_alone: bool = False
    connections: int | None = None
    closed: ClosureState | None = None


NONE = Trouble()


def some_trouble(chance: random.Random) -> Trouble:
    """None, or of one kind."""
    courses = list(Course)
    return chance.choice(
        [
            NONE,
            NONE,
            Trouble(courses=(chance.choice(courses),)),
            Trouble(courses=(Course.DONE, chance.choice(courses))),
            Trouble(courses=tuple(chance.choices(courses, k=3)), left_alone=chance.random() < 0.3),
            Trouble(connections=chance.randint(0, 5)),
            Trouble(closed=chance.choice(list(ClosureState))),
        ]
    )


chances = st.randoms(use_true_random=True)


class Walk:
    """One player, whose requests, jobs and operator do what they like."""

    def __init__(self, table: Table, chance: random.Random) -> None:
        self.table, self.owner = table, table.owner
        self.asked: list[Asked] = []
        self.opened: list[UUID] = []
        self.voided: dict[UUID, Any] = {}
        self._chance = chance
        self._written = ""

    def step(self, chance: random.Random) -> str:
        """Does something by chance; says what."""
        self._chance = chance
        deeds, weights = zip(*DEEDS, strict=True)
        (deed,) = self._chance.choices(deeds, weights)
        trouble = some_trouble(self._chance)
        deed(self, trouble)
        self.must_be_right()
        return f"{deed.__name__}: {trouble}"

    def go_on(self, trouble: Trouble) -> None:
        if self.table.value(PENDING):
            self.the_job_attends(trouble)
        elif self.table.value(AT_STAKE):
            self.decide(trouble)
        else:
            self.open(trouble)

    def open(self, trouble: Trouble) -> None:
        self._send(self._opening(self._chance.choice([5, 50, 300]), self._chance.choice([0, 5, 40])), trouble)

    def decide(self, trouble: Trouble) -> None:
        if self.opened:
            self._send(self._decision(self.opened[-1], self._chance.choice(list(Decision))), trouble)

    def send_again(self, trouble: Trouble) -> None:
        if self.asked:
            self._send(self._chance.choice(self.asked[-4:]), trouble)

    def _opening(self, ante: int, pair_bonus: int) -> Asked:
        table = self.table
        body = {"ante_minor": ante, "pair_bonus_minor": pair_bonus}
        request = Request.of(secrets.token_hex(8), "POST", "/v1/rounds", body)
        ask = opening.Ask(table.token_hash, request, Stakes(ante, pair_bonus), GAME)
        return Asked(lambda: opening.open_round(table.process.connect, table.rounds, ask), WHILE_OPENING)

    def _decision(self, round_id: UUID, decision: Decision) -> Asked:
        table = self.table
        path = f"/v1/rounds/{round_id}/decision"
        request = Request.of(secrets.token_hex(8), "POST", path, {"decision": decision.value})
        ask = deciding.Ask(table.token_hash, request, round_id, decision)
        return Asked(lambda: deciding.decide(table.process.connect, table.rounds, ask), WHILE_DECIDING)

    def _send(self, asked: Asked, trouble: Trouble) -> None:
        if asked not in self.asked:
            self.asked.append(asked)
        with self._in(trouble, asked.allowed):
            answer = asked.send()
            before, asked.answer = asked.answer, answer
            assert before is None or (before.status, before.body) == (answer.status, answer.body)
        rows = self.owner.execute(
            "SELECT round_id FROM round WHERE operator_id = %s ORDER BY opened_at",
            [self.table.operator.operator_id],
        ).fetchall()
        self.opened = [row[0] for row in rows]

    def void(self, trouble: Trouble) -> None:
        table = self.table
        if not self.opened:
            return
        round_id, policy = self.opened[-1], self._chance.choice(list(VoidPolicy))
        with self._in(trouble, {Code.REQUEST_IN_PROGRESS}), table.process.connect() as conn:
            voiding = Voiding("a test", "operator:tests", "somebody else", policy, clock(conn))
            found = void_round(conn, table.rounds, table.operator.operator_id, round_id, voiding)
            said = (found.refund_minor, found.compensation_minor, found.voided_at)
            assert self.voided.setdefault(round_id, said) == said

    def let_it_expire(self, trouble: Trouble) -> None:
        policy = self._chance.choice(list(InterruptionPolicy))
        self._interrupt(0, policy)
        with self._in(trouble, set()):
            expiry.attend(self.table.process.connect, self.table.rounds)
            if trouble == NONE and not self.table.value(PENDING):
                assert self.table.value(AT_STAKE) == 0
        self._interrupt(720, policy)

    def _interrupt(self, hours: int, policy: InterruptionPolicy) -> None:
        set_interruption(self.owner, self.table.operator.name, hours, policy, actor="system:tests")

    def the_job_attends(self, trouble: Trouble) -> None:
        if self._chance.random() < 0.7:
            self._end_leases()
        with self._in(trouble, set()):
            paying.attend(self.table.process.connect, self.table.rounds)

    def _end_leases(self) -> None:
        """As if half a minute had passed."""
        self.owner.execute("UPDATE wallet_transaction SET due_at = now() WHERE ended_at IS NULL")

    def what_is_late_arrives(self, _: Trouble) -> None:
        self.table.wallets.deliver()

    def _close(self, state: ClosureState | None) -> None:
        scope = Scope(operator_id=self.table.operator.operator_id, game=GAME)
        if state is None:
            closures.open_again(self.owner, scope, "a test", actor="system:tests")
        else:
            closures.close(self.owner, scope, state, "a test", actor="system:tests")

    @contextmanager
    def _in(self, trouble: Trouble, allowed: set[Code]) -> Iterator[None]:
        """What is refused may be, and a process that ends is followed by another."""
        table = self.table
        table.wallets.courses, table.wallets.left_alone = list(trouble.courses), int(trouble.left_alone)
        table.process.connections_left = trouble.connections
        if trouble.closed is not None:
            self._close(trouble.closed)
        try:
            yield
        except Killed:
            pass
        except ServiceError as refused:
            if refused.code not in allowed:
                raise
        finally:
            table.process.connections_left = None
            if trouble.closed is not None:
                self._close(None)

    def must_be_right(self) -> None:
        """No law is broken; what the player has, is owed and has at stake is what it began with and has won."""
        (written,) = self.owner.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
        ).fetchone() or ("",)
        if written == self._written:
            return  # nothing was, since it was right
        self._written = written
        assert broken_laws(self.owner) == {}
        between = 0
        if self.table.funding is None:
            held = self.table.value(HELD)
        else:
            held, between = self.table.wallets.balances[self.table.player], self._between_two_books()
        assert held + between + self.table.value(AT_STAKE) == FUNDED_MINOR + self.table.value(WON)
        decided: dict[str, set[str]] = {}
        for asked in self.asked:
            said = None if asked.answer is None else json.loads(asked.answer.body)
            if said is not None and "decision" in said:
                decided.setdefault(said["round_id"], set()).add(said["decision"])
        assert all(len(decisions) == 1 for decisions in decided.values())

    def _between_two_books(self) -> int:
        """What only one side knows of: debits done and not booked, credits owed and not done."""
        between = 0
        for key, purpose, state, amount_minor in self.owner.execute(
            "SELECT transaction_id::text, purpose, state, amount_minor FROM wallet_transaction WHERE operator_id = %s",
            [self.table.operator.operator_id],
        ):
            theirs = self.table.wallets.states.get(key)
            if state == "done":
                assert theirs == "done"
            elif state in ("refused", "cancelled"):
                assert theirs != "done"
            elif (purpose == "stake") == (theirs == "done"):
                between += amount_minor
        return between

    def end(self) -> None:
        """Nothing goes wrong any more: all is finished without a hand, and every answer stands."""
        self._end_leases()
        self.the_job_attends(NONE)
        if self.opened:
            self._send(self._decision(self.opened[-1], Decision.FOLD), NONE)
        self.table.wallets.deliver()
        assert self.table.value(PENDING) == self.table.value(AT_STAKE) == 0
        self.must_be_right()
        for asked in self.asked:
            if asked.answer is not None:
                self._send(asked, NONE)


DEEDS: Final[Sequence[tuple[Callable[[Walk, Trouble], None], int]]] = (
    (Walk.go_on, 10),
    (Walk.open, 1),
    (Walk.decide, 2),
    (Walk.send_again, 3),
    (Walk.void, 1),
    (Walk.let_it_expire, 2),
    (Walk.the_job_attends, 1),
    (Walk.what_is_late_arrives, 1),
)

WON = """
    SELECT coalesce(sum(coalesce(r.total_payout_minor - r.total_staked_minor, 0)
        + CASE WHEN r.state = 'voided' AND r.decision IS NOT NULL THEN v.refund_minor ELSE 0 END
        + coalesce(v.compensation_minor, 0)), 0)::bigint
    FROM round AS r LEFT JOIN voided_round AS v USING (round_id) WHERE r.operator_id = %s"""
AT_STAKE = """
    SELECT coalesce(sum(coalesce(r.debited_minor, r.ante_minor + r.pair_bonus_minor)), 0)::bigint
    FROM round_record AS r WHERE r.operator_id = %s AND r.state = 'awaiting_decision'"""
HELD = """
    SELECT coalesce(sum(a.balance_minor), 0)::bigint FROM account AS a JOIN ledger AS l USING (ledger_id)
    WHERE l.operator_id = %s AND a.kind = 'player'"""
PENDING = "SELECT count(*) FROM wallet_transaction WHERE operator_id = %s AND ended_at IS NULL"


class RoundMachine(RuleBasedStateMachine):
    """A walk that hypothesis takes: it chooses the wallet, and the chance by which each next thing happens.

    One rule does everything that can be done, by weights: left to choose among many rules, hypothesis keeps to the
    quiet ones, and few rounds are ever dealt.
    """

    house: ClassVar[AppHouse]

    @initialize(funding=st.sampled_from([None, *Funding]), chance=chances)
    def sit_down(self, funding: Funding | None, chance: random.Random) -> None:
        self.ends = ExitStack()
        self.owner = self.ends.enter_context(self.house.connect())
        self.walk = Walk(Table(self.house, self.owner, funding), chance)

    @rule(chance=chances)
    def something_happens(self, chance: random.Random) -> None:
        note(self.walk.step(chance))

    def teardown(self) -> None:
        with self.ends:
            self.walk.end()


def test_no_order_of_events_breaks_a_law_or_moves_money_twice(house: AppHouse) -> None:
    with house.connect() as owner:
        owner.execute("ANALYZE")
    run_state_machine_as_test(
        type("Machine", (RoundMachine,), {"house": house}),
        settings=settings(
            max_examples=WALKS,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
