"""What a page of figures is made of, before it is HTML or Markdown.

Every string in a part is plain text: whoever renders it escapes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar


class Setting(StrEnum):
    """How the cells of a column are set."""

    WORDS = "words"
    """Set left, wrapped between words."""

    NUMBER = "number"
    """Set right and never wrapped, so that decimals stand under each other."""

    CODE = "code"
    """Set left in a fixed pitch, wrapped anywhere: to be copied."""


Columns = tuple[tuple[str, Setting], ...]
"""Heading and setting of each column."""


def words(*headings: str) -> Columns:
    """Columns of words.

    >>> words("hand")
    (('hand', <Setting.WORDS: 'words'>),)
    """
    return tuple((heading, Setting.WORDS) for heading in headings)


def numbers(*headings: str) -> Columns:
    """Columns of numbers."""
    return tuple((heading, Setting.NUMBER) for heading in headings)


def codes(*headings: str) -> Columns:
    """Columns to be copied."""
    return tuple((heading, Setting.CODE) for heading in headings)


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Warn:
    """A box that cannot be overlooked."""

    kind: ClassVar[str] = "warn"
    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Headlines:
    """The few figures that matter most: (label, figure, what it is) each."""

    kind: ClassVar[str] = "headlines"
    figures: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """Headed paragraphs: (heading, paragraphs) each."""

    kind: ClassVar[str] = "terms"
    terms: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Commands:
    """Command lines to copy."""

    kind: ClassVar[str] = "commands"
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars for the rows of a table, of lengths in proportion to ``values``; ``column`` is the one they show."""

    title: str
    column: int
    values: tuple[Fraction, ...]

    def zero(self) -> float:
        """Where 0 lies, as a part of the plot's width: at its left end when no value is below 0."""
        return float(-self._least() / self._width())

    def spans(self) -> list[tuple[float, float]]:
        """Where each bar begins and how long it is, as parts of the plot's width.  Every bar touches 0.

        >>> Plot("loss", 1, (Fraction(1), Fraction(4))).spans()
        [(0.0, 0.25), (0.0, 1.0)]
        >>> Plot("loss", 1, (Fraction(-1), Fraction(3))).spans()
        [(0.0, 0.25), (0.25, 0.75)]
        """
        least, width = self._least(), self._width()
        return [
            (float((min(Fraction(0), value) - least) / width), float(abs(value) / width))
            for value in self.values
        ]

    def _least(self) -> Fraction:
        return min(Fraction(0), *self.values)

    def _width(self) -> Fraction:
        return (max(Fraction(0), *self.values) - self._least()) or Fraction(1)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, perhaps with bars for one column."""

    kind: ClassVar[str] = "table"
    title: str
    columns: Columns
    rows: tuple[tuple[str, ...], ...]
    plot: Plot | None = None


Block = Text | Warn | Headlines | Terms | Commands | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A headed part of the page."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def anchor(self) -> str:
        """The name to link to.

        >>> Section("Pair Bonus", ()).anchor
        'pair-bonus'
        """
        return self.title.lower().replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Page:
    """The whole; ``identity`` is (label, text to copy) each."""

    title: str
    identity: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
