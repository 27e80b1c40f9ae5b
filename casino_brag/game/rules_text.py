"""A paytable's rules as English sentences for players.

Every sentence is made from the paytable that pays, so the rules a player reads are those in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from casino_brag.game.cards import RANKS
from casino_brag.game.hands import AceLowRun, Category, Ranking
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import BonusPaid, OnFold, Pays, Qualifier, Rounding, TieResult, Unqualified

CATEGORY_NAMES: Final = {
    Category.HIGH_CARD: "high card",
    Category.PAIR: "pair",
    Category.FLUSH: "flush",
    Category.RUN: "run",
    Category.RUNNING_FLUSH: "running flush",
    Category.PRIAL: "prial",
}
"""What players call the categories."""

_MEANINGS: Final = {
    Category.HIGH_CARD: "any other hand; the highest card counts first, then the middle, then the lowest",
    Category.PAIR: "two cards of one rank; the rank of the pair counts first, then the third card",
    Category.FLUSH: "three cards of one suit; the highest counts first, then the middle, then the lowest",
    Category.RUN: "three ranks in a row",
    Category.RUNNING_FLUSH: "a run in one suit",
    Category.PRIAL: "three cards of one rank",
}

_PLURALS: Final = {
    "2": "twos",
    "3": "threes",
    "4": "fours",
    "5": "fives",
    "6": "sixes",
    "7": "sevens",
    "8": "eights",
    "9": "nines",
    "T": "tens",
    "J": "jacks",
    "Q": "queens",
    "K": "kings",
    "A": "aces",
}

QUALIFIER_NAMES: Final = {
    Qualifier.TEN: "ten high or better",
    Qualifier.JACK: "jack high or better",
    Qualifier.QUEEN: "queen high or better",
    Qualifier.KING: "king high or better",
    Qualifier.ACE: "ace high or better",
    Qualifier.PAIR: "a pair or better",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A headed part of the rules."""

    title: str
    paragraphs: tuple[str, ...]


def rules_in_words(paytable: Paytable) -> tuple[Section, ...]:
    """The whole rules, in reading order: every option of the paytable, every hand that pays, every ending.

    >>> rules = rules_in_words(Paytable.load("paytables/three-card-brag.toml"))
    >>> [section.title for section in rules]
    ['The round', 'The order of hands', 'The dealer', 'Ante and Play', 'Ante Bonus', 'Pair Bonus', 'Payment']
    >>> rules[4].paragraphs[1]
    'It pays on the Ante: prial 5 to 1, running flush 4 to 1, run 1 to 1.'
    """
    sections = [_round(paytable), _order(paytable.ranking), _dealer(paytable), _ante_and_play(paytable)]
    if paytable.ante_bonus is not None:
        sections.append(_ante_bonus(paytable))
    if paytable.pair_bonus is not None:
        sections.append(_pair_bonus(paytable))
    return (*sections, _payment(paytable))


def odds_text(odds: Fraction) -> str:
    """Odds as players read them.

    >>> odds_text(Fraction(4)), odds_text(Fraction(3, 2))
    ('4 to 1', '3 to 2')
    """
    return f"{odds.numerator} to {odds.denominator}"


def pays_text(pays: Pays, ranking: Ranking) -> str:
    """A pay table in one line, the best hand first.

    >>> brag = Paytable.load("paytables/three-card-brag.toml").ranking
    >>> pays_text({Category.PAIR: Fraction(1), Category.PRIAL: Fraction(40)}, brag)
    'prial 40 to 1, pair 1 to 1'
    """
    best_first = [category for category in reversed(ranking.categories) if category in pays]
    return ", ".join(f"{CATEGORY_NAMES[category]} {odds_text(pays[category])}" for category in best_first)


def _round(paytable: Paytable) -> Section:
    times = "equal to" if paytable.play_multiple == 1 else f"{paytable.play_multiple} times"
    pair_bonus = " and, if you like, on the Pair Bonus" if paytable.pair_bonus else ""
    return Section(
        "The round",
        (
            f"You stake on the Ante{pair_bonus}. You and the dealer each get three cards from one pack of 52"
            " without jokers, shuffled afresh for every round. You see only your own.",
            "You then fold or play. If you fold you lose the Ante and the round ends. If you play you add a"
            f" Play wager {times} your Ante, and the dealer's cards are turned over.",
        ),
    )


def _order(ranking: Ranking) -> Section:
    order = [
        f"{place}. {CATEGORY_NAMES[category].capitalize()}: {_MEANINGS[category]}."
        for place, category in enumerate(reversed(ranking.categories), start=1)
    ]
    return Section(
        "The order of hands",
        (
            "From the best to the worst:",
            *order,
            _prials(ranking.best_prial),
            _runs(ranking.ace_low_run),
            "Otherwise aces are high. Suits never rank: hands that differ only in suits are equal.",
        ),
    )


def _prials(best: str | None) -> str:
    order = [rank for rank in reversed(RANKS) if rank != best]
    first, second, third, *_, last = [_PLURALS[rank] for rank in ([best] if best else []) + order]
    return f"The best prial is three {first}, then {second}, then {third} and so on down to {last}."


def _runs(ace_low_run: AceLowRun) -> str:
    order = {
        AceLowRun.HIGHEST: "A-2-3, then A-K-Q, then K-Q-J and so on down to 4-3-2",
        AceLowRun.SECOND: "A-K-Q, then A-2-3, then K-Q-J and so on down to 4-3-2",
        AceLowRun.LOWEST: "A-K-Q, then K-Q-J and so on down to 4-3-2, and last A-2-3",
        AceLowRun.NOT_A_RUN: "A-K-Q, then K-Q-J and so on down to 4-3-2. A-2-3 is not a run",
    }[ace_low_run]
    return f"The best run or running flush is {order}. K-A-2 is never a run."


def _dealer(paytable: Paytable) -> Section:
    if paytable.qualifier is Qualifier.ANY:
        return Section("The dealer", ("The dealer's hand always counts.",))
    ante = {
        Unqualified.WINS: f"the Ante is paid {odds_text(paytable.ante_pays)}",
        Unqualified.PUSH: "the Ante is returned",
    }[paytable.not_qualified.ante]
    play = {
        Unqualified.WINS: f"the Play is paid {_play_odds(paytable)}",
        Unqualified.PUSH: "the Play is returned",
    }[paytable.not_qualified.play]
    return Section(
        "The dealer",
        (
            f"The dealer qualifies with {QUALIFIER_NAMES[paytable.qualifier]}.",
            f"If you play and the dealer does not qualify, {ante} and {play}, even where the dealer's hand is"
            " better than yours.",
        ),
    )


def _ante_and_play(paytable: Paytable) -> Section:
    paid = f"the Ante is paid {odds_text(paytable.ante_pays)} and the Play {_play_odds(paytable)}"
    tie = {
        TieResult.PUSH: "the Ante and the Play are returned",
        TieResult.DEALER: "the Ante and the Play are lost",
        TieResult.PLAYER: f"you win the tie: {paid}",
    }[paytable.tie]
    return Section(
        "Ante and Play",
        (
            "If you play and the dealer qualifies, the hands are compared.",
            f"If yours is better, {paid}.",
            f"If the hands are equal, {tie}.",
            "If the dealer's is better, the Ante and the Play are lost.",
        ),
    )


def _play_odds(paytable: Paytable) -> str:
    different = set(paytable.play_pays.values())
    if len(different) == 1:
        return odds_text(different.pop())
    return f"by your hand ({pays_text(paytable.play_pays, paytable.ranking)})"


def _ante_bonus(paytable: Paytable) -> Section:
    bonus = paytable.ante_bonus
    assert bonus is not None
    when = {
        BonusPaid.ALWAYS: "Whenever you have played, whatever the dealer holds",
        BonusPaid.NOT_BEATEN: "If you have played, unless a qualified dealer has the better hand",
        BonusPaid.WIN: "If you have played, and beat the dealer or the dealer does not qualify",
    }[bonus.paid]
    return Section(
        "Ante Bonus",
        (
            f"{when}, your own cards can win an Ante Bonus. It needs no stake and is paid beside the rest.",
            f"It pays on the Ante: {pays_text(bonus.pays, paytable.ranking)}.",
        ),
    )


def _pair_bonus(paytable: Paytable) -> Section:
    bonus = paytable.pair_bonus
    assert bonus is not None
    on_fold = {
        OnFold.LOST: "If you fold, the Pair Bonus is lost too, whatever your cards are.",
        OnFold.SETTLED: "If you fold, the Pair Bonus is settled on your cards all the same.",
    }[bonus.on_fold]
    return Section(
        "Pair Bonus",
        (
            f"It pays on your own three cards: {pays_text(bonus.pays, paytable.ranking)}.",
            "Every other hand loses it. It does not matter what the dealer holds or who wins.",
            on_fold,
        ),
    )


def _payment(paytable: Paytable) -> Section:
    rounding = {
        None: "Every allowed stake is paid exactly.",
        Rounding.DOWN: "The winnings of each wager are rounded down to the currency's smallest unit.",
    }[paytable.rounding]
    return Section(
        "Payment",
        (
            "Odds say what you win beside your stake: a wager paid 3 to 1 wins three times its stake and"
            " gives the stake back. A wager that is returned neither wins nor loses.",
            "Wagers are settled apart, so that one hand can win several of them.",
            rounding,
        ),
    )
