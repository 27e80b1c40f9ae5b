"""An operator's books in a house, and operations on its players' money as the set-based functions take them."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.operators import SigningOperator, signing_operator
from casino_brag.catalogue.sessions import Mode, NewSession, open_session
from casino_brag.db.records import as_jsonb
from casino_brag.ids import uuid7
from casino_brag.rng import commitment_value
from casino_brag.wallet.answers import Request, operation
from casino_brag.wallet.builtin import PlayerAccount, player_account
from tests.inprocess import AppHouse

GAME = "three-card-brag"
BALANCE_MAX = 200
PLAYERS = 3

Op = dict[str, Any]


@dataclass(frozen=True)
class Committed:
    """A commitment: its place in its series, and what it commits to."""

    number: int
    previous: bytes | None
    value: bytes
    seed: bytes


@dataclass
class Round:
    """A round of the model."""

    round_id: UUID
    ante: int
    pair_bonus: int
    payout_max: int
    decision: str | None = None


@dataclass
class Member:
    """A player of the model: what it holds, its rounds, and the outcomes by which its keys are known."""

    account: PlayerAccount
    session_id: UUID
    balance: int = 0
    offered: UUID | None = None
    """The commitment that the next round is to be dealt from."""
    rounds: list[Round] = field(default_factory=list)
    answers: dict[str, tuple[bytes, str]] = field(default_factory=dict)

    @property
    def open_round(self) -> Round | None:
        return self.rounds[-1] if self.rounds and self.rounds[-1].decision is None else None


class Books:
    """An operator of its own in a house, and operations on its players' money."""

    def __init__(self, house: AppHouse, conn: psycopg.Connection[Any]) -> None:
        self.conn = conn
        credentials = house.new_operator()
        operator = signing_operator(conn, credentials.name, credentials.key_id)
        assert operator is not None
        self.operator_id = operator.operator_id
        version = conn.execute(
            "SELECT version_id, digest FROM game JOIN paytable_version ON version_id = active_version_id"
            " WHERE game.game = %s",
            [GAME],
        ).fetchone()
        assert version is not None
        self.version_id: UUID = version[0]
        self.digest: str = version[1]
        self.commitments: dict[UUID, Committed] = {}
        """What was or may be committed to, by round."""
        self.members = [self._member(operator) for _ in range(PLAYERS)]

    def _member(self, operator: SigningOperator) -> Member:
        wanted = NewSession(player=secrets.token_hex(4), currency="GBP", mode=Mode.REAL)
        session = open_session(self.conn, operator, wanted)
        account = player_account(self.conn, self.operator_id, wanted.player, "GBP", "real")
        return Member(account, session.session_id)

    def move(self, member: Member, key: str, direction: Literal["deposit", "withdrawal"], amount: int) -> Op:
        identifier = uuid7()
        return self._op(member, key, [direction, amount], f"wallet.{direction}", 201) | {
            "movement_id": identifier,
            "direction": direction,
            "account_id": member.account.account_id,
            "ledger_id": member.account.ledger_id,
            "amount_minor": amount,
            "balance_max_minor": BALANCE_MAX,
            "made_at": datetime.now(UTC),
        }

    def commitment(self, member: Member, after: UUID | None) -> Op:
        """A commitment that can be the next of a series, as `commitment_make` takes it."""
        before = None if after is None else self.commitments[after]
        round_id, seed = uuid7(), secrets.token_bytes(48)
        number, previous = (1, None) if before is None else (before.number + 1, before.value)
        value = commitment_value(round_id, self.digest, number, previous, seed)
        self.commitments[round_id] = Committed(number, previous, value, seed)
        entry = self._entry(member, EntryType.COMMITMENT_MADE, round_id, self._said(round_id))
        return {
            "round_id": round_id,
            "player_id": member.account.player_id,
            "game": GAME,
            "mode": "real",
            "number": number,
            "previous": previous,
            "value": value,
            "paytable_version_id": self.version_id,
            "rules_digest": self.digest,
            "rng_digest": "none",
            "sealed_seed": b"sealed",
            "made_at": datetime.now(UTC),
            "audit": entry.text(),
        }

    def make(self, *ops: Op) -> list[str]:
        """Makes commitments; what became of each."""
        rows = self.conn.execute("SELECT outcome FROM commitment_make(%s)", [as_jsonb(ops)]).fetchall()
        return [outcome for (outcome,) in rows]

    def open(self, member: Member, key: str, ante: int, pair_bonus: int) -> Op:
        """A round of the commitment that the member was offered; one is made where there is none."""
        if member.offered is None and member.open_round is None:
            made = self.commitment(member, member.rounds[-1].round_id if member.rounds else None)
            assert self.make(made) == ["made"]
            member.offered = made["round_id"]
        identifier = member.offered or member.rounds[-1].round_id
        return self._op(member, key, ["open", ante, pair_bonus], "round.opened", 201, identifier) | {
            "round_id": identifier,
            "session_id": member.session_id,
            "account_id": member.account.account_id,
            "mode": "real",
            "currency": "GBP",
            "game": GAME,
            "paytable_version_id": self.version_id,
            "rng_digest": "none",
            "opened_at": datetime.now(UTC),
            "ante_minor": ante,
            "pair_bonus_minor": pair_bonus,
            "payout_max_minor": 3 * (ante + pair_bonus),
            "balance_max_minor": BALANCE_MAX,
            "player_cards": ["As", "Kd", "2c"],
            "sealed_deal": b"sealed",
            "client_seeds": True,
            "seconds_between_starts": 0,
            "client_seed": None,
        }

    def decide(
        self, member: Member, key: str, round_: Round, decision: str, payout: int, *, go_on: bool = True
    ) -> Op:
        """A decision; with `go_on` the next commitment is made with it."""
        play = round_.ante if decision == "play" else 0
        request = ["decide", str(round_.round_id), decision]
        seed = self.commitments[round_.round_id].seed
        said = self._said(round_.round_id) | {"seed": seed.hex()}
        made = self.commitment(member, round_.round_id) if go_on else None
        return self._op(member, key, request, "round.settled", 200, round_.round_id, said) | {
            "seed": seed,
            "next": made,
            "next_audit": None if made is None else made["audit"],
            "round_id": round_.round_id,
            "decision": decision,
            "play_minor": play,
            "dealer_cards": ["Ah", "Kh", "2h"],
            "result": "win",
            "settlement": {"wagers": []},
            "total_staked_minor": round_.ante + round_.pair_bonus + play,
            "total_payout_minor": payout,
            "settled_at": datetime.now(UTC),
        }

    def _op(
        self,
        member: Member,
        key: str,
        request: list[Any],
        kind: str,
        status: int,
        round_id: UUID | None = None,
        said: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        entry = self._entry(member, EntryType(kind), round_id, said)
        fingerprint = hashlib.sha256(json.dumps(request).encode()).digest()
        return operation(
            {"operator_id": self.operator_id, "player_id": member.account.player_id},
            Request(key, fingerprint),
            status=status,
            document={"request": request},
            audit=entry.text(),
        )

    def expired(self, round_id: UUID) -> Entry:
        """The entry of a commitment that was replaced."""
        said = self._said(round_id) | {"seed": self.commitments[round_id].seed.hex()}
        return Entry(
            type=EntryType.COMMITMENT_EXPIRED,
            occurred_at=datetime.now(UTC),
            actor="system:tests",
            operator_id=self.operator_id,
            round_id=round_id,
            payload=said,
        )

    def _entry(
        self, member: Member, kind: EntryType, round_id: UUID | None, said: dict[str, Any] | None
    ) -> Entry:
        return Entry(
            type=kind,
            occurred_at=datetime.now(UTC),
            actor="system:tests",
            operator_id=self.operator_id,
            player_id=member.account.player_id,
            round_id=round_id,
            payload=said,
        )

    def _said(self, round_id: UUID) -> dict[str, Any]:
        committed = self.commitments[round_id]
        previous = None if committed.previous is None else committed.previous.hex()
        chained = {"number": committed.number, "value": committed.value.hex(), "previous": previous}
        return {"commitment": chained}

    def balances(self) -> list[int]:
        rows = dict(
            self.conn.execute(
                "SELECT account_id, balance_minor FROM account WHERE kind = 'player'"
            ).fetchall()
        )
        return [rows[member.account.account_id] for member in self.members]
