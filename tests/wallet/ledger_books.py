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
from casino_brag.ids import uuid7
from casino_brag.wallet.answers import Request, operation
from casino_brag.wallet.builtin import PlayerAccount, player_account
from tests.inprocess import AppHouse

GAME = "three-card-brag"
BALANCE_MAX = 200
PLAYERS = 3

Op = dict[str, Any]


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
        version = conn.execute("SELECT active_version_id FROM game WHERE game = %s", [GAME]).fetchone()
        assert version is not None
        self.version_id: UUID = version[0]
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

    def open(self, member: Member, key: str, ante: int, pair_bonus: int) -> Op:
        identifier = uuid7()
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
        }

    def decide(self, member: Member, key: str, round_: Round, decision: str, payout: int) -> Op:
        play = round_.ante if decision == "play" else 0
        request = ["decide", str(round_.round_id), decision]
        return self._op(member, key, request, "round.settled", 200, round_.round_id) | {
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
    ) -> dict[str, Any]:
        entry = Entry(
            type=EntryType(kind),
            occurred_at=datetime.now(UTC),
            actor="system:tests",
            operator_id=self.operator_id,
            player_id=member.account.player_id,
            round_id=round_id,
        )
        fingerprint = hashlib.sha256(json.dumps(request).encode()).digest()
        return operation(
            {"operator_id": self.operator_id, "player_id": member.account.player_id},
            Request(key, fingerprint),
            status=status,
            document={"request": request},
            audit=entry.text(),
        )

    def balances(self) -> list[int]:
        rows = dict(
            self.conn.execute(
                "SELECT account_id, balance_minor FROM account WHERE kind = 'player'"
            ).fetchall()
        )
        return [rows[member.account.account_id] for member in self.members]
