"""Settling a round: the sealed deal is opened, the one settlement applied, and everything to be written put together.

Whoever decides (a player, or the rule for rounds that nobody decides) and wherever the money is, it is done here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.jurisdictions import jurisdiction
from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.catalogue.sessions import Caller
from casino_brag.errors import ServiceError
from casino_brag.game.cards import PACK
from casino_brag.game.settlement import Deal, Decision, settle
from casino_brag.ids import uuid7
from casino_brag.rng import Draw, RngUnavailable, seeds, unrank
from casino_brag.rounds.commitments import Commitment, Latest, Made, Series, commitment_record, make
from casino_brag.rounds.house import House
from casino_brag.rounds.round import SETTLED, Round, as_its_owner_sees, hand, seal_context, settlement_record
from casino_brag.sealing import SealBroken
from casino_brag.wallet.answers import Request, operation
from casino_brag.wallet.transactions import Purpose, Transaction, credit_row


@dataclass(frozen=True, slots=True)
class Decider:
    """Who decides a round, and when; `jurisdiction` is where, for how it is shown."""

    actor: str
    session_id: UUID
    jurisdiction: str
    at: datetime

    @classmethod
    def of(cls, caller: Caller) -> Decider:
        """A player, on the session that it decides on."""
        return cls(f"player:{caller.player_id}", caller.session_id, caller.jurisdiction, caller.read_at)


@dataclass(frozen=True, slots=True)
class Following:
    """What a player's next round can be dealt from: the version that the game offers now, if it is open, and the
    newest commitment of the series.
    """

    version_id: UUID | None
    latest: Latest | None


@dataclass(frozen=True, slots=True)
class Ready:
    """A settled round that is not written yet: it, what its player will be shown, what will be put on record."""

    round: Round
    document: Mapping[str, Any]
    audit: str
    made: Made | None

    def op(
        self, request: Request | None, credit: Transaction | None = None, *, held: bool = False
    ) -> Mapping[str, Any]:
        """Everything to be written, as one operation of `round_decide`.  Without a request no answer is kept.

        `credit` is what the operator's wallet will be asked; `held` when whoever writes it asks first.
        """
        written = self.round.columns() | {
            "next": None if self.made is None else self.made.row,
            "next_audit": None if self.made is None else self.made.audit,
            "credit": None if credit is None else credit_row(credit, self.round.account_id, held=held),
        }
        return operation(written, request, status=200, document=self.document, audit=self.audit)

    def credit(self, player: str) -> Transaction:
        """What an operator's wallet owes the player for it: the payout, and what was debited and not staked."""
        round_ = self.round
        assert round_.debited_minor is not None
        assert round_.total_staked_minor is not None
        assert round_.total_payout_minor is not None
        assert round_.settled_at is not None
        unstaked_minor = round_.debited_minor - round_.total_staked_minor
        assert unstaked_minor >= 0
        amount_minor = unstaked_minor + round_.total_payout_minor
        return owed(round_, player, Purpose.SETTLEMENT, amount_minor, round_.settled_at)


def owed(round_: Round, player: str, purpose: Purpose, amount_minor: int, at: datetime) -> Transaction:
    """A credit that an operator's wallet will be asked for; `player` is the operator's own name for the player."""
    return Transaction(
        transaction_id=uuid7(),
        operator_id=round_.operator_id,
        player_id=round_.player_id,
        round_id=round_.round_id,
        purpose=purpose.value,
        wager="payout",
        amount_minor=amount_minor,
        begun_at=at,
        game=round_.game,
        currency=round_.currency,
        player=player,
    )


def settle_round(
    conn: psycopg.Connection[Any],
    house: House,
    opened: Round,
    decision: Decision,
    by: Decider,
    following: Following,
) -> Ready:
    """Opens the sealed deal and settles; nothing is written.

    All of it comes from what is stored: a round is finished without random numbers too, and then without a
    commitment of the next one.  Raises `SealBroken`, and `ServiceError` game_unavailable for an altered paytable.
    """
    version = house.shelf.version(conn, opened.paytable_version_id)
    unsealed = unseal(house, opened, version)
    settlement = settle(
        version.paytable,
        opened.stakes,
        Deal(player=opened.player_hand, dealer=hand(unsealed.dealer_cards)),
        decision,
    )
    staked_minor, payout_minor = settlement.total_staked_minor, settlement.total_payout_minor
    celebrate = jurisdiction(by.jurisdiction).celebrates(staked_minor, payout_minor)
    settled = replace(
        opened,
        state=SETTLED,
        decision=decision.value,
        play_minor=staked_minor - opened.ante_minor - opened.pair_bonus_minor,
        dealer_cards=unsealed.dealer_cards,
        result=settlement.result.value,
        settlement=settlement_record(settlement, celebrate=celebrate),
        total_staked_minor=staked_minor,
        total_payout_minor=payout_minor,
        settled_at=by.at,
        seed=unsealed.seed,
    )
    made = _next(conn, house, opened, by, following)
    offered = made.commitment if made is not None else _offered_already(opened, following)
    document = as_its_owner_sees(settled, version) | {
        "next_commitment": None if offered is None else offered.named()
    }
    return Ready(settled, document, _entry(settled, version, by, unsealed.draw).text(), made)


def _next(
    conn: psycopg.Connection[Any], house: House, opened: Round, by: Decider, following: Following
) -> Made | None:
    """The commitment of the player's next round; None where the game is closed or no random numbers can be had."""
    if following.version_id is None or _offered_already(opened, following) is not None:
        return None
    try:
        version = house.shelf.version(conn, following.version_id)
    except ServiceError:
        return None  # the rules that are offered now were altered; this round's own are sound
    house.upkeep.attend(conn, house.generator)
    try:
        series = Series(opened.operator_id, opened.player_id, opened.mode, version, following.latest)
        return make(house, series, by.at)
    except RngUnavailable:
        house.upkeep.attend(conn, house.generator)
        return None


def _offered_already(opened: Round, following: Following) -> Commitment | None:
    # A round from before there were commitments is settled beside one that was made since.
    latest = following.latest
    if latest is None or latest.over or latest.commitment.round_id == opened.round_id:
        return None
    return latest.commitment


@dataclass(frozen=True, slots=True)
class Unsealed:
    """What was hidden while a round was open; `seed` is None for one from before there were commitments."""

    draw: Draw
    dealer_cards: list[str]
    seed: bytes | None


def unseal(house: House, round_: Round, version: PaytableVersion) -> Unsealed:
    """The deal that was sealed when the round was opened, and the seed that it came from.

    Raises `SealBroken` when the sealed deal was altered, is not the one whose player's cards were shown, or is not
    the one that the round's seed gives.
    """
    context = seal_context(round_.round_id, round_.paytable_version_id)
    index = int(house.sealer.open(round_.sealed_deal, context=context))
    dealt = [str(PACK[number]) for number in unrank(index)]
    if dealt[:3] != round_.player_cards:
        raise SealBroken(f"The deal of round {round_.round_id} is not the one that was shown")
    if round_.commitment is None:
        return Unsealed(Draw(index, 0), dealt[3:], None)
    seed = round_.commitment.open_seed(house.sealer)
    draw = seeds.deal(seed, round_.round_id, version.digest, round_.client_seed)
    if draw.index != index:
        raise SealBroken(f"The deal of round {round_.round_id} is not the one that was committed to")
    return Unsealed(draw, dealt[3:], seed)


def _entry(round_: Round, version: PaytableVersion, by: Decider, draw: Draw) -> Entry:
    assert round_.settlement is not None
    return Entry(
        type=EntryType.ROUND_SETTLED,
        occurred_at=by.at,
        actor=by.actor,
        operator_id=round_.operator_id,
        player_id=round_.player_id,
        session_id=by.session_id,
        round_id=round_.round_id,
        payload={
            "paytable_version": version.version,
            "paytable_digest": version.digest,
            "decision": round_.decision,
            "deal_index": draw.index,
            "discards": draw.discards,
            "player_cards": round_.player_cards,
            "dealer_cards": round_.dealer_cards,
            "result": round_.result,
            "wagers": round_.settlement["wagers"],
            "total_staked_minor": round_.total_staked_minor,
            "total_payout_minor": round_.total_payout_minor,
        }
        | revealed(round_, version),
    )


def revealed(round_: Round, version: PaytableVersion) -> dict[str, Any]:
    """What an audit entry reveals of a round that is over, so that its deal can be checked."""
    if round_.commitment is None or round_.seed is None:
        return {}
    return commitment_record(round_.commitment, game=round_.game, rules_digest=version.digest) | {
        "seed": round_.seed.hex(),
        "client_seeds": round_.client_seed_policy,
        "client_seed": round_.client_seed,
    }
