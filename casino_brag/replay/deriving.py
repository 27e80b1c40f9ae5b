"""What would be kept of a round, from its seed, its paytable, its stakes and its decision alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from casino_brag.game.cards import PACK
from casino_brag.game.hands import Hand
from casino_brag.game.paytable import Paytable, StakeRefused
from casino_brag.game.settlement import (
    Deal,
    Decision,
    Stakes,
    maximum_payout_minor,
    play_stake_minor,
    settle,
)
from casino_brag.replay.records import NO_RULES, Difference, Row, Rules, as_hex, only, unlike
from casino_brag.replay.settling import CATEGORIES, NO_WAGER, REASONS, RESULTS, SPOTS, settle_all
from casino_brag.rng import Draw, commitment_value, rank, seeds

_CARDS: Final = tuple(map(str, PACK))
_INDEX_OF: Final = {text: index for index, text in enumerate(_CARDS)}

_CATEGORIES: Final = [category.value for category in CATEGORIES]
_RESULTS: Final = [result.value for result in RESULTS]
_SPOTS: Final = [spot.value for spot in SPOTS]
_REASONS: Final = [reason.value for reason in REASONS]


class Dealt(NamedTuple):
    """The deal of a round: card indexes in the order dealt, and the draw that gave them; None without a seed."""

    cards: tuple[int, ...]
    draw: Draw | None


class Ending(NamedTuple):
    """How a decided round ends; `facts` is what is kept as its settlement, but for how it may be shown."""

    facts: dict[str, Any]
    result: str
    staked_minor: int
    payout_minor: int


def differences(rows: Sequence[Row], rules: Mapping[UUID, Rules]) -> Iterator[Difference]:
    """Everything that is recorded of these rounds and does not follow, round by round.

    `rules` are the paytable versions.  Of a round that is still open it follows that nothing has ended it.
    """
    largest: dict[tuple[Any, ...], int | None] = {}
    judged = [_judge(row, rules.get(row.version_id, NO_RULES), largest) for row in rows]
    _settle([one for one in judged if isinstance(one, _Derivation)])
    for one in judged:
        if isinstance(one, Difference):
            yield one
            continue
        derived = one.document()
        recorded = one.row.document(derived["round"])
        if recorded != derived:
            for what, was, follows in unlike("", recorded, derived):
                yield Difference.of(one.row.round_id, what, was, follows)


def _judge(row: Row, rules: Rules, largest: dict[tuple[Any, ...], int | None]) -> Difference | _Derivation:
    """What a round is derived from, or why it cannot be.  `largest` keeps what stakes could be paid at most."""
    if rules.paytable is None:
        return Difference.of(row.round_id, "paytable.digest", rules.digest, rules.derived_digest)
    stakes = (rules.digest, row.currency, row.ante_minor, row.pair_bonus_minor)
    if stakes not in largest:
        largest[stakes] = _payout_max_minor(rules.paytable, *stakes[1:])
    payout_max_minor = largest[stakes]
    if payout_max_minor is None:
        return Difference.of(row.round_id, "round.stakes", stakes[1:], "what the paytable takes")
    dealt = _dealt(row, rules)
    if dealt is None and (row.seed is not None or row.decision is not None):
        found = [row.player_cards, row.dealer_cards, as_hex(row.seed)]
        return Difference.of(row.round_id, "round.deal", found, "a seed of 48 bytes, or six cards")
    return _Derivation(row, rules, rules.paytable, payout_max_minor, dealt)


def _payout_max_minor(
    paytable: Paytable, currency: str, ante_minor: int, pair_bonus_minor: int
) -> int | None:
    """The most that these stakes can be paid; None when the paytable does not take them."""
    try:
        paytable.check_stakes(currency, ante_minor, pair_bonus_minor)
    except StakeRefused:
        return None
    return maximum_payout_minor(paytable, Stakes(ante_minor, pair_bonus_minor))


def _dealt(row: Row, rules: Rules) -> Dealt | None:
    """The deal, from the seed if there is one, else as it is recorded; None while it is hidden or when it is lost."""
    if row.seed is not None:
        if len(row.seed) != seeds.SEED_BYTES:
            return None
        draw = seeds.deal(row.seed, row.round_id, rules.digest, row.client_seed)
        return Dealt(draw.cards, draw)
    dealer_cards, voided = row.dealer_cards, only(row.voided_payloads)
    if dealer_cards is None and isinstance(voided, dict):
        dealer_cards = voided.get("dealer_cards")
    try:
        cards = tuple(_INDEX_OF[text] for text in [*row.player_cards, *(dealer_cards or ())])
    except (KeyError, TypeError):
        return None
    return Dealt(cards, None) if len(set(cards)) == len(cards) == 6 else None


def _settle(rounds: Sequence[_Derivation]) -> None:
    """Says how the rounds end that are decided, paytable by paytable."""
    decided: defaultdict[Paytable, list[_Derivation]] = defaultdict(list)
    for one in rounds:
        if one.row.decision is not None:
            decided[one.paytable].append(one)
    for paytable, alike in decided.items():
        settled = settle_all(
            paytable,
            np.array([one.cards() for one in alike]),
            np.array([one.row.decision == Decision.PLAY for one in alike]),
            np.array([one.row.ante_minor for one in alike]),
            np.array([one.row.pair_bonus_minor for one in alike]),
        )
        for one, *how in zip(alike, *(column.tolist() for column in settled.columns()), strict=True):
            one.ending = _ending(*how)


def _ending(
    player_category: int,
    dealer_category: int,
    qualified: bool,
    result: int,
    stakes: list[int],
    payouts: list[int],
    reasons: list[int],
) -> Ending:
    facts = {
        "player_category": _CATEGORIES[player_category],
        "dealer_category": _CATEGORIES[dealer_category],
        "dealer_qualified": qualified,
        "wagers": [
            {"spot": spot, "stake_minor": stake, "payout_minor": payout, "reason": _REASONS[reason]}
            for spot, stake, payout, reason in zip(_SPOTS, stakes, payouts, reasons, strict=True)
            if reason != NO_WAGER
        ],
    }
    return Ending(facts, _RESULTS[result], sum(stakes), sum(payouts))


@dataclass(slots=True)
class _Derivation:
    """A round whose rules and stakes are sound.  The deal is None while it is hidden, or lost; the ending until the
    round is decided.
    """

    row: Row
    rules: Rules
    paytable: Paytable
    payout_max_minor: int
    dealt: Dealt | None
    ending: Ending | None = None

    def cards(self) -> tuple[int, ...]:
        """The cards of a round whose deal is known."""
        assert self.dealt is not None
        return self.dealt.cards

    def document(self) -> dict[str, Any]:
        """What would be kept of the round: see `Row.document`."""
        commitment = self._commitment()
        proof = self._proof(commitment)
        void = self._void()
        debited_minor = self._debited_minor()
        return {
            "round": self._round(),
            "commitment": commitment,
            "settlement": self._settlement(),
            "void": void,
            "account_of_others": None,
            "entries_of_others": [],
            "requests_of_others": [],
            "transfers": self._transfers(void),
            "opened_entry": self._opened_entry(commitment),
            "settled_entry": self._settled_entry(proof),
            "voided_entry": self._voided_entry(proof, void),
            "debited_minor": debited_minor,
            "credits": self._credits(void, debited_minor),
        }

    def _round(self) -> dict[str, Any]:
        """Columns of the round; its times are those of the entries about it."""
        found: dict[str, Any] = {
            "game": self.rules.game,
            "payout_max_minor": self.payout_max_minor,
            "opened_at": only(self.row.opened_entries),
            "settled_at": only(self.row.settled_entries),
            "voided_at": only(self.row.voided_entries),
        }
        if self.dealt is not None:
            found["player_cards"] = _texts(self.dealt.cards[:3])
        if self.ending is not None:
            found["dealer_cards"] = _texts(self.cards()[3:])
            found["result"] = self.ending.result
            found["play_minor"] = self.ending.staked_minor - self.row.opened_minor
            found["total_staked_minor"] = self.ending.staked_minor
            found["total_payout_minor"] = self.ending.payout_minor
        return found

    def _commitment(self) -> dict[str, Any] | None:
        """The commitment; while its seed is hidden, or when that is lost, its value is taken as it is."""
        row = self.row
        if row.from_before_commitments:
            return None
        value = row.value
        if row.seed is not None and row.number is not None and row.number > 0:
            value = commitment_value(row.round_id, self.rules.digest, row.number, row.value_before, row.seed)
        return {
            "value": as_hex(value),
            "previous": as_hex(row.value_before),
            "rules_digest": self.rules.digest,
            "of_this_round": True,
            "seed_is_revealed": row.state != "awaiting_decision" and not row.seed_lost,
        }

    def _settlement(self) -> dict[str, Any] | None:
        return (
            None if self.ending is None else {**self.ending.facts, "celebrate": self._celebrate(self.ending)}
        )

    def _celebrate(self, ending: Ending) -> bool:
        """Whether the round may be shown as a win: in every jurisdiction when more came back than was staked, in none
        when nothing did.  In between it was for the rules of the day to say, and is taken as it is recorded.
        """
        if 0 < ending.payout_minor <= ending.staked_minor and isinstance(self.row.settlement, dict):
            return self.row.settlement.get("celebrate") is True
        return ending.payout_minor > ending.staked_minor

    def _void(self) -> dict[str, int] | None:
        """What a void returns: of a decided round what was lost, else the stakes, and by the policy ``better`` what the
        better decision would have won.
        """
        row, ending = self.row, self.ending
        if row.state != "voided":
            return None
        if ending is not None:
            lost_minor = max(0, ending.staked_minor - ending.payout_minor)
            return {"refund_minor": lost_minor, "compensation_minor": 0}
        won_minor = 0
        if row.policy == "better" and self.dealt is not None:
            player, dealer = (
                Hand.of(*(PACK[card] for card in half))
                for half in (self.dealt.cards[:3], self.dealt.cards[3:])
            )
            both = (
                settle(self.paytable, self._stakes(), Deal(player, dealer), decision) for decision in Decision
            )
            won_minor = max(0, *(settlement.net_minor for settlement in both))
        return {"refund_minor": row.opened_minor, "compensation_minor": won_minor}

    def _stakes(self) -> Stakes:
        return Stakes(self.row.ante_minor, self.row.pair_bonus_minor)

    def _transfers(self, void: Mapping[str, int] | None) -> dict[str, str]:
        """What was moved, by kind: amount, from, to.  Nothing is moved by 0."""
        row, ending = self.row, self.ending
        moves = [
            ("ante", row.ante_minor, "player to escrow"),
            ("pair_bonus", row.pair_bonus_minor, "player to escrow"),
        ]
        if ending is not None:
            moves += [
                ("play", ending.staked_minor - row.opened_minor, "player to escrow"),
                ("stakes", ending.staked_minor, "escrow to house"),
                ("payout", ending.payout_minor, "house to player"),
            ]
        if void is not None:
            source = "escrow" if ending is None else "house"
            moves += [
                ("refund", void["refund_minor"], f"{source} to player"),
                ("compensation", void["compensation_minor"], "house to player"),
            ]
        return {kind: f"{amount_minor} {way}" for kind, amount_minor, way in moves if amount_minor}

    def _opened_entry(self, commitment: Mapping[str, Any] | None) -> dict[str, Any]:
        """What the entry that opens a round tells; the discards of a deal whose seed is not known are taken as told."""
        row, rules = self.row, self.rules
        told: dict[str, Any] = {
            "mode": row.mode,
            "currency": row.currency,
            "game": rules.game,
            "paytable_version": rules.version,
            "paytable_digest": rules.digest,
            "rng_digest": row.rng_digest_at_deal,
            "ante_minor": row.ante_minor,
            "pair_bonus_minor": row.pair_bonus_minor,
            "payout_max_minor": self.payout_max_minor,
            "player_cards": row.player_cards if self.dealt is None else _texts(self.dealt.cards[:3]),
        }
        if self.dealt is not None and self.dealt.draw is not None:
            told["discards"] = self.dealt.draw.discards
        elif isinstance(recorded := only(row.opened_payloads), dict) and "discards" in recorded:
            told["discards"] = recorded["discards"]
        if commitment is not None:
            told["commitment"] = {
                "number": row.number,
                "value": commitment["value"],
                "round_id": str(row.round_id),
            }
            told["client_seeds"] = "allowed" if row.client_seeds else "off"
            told["client_seed"] = row.client_seed
        return told

    def _proof(self, commitment: Mapping[str, Any] | None) -> dict[str, Any]:
        """What the entry that ends a round tells of its deal."""
        row, rules, dealt = self.row, self.rules, self.dealt
        told: dict[str, Any] = {"paytable_version": rules.version, "paytable_digest": rules.digest}
        if dealt is None:
            return told
        told["player_cards"], told["dealer_cards"] = _texts(dealt.cards[:3]), _texts(dealt.cards[3:])
        if dealt.draw is None or row.seed is None:
            told["deal_index"] = rank(dealt.cards)
            recorded = only(row.settled_payloads or row.voided_payloads)
            if isinstance(recorded, dict) and "discards" in recorded:  # at first they were not told here
                told["discards"] = 0
            return told
        assert commitment is not None, "there is a seed"
        told["deal_index"], told["discards"] = dealt.draw.index, dealt.draw.discards
        told["game"], told["rng_digest"] = rules.game, row.rng_digest
        told["commitment"] = {
            "number": row.number,
            "value": commitment["value"],
            "previous": commitment["previous"],
        }
        told["seed"] = row.seed.hex()
        told["client_seeds"] = "allowed" if row.client_seeds else "off"
        told["client_seed"] = row.client_seed
        return told

    def _settled_entry(self, proof: Mapping[str, Any]) -> dict[str, Any] | None:
        if self.ending is None:
            return None
        return {
            **proof,
            "decision": self.row.decision,
            "result": self.ending.result,
            "wagers": self.ending.facts["wagers"],
            "total_staked_minor": self.ending.staked_minor,
            "total_payout_minor": self.ending.payout_minor,
        }

    def _voided_entry(
        self, proof: Mapping[str, Any], void: Mapping[str, int] | None
    ) -> dict[str, Any] | None:
        if void is None:
            return None
        if self.ending is not None:
            proof = {name: proof[name] for name in ("paytable_version", "paytable_digest")}
        lost = self.row.number is not None and self.ending is None and self.dealt is None
        return {**proof, **void, "policy": self.row.policy, "seed_lost": lost}

    def _debited_minor(self) -> int | None:
        """What an operator's wallet was debited: the stakes, or the Play too where it was reserved at the deal."""
        row = self.row
        if row.debited_minor is None:
            return None
        reserved_minor = row.opened_minor + play_stake_minor(self.paytable, self._stakes())
        if row.debited_minor == reserved_minor:
            return reserved_minor
        return row.opened_minor if self.ending is None else self.ending.staked_minor

    def _credits(self, void: Mapping[str, int] | None, debited_minor: int | None) -> dict[str, int]:
        """What a wallet has to pay: the payout, with what was debited and not staked; and what a void returns."""
        owed: dict[str, int] = {}
        if debited_minor is None:
            return owed
        unstaked_minor = debited_minor - self.row.opened_minor
        if self.ending is not None:
            owed["settlement"] = debited_minor - self.ending.staked_minor + self.ending.payout_minor
            unstaked_minor = 0
        if void is not None:
            owed["void"] = unstaked_minor + void["refund_minor"] + void["compensation_minor"]
        return owed


def _texts(cards: Sequence[int]) -> list[str]:
    return [_CARDS[card] for card in cards]
