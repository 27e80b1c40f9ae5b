"""What is simulated: rules, decisions, stakes, rounds and seed.  Nothing else has a say in the tally.

The rounds are numbered from 0 and divided into chunks of one size, each with a generator of its own, so that chunks
can be played anywhere and in any order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from itertools import groupby
from math import lcm
from typing import Any, Final, Self

import numpy as np
import rfc8785

from casino_brag.game.paytable import PAYOUT_MAX_MINOR, Paytable, PaytableError
from casino_brag.game.settlement import Stakes, maximum_payout_minor
from casino_brag.odds.payoffs import whole_stakes
from casino_brag.odds.strategies import Decisions, Strategy
from casino_brag.simulation.ctr_drbg import SEED_BYTES
from casino_brag.simulation.mapper import words
from casino_brag.simulation.play import Tables, default_kernel, play_words
from casino_brag.simulation.tally import Counts, Tally

VERSION: Final = version("casino-brag")
"""The version of casino-brag that a plan is made by, and that alone may play it."""

CHUNK_ROUNDS: Final = 1 << 22
"""Rounds in a chunk: a fraction of a second of work, and 239 chunks in a thousand million rounds."""

ROUNDS_MIN: Final = 100_000
"""Fewer rounds decide nothing.  From here on every category is expected 200 times or more, so that means follow
the normal law closely enough to be judged by it."""

ROUNDS_MAX: Final = 10**13
"""Some days of a large cluster's work."""

STAKES_MAX: Final = 1_000
"""How many stakes a pattern holds."""

_STAKES: Final = re.compile(r"([1-9][0-9]{0,15})(?:\+([1-9][0-9]{0,15}))?(?:x([1-9][0-9]{0,3}))?")


@dataclass(frozen=True, slots=True)
class StakePattern:
    """Stakes that are played in turn, over and over: round i is played for the one at i modulo their number.

    As text the stakes are divided by commas.  Each is an Ante in minor units, after a plus sign a Pair Bonus
    where there is one, and after an x the number of rounds in a row where that is above 1.

    >>> StakePattern.parse("100,200+50x2").stakes == (Stakes(100), Stakes(200, 50), Stakes(200, 50))
    True
    """

    stakes: tuple[Stakes, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.stakes) <= STAKES_MAX:
            raise ValueError(f"a pattern holds 1 to {STAKES_MAX} stakes, not {len(self.stakes)}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """The pattern written so; ValueError for anything else.

        >>> str(StakePattern.parse("5,5,7+7x3"))
        '5x2,7+7x3'
        >>> StakePattern.parse("5+0")
        Traceback (most recent call last):
            ...
        ValueError: '5+0' is no stake: write an Ante such as 100, with a Pair Bonus 100+50, for 3 rounds 100+50x3
        """
        stakes: list[Stakes] = []
        for part in text.split(","):
            read = _STAKES.fullmatch(part)
            if read is None:
                raise ValueError(
                    f"{part!r} is no stake: write an Ante such as 100, with a Pair Bonus 100+50, "
                    "for 3 rounds 100+50x3"
                )
            ante, pair_bonus, times = (int(number or 0) for number in read.groups())
            stakes += [Stakes(ante, pair_bonus)] * (times or 1)
            if len(stakes) > STAKES_MAX:
                break
        return cls(tuple(stakes))

    @classmethod
    def smallest(cls, paytable: Paytable) -> Self:
        """The smallest stake that wins whole minor units at all odds, on the Pair Bonus too where there is one; under
        rules that round, the smallest that are allowed.

        >>> str(StakePattern.smallest(Paytable.load("paytables/three-card-brag.toml")))
        '1+1'
        """
        if paytable.rounding is not None:
            limits = next(iter(paytable.limits.values()))
            return cls(
                (Stakes(limits.ante.min_minor, limits.pair_bonus.min_minor if limits.pair_bonus else 0),)
            )
        whole = whole_stakes(paytable)
        if paytable.pair_bonus is None:
            return cls((whole,))
        both = lcm(whole.ante_minor, whole.pair_bonus_minor)
        return cls((Stakes(both, both),))

    def __str__(self) -> str:
        return ",".join(_stakes_text(stakes, len(list(times))) for stakes, times in groupby(self.stakes))


@dataclass(frozen=True, slots=True)
class Plan:
    """A simulation, to the last round: two equal plans have equal tallies, wherever they are played.

    ``seed`` is 48 bytes.  ValueError when the rounds or the seed are out of bounds, when stakes cannot be
    played under these rules, and when rounding makes the strategy decide differently at different stakes.
    """

    paytable: Paytable
    strategy: Strategy
    pattern: StakePattern
    rounds: int
    seed: bytes

    def __post_init__(self) -> None:
        if not ROUNDS_MIN <= self.rounds <= ROUNDS_MAX:
            raise ValueError(f"a simulation has {ROUNDS_MIN:,} to {ROUNDS_MAX:,} rounds, not {self.rounds:,}")
        if len(self.seed) != SEED_BYTES:
            raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(self.seed)}")
        for stakes in sorted(set(self.pattern.stakes), key=self.pattern.stakes.index):
            _check_stakes(self.paytable, stakes)
        _decisions(self.paytable, self.strategy, self.pattern)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The plan that :meth:`document` wrote; ValueError for anything else, and when another version of
        casino-brag wrote it, which may play the same plan otherwise.
        """
        try:
            made_by, chunk_rounds = document["casino_brag"], document["chunk_rounds"]
            if (made_by, chunk_rounds) != (VERSION, CHUNK_ROUNDS):
                raise ValueError(
                    f"made by casino-brag {made_by} in chunks of {chunk_rounds}, "
                    f"and this is casino-brag {VERSION} in chunks of {CHUNK_ROUNDS}"
                )
            if type(document["rounds"]) is not int:
                raise TypeError("rounds are a whole number")
            return cls(
                Paytable.from_document(document["paytable"]),
                Strategy.parse(document["strategy"]),
                StakePattern.parse(document["stakes"]),
                document["rounds"],
                bytes.fromhex(document["seed"]),
            )
        except (KeyError, TypeError, AttributeError, PaytableError) as unreadable:
            raise ValueError(f"no plan of a simulation: {unreadable!r}") from unreadable

    def document(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON, with the version that made it."""
        return {
            "casino_brag": VERSION,
            "paytable": self.paytable.document(),
            "strategy": str(self.strategy),
            "stakes": str(self.pattern),
            "rounds": self.rounds,
            "chunk_rounds": CHUNK_ROUNDS,
            "seed": self.seed.hex(),
        }

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of the document as RFC 8785 canonical JSON."""
        return sha256(rfc8785.dumps(self.document())).hexdigest()

    @property
    def chunks(self) -> int:
        """How many chunks there are; they are numbered from 0."""
        return -(-self.rounds // CHUNK_ROUNDS)

    @property
    def decisions(self) -> Decisions:
        """Which kinds of hand are played."""
        return _decisions(self.paytable, self.strategy, self.pattern)

    def rounds_by_slot(self, first_chunk: int, last_chunk: int) -> Counts:
        """How many rounds of these chunks, the last one included, are played at each place of the pattern."""
        slots = len(self.pattern.stakes)
        # Of the rounds 0 to n - 1, every slots-th is played at place s, beginning with round s.
        first, end = (
            (min(chunk * CHUNK_ROUNDS, self.rounds) + slots - 1 - np.arange(slots)) // slots
            for chunk in (first_chunk, last_chunk + 1)
        )
        by_slot: Counts = (end - first).astype(np.int64)
        return by_slot

    def play(self, chunk: int) -> Tally:
        """Plays one chunk."""
        assert 0 <= chunk < self.chunks
        first_round = chunk * CHUNK_ROUNDS
        return play_words(
            _tables(self.paytable, self.strategy, self.pattern),
            words(self.seed, chunk),
            min(CHUNK_ROUNDS, self.rounds - first_round),
            len(self.pattern.stakes),
            first_round,
            default_kernel(),
        )


@lru_cache(maxsize=4)
def _tables(paytable: Paytable, strategy: Strategy, pattern: StakePattern) -> Tables:
    return Tables.of(paytable.ranking, paytable.qualifier, _decisions(paytable, strategy, pattern))


@lru_cache(maxsize=4)
def _decisions(paytable: Paytable, strategy: Strategy, pattern: StakePattern) -> Decisions:
    """The decisions at all stakes of the pattern."""
    if paytable.rounding is None:
        return strategy.decisions(paytable)
    first, *others = pattern.stakes
    decisions = strategy.decisions(paytable, first)
    for stakes in set(others):
        if not np.array_equal(strategy.decisions(paytable, stakes), decisions):
            raise ValueError(
                f"rounding makes {strategy} decide differently at {_stakes_text(stakes)} and "
                f"{_stakes_text(first)}: simulate these stakes one by one"
            )
    return decisions


def _check_stakes(paytable: Paytable, stakes: Stakes) -> None:
    """ValueError unless the rules can settle a round at these stakes.  Limits are not looked at: a simulation may
    ask what a stake would do that is not offered.
    """
    if stakes.pair_bonus_minor and paytable.pair_bonus is None:
        raise ValueError(f"{paytable.game} has no Pair Bonus: leave +{stakes.pair_bonus_minor} out")
    whole = whole_stakes(paytable)
    for wager, stake_minor, step in (
        ("an Ante", stakes.ante_minor, whole.ante_minor),
        ("a Pair Bonus", stakes.pair_bonus_minor, whole.pair_bonus_minor),
    ):
        if paytable.rounding is None and stake_minor and stake_minor % step:
            raise ValueError(
                f"{wager} of {stake_minor} does not win whole minor units, and {paytable.game} does not round: "
                f"stake a multiple of {step}"
            )
    if maximum_payout_minor(paytable, stakes) > PAYOUT_MAX_MINOR:
        raise ValueError(f"{_stakes_text(stakes)} could pay more than {PAYOUT_MAX_MINOR}: stake less")


def _stakes_text(stakes: Stakes, times: int = 1) -> str:
    pair_bonus = f"+{stakes.pair_bonus_minor}" if stakes.pair_bonus_minor else ""
    return f"{stakes.ante_minor}{pair_bonus}{f'x{times}' if times > 1 else ''}"
