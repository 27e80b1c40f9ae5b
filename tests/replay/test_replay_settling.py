"""Settlement by columns is the settlement of each round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.game.cards import PACK
from casino_brag.game.hands import Hand
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Deal, Decision, Settlement, Stakes, WagerResult, settle
from casino_brag.odds.payoffs import whole_stakes
from casino_brag.replay.settling import (
    CATEGORIES,
    NO_WAGER,
    REASONS,
    RESULTS,
    SPOTS,
    Settlements,
    settle_all,
)
from tests.paytables import paytables

deals = st.permutations(range(52)).map(lambda pack: pack[:6])
decisions = st.sampled_from(Decision)
small = st.integers(1, 2_000)


def as_one(settled: Settlements, row: int, decision: Decision) -> Settlement:
    """One row as the settlement that it stands for."""
    lines = zip(SPOTS, settled.stake_minor[row], settled.payout_minor[row], settled.reason[row], strict=True)
    return Settlement(
        decision,
        RESULTS[settled.result[row]],
        CATEGORIES[settled.player_category[row]],
        CATEGORIES[settled.dealer_category[row]],
        bool(settled.dealer_qualified[row]),
        tuple(
            WagerResult(spot, int(stake), int(payout), REASONS[reason])
            for spot, stake, payout, reason in lines
            if reason != NO_WAGER
        ),
    )


def settle_each(
    paytable: Paytable, rounds: list[tuple[list[int], Decision, Stakes]]
) -> tuple[list[Settlement], list[Settlement]]:
    """The same rounds by columns and one by one."""
    settled = settle_all(
        paytable,
        np.array([cards for cards, _, _ in rounds]),
        np.array([decision is Decision.PLAY for _, decision, _ in rounds]),
        np.array([stakes.ante_minor for _, _, stakes in rounds]),
        np.array([stakes.pair_bonus_minor for _, _, stakes in rounds]),
    )
    by_columns = [as_one(settled, row, decision) for row, (_, decision, _) in enumerate(rounds)]
    one_by_one = []
    for cards, decision, stakes in rounds:
        player, dealer = (Hand.of(*(PACK[card] for card in half)) for half in (cards[:3], cards[3:]))
        one_by_one.append(settle(paytable, stakes, Deal(player, dealer), decision))
    return by_columns, one_by_one


@given(paytable=paytables(), data=st.data())
def test_whatever_the_rules_columns_settle_as_rounds_do(paytable: Paytable, data: st.DataObject) -> None:
    pair_bonuses = st.just(0) if paytable.pair_bonus is None else st.just(0) | small
    rounds = st.tuples(deals, decisions, st.builds(Stakes, small, pair_bonuses))
    by_columns, one_by_one = settle_each(paytable, data.draw(st.lists(rounds, min_size=1, max_size=30)))
    assert by_columns == one_by_one


@given(paytable=paytables(), data=st.data())
def test_stakes_that_are_paid_in_whole_units_are_paid_without_rounding(
    paytable: Paytable, data: st.DataObject
) -> None:
    exact, whole = replace(paytable, rounding=None), whole_stakes(paytable)
    times = st.integers(1, 10**9)
    pair_bonuses = times.map(lambda number: number * whole.pair_bonus_minor)
    stakes = st.builds(Stakes, times.map(lambda number: number * whole.ante_minor), st.just(0) | pair_bonuses)
    rounds = st.tuples(deals, decisions, stakes)
    by_columns, one_by_one = settle_each(exact, data.draw(st.lists(rounds, min_size=1, max_size=30)))
    assert by_columns == one_by_one
