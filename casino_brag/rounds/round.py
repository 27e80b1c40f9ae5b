"""A round, as it is kept and as its owner may see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.db.clock import rfc3339
from casino_brag.game.cards import Card
from casino_brag.game.hands import Hand
from casino_brag.game.settlement import Decision, Settlement, Stakes, play_stake_minor
from casino_brag.rng import rank, seeds
from casino_brag.rounds.commitments import Commitment

AWAITING_DECISION: Final = "awaiting_decision"
DECIDING: Final = "deciding"
SETTLED: Final = "settled"
VOIDED: Final = "voided"

_BESIDE: Final = (
    "voided_at",
    "void_reason",
    "refund_minor",
    "compensation_minor",
    "debited_minor",
    "debit_unfinished",
    "credit_unfinished",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A row of the table ``round``, and what stands beside it in other tables.

    Amounts are minor units of `currency`; cards are in the order dealt.  `debited_minor` is what the operator's wallet
    was debited for it, None where the money is in the built-in one.
    """

    round_id: UUID
    session_id: UUID
    operator_id: UUID
    player_id: UUID
    account_id: UUID
    mode: str
    currency: str
    game: str
    paytable_version_id: UUID
    rng_digest: str
    state: str
    opened_at: datetime
    ante_minor: int
    pair_bonus_minor: int
    payout_max_minor: int
    player_cards: list[str]
    sealed_deal: bytes = field(repr=False)
    decision: str | None = None
    play_minor: int | None = None
    dealer_cards: list[str] | None = None
    result: str | None = None
    settlement: Mapping[str, Any] | None = None
    total_staked_minor: int | None = None
    total_payout_minor: int | None = None
    settled_at: datetime | None = None
    client_seeds: bool | None = None
    client_seed: str | None = None
    commitment: Commitment | None = None
    seed: bytes | None = field(default=None, repr=False)
    voided_at: datetime | None = None
    void_reason: str | None = None
    refund_minor: int | None = None
    compensation_minor: int | None = None
    debited_minor: int | None = None
    debit_unfinished: bool = False
    credit_unfinished: bool = False

    @classmethod
    def from_columns(cls, row: Sequence[Any]) -> Round:
        """The round of a ``round_record.*``.  Columns that a later version adds stand last and are not read.

        A round that was dealt before there were commitments has none.
        """
        names = [name for name in cls.__dataclass_fields__ if name not in ("commitment", "seed", *_BESIDE)]
        of_round, (number, previous, value, rng_digest, sealed_seed, seed), beside = (
            row[: len(names)],
            row[len(names) :][:6],
            row[len(names) + 6 :][: len(_BESIDE)],
        )
        commitment = None
        if number is not None:
            commitment = Commitment(row[0], number, previous, value, rng_digest, sealed_seed)
        known = dict(zip(names, of_round, strict=True)) | dict(zip(_BESIDE, beside, strict=True))
        return cls(**known, commitment=commitment, seed=seed)

    def columns(self) -> dict[str, Any]:
        """The row of the table, and what is revealed with it."""
        left_out = ("commitment", *_BESIDE)
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in left_out}

    @property
    def seen_state(self) -> str:
        """The state as others see it: while a wallet is asked for the Play wager, the round is being decided."""
        return DECIDING if self.state == AWAITING_DECISION and self.debit_unfinished else self.state

    @property
    def payout_state(self) -> str:
        """Whether what the round pays has reached the player's wallet."""
        return "pending" if self.credit_unfinished else "paid"

    @property
    def held_minor(self) -> int:
        """What the player has committed to the round before it is decided; a Play held in advance included."""
        return (
            self.debited_minor if self.debited_minor is not None else self.ante_minor + self.pair_bonus_minor
        )

    @property
    def wagers(self) -> list[dict[str, Any]]:
        """What was staked on each spot, and once the round is settled what it paid and why."""
        if self.settlement is not None:
            settled: list[dict[str, Any]] = self.settlement["wagers"]
            return settled
        stakes = (("ante", self.ante_minor), ("pair_bonus", self.pair_bonus_minor))
        return [{"spot": spot, "stake_minor": stake} for spot, stake in stakes if stake]

    @property
    def stakes(self) -> Stakes:
        """What was staked when the round was opened."""
        return Stakes(ante_minor=self.ante_minor, pair_bonus_minor=self.pair_bonus_minor)

    @property
    def client_seed_policy(self) -> str:
        """Whether the player could bring a text of its own into the deal, as proofs and records say it."""
        return "allowed" if self.client_seeds else "off"

    @property
    def player_hand(self) -> Hand:
        """The player's three cards."""
        return hand(self.player_cards)


def seal_context(round_id: UUID, version_id: UUID) -> str:
    """What binds a sealed deal to its round and to the rules it was dealt under."""
    return f"deal of round {round_id} under {version_id}"


def sealed_form(deal_index: int) -> bytes:
    """A deal's index as it is sealed: always of one length, so that the sealed value's length tells nothing.

    >>> sealed_form(42)
    b'00000000042'
    """
    return b"%011d" % deal_index


def hand(cards: list[str]) -> Hand:
    """The hand of three cards' texts."""
    first, second, third = map(Card.parse, cards)
    return Hand.of(first, second, third)


def settlement_record(settlement: Settlement, *, celebrate: bool) -> dict[str, Any]:
    """What is kept of a settlement beside the round's own columns; `celebrate` by the jurisdiction's rule."""
    return {
        "player_category": settlement.player_category.value,
        "dealer_category": settlement.dealer_category.value,
        "dealer_qualified": settlement.dealer_qualified,
        "celebrate": celebrate,
        "wagers": [
            {
                "spot": wager.spot.value,
                "stake_minor": wager.stake_minor,
                "payout_minor": wager.payout_minor,
                "reason": wager.reason.value,
            }
            for wager in settlement.wagers
        ],
    }


def as_its_owner_sees(round_: Round, version: PaytableVersion) -> dict[str, Any]:
    """The round's JSON object: the dealer's cards, and all that follows from them, only once it is settled."""
    seen = {
        "round_id": str(round_.round_id),
        "game": round_.game,
        "paytable": {"version": version.version, "digest": version.digest},
        "state": round_.seen_state,
        "opened_at": rfc3339(round_.opened_at),
        "currency": round_.currency,
        "player_cards": round_.player_cards,
        "player_category": version.paytable.ranking.category(round_.player_hand).value,
        "commitment": None if round_.commitment is None else round_.commitment.named(),
        "client_seed": round_.client_seed,
    }
    if round_.state == VOIDED:
        return seen | _voided(round_, version)
    if round_.state != SETTLED:
        return seen | {"wagers": round_.wagers, "decisions": _decisions(round_, version)}
    assert round_.settlement is not None
    assert round_.settled_at is not None
    assert round_.total_payout_minor is not None
    assert round_.total_staked_minor is not None
    return seen | {
        "settled_at": rfc3339(round_.settled_at),
        "decision": round_.decision,
        "dealer_cards": round_.dealer_cards,
        "dealer_category": round_.settlement["dealer_category"],
        "dealer_qualified": round_.settlement["dealer_qualified"],
        "result": round_.result,
        "wagers": round_.wagers,
        "total_staked_minor": round_.total_staked_minor,
        "total_payout_minor": round_.total_payout_minor,
        "net_minor": round_.total_payout_minor - round_.total_staked_minor,
        "celebrate": round_.settlement["celebrate"],
        "payout_state": round_.payout_state,
        "proof": _proof(round_, version),
    }


def _voided(round_: Round, version: PaytableVersion) -> dict[str, Any]:
    assert round_.voided_at is not None
    return {
        "voided_at": rfc3339(round_.voided_at),
        "void_reason": round_.void_reason,
        "refund_minor": round_.refund_minor,
        "compensation_minor": round_.compensation_minor,
        "wagers": round_.wagers,
        "payout_state": round_.payout_state,
        "proof": _proof(round_, version),
    }


def _deal_index(round_: Round, version: PaytableVersion, seed: bytes) -> int:
    if round_.dealer_cards is None:  # voided before it was settled
        return seeds.deal(seed, round_.round_id, version.digest, round_.client_seed).index
    first, *rest = (Card.parse(text).index for text in round_.player_cards + round_.dealer_cards)
    return rank((first, *rest))


def _proof(round_: Round, version: PaytableVersion) -> dict[str, Any] | None:
    if round_.seed is None:
        return None
    return {
        "seed": round_.seed.hex(),
        "deal_index": _deal_index(round_, version, round_.seed),
        "href": f"/v1/rounds/{round_.round_id}/proof",
    }


def _decisions(round_: Round, version: PaytableVersion) -> list[dict[str, Any]]:
    costs = ((Decision.PLAY, play_stake_minor(version.paytable, round_.stakes)), (Decision.FOLD, 0))
    return [{"decision": decision.value, "cost_minor": cost} for decision, cost in costs]
