"""The two collectors: raw output before any scaling, and deals as players get them.

Both draw as live rounds do, from the module's generator and by its own functions; neither keeps anything, so any
amount can be collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from casino_brag.config import shipped
from casino_brag.game.cards import PACK
from casino_brag.game.paytable import Paytable
from casino_brag.ids import uuid7
from casino_brag.rng.deal import Draw
from casino_brag.rng.generator import Generator
from casino_brag.rng.hmac_drbg import OUTPUT_BYTES_MAX
from casino_brag.rng.seeds import commitment_value, deal, draw_seed

PURPOSE: Final = "laboratory raw"

_NAMES: Final = tuple(str(card) for card in PACK)


def raw(generator: Generator, size: int) -> Iterator[bytes]:
    """So many bytes of the generator's output, as it comes, a request of at most 65,536 bytes at a time.

    Raises `RngUnavailable`.
    """
    for at in range(0, size, OUTPUT_BYTES_MAX):
        yield generator.generate(min(OUTPUT_BYTES_MAX, size - at), PURPOSE).output


def deals(generator: Generator, count: int) -> Iterator[Draw]:
    """So many deals, each made as a live round is: a seed, its commitment in the series, and the deal that follows.

    Raises `RngUnavailable`.
    """
    rules = paytable().digest
    value: bytes | None = None
    for number in range(1, count + 1):
        round_id = uuid7()
        seed = draw_seed(generator, round_id).output
        value = commitment_value(round_id, rules, number, value, seed)
        yield deal(seed, round_id, rules, None)


def line(draw: Draw, *, with_index: bool) -> str:
    """A deal as a line: perhaps its index, then six cards, the player's three first.

    >>> line(Draw(0, 0), with_index=True)
    '0 2c 2d 2h 2s 3c 3d\\n'
    """
    cards = " ".join(map(_NAMES.__getitem__, draw.cards))
    return f"{draw.index} {cards}\n" if with_index else f"{cards}\n"


@cache
def paytable() -> Paytable:
    """The paytable that deals are collected under.  Its digest goes into each; it has no say in their distribution."""
    return Paytable.load(shipped("paytables") / "three-card-brag.toml")
