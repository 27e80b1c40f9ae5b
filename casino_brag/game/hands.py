"""Three-card hands, and the order a game puts them in.

Suits never rank, so all that counts in a hand is its *shape*: three ranks, and whether they share a suit.
There are 741 shapes (455 choices of ranks, 286 of which can also be suited).  A ranking puts them in a strict
order; a hand's rank class is its shape's place in that order, and hands tie exactly when they share a shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from hashlib import sha256
from itertools import combinations, combinations_with_replacement
from typing import Final, NamedTuple

from casino_brag.game.cards import PACK, RANKS, Card

RANK_CLASSES: Final = 741
"""Rank classes under every ranking: one for each shape."""

_ACE_LOW: Final = (12, 1, 0)


class Category(StrEnum):
    """The six kinds of hand."""

    HIGH_CARD = "high_card"
    """Nothing below: counted by its highest card, then the middle, then the lowest."""

    PAIR = "pair"
    """Two cards of one rank: counted by that rank, then by the odd card."""

    FLUSH = "flush"
    """Three cards of one suit that do not run: counted like a high card."""

    RUN = "run"
    """Three ranks in a row: counted by the highest, A-2-3 where the ranking puts it."""

    RUNNING_FLUSH = "running_flush"
    """A run in one suit."""

    PRIAL = "prial"
    """Three cards of one rank."""


class AceLowRun(StrEnum):
    """Where A-2-3 stands among the runs, and among the running flushes."""

    HIGHEST = "highest"
    """Above A-K-Q, as Brag is played."""

    SECOND = "second"
    """Between A-K-Q and K-Q-J."""

    LOWEST = "lowest"
    """Below 4-3-2."""

    NOT_A_RUN = "not_a_run"
    """Not a run at all: a flush or a high card headed by the ace."""


_ACE_LOW_KEY: Final = {AceLowRun.HIGHEST: 25, AceLowRun.SECOND: 23, AceLowRun.LOWEST: 2}
"""A-2-3's place on the scale of twice a run's highest rank (4 for 4-3-2, 22 for K-Q-J, 24 for A-K-Q)."""


class Shape(NamedTuple):
    """What counts in a hand: its ranks, highest first, and whether it is of one suit.

    >>> str(Shape((10, 4, 2), suited=False)), str(Shape((10, 4, 2), suited=True))
    ('Q-6-4', 'Q-6-4 suited')
    """

    ranks: tuple[int, int, int]
    suited: bool

    @classmethod
    def parse(cls, text: str) -> Shape:
        """The shape written as three ranks, highest first, and perhaps ``suited``; ValueError for anything else.

        >>> Shape.parse("Q-6-4"), Shape.parse("K-3-2 suited").suited
        (Shape(ranks=(10, 4, 2), suited=False), True)
        >>> Shape.parse("4-6-Q")
        Traceback (most recent call last):
            ...
        ValueError: '4-6-Q' is no shape of a hand: write its ranks, highest first, such as 'Q-6-4' or 'Q-6-4 suited'
        """
        for shape in all_shapes():
            if str(shape) == text:
                return shape
        raise ValueError(
            f"{text!r} is no shape of a hand: write its ranks, highest first, such as 'Q-6-4' or 'Q-6-4 suited'"
        )

    def __str__(self) -> str:
        return "-".join(RANKS[rank] for rank in self.ranks) + (" suited" if self.suited else "")


@dataclass(frozen=True, slots=True)
class Hand:
    """Three different cards.  However they are given they are kept, compared and written highest first, and
    within one rank as clubs, diamonds, hearts, spades.

    >>> Hand.parse("4c Ks Jd") == Hand.parse("Jd 4c Ks")
    True
    """

    cards: tuple[Card, Card, Card]

    def __post_init__(self) -> None:
        first, second, third = sorted(self.cards, key=lambda card: (-card.rank, card.suit))
        if second in (first, third):
            raise ValueError(f"a hand is three different cards, not {first} {second} {third}")
        object.__setattr__(self, "cards", (first, second, third))

    @classmethod
    def of(cls, first: Card, second: Card, third: Card) -> Hand:
        """The hand of three cards, in any order; ValueError when two are the same.

        >>> str(Hand.of(PACK[0], PACK[51], PACK[1]))
        'As 2c 2d'
        """
        return cls((first, second, third))

    @classmethod
    def parse(cls, text: str) -> Hand:
        """The hand written as three cards between spaces; ValueError for anything else.

        >>> str(Hand.parse("4c Ks Jd"))
        'Ks Jd 4c'
        >>> Hand.parse("4c 4c Jd")
        Traceback (most recent call last):
            ...
        ValueError: a hand is three different cards, not Jd 4c 4c
        """
        words = text.split()
        if len(words) != 3:
            raise ValueError(f"{text!r} is not a hand: write three cards between spaces, such as 'Ks Jd 4c'")
        return cls.of(*map(Card.parse, words))

    @property
    def shape(self) -> Shape:
        """The hand without its suits."""
        a, b, c = self.cards
        return Shape((a.rank, b.rank, c.rank), a.suit == b.suit == c.suit)

    def __iter__(self) -> Iterator[Card]:
        return iter(self.cards)

    def __str__(self) -> str:
        return " ".join(map(str, self.cards))


@cache
def all_hands() -> tuple[Hand, ...]:
    """All 22,100 hands, in lexicographic order of their three card indexes.

    >>> len(all_hands()), str(all_hands()[0])
    (22100, '2c 2d 2h')
    """
    return tuple(Hand(cards) for cards in combinations(PACK, 3))


@cache
def all_shapes() -> tuple[Shape, ...]:
    """All 741 shapes.

    >>> len(all_shapes())
    741
    """
    triples = [(a, b, c) for c, b, a in combinations_with_replacement(range(13), 3)]
    suited = [Shape(ranks, suited=True) for ranks in triples if len(set(ranks)) == 3]
    return tuple(Shape(ranks, suited=False) for ranks in triples) + tuple(suited)


class Place(NamedTuple):
    """Where a ranking puts a shape: its category and its rank class, 1 (worst) to 741 (best)."""

    category: Category
    rank_class: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of hands as data.

    ``categories`` holds the six categories, weakest first; ``best_prial`` is the rank character of the prial
    that stands above all others, None for the natural order; ``ace_low_run`` says where A-2-3 belongs.

    >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
    >>> brag.category(Hand.parse("As 2d 3c")).value
    'run'
    """

    categories: tuple[Category, ...]
    best_prial: str | None
    ace_low_run: AceLowRun

    def __post_init__(self) -> None:
        assert sorted(self.categories) == sorted(Category), "a ranking names each category once"
        assert self.best_prial is None or (len(self.best_prial) == 1 and self.best_prial in RANKS)

    def category(self, hand: Hand) -> Category:
        """The hand's category under this ranking.

        >>> loose = Ranking(tuple(Category), best_prial=None, ace_low_run=AceLowRun.NOT_A_RUN)
        >>> loose.category(Hand.parse("As 2d 3c")).value
        'high_card'
        """
        return places(self)[hand.shape].category

    def rank_class(self, hand: Hand) -> int:
        """The hand's rank class, 1 (worst) to 741 (best); equal classes tie.

        >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
        >>> [brag.rank_class(Hand.parse(cards)) for cards in ("3c 3d 3h", "As Ad Ah", "5c 3d 2h")]
        [741, 740, 1]
        """
        return places(self)[hand.shape].rank_class

    def strength(self, shape: Shape) -> tuple[int, ...]:
        """A sort key for shapes, weakest first, from which the rank classes are numbered.

        >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
        >>> threes, aces = Hand.parse("3c 3d 3h").shape, Hand.parse("Ac Ad Ah").shape
        >>> brag.strength(threes) > brag.strength(aces)
        True
        """
        category = self._categorise(shape)
        within = _strength_within(category, shape.ranks)
        if category is Category.PRIAL and RANKS[shape.ranks[0]] == self.best_prial:
            within = (13,)
        elif category in (Category.RUN, Category.RUNNING_FLUSH) and shape.ranks == _ACE_LOW:
            within = (_ACE_LOW_KEY[self.ace_low_run],)
        return (self.categories.index(category), *within)

    def _categorise(self, shape: Shape) -> Category:
        high, middle, low = shape.ranks
        if high == low:
            return Category.PRIAL
        if middle in (high, low):
            return Category.PAIR
        ace_low = shape.ranks == _ACE_LOW and self.ace_low_run is not AceLowRun.NOT_A_RUN
        if ace_low or high - low == 2:
            return Category.RUNNING_FLUSH if shape.suited else Category.RUN
        return Category.FLUSH if shape.suited else Category.HIGH_CARD


def _strength_within(category: Category, ranks: tuple[int, int, int]) -> tuple[int, ...]:
    """The order inside one category, before the two exceptions a ranking may declare."""
    high, middle, low = ranks
    match category:
        case Category.PAIR:
            # The middle card is always one of the two; the odd card is whichever is left.
            return (middle, low if high == middle else high)
        case Category.PRIAL:
            return (high,)
        case Category.RUN | Category.RUNNING_FLUSH:
            return (2 * high,)
        case Category.HIGH_CARD | Category.FLUSH:
            return ranks


@lru_cache(maxsize=64)
def places(ranking: Ranking) -> dict[Shape, Place]:
    """Each shape's category and rank class under a ranking, weakest first; made once a ranking, not to be
    changed.

    >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
    >>> str(next(iter(places(brag)))), len(places(brag))
    ('5-3-2', 741)
    """
    order = sorted(all_shapes(), key=ranking.strength)
    return {shape: Place(ranking._categorise(shape), place) for place, shape in enumerate(order, start=1)}


def order_lines(ranking: Ranking) -> tuple[str, ...]:
    """All 22,100 hands, weakest first, as ``RANKCLASS CATEGORY CARDS``; tied hands by their text.

    >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
    >>> order_lines(brag)[0], order_lines(brag)[-1]
    ('1 high_card 5c 3c 2d', '741 prial 3d 3h 3s')
    """
    placed = sorted((ranking.rank_class(hand), str(hand), ranking.category(hand)) for hand in all_hands())
    return tuple(f"{rank_class} {category} {cards}" for rank_class, cards, category in placed)


@lru_cache(maxsize=64)
def order_digest(ranking: Ranking) -> str:
    """SHA-256, in hex, over the lines of :func:`order_lines`, each ended by a line feed.

    One number for the whole order: no ranking mistake leaves it unchanged.

    >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
    >>> len(order_digest(brag))
    64
    """
    return sha256("".join(line + "\n" for line in order_lines(ranking)).encode("ascii")).hexdigest()
