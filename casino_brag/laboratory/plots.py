"""Plots as SVG, of one kind: what was counted over what was expected, with the band that chance keeps to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt
from typing import Final

BAND_SDS: Final = 3.290527
"""Half the width of the band in standard deviations: a point lies outside once in a thousand."""

_WIDTH, _HEIGHT = 960, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 14, 14, 52


@dataclass(frozen=True, slots=True)
class Plot:
    """Points side by side: how often each thing was ``counted``, and how often it was ``expected``.

    ``ticks`` are labels under the points, each with the number of its point, which may lie between two.
    """

    title: str
    x_label: str
    counted: Sequence[int]
    expected: Sequence[float]
    ticks: Sequence[tuple[float, str]]

    def outside(self) -> int:
        """How many points lie outside of the band."""
        return sum(abs(ratio - 1) > half for ratio, half in self._points())

    def svg(self, name: str) -> str:
        """The plot as an SVG element, to stand in a page; ``name`` tells its parts from those of other plots.

        Colours are the page's: the classes ``band``, ``expected``, ``point``, ``axis``.
        """
        return "\n".join(self._lines(name))

    def _points(self) -> list[tuple[float, float]]:
        """Each point's ratio, and half the width of the band there: that of a binomial count."""
        total = sum(self.counted)
        return [
            (counted / expected, BAND_SDS * sqrt((1 - expected / total) / expected))
            for counted, expected in zip(self.counted, self.expected, strict=True)
        ]

    def _lines(self, name: str) -> Iterator[str]:
        points = self._points()
        reach = 1.1 * max(max(abs(ratio - 1), half) for ratio, half in points)
        step = (_WIDTH - _LEFT - _RIGHT) / len(points)
        width = max(1.5, min(8.0, 0.7 * step))

        def x(number: float) -> float:
            return _LEFT + (number + 0.5) * step

        def y(ratio: float) -> float:
            return _TOP + (1 + reach - ratio) / (2 * reach) * (_HEIGHT - _TOP - _BOTTOM)

        yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{name}-title {name}-desc">'
        yield f'<title id="{name}-title">{escape(self.title)}</title>'
        yield (
            f'<desc id="{name}-desc">{len(points)} points between {min(points)[0]:.4f} and {max(points)[0]:.4f} of'
            f" what is expected, {self.outside()} of them outside of the band.</desc>"
        )
        for number, (_, half) in enumerate(points):
            yield (
                f'<rect class="band" x="{x(number) - step / 2:.2f}" y="{y(1 + half):.2f}" width="{step:.2f}"'
                f' height="{y(1 - half) - y(1 + half):.2f}"/>'
            )
        yield f'<line class="expected" x1="{_LEFT}" y1="{y(1):.2f}" x2="{_WIDTH - _RIGHT}" y2="{y(1):.2f}"/>'
        for number, (ratio, _) in enumerate(points):
            yield f'<circle class="point" cx="{x(number):.2f}" cy="{y(ratio):.2f}" r="{width / 2:.2f}"/>'
        yield f'<line class="axis" x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{_HEIGHT - _BOTTOM}"/>'
        for value in _round_values(1 - reach, 1 + reach):
            yield f'<line class="axis" x1="{_LEFT - 5}" y1="{y(value):.2f}" x2="{_LEFT}" y2="{y(value):.2f}"/>'
            yield f'<text x="{_LEFT - 9}" y="{y(value) + 4:.2f}" text-anchor="end">{value:.6g}</text>'
        for place, label in self.ticks:
            yield (
                f'<text x="{x(place):.2f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{escape(label)}</text>'
            )
        middle = _TOP + (_HEIGHT - _TOP - _BOTTOM) / 2
        yield (
            f'<text transform="translate(14 {middle:.2f}) rotate(-90)" text-anchor="middle">counted / expected</text>'
        )
        centre = _LEFT + (_WIDTH - _LEFT - _RIGHT) / 2
        yield f'<text x="{centre:.2f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(self.x_label)}</text>'
        yield "</svg>"


def _round_values(low: float, high: float) -> list[float]:
    """Round values from low to high, 1 among them, about five of them."""
    step = 1.0
    while 2 * step > high - low:
        step /= 10
    step *= next(part for part in (1, 2, 5, 10) if part * step * 6 > high - low)
    most = int((high - 1) / step)
    return [round(1 + times * step, 9) for times in range(-most, most + 1)]
