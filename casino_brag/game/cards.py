"""The pack: 52 cards, no jokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RANKS: Final = "23456789TJQKA"
"""Rank characters, lowest first; a rank is a position in this text, 0..12."""

SUITS: Final = "cdhs"
"""Suit characters: clubs, diamonds, hearts, spades, 0..3.  Suits name cards and never rank them."""


@dataclass(frozen=True, order=True, slots=True)
class Card:
    """One card of the pack: ``index`` = rank x 4 + suit, 0..51.

    The order of cards is the order of their indexes; only their ranks have a meaning in the game.

    >>> Card(0), str(Card(51))
    (Card(index=0), 'As')
    >>> Card(52)
    Traceback (most recent call last):
        ...
    ValueError: a card's index is 0..51, not 52
    """

    index: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < 52:
            raise ValueError(f"a card's index is 0..51, not {self.index}")

    @classmethod
    def parse(cls, text: str) -> Card:
        """The card written as rank and suit, such as ``Td``; ValueError for anything else.

        >>> Card.parse("3h").rank, Card.parse("3h").suit
        (1, 2)
        >>> Card.parse("10d")
        Traceback (most recent call last):
            ...
        ValueError: '10d' is not a card: write a rank of 23456789TJQKA and a suit of cdhs, such as 'Td'
        """
        card = _BY_TEXT.get(text)
        if card is None:
            raise ValueError(
                f"{text!r} is not a card: write a rank of {RANKS} and a suit of {SUITS}, such as 'Td'"
            )
        return card

    @property
    def rank(self) -> int:
        """0 for a two up to 12 for an ace."""
        return self.index >> 2

    @property
    def suit(self) -> int:
        """0..3 for clubs, diamonds, hearts, spades."""
        return self.index & 3

    def __str__(self) -> str:
        return RANKS[self.rank] + SUITS[self.suit]


PACK: Final[tuple[Card, ...]] = tuple(Card(index) for index in range(52))
"""All cards, ``PACK[i].index == i``."""

_BY_TEXT: Final = {str(card): card for card in PACK}
