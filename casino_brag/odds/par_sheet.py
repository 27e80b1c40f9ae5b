"""The PAR sheet: every figure of a paytable in one document.

The document is plain data and goes to JSON as it is.  Exact numbers are integers, or ``"a/b"`` in lowest terms
under a key that ends in ``_exact``; the decimal beside one is rounded to twelve places and only for show.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from casino_brag.game.hands import Category, order_digest, places
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Qualifier, odds_document
from casino_brag.game.rules_text import QUALIFIER_NAMES
from casino_brag.game.settlement import Spot, Stakes
from casino_brag.odds.claims import judge_claims
from casino_brag.odds.outcomes import HANDS, outcomes
from casino_brag.odds.payoffs import telling_stakes
from casino_brag.odds.returns import (
    Returns,
    combined_game,
    hands_by_category,
    main_game,
    pair_bonus_game,
    played,
    player_favouring,
    returns,
    rtp_sd,
)
from casino_brag.odds.strategies import (
    ALWAYS_PLAY,
    DEALER_MIMIC,
    MAX_EXPECTATION,
    MAX_RTP,
    Decisions,
    Rule,
    Strategy,
)

Document = dict[str, Any]

ROW_NAMES: Final = ("name", "spot", "category", "stake_minor", "mistake")
"""Keys that tell the rows of a list apart: each kind of row has one of them, but for claims."""

CONFIDENCE: Final = 0.95
"""The confidence of the intervals whose half-widths are tabulated."""

HALF_WIDTHS: Final = ("0.01", "0.001", "0.0001")
"""Half-widths of intervals, as shares of 1."""


def par_sheet(paytable: Paytable) -> Document:
    """The PAR sheet of a paytable; exact, and a matter of milliseconds once its ranking was counted.

    >>> sheet = par_sheet(Paytable.load("paytables/three-card-brag.toml"))
    >>> sheet["main"]["rtp_exact"], sheet["main"]["strategy"]["lowest_hand_played"], sheet["warnings"]
    ('167006979/170422000', 'Q-6-4', [])
    """
    best = MAX_EXPECTATION.decisions(paytable)
    main = main_game(paytable, best)
    strategies = {strategy: strategy.decisions(paytable) for strategy in alternatives(paytable)}
    games = {strategy: main_game(paytable, plays) for strategy, plays in strategies.items()}
    return {
        "game": paytable.game,
        "title": paytable.title,
        "digest": paytable.digest,
        "ranking_digest": order_digest(paytable.ranking),
        "rounding": None if paytable.rounding is None else paytable.rounding.value,
        "warnings": _warnings(paytable),
        "main": {
            **_figures(main),
            "strategy": _strategy(paytable, str(MAX_EXPECTATION), best),
            "alternatives": [
                {
                    "name": str(strategy),
                    **_figures(games[strategy]),
                    "strategy": _strategy(paytable, str(strategy), strategies[strategy]),
                }
                for strategy in strategies
            ],
            "wagers": [
                _wager(spot, returns(paytable, {spot}, best))
                for spot in (Spot.ANTE, Spot.PLAY, Spot.ANTE_BONUS)
                if spot is not Spot.ANTE_BONUS or paytable.ante_bonus is not None
            ],
            "mistakes": _mistakes(paytable, best, main, strategies, games),
        },
        "pair_bonus": _pair_bonus(paytable),
        "combined": _combined(paytable),
        "rounds_for_half_width": _rounds_for_half_width(paytable, best, main),
        "per_stake": None if paytable.rounding is None else _per_stake(paytable),
        "claims": [judged.document() for judged in judge_claims(paytable)],
    }


def alternatives(paytable: Paytable) -> tuple[Strategy, ...]:
    """The strategies a PAR sheet compares with the one of highest expectation.

    Folding below each hand a dealer might have to qualify with is among them, but for the dealer's own qualifier
    and none, which are there by name.

    >>> [str(strategy) for strategy in alternatives(Paytable.load("paytables/three-card-brag.toml"))][2:5]
    ['always_play', 'fold_below:T', 'fold_below:J']
    """
    named_already = (Qualifier.ANY, paytable.qualifier)
    thresholds = (qualifier for qualifier in Qualifier if qualifier not in named_already)
    return (
        MAX_RTP,
        DEALER_MIMIC,
        ALWAYS_PLAY,
        *(Strategy(Rule.FOLD_BELOW, qualifier) for qualifier in thresholds),
    )


def _warnings(paytable: Paytable) -> list[str]:
    return [
        f"{key}: {sentence}; this paytable cannot be published"
        for key, sentence in player_favouring(paytable).items()
    ]


def _figures(game: Returns) -> Document:
    return {
        "deals": game.deals,
        "net_antes": _exact(game.net),
        "total_staked_antes": _exact(game.staked),
        **_both("rtp", game.rtp),
        **_both("house_edge", game.house_edge),
        **_both("element_of_risk", game.element_of_risk),
        **_spread(game),
        **_both("hit_frequency", game.hit_frequency),
        **_both("push_frequency", game.push_frequency),
        "net_distribution": {str(net): deals for net, deals in game.net_distribution.items()},
    }


def _spread(game: Returns) -> Document:
    return {
        **_both("variance", game.variance),
        "sd": round(game.sd, 12),
        "skewness": round(game.skewness, 12),
    }


def _strategy(paytable: Paytable, name: str, plays: Decisions) -> Document:
    hands = played(paytable, plays)
    return {
        "name": name,
        "hands_played": hands.hands,
        "lowest_hand_played": hands.lowest,
        "is_rank_threshold": hands.is_rank_threshold,
    }


def _wager(spot: Spot, game: Returns) -> Document:
    """One spot by itself; the Ante Bonus has no stake, and so no return on it."""
    return {
        "spot": spot.value,
        "staked": _exact(game.staked),
        "returned": _exact(game.staked + game.net),
        "net": _exact(game.net),
        **(_both("rtp", game.rtp) if game.staked else {"rtp": None, "rtp_exact": None}),
        **_both("hit_frequency", game.hit_frequency),
        **_both("push_frequency", game.push_frequency),
    }


def _mistakes(
    paytable: Paytable,
    best: Decisions,
    main: Returns,
    strategies: Mapping[Strategy, Decisions],
    games: Mapping[Strategy, Returns],
) -> list[Document]:
    """What it costs to play by a simpler rule, or to misjudge the hands next to the threshold; dearest first."""
    counted = outcomes(paytable.ranking, paytable.qualifier)
    shapes = list(places(paytable.ranking))
    wrong = [
        (_MISTAKES[strategy], plays, games[strategy])
        for strategy, plays in strategies.items()
        if strategy in _MISTAKES
    ]
    for rank_class in counted.rank_class[best][:1].tolist():
        plays = best & (counted.rank_class != rank_class)
        wrong.append((f"folds {shapes[rank_class - 1]}", plays, main_game(paytable, plays)))
    for rank_class in counted.rank_class[~best][-1:].tolist():
        plays = best | (counted.rank_class == rank_class)
        wrong.append((f"plays {shapes[rank_class - 1]}", plays, main_game(paytable, plays)))
    costs = [
        {
            "mistake": mistake,
            "hands": int(counted.hands @ (plays != best)),
            **_both("cost", game.house_edge - main.house_edge),
        }
        for mistake, plays, game in wrong
        if not np.array_equal(plays, best)
    ]
    return sorted(costs, key=lambda cost: -float(cost["cost"]))


_MISTAKES: Final = {
    DEALER_MIMIC: "plays what the dealer would qualify with, and nothing else",
    ALWAYS_PLAY: "plays every hand",
    **{
        Strategy(Rule.FOLD_BELOW, qualifier): f"plays {hands}, and nothing else"
        for qualifier, hands in QUALIFIER_NAMES.items()
    },
}
"""Simple rules that players go by."""


def _pair_bonus(paytable: Paytable) -> Document | None:
    game = pair_bonus_game(paytable)
    if game is None or paytable.pair_bonus is None:
        return None
    rows = []
    hands_of = dict(zip(Category, hands_by_category(paytable), strict=True))
    for category in reversed(paytable.ranking.categories):
        pays = paytable.pair_bonus.pays.get(category)
        returned = Fraction(0) if pays is None else (1 + pays) * Fraction(hands_of[category], HANDS)
        rows.append(
            {
                "category": category.value,
                "hands": hands_of[category],
                "pays": None if pays is None else odds_document(pays),
                **_both("contribution", returned),
            }
        )
    return {
        "hands": game.deals,
        "net": _exact(game.net),
        **_both("rtp", game.rtp),
        **_both("house_edge", game.house_edge),
        **_spread(game),
        **_both("hit_frequency", game.hit_frequency),
        "on_fold": paytable.pair_bonus.on_fold.value,
        "rows": rows,
    }


def _combined(paytable: Paytable) -> Document | None:
    both = combined_game(paytable)
    if both is None:
        return None
    return {
        **_both("covariance", both.covariance),
        "correlation": round(both.correlation, 12),
        **_both("variance", both.returns.variance),
        "sd": round(both.returns.sd, 12),
        **_both("rtp", both.returns.rtp),
        "strategy": _strategy(paytable, str(MAX_EXPECTATION), both.plays),
    }


def _rounds_for_half_width(paytable: Paytable, best: Decisions, main: Returns) -> Document:
    """How many rounds until an interval is that narrow, by the central limit theorem."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    spreads = {"rtp": rtp_sd(paytable, best), "house_edge": main.sd}
    rounds = {
        figure: {width: ceil((z * sd / float(width)) ** 2) for width in HALF_WIDTHS}
        for figure, sd in spreads.items()
    }
    return {"confidence": CONFIDENCE, **rounds}


def _per_stake(paytable: Paytable) -> Document:
    """Figures at the smallest allowed stakes and the largest; see :func:`telling_stakes`."""
    antes, bonuses, complete = telling_stakes(paytable)
    return {
        "ante": [_at_ante(paytable, Stakes(stake)) for stake in antes],
        "pair_bonus": [_at_pair_bonus(paytable, Stakes(antes[0], stake)) for stake in bonuses],
        "complete": complete,
    }


def _at_ante(paytable: Paytable, stakes: Stakes) -> Document:
    plays = MAX_EXPECTATION.decisions(paytable, stakes)
    game, hands = main_game(paytable, plays, stakes), played(paytable, plays)
    return {
        "stake_minor": stakes.ante_minor,
        **_both("rtp", game.rtp),
        **_both("house_edge", game.house_edge),
        "hands_played": hands.hands,
        "lowest_hand_played": hands.lowest,
    }


def _at_pair_bonus(paytable: Paytable, stakes: Stakes) -> Document:
    game = pair_bonus_game(paytable, stakes)
    assert game is not None
    return {"stake_minor": stakes.pair_bonus_minor, **_both("rtp", game.rtp)}


_exact = odds_document
"""Exact numbers are written like odds: whole ones as integers, others as ``"a/b"``."""


def _both(name: str, value: Fraction) -> Document:
    """A figure as a decimal to be read and as the exact number it stands for."""
    return {name: round(float(value), 12), f"{name}_exact": _exact(value)}
