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
from casino_brag.replay.dealing import CARDS_DEALT, deal_index, deals
from casino_brag.replay.records import NO_RULES, Difference, Kept, Row, Rules, as_hex, only, unlike
from casino_brag.replay.settling import CATEGORIES, NO_WAGER, REASONS, RESULTS, SPOTS, settle_all
from casino_brag.rng import commitment_value, rank, seeds

_CARDS: Final = np.array([str(card) for card in PACK], dtype=object)
_INDEX_OF: Final = {text: index for index, text in enumerate(_CARDS)}

_CATEGORIES: Final = [category.value for category in CATEGORIES]
_RESULTS: Final = [result.value for result in RESULTS]
_SPOTS: Final = [spot.value for spot in SPOTS]
_REASONS: Final = [reason.value for reason in REASONS]


class Terms(NamedTuple):
    """What rounds of one paytable version have in common that are played in one mode and currency for the same stakes.

    `opening` is what the entries that open them tell of it.
    """

    rules: Rules
    paytable: Paytable
    stakes: Stakes
    payout_max_minor: int
    opening: dict[str, Any]


class Refused(NamedTuple):
    """Why nothing can be derived from a round's rules and stakes: the parts of a `Difference`."""

    what: str
    recorded: Any
    derived: Any


class Dealt(NamedTuple):
    """The deal of a round: card numbers in the order dealt, and their index; the discards are None without a seed."""

    cards: Sequence[int]
    player_cards: list[str]
    dealer_cards: list[str]
    deal_index: int
    discards: int | None


class Ending(NamedTuple):
    """How a decided round ends; `facts` is what is kept as its settlement, but for how it may be shown."""

    facts: dict[str, Any]
    result: str
    staked_minor: int
    payout_minor: int


class Void(NamedTuple):
    """What a void returns."""

    refund_minor: int
    compensation_minor: int


def differences(rows: Sequence[Row], rules: Mapping[UUID, Rules]) -> Iterator[Difference]:
    """Everything that is recorded of these rounds and does not follow, round by round.

    `rules` are the paytable versions.  Of a round that is still open it follows that nothing has ended it.
    """
    known: dict[tuple[Any, ...], Terms | Refused] = {}
    judged = [_begin(row, rules, known) for row in rows]
    sound = [one for one in judged if isinstance(one, _Derivation)]
    _deal(sound)
    _settle(sound)
    for one in judged:
        if isinstance(one, Difference):
            yield one
        elif one.deal_is_missing():
            row = one.row
            found = [row.kept.player_cards, row.kept.dealer_cards, as_hex(row.seed)]
            yield Difference.of(row.round_id, "round.deal", found, "a seed of 48 bytes, or six cards")
        else:
            kept, derived = one.row.kept, one.derived()
            if kept != derived:  # if only by the order of what has none, the documents do not differ
                for what, was, follows in unlike("", kept.document(), derived.document()):
                    yield Difference.of(one.row.round_id, what, was, follows)


def _begin(
    row: Row, rules: Mapping[UUID, Rules], known: dict[tuple[Any, ...], Terms | Refused]
) -> Difference | _Derivation:
    """A round on its terms, or why there are none.  `known` keeps those of the rounds before."""
    key = (row.version_id, row.mode, row.currency, row.ante_minor, row.pair_bonus_minor)
    terms = known.get(key)
    if terms is None:
        terms = known[key] = _terms(rules.get(row.version_id, NO_RULES), *key[1:])
    if isinstance(terms, Refused):
        return Difference.of(row.round_id, *terms)
    return _Derivation(row, terms)


def _terms(rules: Rules, mode: str, currency: str, ante_minor: int, pair_bonus_minor: int) -> Terms | Refused:
    if rules.paytable is None:
        return Refused("paytable.digest", rules.digest, rules.derived_digest)
    try:
        rules.paytable.check_stakes(currency, ante_minor, pair_bonus_minor)
    except StakeRefused:
        recorded = (currency, ante_minor, pair_bonus_minor)
        return Refused("round.stakes", recorded, "what the paytable takes")
    stakes = Stakes(ante_minor, pair_bonus_minor)
    payout_max_minor = maximum_payout_minor(rules.paytable, stakes)
    opening = {
        "mode": mode,
        "currency": currency,
        "game": rules.game,
        "paytable_version": rules.version,
        "paytable_digest": rules.digest,
        "ante_minor": ante_minor,
        "pair_bonus_minor": pair_bonus_minor,
        "payout_max_minor": payout_max_minor,
    }
    return Terms(rules, rules.paytable, stakes, payout_max_minor, opening)


def _deal(rounds: Sequence[_Derivation]) -> None:
    """Says what was dealt: by the seed if there is one, else as it is recorded; nothing while it is hidden or lost."""
    seeded, draws = [], []
    for one in rounds:
        row = one.row
        if row.seed is None:
            one.dealt = _recorded_deal(row)
        elif len(row.seed) == seeds.SEED_BYTES:
            seeded.append(one)
            draws.append(deal_index(row.seed, row.round_id, one.terms.rules.digest, row.client_seed))
    hands = deals(np.array([index for index, _ in draws], dtype=np.int64))
    for one, draw, cards, texts in zip(seeded, draws, hands.tolist(), _CARDS[hands].tolist(), strict=True):
        one.dealt = Dealt(cards, texts[:3], texts[3:], *draw)


def _recorded_deal(row: Row) -> Dealt | None:
    dealer_cards, voided = row.kept.dealer_cards, only(row.kept.voided_payloads)
    if dealer_cards is None and isinstance(voided, dict):
        dealer_cards = voided.get("dealer_cards")
    try:
        cards = tuple(_INDEX_OF[text] for text in [*row.kept.player_cards, *(dealer_cards or ())])
    except (KeyError, TypeError):
        return None
    if not len(set(cards)) == len(cards) == CARDS_DEALT:
        return None
    texts = _CARDS[list(cards)].tolist()
    return Dealt(cards, texts[:3], texts[3:], rank(cards), None)


def _settle(rounds: Sequence[_Derivation]) -> None:
    """Says how the rounds end that are decided, paytable by paytable."""
    decided: defaultdict[str, list[_Derivation]] = defaultdict(list)
    for one in rounds:
        if one.row.decision is not None and one.dealt is not None:
            decided[one.terms.rules.digest].append(one)
    for alike in decided.values():
        settled = settle_all(
            alike[0].terms.paytable,
            np.array([one.dealt.cards for one in alike if one.dealt]),
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
    terms: Terms
    dealt: Dealt | None = None
    ending: Ending | None = None

    def deal_is_missing(self) -> bool:
        """Whether no deal can be had where there has to be one."""
        return self.dealt is None and (self.row.seed is not None or self.row.decision is not None)

    def derived(self) -> Kept:
        """What would be kept of the round."""
        row, rules, dealt, ending = self.row, self.terms.rules, self.dealt, self.ending
        value = self._commitment_value()
        proof = self._proof(value)
        void = self._void()
        debited_minor = self._debited_minor()
        committed = not row.from_before_commitments
        return Kept(
            game=rules.game,
            payout_max_minor=self.terms.payout_max_minor,
            # The times of a round are those of the entries about it.
            opened_at=only(row.opened_entries),
            settled_at=only(row.settled_entries),
            voided_at=only(row.voided_entries),
            player_cards=row.kept.player_cards if dealt is None else dealt.player_cards,
            dealer_cards=dealt.dealer_cards if dealt and ending else None,
            result=ending and ending.result,
            play_minor=ending and ending.staked_minor - row.opened_minor,
            total_staked_minor=ending and ending.staked_minor,
            total_payout_minor=ending and ending.payout_minor,
            settlement=ending and {**ending.facts, "celebrate": self._celebrate(ending)},
            rules_digest=rules.digest if committed else None,
            value=value,
            previous=row.value_before,
            of_this_round=True if committed else None,
            seed_is_revealed=row.state != "awaiting_decision" and not row.seed_lost if committed else None,
            refund_minor=void and void.refund_minor,
            compensation_minor=void and void.compensation_minor,
            account_of_others=None,
            entries_of_others=None,
            requests_of_others=None,
            transfers=self._transfers(void),
            opened_payloads=[self._opened_entry(value)],
            settled_payloads=ending and [self._settled_entry(proof, ending)],
            voided_payloads=void and [self._voided_entry(proof, void)],
            debited_minor=debited_minor,
            credits=self._credits(void, debited_minor) or None,
        )

    def _commitment_value(self) -> bytes | None:
        """The value of the commitment; while its seed is hidden, or when that is lost, it is taken as it is."""
        row = self.row
        if row.seed is None or row.number is None or row.number <= 0:
            return row.kept.value
        return commitment_value(row.round_id, self.terms.rules.digest, row.number, row.value_before, row.seed)

    def _celebrate(self, ending: Ending) -> bool:
        """Whether the round may be shown as a win: in every jurisdiction when more came back than was staked, in none
        when nothing did.  In between it was for the rules of the day to say, and is taken as it is recorded.
        """
        if 0 < ending.payout_minor <= ending.staked_minor and isinstance(self.row.kept.settlement, dict):
            return self.row.kept.settlement.get("celebrate") is True
        return ending.payout_minor > ending.staked_minor

    def _void(self) -> Void | None:
        """What a void returns: of a decided round what was lost, else the stakes, and by the policy ``better`` what the
        better decision would have won.
        """
        row, ending = self.row, self.ending
        if row.state != "voided":
            return None
        if ending is not None:
            lost_minor = max(0, ending.staked_minor - ending.payout_minor)
            return Void(lost_minor, 0)
        won_minor = 0
        if row.policy == "better" and self.dealt is not None:
            player, dealer = (
                Hand.of(*(PACK[card] for card in half))
                for half in (self.dealt.cards[:3], self.dealt.cards[3:])
            )
            both = (
                settle(self.terms.paytable, self.terms.stakes, Deal(player, dealer), decision)
                for decision in Decision
            )
            won_minor = max(0, *(settlement.net_minor for settlement in both))
        return Void(row.opened_minor, won_minor)

    def _transfers(self, void: Void | None) -> list[str]:
        """What was moved: kind, amount, from, to, in the order of kinds.  Nothing is moved by 0."""
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
                ("refund", void.refund_minor, f"{source} to player"),
                ("compensation", void.compensation_minor, "house to player"),
            ]
        return sorted(f"{kind} {amount_minor} {way}" for kind, amount_minor, way in moves if amount_minor)

    def _opened_entry(self, value: bytes | None) -> dict[str, Any]:
        """What the entry that opens a round tells; the discards of a deal whose seed is not known are taken as told."""
        row, dealt = self.row, self.dealt
        told = {**self.terms.opening, "rng_digest": row.rng_digest_at_deal}
        told["player_cards"] = row.kept.player_cards if dealt is None else dealt.player_cards
        if dealt is not None and dealt.discards is not None:
            told["discards"] = dealt.discards
        elif isinstance(recorded := only(row.kept.opened_payloads), dict) and "discards" in recorded:
            told["discards"] = recorded["discards"]
        if not row.from_before_commitments:
            told["commitment"] = {
                "number": row.number,
                "value": as_hex(value),
                "round_id": str(row.round_id),
            }
            told["client_seeds"] = "allowed" if row.client_seeds else "off"
            told["client_seed"] = row.client_seed
        return told

    def _proof(self, value: bytes | None) -> dict[str, Any]:
        """What the entry that ends a round tells of its deal."""
        row, rules, dealt = self.row, self.terms.rules, self.dealt
        told: dict[str, Any] = {"paytable_version": rules.version, "paytable_digest": rules.digest}
        if dealt is None:
            return told
        told["player_cards"], told["dealer_cards"] = dealt.player_cards, dealt.dealer_cards
        told["deal_index"] = dealt.deal_index
        if dealt.discards is None or row.seed is None:
            recorded = only(row.kept.settled_payloads or row.kept.voided_payloads)
            if isinstance(recorded, dict) and "discards" in recorded:  # at first they were not told here
                told["discards"] = 0
            return told
        told["discards"] = dealt.discards
        told["game"], told["rng_digest"] = rules.game, row.rng_digest
        told["commitment"] = {
            "number": row.number,
            "value": as_hex(value),
            "previous": as_hex(row.value_before),
        }
        told["seed"] = row.seed.hex()
        told["client_seeds"] = "allowed" if row.client_seeds else "off"
        told["client_seed"] = row.client_seed
        return told

    def _settled_entry(self, proof: Mapping[str, Any], ending: Ending) -> dict[str, Any]:
        return {
            **proof,
            "decision": self.row.decision,
            "result": ending.result,
            "wagers": ending.facts["wagers"],
            "total_staked_minor": ending.staked_minor,
            "total_payout_minor": ending.payout_minor,
        }

    def _voided_entry(self, proof: Mapping[str, Any], void: Void) -> dict[str, Any]:
        if self.ending is not None:
            proof = {name: proof[name] for name in ("paytable_version", "paytable_digest")}
        lost = self.row.number is not None and self.ending is None and self.dealt is None
        return {**proof, **void._asdict(), "policy": self.row.policy, "seed_lost": lost}

    def _debited_minor(self) -> int | None:
        """What an operator's wallet was debited: the stakes, or the Play too where it was reserved at the deal."""
        row, terms = self.row, self.terms
        if row.kept.debited_minor is None:
            return None
        reserved_minor = row.opened_minor + play_stake_minor(terms.paytable, terms.stakes)
        if row.kept.debited_minor == reserved_minor:
            return reserved_minor
        return row.opened_minor if self.ending is None else self.ending.staked_minor

    def _credits(self, void: Void | None, debited_minor: int | None) -> dict[str, int]:
        """What a wallet has to pay: the payout, with what was debited and not staked; and what a void returns."""
        owed: dict[str, int] = {}
        if debited_minor is None:
            return owed
        unstaked_minor = debited_minor - self.row.opened_minor
        if self.ending is not None:
            owed["settlement"] = debited_minor - self.ending.staked_minor + self.ending.payout_minor
            unstaked_minor = 0
        if void is not None:
            owed["void"] = unstaked_minor + void.refund_minor + void.compensation_minor
        return owed
