"""What is kept of a round, wherever it is kept, and what differs from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from casino_brag.game.paytable import Paytable, PaytableError

SHOWN_MAX: Final = 200
"""So many characters of a value are shown."""

_MISSING: Final = "missing"


class Difference(NamedTuple):
    """Something that is not recorded as it follows; the values are JSON, cut where they are long.

    `what` names it like a path: ``settlement.wagers.ante.payout_minor``, ``transfers.payout``, ``commitment.value``.
    """

    round_id: str | None
    what: str
    recorded: str
    derived: str

    @classmethod
    def of(cls, round_id: UUID | None, what: str, recorded: Any, derived: Any) -> Self:
        """The difference between two values."""
        return cls(None if round_id is None else str(round_id), what, shown(recorded), shown(derived))


@dataclass(frozen=True, slots=True)
class Rules:
    """A paytable version as it is stored.  `paytable` is None where its document is not what its digest stands for."""

    game: str
    version: int
    digest: str
    derived_digest: str
    paytable: Paytable | None

    @classmethod
    def of(cls, game: str, version: int, digest: str, document: str) -> Self:
        """The rules in a stored document, which is read only if the digest is its own."""
        derived = sha256(document.encode()).hexdigest()
        paytable = None
        if derived == digest:
            try:
                paytable = Paytable.from_document(json.loads(document))
            except (ValueError, PaytableError):
                derived = f"{derived}, of no paytable"
        return cls(game, version, digest, derived, paytable)


NO_RULES: Final = Rules("", 0, "", "no such version", None)


class Kept(NamedTuple):
    """What is kept of a round and follows from the rest of it: once as recorded, once as derived, to be compared.

    `of_this_round` says whether the commitment is of the round's player, game, mode and version.  `account_of_others`
    tells whose the round's account is, where it is not of the round's player, operator, currency and mode;
    `entries_of_others` which entries name another player, operator or session; `requests_of_others` which requests to
    a wallet name another player, operator or account.  `transfers` are such as ``"ante 100 player to escrow"``, with
    their time where it is not the step's; payloads are those of the entries of a type, in no order; `credits` is what
    an operator's wallet was asked to pay, by purpose.
    """

    game: str
    payout_max_minor: int
    opened_at: Any
    settled_at: Any
    voided_at: Any
    player_cards: list[str]
    dealer_cards: list[str] | None
    result: str | None
    play_minor: int | None
    total_staked_minor: int | None
    total_payout_minor: int | None
    settlement: Any
    rules_digest: str | None
    value: bytes | None
    previous: bytes | None
    of_this_round: bool | None
    seed_is_revealed: bool | None
    refund_minor: int | None
    compensation_minor: int | None
    account_of_others: str | None
    entries_of_others: list[str] | None
    requests_of_others: list[str] | None
    transfers: list[str] | None
    opened_payloads: list[Any] | None
    settled_payloads: list[Any] | None
    voided_payloads: list[Any] | None
    debited_minor: int | None
    credits: dict[str, int] | None

    def document(self) -> dict[str, Any]:
        """The same as a document, in which differences have their names."""
        commitment = None
        if self.rules_digest is not None:
            commitment = {
                "value": as_hex(self.value),
                "previous": as_hex(self.previous),
                "rules_digest": self.rules_digest,
                "of_this_round": self.of_this_round,
                "seed_is_revealed": self.seed_is_revealed,
            }
        void = None
        if self.refund_minor is not None:
            void = {"refund_minor": self.refund_minor, "compensation_minor": self.compensation_minor}
        return {
            "round": dict(zip(self._fields[:COLUMNS], self[:COLUMNS], strict=True)),
            "commitment": commitment,
            "settlement": self.settlement,
            "void": void,
            "account_of_others": self.account_of_others,
            "entries_of_others": sorted(self.entries_of_others or ()),
            "requests_of_others": sorted(self.requests_of_others or ()),
            "transfers": dict(moved.split(" ", 1) for moved in self.transfers or ()),
            "opened_entry": only(self.opened_payloads),
            "settled_entry": only(self.settled_payloads),
            "voided_entry": only(self.voided_payloads),
            "debited_minor": self.debited_minor,
            "credits": self.credits or {},
        }


COLUMNS: Final = Kept._fields.index("settlement")
"""The first so many of what is kept are columns of the round itself."""


class Row(NamedTuple):
    """A round as one statement of `casino_brag.replay.reading` reads it: what the rest is derived from, and the rest.

    `value_before` is of the commitment numbered one less; entries are the times of those of a type, in no order.
    """

    round_id: UUID
    state: str
    mode: str
    currency: str
    version_id: UUID
    rng_digest_at_deal: str
    ante_minor: int
    pair_bonus_minor: int
    decision: str | None
    client_seeds: bool | None
    client_seed: str | None
    number: int | None
    rng_digest: str | None
    seed: bytes | None
    value_before: bytes | None
    policy: str | None
    opened_entries: list[datetime] | None
    settled_entries: list[datetime] | None
    voided_entries: list[datetime] | None
    kept: Kept

    @classmethod
    def of(cls, columns: tuple[Any, ...]) -> Self:
        """A row as it was read, column by column."""
        return cls._make((*columns[:GIVEN], Kept._make(columns[GIVEN:])))

    @property
    def opened_minor(self) -> int:
        """What was staked before the deal."""
        return self.ante_minor + self.pair_bonus_minor

    @property
    def from_before_commitments(self) -> bool:
        """Whether it was opened when none were made: every round since says whether its player could bring a seed."""
        return self.number is None and self.client_seeds is None

    @property
    def seed_lost(self) -> bool:
        """Whether its void, before a decision, says that the seed could not be revealed."""
        told = only(self.kept.voided_payloads)
        return self.decision is None and isinstance(told, dict) and told.get("seed_lost") is True


GIVEN: Final = Row._fields.index("kept")
"""The first so many columns of a row are what the rest is derived from."""


def only(found: Sequence[Any] | None) -> Any:
    """The one there is; None for none, and for more what tells so.

    >>> only([7]), only(None), only([7, 7])
    (7, None, '2 entries')
    """
    if not found:
        return None
    return found[0] if len(found) == 1 else f"{len(found)} entries"


def as_hex(value: bytes | None) -> str | None:
    """Bytes as records have them."""
    return None if value is None else value.hex()


def shown(value: Any) -> str:
    """A value as JSON, cut where it is long.

    >>> shown({"a": ["x" * 300]})[-5:]
    'xxxx…'
    """
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"


def unlike(what: str, recorded: Any, derived: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two documents differ, as deep as both go; wagers are told by their spots.

    >>> list(unlike("", {"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2}))
    [('a.b', 1, 3)]
    """
    if recorded == derived:
        return
    if isinstance(recorded, Mapping) and isinstance(derived, Mapping):
        for name in dict.fromkeys([*derived, *recorded]):
            beneath = f"{what}.{name}" if what else name
            yield from unlike(beneath, recorded.get(name, _MISSING), derived.get(name, _MISSING))
    elif (wagers := _by_spot(recorded)) and (expected := _by_spot(derived)):
        yield from unlike(what, wagers, expected)
    else:
        yield what, recorded, derived


def _by_spot(wagers: Any) -> dict[str, Any] | None:
    """Wagers by their spots; None for what is no list of wagers, each on a spot of its own."""
    if not isinstance(wagers, list) or not all(isinstance(wager, Mapping) for wager in wagers):
        return None
    found = {str(wager.get("spot")): wager for wager in wagers}
    return found if len(found) == len(wagers) else None
