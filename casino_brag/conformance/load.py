"""Checks of many calls at the same time: no money is lost or made, and answers come in time."""

from __future__ import annotations

from functools import partial
from typing import Final

from casino_brag.conformance.bench import (
    AT_ONCE,
    Bench,
    Failed,
    at_once,
    must_be_cancelled,
    must_be_done,
    must_be_refused,
    unless_limited,
)
from casino_brag.wallet.seamless import Verdict

TABLES: Final = 8
ROUNDS: Final = 10
"""Rounds played one after another at each of the tables."""


def parallel_play_conserves_money(wallet: Bench) -> None:
    """After eighty rounds, eight at a time, the balance is exactly what debits, credits and cancels come to.

    Reading a balance, adding to it and writing it back loses movements when two do so at once.
    """
    before = wallet.balance()
    won = at_once([partial(_play, wallet, table) for table in range(TABLES)])
    wallet.must_hold(before + sum(won))


def _play(wallet: Bench, table: int) -> int:
    """Plays a table's rounds; what the player won by them, in minor units."""
    won = 0
    for number in range(table, table + ROUNDS):
        stake, given_up, payout = wallet.stake(2), wallet.stake(1), number % 7
        must_be_done(wallet.debit(stake))
        must_be_done(wallet.debit(given_up))
        must_be_cancelled(wallet.cancel(given_up))
        must_be_done(wallet.credit(wallet.payout(stake, payout)))
        won += payout - 2
    return won


def parallel_debits_never_overdraw(wallet: Bench) -> None:
    """Of ten debits at the same moment, each of more than a third of the balance, two are done at most.

    Looking at the balance first and taking later lets all ten pass.
    """
    before = wallet.balance()
    amount = before // 3 + 1
    stakes = [wallet.stake(amount) for _ in range(AT_ONCE)]
    try:
        replies = at_once([partial(wallet.debit, stake) for stake in stakes])
        done = sum(reply.verdict is Verdict.DONE for reply in replies)
        for reply in replies:
            if reply.verdict is not Verdict.DONE:
                must_be_refused(unless_limited(reply), "insufficient_funds")
        if done > 2:
            raise Failed("two debits to be done at most", f"{done} done")
        wallet.must_hold(before - done * amount)
    finally:  # below nothing, no other check could be tried
        for stake in stakes:
            wallet.cancel(stake)


def answers_come_in_time(wallet: Bench) -> None:
    """Forty calls, one after another, are each answered within the time that a call may take.

    After that the outcome is unknown, a debit is cancelled, and the player waits.
    """
    for _ in range(20):
        stake = wallet.stake(1)
        must_be_done(wallet.debit(stake))
        must_be_done(wallet.credit(wallet.payout(stake, 1)))


CHECKS: Final = (parallel_play_conserves_money, parallel_debits_never_overdraw, answers_come_in_time)
