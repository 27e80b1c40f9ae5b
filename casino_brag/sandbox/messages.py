"""What a wallet is asked and what it answers, read from JSON and written to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from casino_brag.errors import Code, ServiceError
from casino_brag.game.rules import MINOR_MAX


class Direction(StrEnum):
    """Which way a transfer goes."""

    DEBIT = "debit"
    """From the player: a stake."""
    CREDIT = "credit"
    """To the player: a payout, of nothing where the round is lost, or a refund."""


class Reason(StrEnum):
    """Why something is refused."""

    INSUFFICIENT_FUNDS = "insufficient_funds"
    """The balance does not cover the debit."""
    LIMIT_REACHED = "limit_reached"
    """The balance would be more than JSON numbers hold exactly."""
    PLAYER_BLOCKED = "player_blocked"
    """The player may not stake; only a fault says so here."""
    PLAYER_UNKNOWN = "player_unknown"
    """There is no such player; only a fault says so here, where everybody is known who is mentioned."""
    CURRENCY_UNKNOWN = "currency_unknown"
    """Nobody knows such a currency."""
    CANCELLED = "cancelled"
    """The debit was cancelled before it came."""
    TRANSACTION_MISMATCH = "transaction_mismatch"
    """The transaction's id belongs to another transfer."""


class Status(StrEnum):
    """How a call ended."""

    DONE = "done"
    """It is so now, by this call or by an earlier one of the same transaction."""
    REFUSED = "refused"
    """It is not so, and the reason is given."""
    NOT_FOUND = "not_found"
    """Of a cancel: there was nothing to give back, and there will not be."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """What makes a transaction the one it is; two calls with one id are the same only if all of this is equal.

    `wager` is one of ante, pair_bonus and play for a debit and payout for a credit.
    """

    transaction_id: str
    direction: Direction
    round_id: str
    game: str
    wager: str
    amount_minor: int
    currency: str
    player: str


@dataclass(frozen=True, slots=True)
class Purse:
    """A player's money in one currency, as a call for a balance names it."""

    player: str
    currency: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A definite answer; the balance is the present one, in minor units, None where there is none to tell."""

    status: Status
    balance_minor: int | None = None
    reason: str | None = None

    def document(self) -> dict[str, Any]:
        """The JSON object that is sent.

        >>> Answer(Status.REFUSED, 100, "insufficient_funds").document()
        {'status': 'refused', 'reason': 'insufficient_funds', 'balance_minor': 100}
        """
        members = {"status": self.status.value, "reason": self.reason, "balance_minor": self.balance_minor}
        return {name: value for name, value in members.items() if value is not None}


Check: TypeAlias = tuple[Callable[[Any], bool], str]
"""Whether a member of an object is right, and the sentence that says what is."""


def text(pattern: str, sentence: str) -> Check:
    """A text of which all matches."""
    whole = re.compile(pattern)
    return lambda value: isinstance(value, str) and whole.fullmatch(value) is not None, sentence


def number(least: int, most: int, sentence: str) -> Check:
    """A whole number within bounds, which true and 1.0 are not."""
    return lambda value: type(value) is int and least <= value <= most, sentence


_UUID: Final = text(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "Give a UUID in small letters: one id has one spelling."
)
PLAYER: Final = text(r"[\x21-\x7e]{1,128}", "Give 1 to 128 visible ASCII characters.")
CURRENCY: Final = text(r"[\x21-\x7e]{1,16}", "Give a currency's code.")
AMOUNT: Final = number(1, MINOR_MAX, f"Give a whole number of minor units, 1 to {MINOR_MAX}.")

PURSE: Final = {"player": PLAYER, "currency": CURRENCY}
_TRANSFER: Final = PURSE | {
    "transaction_id": _UUID,
    "round_id": _UUID,
    "game": text(r"[\x21-\x7e]{1,64}", "Give the game's name."),
}
_DEBIT: Final = _TRANSFER | {
    "wager": text("ante|pair_bonus|play", "A debit is for ante, pair_bonus or play."),
    "amount_minor": AMOUNT,
    "round_closed": (lambda value: value is False, "A debit closes no round: give false."),
}
_CREDIT: Final = _TRANSFER | {
    "wager": text("payout", "A credit is a payout."),
    "amount_minor": number(0, MINOR_MAX, f"Give a whole number of minor units, 0 to {MINOR_MAX}."),
    "round_closed": (lambda value: value is True, "A credit closes its round: give true."),
}


def checked(body: Any, checks: Mapping[str, Check]) -> dict[str, Any]:
    """The members that are asked for; others, which a later protocol may bring, are passed over.

    Raises `ServiceError`: invalid, with a sentence for each member that is wrong or missing.
    """
    if not isinstance(body, dict):
        raise ServiceError(Code.INVALID, "Send a JSON object.")
    wrong = {name: [sentence] for name, (right, sentence) in checks.items() if not right(body.get(name))}
    if wrong:
        raise ServiceError(Code.INVALID, "The call does not follow the protocol.", errors=wrong)
    return {name: body[name] for name in checks}


def transfer(direction: Direction, body: Any) -> Transfer:
    """The transfer that the body of a debit, of its cancel or of a credit describes; see `checked`."""
    members = checked(body, _DEBIT if direction is Direction.DEBIT else _CREDIT)
    del members["round_closed"]  # said by the direction
    return Transfer(direction=direction, **members)


def purse(body: Any) -> Purse:
    """What the body of a call for a balance names; see `checked`."""
    return Purse(**checked(body, PURSE))
