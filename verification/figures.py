"""The figures of a paytable, from the counts of all deals; in the layout of the PAR sheets in ``paytables/``.

Numbers are fractions until the end.  Amounts are in Antes, those of the Pair Bonus in units of its stake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import sqrt
from typing import Any

import numpy as np
from enumeration import (
    DEALER_HANDS,
    DEALS,
    HANDS,
    OUTCOMES,
    Ranked,
    Ranking,
    lowest_class,
    outcome_counts,
    rank_hands,
    ranking_digest,
    shape,
)
from numpy.typing import NDArray
from rules import CATEGORIES, Paytable, claim_holds, digest, exact, main_net, pair_bonus_net, settle

ALTERNATIVES = ("max_rtp", "dealer_mimic", "always_play")
"""Strategies that every PAR sheet shows beside that of the highest expectation."""

Plays = NDArray[np.bool_]
"""A strategy: by hand, whether it is played."""

Endings = dict[tuple[str, str], int]
"""Deals by the player's category and the outcome, of which "fold" is one."""


@dataclass(frozen=True)
class Game:
    """A paytable, and what became of all deals under its ranking and qualifier."""

    paytable: Paytable
    ranked: Ranked
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, paytable: Paytable) -> Game:
        """Enumerate; a ranking and qualifier that were enumerated before are not again."""
        ranking = Ranking.of(paytable)
        counts = outcome_counts(ranking, paytable["dealer"]["qualifies_with"])
        return cls(paytable, rank_hands(ranking), counts)

    def endings(self, plays: Plays) -> Endings:
        """How all 407,170,400 deals end under a strategy."""
        category = np.array(self.ranked.category)
        endings: Endings = {}
        for name in CATEGORIES:
            held = category == name
            played = self.counts[held & plays].sum(axis=0).tolist()
            endings |= {(name, outcome): deals for outcome, deals in zip(OUTCOMES, played, strict=True)}
            endings[name, "fold"] = int((held & ~plays).sum()) * DEALER_HANDS
        assert sum(endings.values()) == DEALS
        return {ending: deals for ending, deals in endings.items() if deals}

    def gains(self, *, with_pair_bonus: bool = False) -> list[Fraction]:
        """By hand, how much more it wins when played than when folded, over the dealer's 18,424 hands."""

        net = {
            (category, outcome): main_net(self.paytable, category, outcome)
            + (pair_bonus_net(self.paytable, category, outcome) if with_pair_bonus else 0)
            for category in CATEGORIES
            for outcome in ("fold", *OUTCOMES)
        }

        @cache  # only for speed: many hands have the same category and counts
        def gain(category: str, counts: tuple[int, ...]) -> Fraction:
            played = (deals * net[category, outcome] for outcome, deals in zip(OUTCOMES, counts, strict=True))
            return sum(played, Fraction(0)) - DEALER_HANDS * net[category, "fold"]

        rows = zip(self.ranked.category, self.counts.tolist(), strict=True)
        return [gain(category, tuple(counts)) for category, counts in rows]

    def strategy(self, name: str) -> Plays:
        """The strategy of a name; ValueError for a name that is none."""
        rank_class = self.ranked.rank_class
        match name.partition(":"):
            case "max_expectation", "", "":
                return _play_where_it_gains(self.gains())
            case "max_rtp", "", "":
                return self._highest_rtp()
            case "dealer_mimic", "", "":
                return rank_class >= lowest_class(self.ranked, self.paytable["dealer"]["qualifies_with"])
            case "always_play", "", "":
                return rank_class >= 1
            case "fold_below", ":", least:
                return rank_class >= lowest_class(self.ranked, least)
            case _:
                raise ValueError(f"{name!r} is no strategy")

    def _highest_rtp(self) -> Plays:
        """Every hand that is played stakes the same, so the best way to play n hands is to play those n that gain
        most.  Try every n from 0 to 22,100; of equal ones take the least.
        """
        gains = self.gains()
        most_first = sorted(range(len(HANDS)), key=lambda row: gains[row], reverse=True)
        net, staked = Fraction(-DEALS), DEALS
        best, hands = net / staked, 0
        for n, row in enumerate(most_first, start=1):
            net += gains[row]
            staked += DEALER_HANDS * self.paytable["play"]["multiple"]
            if net / staked > best:
                best, hands = net / staked, n
        plays = np.zeros(len(HANDS), dtype=np.bool_)
        plays[most_first[:hands]] = True
        return plays


def _play_where_it_gains(gains: list[Fraction]) -> Plays:
    """Play a hand exactly when that is worth more than folding; where it is worth the same, fold."""
    return np.array([gain > 0 for gain in gains])


class Distribution:
    """An amount won, and in how many of all deals (or hands)."""

    def __init__(self, amounts: Iterable[tuple[Fraction, int]]) -> None:
        self.deals: Counter[Fraction] = Counter()
        for amount, deals in amounts:
            self.deals[amount] += deals
        self.total = self.deals.total()

    def net(self) -> Fraction:
        """The sum over all deals."""
        return sum((amount * deals for amount, deals in self.deals.items()), Fraction(0))

    def mean(self) -> Fraction:
        """The expectation in one deal."""
        return self.net() / self.total

    def central_moment(self, power: int) -> Fraction:
        """The expectation of the distance from the mean, to a power; the second is the variance."""
        mean = self.mean()
        distances = (deals * (amount - mean) ** power for amount, deals in self.deals.items())
        return sum(distances, Fraction(0)) / self.total

    def spread(self) -> dict[str, Any]:
        """Variance, standard deviation and skewness, by the names of the PAR sheet."""
        variance = self.central_moment(2)
        sd = sqrt(variance)
        skewness = float(self.central_moment(3)) / sd**3 if sd else 0.0
        return both("variance", variance) | {"sd": decimal(sd), "skewness": decimal(skewness)}


def decimal(value: Fraction | float) -> float:
    """A number as the PAR sheet shows it beside the exact one."""
    return round(float(value), 12)


def both(name: str, value: Fraction) -> dict[str, Any]:
    """A figure in decimals, and exactly."""
    return {name: decimal(value), f"{name}_exact": exact(value)}


def par_sheet(paytable: Paytable, alternatives: Iterable[str] = ALTERNATIVES) -> dict[str, Any]:
    """All figures of a paytable."""
    game = Game.of(paytable)
    best = game.strategy("max_expectation")
    main = main_figures(game, "max_expectation", best)
    bonus = pair_bonus_figures(game)
    return {
        "game": paytable["game"],
        "title": paytable["title"],
        "digest": digest(paytable),
        "ranking_digest": ranking_digest(Ranking.of(paytable)),
        "rounding": paytable.get("rounding"),
        "main": main
        | {
            "alternatives": [
                {"name": name} | main_figures(game, name, game.strategy(name)) for name in alternatives
            ],
            "wagers": [
                {"spot": spot} | wager_figures(game, spot, best)
                for spot in ("ante", "play", "ante_bonus")
                if spot != "ante_bonus" or "ante_bonus" in paytable
            ],
        },
        "pair_bonus": bonus,
        "combined": combined_figures(game),
        "claims": [claim_figures(claim, main, bonus) for claim in paytable.get("claims", ())],
    }


def main_figures(game: Game, name: str, plays: Plays) -> dict[str, Any]:
    """Ante, Play and Ante Bonus together under a strategy."""
    endings = game.endings(plays)
    nets = Distribution((main_net(game.paytable, *ending), deals) for ending, deals in endings.items())
    staked = Fraction(0)
    for ending, deals in endings.items():
        staked += deals * sum(stake for stake, _ in settle(game.paytable, *ending).values())
    return {
        "deals": nets.total,
        "net_antes": exact(nets.net()),
        "total_staked_antes": exact(staked),
        **both("rtp", 1 + nets.net() / staked),
        **both("house_edge", -nets.mean()),
        **both("element_of_risk", -nets.net() / staked),
        **nets.spread(),
        **both("hit_frequency", Fraction(sum(deals for net, deals in nets.deals.items() if net > 0), DEALS)),
        **both("push_frequency", Fraction(nets.deals[Fraction(0)], DEALS)),
        "net_distribution": {str(net): nets.deals[net] for net in sorted(nets.deals) if nets.deals[net]},
        "strategy": strategy_figures(game, name, plays),
    }


def strategy_figures(game: Game, name: str, plays: Plays) -> dict[str, Any]:
    """Which hands a strategy plays."""
    rank_class = game.ranked.rank_class
    if not plays.any():
        return {"name": name, "hands_played": 0, "lowest_hand_played": None, "is_rank_threshold": True}
    lowest = int(rank_class[plays].min())
    return {
        "name": name,
        "hands_played": int(plays.sum()),
        "lowest_hand_played": shape(HANDS[rank_class.tolist().index(lowest)]),
        "is_rank_threshold": bool(plays[rank_class >= lowest].all()),
    }


def wager_figures(game: Game, spot: str, plays: Plays) -> dict[str, Any]:
    """One wager of the main game by itself, over all deals, those in which it is not made included."""
    staked = returned = Fraction(0)
    hits = pushes = 0
    for (category, outcome), deals in game.endings(plays).items():
        stake, payout = settle(game.paytable, category, outcome).get(spot, (Fraction(0), Fraction(0)))
        staked += deals * stake
        returned += deals * payout
        hits += deals if payout > stake else 0
        pushes += deals if payout == stake > 0 else 0
    return {
        "staked": exact(staked),
        "returned": exact(returned),
        "net": exact(returned - staked),
        **(both("rtp", returned / staked) if staked else {"rtp": None, "rtp_exact": None}),
        **both("hit_frequency", Fraction(hits, DEALS)),
        **both("push_frequency", Fraction(pushes, DEALS)),
    }


def pair_bonus_figures(game: Game) -> dict[str, Any] | None:
    """The Pair Bonus by itself, settled on all 22,100 hands; None when the game has none."""
    bonus = game.paytable.get("pair_bonus")
    if bonus is None:
        return None
    hands = Counter(game.ranked.category)
    nets = Distribution((Fraction(bonus["pays"].get(category, -1)), hands[category]) for category in hands)
    rows = []
    for category in reversed(game.paytable["ranking"]["categories"]):
        pays = Fraction(bonus["pays"].get(category, -1))
        rows.append(
            {
                "category": category,
                "hands": hands[category],
                "pays": exact(pays) if category in bonus["pays"] else None,
                **both("contribution", hands[category] * (1 + pays) / len(HANDS)),
            }
        )
    return {
        "hands": nets.total,
        "net": exact(nets.net()),
        **both("rtp", 1 + nets.mean()),
        **both("house_edge", -nets.mean()),
        **nets.spread(),
        **both("hit_frequency", Fraction(sum(n for net, n in nets.deals.items() if net > 0), nets.total)),
        "on_fold": bonus["on_fold"],
        "rows": rows,
    }


def combined_figures(game: Game) -> dict[str, Any] | None:
    """One Ante and one unit of Pair Bonus in every round, decided for the best of both together."""
    if "pair_bonus" not in game.paytable:
        return None
    plays = _play_where_it_gains(game.gains(with_pair_bonus=True))
    endings = game.endings(plays)
    nets = [
        (main_net(game.paytable, *ending), pair_bonus_net(game.paytable, *ending), deals)
        for ending, deals in endings.items()
    ]
    main = Distribution((won, deals) for won, _, deals in nets)
    bonus = Distribution((won, deals) for _, won, deals in nets)
    total = Distribution((won + bonus_won, deals) for won, bonus_won, deals in nets)
    product = Distribution((won * bonus_won, deals) for won, bonus_won, deals in nets)
    covariance = product.mean() - main.mean() * bonus.mean()
    spreads = sqrt(main.central_moment(2)) * sqrt(bonus.central_moment(2))
    played = int(plays.sum()) * DEALER_HANDS
    staked = 2 * DEALS + played * game.paytable["play"]["multiple"]
    variance = total.central_moment(2)
    return {
        **both("covariance", covariance),
        "correlation": decimal(float(covariance) / spreads if spreads else 0.0),
        **both("variance", variance),
        "sd": decimal(sqrt(variance)),
        **both("rtp", 1 + total.net() / staked),
        "strategy": strategy_figures(game, "max_expectation", plays),
    }


def claim_figures(
    claim: dict[str, str], main: dict[str, Any], bonus: dict[str, Any] | None
) -> dict[str, Any]:
    """A figure printed elsewhere, and the exact one."""
    wager = main if claim["wager"] == "main" else bonus
    if wager is None:
        raise ValueError("a claim is about the Pair Bonus, and the game has none")
    name = claim["figure"]
    if wager is bonus and name == "element_of_risk":
        name = "house_edge"  # its stake is all that is staked, so the two are one
    figure = Fraction(wager[f"{name}_exact"])
    return {
        **{key: claim[key] for key in ("figure", "wager", "value", "source")},
        "exact": decimal(figure),
        "exact_fraction": exact(figure),
        "holds": claim_holds(claim["value"], figure),
    }
