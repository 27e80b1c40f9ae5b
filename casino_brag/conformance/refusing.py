"""Checks of what a wallet must not do: overdraw, take amounts that are none, serve whom it does not know."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from casino_brag.conformance.bench import (
    AMOUNT_MAX_MINOR,
    STAKE_MINOR,
    Bench,
    Failed,
    must_be_refused,
    must_not_be_done,
    nobody,
    unless_limited,
)
from casino_brag.wallet.seamless import Operation, Verdict


def debit_beyond_the_balance_is_refused(wallet: Bench) -> None:
    """A debit of one minor unit more than the player holds is refused for insufficient_funds, and takes nothing.

    The player is told the reason, and may stake less.
    """
    before = wallet.balance()
    stake = wallet.stake(before + 1)
    try:
        must_be_refused(unless_limited(wallet.debit(stake)), "insufficient_funds")
        wallet.must_hold(before)
    finally:  # below nothing, no other check could be tried
        wallet.cancel(stake)


def largest_debit_is_refused(wallet: Bench) -> None:
    """A debit of 2^53-1 minor units, the largest there is, is refused like any other beyond the balance.

    A number too wide for a wallet's records must not become another number, or an error that is sent again.
    """
    before = wallet.balance()
    reply = wallet.debit(wallet.stake(AMOUNT_MAX_MINOR))
    must_be_refused(reply, "insufficient_funds", "limit_reached")
    wallet.must_hold(before)


def debit_of_zero_is_not_done(wallet: Bench) -> None:
    """A debit of 0 is refused or called malformed, and takes nothing.

    A stake of nothing is no stake.
    """
    _is_not_done(wallet, Operation.DEBIT, [0])


def negative_amount_is_not_done(wallet: Bench) -> None:
    """A debit or a credit of a negative amount is refused or called malformed, and moves nothing.

    A debit of -10 must not give 10, nor a credit of -10 take them.
    """
    _is_not_done(wallet, Operation.DEBIT, [-STAKE_MINOR])
    _is_not_done(wallet, Operation.CREDIT, [-STAKE_MINOR])


def fraction_is_not_done(wallet: Bench) -> None:
    """A debit of a fraction of a minor unit is refused or called malformed, and takes nothing.

    Rounding is a movement that nobody asked for.
    """
    _is_not_done(wallet, Operation.DEBIT, [1.5, 0.1])


def amount_as_text_is_not_done(wallet: Bench) -> None:
    """A debit whose amount is a text, though of digits, is refused or called malformed, and takes nothing.

    A reader that guesses at texts guesses wrong on some of them.
    """
    _is_not_done(wallet, Operation.DEBIT, [str(STAKE_MINOR), "1e1"])


def amount_true_is_not_done(wallet: Bench) -> None:
    """A debit of true, null or a list is refused or called malformed, and takes nothing.

    In several languages true counts as 1 and null as 0.
    """
    _is_not_done(wallet, Operation.DEBIT, [True, None, [STAKE_MINOR]])


def absent_amount_is_not_done(wallet: Bench) -> None:
    """A debit without an amount is refused or called malformed, and takes nothing.

    A default for money is an invention.
    """
    before = wallet.balance()
    body = {name: value for name, value in wallet.stake().items() if name != "amount_minor"}
    must_not_be_done(wallet.debit(body))
    wallet.must_hold(before)


def member_given_twice_is_harmless(wallet: Bench) -> None:
    """A debit that names its amount twice takes one of the two, or is refused or called malformed.

    Readers differ in which of the two they keep; a signed body must not break a wallet.
    """
    before = wallet.balance()
    twice = f'{{"amount_minor": {STAKE_MINOR + 1}, '.encode() + json.dumps(wallet.stake()).encode()[1:]
    reply = wallet.post(Operation.DEBIT, twice, wallet.signed(Operation.DEBIT, twice))
    held = wallet.balance()
    if reply.verdict is Verdict.DONE:
        if before - held not in (STAKE_MINOR, STAKE_MINOR + 1):
            raise Failed(f"{STAKE_MINOR} or {STAKE_MINOR + 1} to be taken", f"{before - held} taken")
        return
    must_not_be_done(reply)
    wallet.must_hold(before)


def malformed_body_is_refused(wallet: Bench) -> None:
    """A signed body that is no JSON object is answered HTTP 400 or 422, and takes nothing.

    Another status would be taken for a failure that passes.
    """
    before = wallet.balance()
    for body in (b"", b"{", b"[]", b"\xff\xfe", json.dumps([wallet.stake()]).encode()):
        reply = wallet.post(Operation.DEBIT, body, wallet.signed(Operation.DEBIT, body))
        if reply.http_status not in (400, 422):
            raise Failed(f"HTTP 400 or 422 to the body {body[:20]!r}", str(reply))
    wallet.must_hold(before)


def unknown_currency_is_refused(wallet: Bench) -> None:
    """A debit in XTS, a code that stands for no currency, is refused or called malformed, and takes nothing.

    Taking it from another currency's money would be a conversion at a rate of one.
    """
    before = wallet.balance()
    must_not_be_done(wallet.debit(wallet.stake(currency="XTS")))
    wallet.must_hold(before)


def unknown_player_is_refused(wallet: Bench) -> None:
    """A debit of a player that the wallet does not know is refused or called malformed.

    Nobody may play on money that nobody brought.
    """
    must_not_be_done(wallet.debit(wallet.stake(player=nobody())))


def unknown_player_holds_nothing(wallet: Bench) -> None:
    """The balance of a player that the wallet does not know is refused, or is 0.

    A balance is shown before the first stake.
    """
    reply = wallet.ask_balance(player=nobody())
    if reply.reason is None and reply.said.balance_minor != 0:
        raise Failed("balance to be refused, or to be 0", str(reply))


def _is_not_done(wallet: Bench, operation: Operation, amounts: Iterable[Any]) -> None:
    before = wallet.balance()
    for amount in amounts:
        stake = wallet.stake()
        body = {
            **(stake if operation is Operation.DEBIT else wallet.payout(stake, 0)),
            "amount_minor": amount,
        }
        reply = wallet.call(operation, body)
        must_not_be_done(reply)
        wallet.must_hold(before)


CHECKS: Final = (
    debit_beyond_the_balance_is_refused,
    largest_debit_is_refused,
    debit_of_zero_is_not_done,
    negative_amount_is_not_done,
    fraction_is_not_done,
    amount_as_text_is_not_done,
    amount_true_is_not_done,
    absent_amount_is_not_done,
    member_given_twice_is_harmless,
    malformed_body_is_refused,
    unknown_currency_is_refused,
    unknown_player_is_refused,
    unknown_player_holds_nothing,
)
