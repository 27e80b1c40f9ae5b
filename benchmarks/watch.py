"""What the watch over live play sees, and how soon, and how often it cries without a reason.

.venv/bin/python -m benchmarks.watch [--years 1000] [--whole-years 200] [--runs 100]

Nothing here is dealt by the game: deals come from numpy's generator, seeded, and faults are put into what they pay.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from math import log, sqrt
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.hands import AceLowRun, Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Result, qualifying_class
from casino_brag.odds.outcomes import DEALS, Integers, hand_cards, hand_places, outcomes, rank_classes
from casino_brag.odds.returns import main_game, rtp_sd
from casino_brag.odds.strategies import ALWAYS_PLAY, MAX_EXPECTATION, Strategy
from casino_brag.watch.bands import Z, stake_bands
from casino_brag.watch.bets import Bets, Floats, log_sum, main_gains, ranking_gains
from casino_brag.watch.dealt import CARDS_DEALT, PACK_SIZE, Dealt
from casino_brag.watch.evidence import CHANCES, SHARES, Batch, Evidence, Level
from casino_brag.watch.expectation import Bools, Rules

BRAG: Final = Paytable.load(Path(__file__).parents[1] / "paytables" / "three-card-brag.toml")
RULES: Final = Rules.of(BRAG)
RESULTS: Final = tuple(Result)
NOT_QUALIFIED, WIN = RESULTS.index(Result.NOT_QUALIFIED), RESULTS.index(Result.WIN)
FLUSH: Final = tuple(Category).index(Category.FLUSH)

POPULATIONS: Final = {
    "plays as is best": MAX_EXPECTATION,
    "always plays": ALWAYS_PLAY,
    "folds all below a pair": Strategy.parse("fold_below:pair"),
}
ANTES: Final = np.array([5, 25, 100, 500, 2500])
ANTE_SHARES: Final = (0.35, 0.3, 0.2, 0.1, 0.05)
BAND_AT_FAULT: Final = 4
"""That of 500, which one round in ten is played for."""

DAYS: Final = 365
BATCH_MAX: Final = 20_000

Rng = np.random.Generator
Cards = NDArray[np.integer[Any]]


class Fault(StrEnum):
    """What is wrong."""

    NONE = "nothing"
    """Nothing."""

    FLUSH_PAYS_3 = "Pair Bonus flush paid 3, not 4"
    """Half of the rounds have a Pair Bonus."""

    ONE_BAND = "in one stake band of a tenth of the rounds, a win has the Play returned, not paid"
    """The payout is one that occurs, when the dealer does not qualify."""

    UNQUALIFIED = "Ante returned, not paid, when the dealer does not qualify"
    """The payout is one that occurs, on equal hands."""

    RANKING = "A-2-3 ranked lowest of the runs"
    """Players and dealers lose by it alike, so that no sum of money shows it."""

    ONE_CARD = "one card dealt 5 % more often"
    """To player and dealer alike."""

    ONE_CARD_MILD = "one card dealt 1 % more often"
    """The same, mildly."""


FAVOURED: Final = {Fault.ONE_CARD: 0.05, Fault.ONE_CARD_MILD: 0.01}


def deals(rng: Rng, rounds: int, fault: Fault = Fault.NONE) -> Cards:
    """Six cards a round, in the order dealt: shape (rounds, 6)."""
    packs = np.tile(np.arange(PACK_SIZE, dtype=np.int8), (rounds, 1))
    every = np.arange(rounds)
    for place in range(CARDS_DEALT):
        chosen = rng.integers(place, PACK_SIZE, rounds)
        packs[every, chosen], packs[every, place] = packs[every, place], packs[every, chosen]
    cards = packs[:, :CARDS_DEALT].astype(np.int64)
    if fault in FAVOURED:
        # Now and then a deal without the ace of spades has it put in the place of another card.
        ace, share = PACK_SIZE - 1, FAVOURED[fault] * CARDS_DEALT / (PACK_SIZE - CARDS_DEALT)
        put_in = np.flatnonzero((rng.random(rounds) < share) & (cards != ace).all(axis=1))
        cards[put_in, rng.integers(0, CARDS_DEALT, len(put_in))] = ace
    return cards


def played(strategy: Strategy) -> Bools:
    """Whether a strategy plays each of the 22,100 hands."""
    plays: Bools = strategy.decisions(BRAG)[RULES.kind]
    return plays


def settled(rng: Rng, rounds: int, plays: Bools, fault: Fault = Fault.NONE) -> Batch:
    """Rounds as they would be settled with this fault, at mixed stakes, half of them with a Pair Bonus."""
    cards = deals(rng, rounds, fault)
    player, dealer = hand_places(cards[:, :3]), hand_places(cards[:, 3:])
    antes = rng.choice(ANTES, rounds, p=ANTE_SHARES)
    bonuses = np.where(rng.random(rounds) < 0.5, antes, 0)
    due = RULES.rounds(cards[:, :3], plays[player], antes, bonuses)
    result = np.where(due.plays, _result(player, dealer, fault is Fault.RANKING), RESULTS.index(Result.FOLD))
    paid = due.payouts[np.arange(rounds), result]
    bands = stake_bands(antes, int(ANTES[0]))
    if fault is Fault.UNQUALIFIED:
        paid = np.where(result == NOT_QUALIFIED, paid - antes, paid)
    if fault is Fault.ONE_BAND:
        paid = np.where((result == WIN) & (bands == BAND_AT_FAULT), paid - antes, paid)
    bonus_paid = due.bonus_due_minor
    if fault is Fault.FLUSH_PAYS_3:
        flushes = due.plays & (RULES.category[player] == FLUSH)
        bonus_paid = np.where(flushes, bonus_paid - bonuses, bonus_paid)
    return Batch(due, paid, bonus_paid, bands, cards)


def _result(player: Integers, dealer: Integers, wrong_ranking: bool) -> Integers:
    """The place of each round's result among all, when it is played."""
    classes, qualifying = _classes(wrong_ranking)
    ours, theirs = classes[player], classes[dealer]
    ended = [theirs < qualifying, ours > theirs, ours == theirs]
    into = [NOT_QUALIFIED, WIN, RESULTS.index(Result.TIE)]
    return np.select(ended, into, RESULTS.index(Result.LOSE))


@cache
def _classes(wrong_ranking: bool) -> tuple[Integers, int]:
    ranking = BRAG.ranking
    if wrong_ranking:
        ranking = replace(ranking, ace_low_run=AceLowRun.LOWEST)
    return rank_classes(ranking), qualifying_class(ranking, BRAG.qualifier)


@dataclass(frozen=True, slots=True)
class Caught:
    """After how many rounds a level was reached, and which stream had the most to do with it."""

    rounds: int
    stream: str


def caught(rng: Rng, fault: Fault, at_most: int, clean_days: int = 0) -> dict[Level, Caught]:
    """Plays with a fault, with looks at first every ten rounds and then every tenth more, until the highest level is
    reached or so many rounds were played; before that, days of 10,000 rounds without it."""
    plays, evidence = played(MAX_EXPECTATION), Evidence.none()
    for day in range(clean_days):
        evidence = evidence.after(RULES, settled(rng, 10_000, plays), day)
    if evidence.level is not Level.NONE:
        return {}  # a false alarm, and told elsewhere
    reached: dict[Level, Caught] = {}
    rounds = 0
    while rounds < at_most and Level.SUSPEND not in reached:
        size = min(max(10, rounds // 10), BATCH_MAX)
        rounds += size
        if fault is Fault.ONE_CARD_MILD:  # nothing but the deals can show it
            evidence = evidence.after_deals(RULES, Dealt.of(RULES, deals(rng, size, fault)), clean_days)
        else:
            evidence = evidence.after(RULES, settled(rng, size, plays, fault), clean_days)
        for level in _levels_up_to(evidence.level):
            reached.setdefault(level, Caught(rounds, strongest(evidence)))
    return reached


def strongest(evidence: Evidence) -> str:
    """What has the most part in the evidence."""
    if evidence.impossible:
        return "impossible payout"
    return max(evidence.streams, key=lambda stream: log(SHARES[stream]) + evidence.streams[stream])


def _levels_up_to(level: Level) -> tuple[Level, ...]:
    levels = tuple(Level)
    return levels[1 : levels.index(level) + 1]


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """All ways in which a round of one population can end, with an Ante of 1: by the kind of hand and the result.

    ``gains`` are those of the bets on the main game and then those on rankings; they and all sums of a day stay below
    2^53, so that floats hold them exactly.
    """

    chances: Floats
    gains: Floats
    returned: Floats
    staked: Floats
    main_bets: int

    @classmethod
    def of(cls, plays: Bools) -> Cells:
        """The ways of a population that plays these hands."""
        counted = outcomes(BRAG.ranking, BRAG.qualifier)
        hands = np.unique(RULES.kind, return_index=True)[1]
        one, none = np.ones(len(hands), dtype=np.int64), np.zeros(len(hands), dtype=np.int64)
        rounds = RULES.rounds(hand_cards()[hands], plays[hands], one, none)
        staked = one + BRAG.play_multiple * rounds.plays
        cells = []
        for result in range(len(RESULTS)):
            paid = rounds.payouts[:, result]
            main, rankings = main_gains(rounds, paid), ranking_gains(RULES, rounds, paid)
            chances = counted.hands * rounds.ways[:, result] / DEALS
            cells.append(np.column_stack((chances, main, rankings, paid, staked)))
        table = np.concatenate(cells)
        folded = table[(table[:, 0] > 0) & (table[:, -2] == 0) & (table[:, -1] == 1)]
        table = table[(table[:, 0] > 0) & (table[:, -1] > 1)]
        if len(folded):  # all alike
            table = np.vstack((table, folded[0]))
            table[-1, 0] = folded[:, 0].sum()
        return cls(table[:, 0], table[:, 1:-2], table[:, -2], table[:, -1], main.shape[1])


@dataclass(frozen=True, slots=True)
class Alarms:
    """The share of years in which each level was ever reached at a daily look; the share in which return to player,
    compared with theory in the ordinary way, was ever beyond its 99 % tolerance, and was so on the last day."""

    reached: Mapping[Level, float]
    raw_ever: float
    raw_at_last: float


def false_alarms(rng: Rng, cells: Cells, rounds_a_day: int, years: int, days: int = DAYS) -> Alarms:
    """Years without a fault, all at once, of what is paid: a day's rounds are one multinomial draw for each."""
    main, rankings = (
        Bets.none(years, cells.main_bets),
        Bets.none(years, cells.gains.shape[1] - cells.main_bets),
    )
    highest, returned, staked = np.zeros(years), np.zeros(years), np.zeros(years)
    beyond = np.zeros(years, dtype=bool)
    theory, sd = float(main_game(BRAG).rtp), rtp_sd(BRAG, MAX_EXPECTATION.decisions(BRAG))
    shares = [log(SHARES["main"]), log(SHARES["rankings"])]
    rest = log(1 - SHARES["main"] - SHARES["rankings"])
    for day in range(days):
        counts = rng.multinomial(rounds_a_day, cells.chances, size=years).astype(np.float64)
        gains = (counts @ cells.gains).astype(np.int64)
        main = main.after(day, gains[:, : cells.main_bets])
        rankings = rankings.after(day, gains[:, cells.main_bets :])
        worth = np.stack([shares[0] + main.log_e, shares[1] + rankings.log_e, np.full(years, rest)], axis=-1)
        highest = np.maximum(highest, log_sum(worth))
        returned, staked = returned + counts @ cells.returned, staked + counts @ cells.staked
        z = (returned / staked - theory) / (sd / sqrt(rounds_a_day * (day + 1)))
        beyond |= abs(z) > Z[0.99]
    reached = {level: float((highest >= log(1 / chance)).mean()) for level, chance in CHANCES.items()}
    return Alarms(reached, float(beyond.mean()), float((abs(z) > Z[0.99]).mean()))


def whole_years(rng: Rng, years: int, rounds_a_day: int, days: int = DAYS) -> Iterator[Level]:
    """The level that each year without a fault reaches, with every stream and every round by itself."""
    plays = played(MAX_EXPECTATION)
    for _ in range(years):
        evidence = Evidence.none()
        for day in range(days):
            evidence = evidence.after(RULES, settled(rng, rounds_a_day, plays), day)
        yield evidence.level


def _print_false_alarms(most_years: int) -> None:
    print("Share of years without a fault in which a daily look ever reached a level (payouts and rankings)")
    print(
        "years  rounds/day  population                    warn   alert  suspend   raw 99 % ever   at the end"
    )
    for name, strategy in POPULATIONS.items():
        years = most_years if strategy is MAX_EXPECTATION else max(1, most_years // 5)
        cells = Cells.of(played(strategy))
        for rounds_a_day in (1_000, 10_000, 100_000):
            began = time.perf_counter()
            found = false_alarms(np.random.default_rng(rounds_a_day), cells, rounds_a_day, years)
            levels = "  ".join(f"{share:7.4f}" for share in found.reached.values())
            print(
                f"{years:5}  {rounds_a_day:10,}  {name:26}  {levels}  {found.raw_ever:13.3f}  {found.raw_at_last:10.3f}"
                f"   ({time.perf_counter() - began:.0f} s)",
                flush=True,
            )


def _print_whole_years(years: int) -> None:
    levels = list(whole_years(np.random.default_rng(7), years, 1_000))
    shares = {
        level.value: sum(level in _levels_up_to(one) for one in levels) / years for level in list(Level)[1:]
    }
    print(f"All streams, {years} years of 1,000 rounds a day, every round by itself: {shares}", flush=True)


def _print_caught(runs: int) -> None:
    print(
        f"Rounds until a fault is caught, of {runs} runs (mild and late ones of {runs // 5}): median, 95 %, by what"
    )
    cases: Sequence[tuple[Fault, int, int, int]] = (
        (Fault.FLUSH_PAYS_3, runs, 10_000, 0),
        (Fault.ONE_BAND, runs, 100_000, 0),
        (Fault.UNQUALIFIED, runs, 100_000, 0),
        (Fault.RANKING, runs, 2_000_000, 0),
        (Fault.ONE_CARD, runs, 2_000_000, 0),
        (Fault.ONE_CARD_MILD, runs // 5, 20_000_000, 0),
        (Fault.UNQUALIFIED, runs // 5, 100_000, 60),
        (Fault.RANKING, runs // 5, 2_000_000, 60),
        (Fault.ONE_CARD, runs // 5, 5_000_000, 60),
    )
    for fault, times, at_most, clean_days in cases:
        rng, began = np.random.default_rng(11), time.perf_counter()
        found = [caught(rng, fault, at_most, clean_days) for _ in range(times)]
        late = f", after {clean_days} days of 10,000 rounds without it" if clean_days else ""
        print(f"{fault}{late} ({time.perf_counter() - began:.0f} s)", flush=True)
        for level in list(Level)[1:]:
            rounds = sorted(one[level].rounds for one in found if level in one)
            streams = [one[level].stream for one in found if level in one]
            by = ", ".join(f"{stream} {streams.count(stream)}" for stream in sorted(set(streams)))
            if rounds:
                at_95 = rounds[min(len(rounds) - 1, int(0.95 * times))]
                print(
                    f"    {level:8} {median(rounds):12,.0f} {at_95:12,}   {len(rounds)} of {times}: {by}",
                    flush=True,
                )


def main() -> None:
    """Prints everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=1000)
    parser.add_argument("--whole-years", type=int, default=200)
    parser.add_argument("--runs", type=int, default=100)
    asked = parser.parse_args()
    _print_caught(asked.runs)
    _print_false_alarms(asked.years)
    _print_whole_years(asked.whole_years)


if __name__ == "__main__":
    main()
