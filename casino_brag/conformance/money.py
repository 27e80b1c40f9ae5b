"""Checks of single movements: exactly the amount, and an answer that tells the balance."""

from __future__ import annotations

from typing import Final

from casino_brag.conformance.bench import (
    STAKE_MINOR,
    Bench,
    Failed,
    NotTried,
    must_be_done,
    unless_limited,
)
from casino_brag.wallet.currency import exponent


def debit_takes_exactly(wallet: Bench) -> None:
    """A debit takes its amount, to the minor unit.

    Everything else rests on this.
    """
    before = wallet.balance()
    must_be_done(wallet.debit(wallet.stake(STAKE_MINOR + 1)))
    wallet.must_hold(before - STAKE_MINOR - 1)


def credit_gives_exactly(wallet: Bench) -> None:
    """A credit gives its amount, to the minor unit, though it is more than the round's stake.

    A payout holds the stake and what was won; players and the regulator count it.
    """
    before = wallet.balance()
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    must_be_done(wallet.credit(wallet.payout(stake, 3 * STAKE_MINOR + 1)))
    wallet.must_hold(before + 2 * STAKE_MINOR + 1)


def credit_of_zero_is_done(wallet: Bench) -> None:
    """A credit of 0 is done and moves nothing.

    It closes a losing round; while it is refused, it is sent again without end.
    """
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    before = wallet.balance()
    must_be_done(wallet.credit(wallet.payout(stake, 0)))
    wallet.must_hold(before)


def closed_round_takes_another_credit(wallet: Bench) -> None:
    """A credit for a round that a credit has closed already is done as any other.

    A round that is voided after it was settled returns what was lost in a second one.
    """
    stake = wallet.stake()
    must_be_done(wallet.debit(stake))
    must_be_done(wallet.credit(wallet.payout(stake, STAKE_MINOR)))
    before = wallet.balance()
    must_be_done(wallet.credit(wallet.payout(stake, STAKE_MINOR)))
    wallet.must_hold(before + STAKE_MINOR)


def answers_tell_the_balance_afterwards(wallet: Bench) -> None:
    """The balance in the answer to a debit, a credit and a cancel is the one after it.

    The player is shown that figure; one from before the movement looks like lost money.
    """
    first, second = wallet.stake(), wallet.stake()
    for call, body in (
        (wallet.debit, first),
        (wallet.credit, wallet.payout(first, 2 * STAKE_MINOR)),
        (wallet.debit, second),
        (wallet.cancel, second),
    ):
        told = must_be_done(reply := call(body))
        if told != (held := wallet.balance()):
            raise Failed(f"the answer to {reply.call} to tell the balance {held}", str(reply))


def whole_balance_may_be_staked(wallet: Bench) -> None:
    """A debit of all that the player holds is done, and leaves 0.

    A player may stake the last coin, and a balance of 0 is a number like any other.
    """
    stake = wallet.stake(wallet.balance())
    try:
        must_be_done(unless_limited(wallet.debit(stake)))
        wallet.must_hold(0)
    finally:  # with nothing left, no other check could be tried
        wallet.cancel(stake)


def round_takes_several_debits(wallet: Bench) -> None:
    """A round's debits for Ante, Pair Bonus and Play are each done.

    An operator with the funding two_debits is called so; a wallet that takes one debit a round needs reserve.
    """
    before = wallet.balance()
    ante = wallet.stake()
    must_be_done(wallet.debit(ante))
    for wager in ("pair_bonus", "play"):
        again = wallet.debit(wallet.stake(wager=wager, round_id=ante["round_id"]))
        if again.reason == "limit_reached":
            raise NotTried("the wallet takes one debit a round: choose the funding reserve")
        must_be_done(again)
    wallet.must_hold(before - 3 * STAKE_MINOR)


def unknown_members_are_ignored(wallet: Bench) -> None:
    """A debit with a member that the wallet does not know is done.

    Later versions may add members, and an update of ours must not stop play.
    """
    before = wallet.balance()
    must_be_done(wallet.debit(wallet.stake(added_later={"by": ["us"]})))
    wallet.must_hold(before - STAKE_MINOR)


def currency_without_decimals(wallet: Bench) -> None:
    """Amounts of a currency without decimals, such as JPY, are whole units.

    A wallet that divides every amount by 100 is wrong a hundredfold here.
    """
    _moves_exactly(wallet, 0)


def currency_with_two_decimals(wallet: Bench) -> None:
    """Amounts of a currency with two decimals, such as GBP, are hundredths.

    Sums kept as binary fractions lose a minor unit sooner or later.
    """
    _moves_exactly(wallet, 2)


def currency_with_three_decimals(wallet: Bench) -> None:
    """Amounts of a currency with three decimals, such as KWD, are thousandths.

    A wallet that keeps two decimals loses the third.
    """
    _moves_exactly(wallet, 3)


def currency_with_eight_decimals(wallet: Bench) -> None:
    """Amounts of a currency with eight decimals, such as XBT, are hundred-millionths.

    A wallet that keeps two decimals loses small stakes altogether.
    """
    _moves_exactly(wallet, 8)


def _moves_exactly(wallet: Bench, decimals: int) -> None:
    chosen = [currency for currency in wallet.subject.currencies if exponent(currency) == decimals]
    if not chosen:
        raise NotTried(f"no currency of {decimals} decimals was named")
    for currency in chosen:
        asked = wallet.ask_balance(currency)
        if asked.reason == "currency_unknown":
            raise NotTried(f"{currency} is not offered")
        before = must_be_done(asked)
        if before < STAKE_MINOR:
            raise NotTried(
                f"the player holds {before} minor units of {currency}, and {STAKE_MINOR} are needed"
            )
        for amount in (1, STAKE_MINOR - 1):
            stake = wallet.stake(amount, currency=currency)
            for call, body, held in (
                (wallet.debit, stake, before - amount),
                (wallet.credit, wallet.payout(stake, amount), before),
            ):
                must_be_done(call(body))
                if (told := must_be_done(wallet.ask_balance(currency))) != held:
                    raise Failed(f"a balance of {held} minor units of {currency}", f"a balance of {told}")


CHECKS: Final = (
    debit_takes_exactly,
    credit_gives_exactly,
    credit_of_zero_is_done,
    closed_round_takes_another_credit,
    answers_tell_the_balance_afterwards,
    whole_balance_may_be_staked,
    round_takes_several_debits,
    unknown_members_are_ignored,
    currency_without_decimals,
    currency_with_two_decimals,
    currency_with_three_decimals,
    currency_with_eight_decimals,
)
