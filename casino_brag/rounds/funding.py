"""Stakes that come from an operator's wallet: stored, asked for with no connection held, and then staked or returned.

Money that the wallet debited is booked in the same transaction in which it is staked.  A debit that did not come
about, or that is not wanted any more, is cancelled; nothing else can become of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import UUID

import psycopg

from casino_brag.catalogue.operators import wallet_of
from casino_brag.catalogue.sessions import Caller
from casino_brag.db.clock import clock
from casino_brag.db.pool import Connect
from casino_brag.errors import Code, ServiceError
from casino_brag.ids import uuid7
from casino_brag.rounds.house import House
from casino_brag.wallet import transactions
from casino_brag.wallet.answers import refusal
from casino_brag.wallet.seamless import Operation, Reply, Verdict, Wallet
from casino_brag.wallet.transactions import Ending, GivenUp, Purpose, Transaction

T = TypeVar("T")

_REFUSALS: Final = frozenset({"insufficient_funds", "limit_reached", "player_blocked"})

_OVERTAKEN: Final = frozenset({"commitment_changed", "round_open", "already_decided"})
"""Another request came first since this one was read.  It may be the same one: sent again, this one is told."""


@dataclass(frozen=True, slots=True)
class Stake:
    """What a round is to be staked with, by wager; `decided` for the Play of an open round, else for a deal."""

    round_id: UUID
    game: str
    amounts_minor: Mapping[str, int]
    decided: bool

    def debits(self, caller: Caller) -> list[Transaction]:
        """The debits to ask the wallet for, in order."""
        return [
            Transaction(
                transaction_id=uuid7(),
                operator_id=caller.operator_id,
                player_id=caller.player_id,
                round_id=self.round_id,
                purpose=Purpose.STAKE.value,
                wager=wager,
                amount_minor=amount_minor,
                begun_at=caller.read_at,
                game=self.game,
                currency=caller.currency,
                player=caller.player,
            )
            for wager, amount_minor in self.amounts_minor.items()
        ]


def staked(
    connect: Connect,
    house: House,
    caller: Caller,
    stake: Stake,
    carry_on: Callable[[psycopg.Connection[Any], int], T],
) -> T:
    """Has the operator's wallet debited, and `carry_on` stake the money, in the transaction that books it.

    `carry_on` is given the wallet's balance; when it raises, nothing is booked and the debits are cancelled.  Raises
    `ServiceError`: wallet_unavailable, request_in_progress, payout_pending, round_voided, insufficient_funds,
    limit_reached, player_blocked, wallet_refused, and whatever `carry_on` raises.
    """
    debits = stake.debits(caller)
    with connect() as conn:
        wallet = wallet_of(conn, house.sealer, caller.operator_id)
        if wallet is None or not house.wallets.available(caller.operator_id):
            raise refusal("wallet_unavailable")
        outcome = transactions.reserve(
            conn,
            debits,
            account_id=caller.account_id,
            mode=caller.mode,
            decided=stake.decided,
            now=caller.read_at,
        )
    if outcome != "reserved":
        raise refusal("request_in_progress" if outcome in _OVERTAKEN else outcome)
    replies = _ask(house, wallet, debits)
    last = replies[-1]
    if len(replies) < len(debits) or last.verdict is not Verdict.DONE:
        _give_up(
            connect, house, wallet, _given_up(debits, replies), cancel_now=last.verdict is Verdict.REFUSED
        )
        raise _why(last)
    assert last.balance_minor is not None
    try:
        with connect() as conn, conn.transaction():
            if not transactions.confirm(conn, debits, clock(conn)):
                raise refusal("wallet_unavailable")  # it took so long that somebody cancels them already
            return carry_on(conn, last.balance_minor)
    except ServiceError as refused:
        # Where the database failed it is not known whether that was booked; if it was not, it is cancelled later.
        if refused.code not in (Code.BUSY, Code.DATABASE_UNAVAILABLE):
            unwanted = f"Debited, and then not staked: {refused.code.value}."
            given_up = [GivenUp(debit, Ending.CANCELLING, problem=unwanted) for debit in debits]
            _give_up(connect, house, wallet, given_up, cancel_now=True)
        raise


def _ask(house: House, wallet: Wallet, debits: Sequence[Transaction]) -> list[Reply]:
    replies: list[Reply] = []
    for debit in debits:
        replies.append(house.wallets.call(wallet, Operation.DEBIT, debit.body()))
        if replies[-1].verdict is not Verdict.DONE:
            break
    return replies


def _given_up(debits: Sequence[Transaction], replies: Sequence[Reply]) -> list[GivenUp]:
    given_up = []
    for number, debit in enumerate(debits):
        reply = replies[number] if number < len(replies) else None
        if reply is None or not reply.sent:
            given_up.append(GivenUp(debit, Ending.CANCELLED, problem="It was never sent."))
        elif reply.verdict is Verdict.REFUSED:
            given_up.append(GivenUp(debit, Ending.REFUSED, reason=reply.reason or "refused"))
        else:
            problem = reply.problem or "Another debit of the same stake did not come about."
            given_up.append(GivenUp(debit, Ending.CANCELLING, problem=problem))
    return given_up


def _give_up(
    connect: Connect, house: House, wallet: Wallet, given_up: Sequence[GivenUp], *, cancel_now: bool
) -> None:
    """Records what was given up; `cancel_now`, the wallet answers: what has to be cancelled is tried once at once."""
    with connect() as conn:
        transactions.give_up(conn, given_up, clock(conn))
    for one in given_up:
        if cancel_now and one.ending is Ending.CANCELLING and cancel(house, wallet, one.transaction) is None:
            with connect() as conn:
                transactions.give_up(conn, [GivenUp(one.transaction, Ending.CANCELLED)], clock(conn))


def cancel(house: House, wallet: Wallet, debit: Transaction) -> str | None:
    """Has a debit cancelled; what is the matter when the wallet gave no definite word."""
    return house.wallets.call(wallet, Operation.CANCEL, debit.body()).problem


def _why(reply: Reply) -> ServiceError:
    if reply.verdict is not Verdict.REFUSED or reply.reason == "cancelled":
        return refusal("wallet_unavailable")  # the second: it took so long that it is being cancelled already
    return refusal(reply.reason if reply.reason in _REFUSALS else "wallet_refused")


def wallet_balance_minor(connect: Connect, house: House, caller: Caller) -> int | None:
    """What a player has at the operator's wallet; None when that cannot be had at present."""
    with connect() as conn:
        wallet = wallet_of(conn, house.sealer, caller.operator_id)
    if wallet is None:
        return None
    asked = {"player": caller.player, "currency": caller.currency}
    return house.wallets.call(wallet, Operation.BALANCE, asked).balance_minor
