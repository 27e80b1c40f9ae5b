"""What operators' wallets are still owed, or have still to give back: asked for until they have answered."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from uuid import UUID

import structlog

from casino_brag.catalogue.operators import wallet_of
from casino_brag.db.clock import clock
from casino_brag.db.pool import Connect
from casino_brag.rounds.funding import cancel
from casino_brag.rounds.house import House
from casino_brag.wallet import transactions
from casino_brag.wallet.seamless import Operation, Reply, Verdict, Wallet
from casino_brag.wallet.transactions import Ending, GivenUp, Purpose, Transaction

OPERATORS_AT_ONCE: Final = 16

TURN_SECONDS: Final = 2.0
"""After how long no further call to the same wallet is begun in a turn."""

log = structlog.get_logger("casino_brag.wallet")


def pay(connect: Connect, house: House, credit: Transaction) -> int | None:
    """Asks for a credit that was stored just now; the wallet's balance when it is done.

    When it is not, the credit is left to whoever attends to what is unfinished.
    """
    with connect() as conn:
        wallet = wallet_of(conn, house.sealer, credit.operator_id)
    if wallet is None:
        return None
    reply = _credit(connect, house, wallet, credit)
    with connect() as conn:
        if reply.problem is None:
            transactions.resume(conn, credit.operator_id)  # it answers: what was put off need not wait
        else:
            transactions.postpone(conn, credit.transaction_id, reply.problem)
    return reply.balance_minor


def begin(connect: Connect) -> None:
    """After a start: what was put off is taken up at once, so that both sides agree as soon as they can."""
    with connect() as conn:
        left = transactions.unfinished(conn)
        for operator_id in left:
            transactions.resume(conn, operator_id)
    log.info("wallets_resumed", operators=len(left), transactions=sum(left.values()))


def attend(connect: Connect, house: House) -> int:
    """Asks every operator's wallet for some of what is unfinished and due; how much was finished.

    Operators do not wait for each other within a turn, and a turn is short, however slow a wallet is.  Of one that
    gives no answer only one call is tried.
    """
    with connect() as conn:
        due = transactions.operators_due(conn)
    if not due:
        return 0
    with ThreadPoolExecutor(min(len(due), OPERATORS_AT_ONCE), thread_name_prefix="wallet") as threads:
        return sum(threads.map(lambda operator_id: _attend_to(connect, house, operator_id), due))


def _attend_to(connect: Connect, house: House, operator_id: UUID) -> int:
    finished, until = 0, time.monotonic() + TURN_SECONDS
    while time.monotonic() < until and house.wallets.available(operator_id):
        with connect() as conn:
            wallet = wallet_of(conn, house.sealer, operator_id)
            # One at a time: what is claimed is asked at once, well within its lease.
            claimed = transactions.claim(conn, operator_id, at_most=1) if wallet is not None else []
        if wallet is None or not claimed:
            break
        (transaction,) = claimed
        problem = _finish(connect, house, wallet, transaction)
        with connect() as conn:
            if problem is not None:
                transactions.postpone(conn, transaction.transaction_id, problem)
                break
            if transaction.tried_before:
                transactions.resume(conn, operator_id)
        finished += 1
    return finished


def _finish(connect: Connect, house: House, wallet: Wallet, transaction: Transaction) -> str | None:
    """Asks once; what is the matter when there was no definite word."""
    if transaction.purpose != Purpose.STAKE:
        return _credit(connect, house, wallet, transaction).problem
    if (problem := cancel(house, wallet, transaction)) is None:
        with connect() as conn:
            transactions.give_up(conn, [GivenUp(transaction, Ending.CANCELLED)], clock(conn))
    return problem


def _credit(connect: Connect, house: House, wallet: Wallet, credit: Transaction) -> Reply:
    """Asks for a credit, and books it when it is done."""
    reply = house.wallets.call(wallet, Operation.CREDIT, credit.body())
    if reply.verdict is Verdict.DONE:
        with connect() as conn:
            transactions.confirm(conn, [credit], clock(conn))
    return reply
