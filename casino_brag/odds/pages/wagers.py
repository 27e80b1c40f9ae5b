"""The sections of a PAR sheet about its wagers: what they return, how widely, and under which decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Final

from casino_brag.game.hands import Category
from casino_brag.game.rules_text import CATEGORY_NAMES, odds_text
from casino_brag.odds.pages.parts import Plot, Section, Table, Text, numbers, words
from casino_brag.odds.pages.shown import (
    NONE,
    WAGERS,
    Document,
    decimal,
    number,
    percent,
    strategy_name,
)


def main(document: Document) -> Section:
    main = document["main"]
    staked, net = Fraction(main["total_staked_antes"]), Fraction(main["net_antes"])
    together = {**main, "spot": "main", "staked": staked, "returned": staked + net, "net": net}
    shares = {net: Fraction(deals, main["deals"]) for net, deals in main["net_distribution"].items()}
    return Section(
        "Main game",
        (
            Text(
                "The Ante with the Play and any Ante Bonus that belong to it. The Play by itself may return more than"
                " 100 %, because it is staked only after the player has seen good cards. Only the whole can be judged."
            ),
            Table(
                f"Wagers over all {number(main['deals'])} deals, in Antes",
                words("wager") + numbers("staked", "returned", "player wins", "RTP", "hits", "pushes"),
                tuple(
                    (
                        WAGERS[wager["spot"]],
                        number(wager["staked"]),
                        number(wager["returned"]),
                        number(wager["net"]),
                        percent(wager["rtp_exact"]) if wager["rtp_exact"] is not None else NONE,
                        percent(wager["hit_frequency_exact"]),
                        percent(wager["push_frequency_exact"]),
                    )
                    for wager in (*main["wagers"], together)
                ),
            ),
            Table(
                "The player's net win in a round, in Antes",
                numbers("net win", "deals", "share of deals", "one round in"),
                tuple(
                    (number(net), number(main["net_distribution"][net]), percent(share), _one_in(share))
                    for net, share in shares.items()
                ),
                plot=Plot("Share of deals by net win", 2, tuple(shares.values())),
            ),
            Text(
                f"The net win of a round has a variance of {decimal(main['variance_exact'])} Antes squared, a standard"
                f" deviation of {decimal(main['sd'])} Antes and a skewness of {decimal(main['skewness'])}. The element"
                f" of risk is {percent(main['element_of_risk_exact'])} of all money staked."
            ),
        ),
    )


def _one_in(share: Fraction) -> str:
    rounds = 1 / share
    return number(round(rounds)) if rounds >= 1000 else f"{float(rounds):.2f}"


_ON_FOLD: Final = {
    "lost": "A fold loses it, so a player who folds hands that it pays gets less.",
    "settled": "A fold leaves it to be settled on the player's cards, so that decisions do not change it.",
}


def pair_bonus(document: Document) -> Section | None:
    bonus = document["pair_bonus"]
    if bonus is None:
        return None
    return Section(
        "Pair Bonus",
        (
            Text(
                f"A wager of its own on the player's three cards, settled here on each of {number(bonus['hands'])}"
                f" hands. {_ON_FOLD[bonus['on_fold']]} The contribution of a kind of hand is its share of all hands"
                " times what it gives back, stake and winnings; the contributions add up to the RTP."
            ),
            Table(
                f"Where the RTP of {percent(bonus['rtp_exact'])} comes from",
                words("hand") + numbers("hands", "pays", "contribution"),
                tuple(
                    (
                        CATEGORY_NAMES[Category(row["category"])],
                        number(row["hands"]),
                        "loses" if row["pays"] is None else odds_text(Fraction(row["pays"])),
                        percent(row["contribution_exact"]),
                    )
                    for row in bonus["rows"]
                ),
                plot=Plot(
                    "Contribution to the RTP by hand",
                    3,
                    tuple(Fraction(row["contribution_exact"]) for row in bonus["rows"]),
                ),
            ),
            Text(
                f"It hits on {percent(bonus['hit_frequency_exact'])} of hands. Its house edge is"
                f" {percent(bonus['house_edge_exact'])} of its stake, its variance {decimal(bonus['variance_exact'])}"
                f" stakes squared, its standard deviation {decimal(bonus['sd'])} stakes and its skewness"
                f" {decimal(bonus['skewness'])}."
            ),
        ),
    )


def combined(document: Document) -> Section | None:
    both = document["combined"]
    if both is None:
        return None
    alone = [Fraction(document[wager]["variance_exact"]) for wager in ("main", "pair_bonus")]
    return Section(
        "Both together",
        (
            Text(
                "An Ante and a Pair Bonus of the same size in every round, and the decisions that lose least on both"
                " together. Both wagers go by the same cards and tend to win together, which the covariance measures."
                " So the two variances must not be added: their sum would hold for wagers that have nothing to do with"
                " each other."
            ),
            Table(
                "Both wagers in one round, in Antes",
                words("figure") + numbers("value"),
                (
                    ("variance, main game alone", decimal(alone[0])),
                    ("variance, Pair Bonus alone", decimal(alone[1])),
                    ("their sum, which is not the variance of both", decimal(sum(alone))),
                    ("variance of both together", decimal(both["variance_exact"])),
                    ("standard deviation of both together", decimal(both["sd"])),
                    ("covariance", decimal(both["covariance_exact"])),
                    ("correlation", decimal(both["correlation"])),
                    ("RTP of all money staked on both", percent(both["rtp_exact"])),
                    ("hands played", number(both["strategy"]["hands_played"])),
                    ("weakest hand played", both["strategy"]["lowest_hand_played"] or NONE),
                ),
            ),
        ),
    )


def strategies(document: Document) -> Section:
    main = document["main"]
    compared = (main, *main["alternatives"])
    return Section(
        "Ways to play",
        (
            Text(
                "What the main game returns when it is played in different ways. All other figures on this page are for"
                " “Least loss per Ante”. “Highest RTP” may play a few hands more: each loses a little more of the Ante,"
                " but adds to the money staked. “Dealer's rule” plays what the dealer would qualify with."
            ),
            Table(
                "Strategies compared",
                words("strategy") + numbers("weakest played", "hands", "RTP", "house edge"),
                tuple(
                    (
                        strategy_name(figures["strategy"]["name"]),
                        figures["strategy"]["lowest_hand_played"] or NONE,
                        number(figures["strategy"]["hands_played"]),
                        percent(figures["rtp_exact"]),
                        percent(figures["house_edge_exact"]),
                    )
                    for figures in compared
                ),
                plot=Plot(
                    "House edge by strategy",
                    4,
                    tuple(Fraction(figures["house_edge_exact"]) for figures in compared),
                ),
            ),
            Table(
                "Mistakes, and how much of an Ante each costs a round",
                words("the player") + numbers("hands decided wrongly", "cost"),
                tuple(
                    (mistake["mistake"], number(mistake["hands"]), percent(mistake["cost_exact"]))
                    for mistake in main["mistakes"]
                ),
            ),
        ),
    )


def rounds_needed(document: Document) -> Section:
    needed = document["rounds_for_half_width"]
    return Section(
        "Rounds needed",
        (
            Text(
                "A figure measured in play or by simulation differs from the exact one by chance. After this many"
                f" rounds it lies within the given distance in {100 * needed['confidence']:g} of 100 trials. A larger"
                " difference after fewer rounds does not show that anything is wrong."
            ),
            Table(
                "Rounds of the main game until the measured figure is that near",
                numbers("within ± points of per cent", "rounds for the RTP", "rounds for the house edge"),
                tuple(
                    (
                        f"{float(100 * Fraction(distance)):g}",
                        number(rounds),
                        number(needed["house_edge"][distance]),
                    )
                    for distance, rounds in needed["rtp"].items()
                ),
            ),
        ),
    )


_ALL_SHOWN: Final = {
    True: "What is lost to rounding repeats as the stake grows: no other stake has a higher house edge than these.",
    False: "Only the smallest stakes and the largest are shown; another may have a higher house edge.",
}


def per_stake(document: Document) -> Section | None:
    stakes = document["per_stake"]
    if stakes is None:
        return None
    return Section(
        "Stakes and rounding",
        (
            Text(
                "Winnings of each wager are rounded down to whole minor units, so what the game returns depends on the"
                " stake. These are the true figures, each under the strategy that loses least at its stake."
                f" {_ALL_SHOWN[stakes['complete']]}"
            ),
            Table(
                "Main game by Ante, in minor units",
                numbers("Ante", "weakest played", "hands", "RTP", "house edge"),
                tuple(
                    (
                        number(row["stake_minor"]),
                        row["lowest_hand_played"] or NONE,
                        number(row["hands_played"]),
                        percent(row["rtp_exact"]),
                        percent(row["house_edge_exact"]),
                    )
                    for row in stakes["ante"]
                ),
            ),
            *_bonus_per_stake(stakes["pair_bonus"]),
        ),
    )


def _bonus_per_stake(rows: Iterable[Document]) -> Iterator[Table]:
    shown = tuple((number(row["stake_minor"]), percent(row["rtp_exact"])) for row in rows)
    if shown:
        yield Table("Pair Bonus by stake, in minor units", numbers("stake", "RTP"), shown)
