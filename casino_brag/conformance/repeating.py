"""Checks of transaction ids: repeated they have one effect, and they never stand for something else."""

from __future__ import annotations

from functools import partial
from typing import Final
from uuid import uuid4

from casino_brag.conformance.bench import (
    AT_ONCE,
    STAKE_MINOR,
    Bench,
    Body,
    at_once,
    must_be_done,
    must_be_refused,
    nobody,
)


def debit_repeated_counts_once(wallet: Bench) -> None:
    """A debit sent again is done again, and takes its amount once.

    When an answer is lost, the same debit is the question what became of it.
    """
    before = wallet.balance()
    stake = wallet.stake()
    for _ in range(3):
        must_be_done(wallet.debit(stake))
    wallet.must_hold(before - STAKE_MINOR)


def debit_repeated_at_once_counts_once(wallet: Bench) -> None:
    """A debit that arrives ten times at the same moment takes its amount once, and all ten are done.

    Looking for the id first and writing it later is not enough: it must be unique in the wallet's records.
    """
    before = wallet.balance()
    stake = wallet.stake()
    for reply in at_once([partial(wallet.debit, stake)] * AT_ONCE):
        must_be_done(reply)
    wallet.must_hold(before - STAKE_MINOR)


def credit_repeated_counts_once(wallet: Bench) -> None:
    """A credit sent again is done again, and gives its amount once.

    Credits are sent until they are confirmed, for days if need be.
    """
    payout = _payout(wallet)
    before = wallet.balance()
    for _ in range(3):
        must_be_done(wallet.credit(payout))
    wallet.must_hold(before + STAKE_MINOR)


def credit_repeated_at_once_counts_once(wallet: Bench) -> None:
    """A credit that arrives ten times at the same moment gives its amount once, and all ten are done.

    A slow wallet sees a credit again while it still works on the first one.
    """
    payout = _payout(wallet)
    before = wallet.balance()
    for reply in at_once([partial(wallet.credit, payout)] * AT_ONCE):
        must_be_done(reply)
    wallet.must_hold(before + STAKE_MINOR)


def repeat_is_known_by_its_content(wallet: Bench) -> None:
    """A debit sent again with its members in another order is the same debit.

    What was stored in one version may be sent by the next, which writes the same JSON in other bytes.
    """
    before = wallet.balance()
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    must_be_done(wallet.debit(dict(reversed(stake.items()))))
    wallet.must_hold(before - STAKE_MINOR)


def debit_id_with_another_amount(wallet: Bench) -> None:
    """A known id with another amount is refused as a mismatch, and moves nothing.

    Answering done would confirm a stake that was never taken.
    """
    _mismatches(wallet, {"amount_minor": STAKE_MINOR + 1})


def debit_id_with_another_player(wallet: Bench) -> None:
    """A known id with another player is refused, and moves nothing.

    An id kept per player would stand for two movements in our records' one.
    """
    _mismatches(wallet, {"player": nobody()}, "player_unknown")


def debit_id_with_another_currency(wallet: Bench) -> None:
    """A known id with another currency is refused, and moves nothing.

    A currency is never converted, and ten of one are not ten of another.
    """
    other = next((code for code in wallet.subject.currencies if code != wallet.currency), "XTS")
    _mismatches(wallet, {"currency": other}, "currency_unknown")


def debit_id_with_another_round(wallet: Bench) -> None:
    """A known id with another round is refused as a mismatch, and moves nothing.

    Rounds and movements are matched when accounts are reconciled.
    """
    _mismatches(wallet, {"round_id": str(uuid4())})


def debit_id_as_a_credit(wallet: Bench) -> None:
    """A debit's id in a credit is refused as a mismatch, and moves nothing.

    An id names one movement in one direction.
    """
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    before = wallet.balance()
    credit = {**stake, "wager": "payout", "round_closed": True}
    must_be_refused(wallet.credit(credit), "transaction_mismatch")
    wallet.must_hold(before)


def credit_id_with_another_amount(wallet: Bench) -> None:
    """A credit's id with another amount is refused as a mismatch, and moves nothing.

    Answering done would confirm a payout that was never made.
    """
    payout = _payout(wallet)
    must_be_done(wallet.credit(payout))
    before = wallet.balance()
    must_be_refused(wallet.credit({**payout, "amount_minor": STAKE_MINOR + 1}), "transaction_mismatch")
    wallet.must_hold(before)


def credit_id_as_a_debit(wallet: Bench) -> None:
    """A credit's id in a debit is refused as a mismatch, and moves nothing.

    An id names one movement in one direction.
    """
    payout = _payout(wallet)
    must_be_done(wallet.credit(payout))
    before = wallet.balance()
    debit = {**payout, "wager": "ante", "round_closed": False}
    must_be_refused(wallet.debit(debit), "transaction_mismatch")
    wallet.must_hold(before)


def _payout(wallet: Bench) -> dict[str, object]:
    """A credit whose round has its debit."""
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    return wallet.payout(stake, STAKE_MINOR)


def _mismatches(wallet: Bench, otherwise: Body, *also: str) -> None:
    """A done debit's id with other content; `also` are reasons that a wallet may find before it looks for the id."""
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    before = wallet.balance()
    must_be_refused(wallet.debit({**stake, **otherwise}), "transaction_mismatch", *also)
    wallet.must_hold(before)


CHECKS: Final = (
    debit_repeated_counts_once,
    debit_repeated_at_once_counts_once,
    credit_repeated_counts_once,
    credit_repeated_at_once_counts_once,
    repeat_is_known_by_its_content,
    debit_id_with_another_amount,
    debit_id_with_another_player,
    debit_id_with_another_currency,
    debit_id_with_another_round,
    debit_id_as_a_credit,
    credit_id_with_another_amount,
    credit_id_as_a_debit,
)
