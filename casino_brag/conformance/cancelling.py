"""Checks of cancels: a debit whose answer was lost is undone, once, even when it arrives after its cancel."""

from __future__ import annotations

from functools import partial
from typing import Final

from casino_brag.conformance.bench import (
    AT_ONCE,
    STAKE_MINOR,
    Bench,
    Failed,
    NotTried,
    at_once,
    must_be_cancelled,
    must_be_done,
    must_be_refused,
    nobody,
    unless_limited,
)
from casino_brag.wallet.seamless import Operation, Verdict


def cancel_returns_the_debit(wallet: Bench) -> None:
    """A cancel of a done debit gives back its amount.

    A round that could not be dealt must cost nothing.
    """
    before = wallet.balance()
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    must_be_done(wallet.cancel(stake))
    wallet.must_hold(before)


def cancel_repeated_returns_once(wallet: Bench) -> None:
    """A cancel sent again is done again, and gives back the amount once.

    A cancel is sent until it is answered, and the answer may be lost.
    """
    before = wallet.balance()
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    for _ in range(3):
        must_be_done(wallet.cancel(stake))
    wallet.must_hold(before)


def cancel_repeated_at_once_returns_once(wallet: Bench) -> None:
    """A cancel that arrives ten times at the same moment gives back the amount once, and all ten are done.

    A slow wallet sees a cancel again while it still works on the first one.
    """
    before = wallet.balance()
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    for reply in at_once([partial(wallet.cancel, stake)] * AT_ONCE):
        must_be_done(reply)
    wallet.must_hold(before)


def cancel_of_an_unknown_debit_moves_nothing(wallet: Bench) -> None:
    """A cancel of a debit that never arrived is answered not_found or done, each time, and moves nothing.

    Money that was never taken must not be given back; any other answer is sent again without end.
    """
    before = wallet.balance()
    stake = wallet.stake()
    for _ in range(2):
        must_be_cancelled(wallet.cancel(stake))
    wallet.must_hold(before)


def late_debit_is_refused(wallet: Bench) -> None:
    """A debit that arrives after its cancel is refused with reason cancelled, and takes nothing.

    Networks deliver late: the round was given up when the cancel was answered.
    """
    before = wallet.balance()
    stake = wallet.stake()
    must_be_cancelled(wallet.cancel(stake))
    must_be_refused(wallet.debit(stake), "cancelled")
    wallet.must_hold(before)


def cancelled_debit_stays_cancelled(wallet: Bench) -> None:
    """A debit that was done, cancelled and arrives again is refused with reason cancelled, and takes nothing.

    A repeat of the debit may have been held up until after the cancel.
    """
    before = wallet.balance()
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    must_be_done(wallet.cancel(stake))
    must_be_refused(wallet.debit(stake), "cancelled")
    wallet.must_hold(before)


def cancel_racing_its_debit_nets_zero(wallet: Bench) -> None:
    """A debit and its cancel that arrive at the same moment come to nothing, whichever is first.

    After a time-out the debit may still be worked on when its cancel comes.
    """
    before = wallet.balance()
    stakes = [wallet.stake() for _ in range(AT_ONCE)]
    calls = [partial(call, stake) for stake in stakes for call in (wallet.debit, wallet.cancel)]
    for reply in at_once(calls):
        if reply.call is Operation.CANCEL:
            must_be_cancelled(reply)
        elif reply.verdict is not Verdict.DONE:
            must_be_refused(reply, "cancelled")
    wallet.must_hold(before)


def cancel_with_another_amount_is_refused(wallet: Bench) -> None:
    """A cancel of another amount than the debit's is refused as a mismatch, and moves nothing.

    A cancel undoes a debit as a whole; a part of it would leave records that cannot be matched.
    """
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    before = wallet.balance()
    must_be_refused(wallet.cancel({**stake, "amount_minor": STAKE_MINOR + 1}), "transaction_mismatch")
    wallet.must_hold(before)


def cancel_with_another_player_is_refused(wallet: Bench) -> None:
    """A cancel that names another player than the debit is refused, and moves nothing.

    It would give one player the money of another.
    """
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    before = wallet.balance()
    other = {**stake, "player": nobody()}
    must_be_refused(wallet.cancel(other), "transaction_mismatch", "player_unknown")
    wallet.must_hold(before)


def cancel_of_a_refused_debit_moves_nothing(wallet: Bench) -> None:
    """A cancel of a debit that was refused is done or not_found, and moves nothing.

    When the refusal is lost, a cancel follows; it must not give what was not taken.
    """
    before = wallet.balance()
    stake = wallet.stake(before + 1)
    refusal, cancelled = wallet.debit(stake), wallet.cancel(stake)
    must_be_refused(unless_limited(refusal), "insufficient_funds")
    must_be_cancelled(cancelled)
    wallet.must_hold(before)


def cancel_of_a_credit_is_refused(wallet: Bench) -> None:
    """A cancel with a credit's id is refused as a mismatch, and moves nothing.

    A payout that was confirmed to the player stands.
    """
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    payout = wallet.payout(stake, 2 * STAKE_MINOR)
    must_be_done(wallet.credit(payout))
    before = wallet.balance()
    as_a_debit = {**stake, "transaction_id": payout["transaction_id"], "amount_minor": payout["amount_minor"]}
    must_be_refused(wallet.cancel(as_a_debit), "transaction_mismatch")
    wallet.must_hold(before)


def cancel_leaves_the_rounds_other_debits(wallet: Bench) -> None:
    """A cancel of one debit leaves the round's other debits as they are.

    A Play whose answer was lost is cancelled while the Ante stays staked, and the round waits.
    """
    ante = wallet.stake()
    must_be_done(wallet.debit(ante))
    before = wallet.balance()
    play = wallet.stake(wager="play", round_id=ante["round_id"])
    taken = wallet.debit(play)
    if taken.reason == "limit_reached":
        raise NotTried("the wallet takes one debit a round: choose the funding reserve")
    must_be_done(taken)
    must_be_done(wallet.cancel(play))
    wallet.must_hold(before)
    if (again := wallet.debit(ante)).verdict is not Verdict.DONE:
        raise Failed("the round's other debit to be done still", str(again))


CHECKS: Final = (
    cancel_returns_the_debit,
    cancel_repeated_returns_once,
    cancel_repeated_at_once_returns_once,
    cancel_of_an_unknown_debit_moves_nothing,
    late_debit_is_refused,
    cancelled_debit_stays_cancelled,
    cancel_racing_its_debit_nets_zero,
    cancel_with_another_amount_is_refused,
    cancel_with_another_player_is_refused,
    cancel_of_a_refused_debit_moves_nothing,
    cancel_of_a_credit_is_refused,
    cancel_leaves_the_rounds_other_debits,
)
