"""How live play stands, as one page of plots that loads nothing and runs nothing.

Three kinds: the return of all days up to each day with its narrowing band, its distance from what hands and decisions
let expect in standard deviations, and the dealt categories beside their chances.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, inf, log10, sqrt
from typing import Any, Final

from casino_brag.odds.pages.shown import WAGERS
from casino_brag.rounds.reports import NO_DATA
from casino_brag.watch.bands import Z

REACH_MAX: Final = 12.0
"""As far as distances are drawn, in standard deviations: what lies beyond is drawn there."""

_HEIGHT: Final = 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 16, 14, 46
_LABEL_WIDTH: Final = 92
_POINTS_APART: Final = 60
"""More points than this are drawn small."""

_RETURN_NOTE: Final = (
    "Line: RTP of all days up to each. Dashes: theory. Shade: where 99 in 100 lie, ever narrower."
)
_DISTANCE_NOTE: Final = (
    "Beside what the hands dealt and the decisions taken let expect: players' skill has no part in it."
    " Shade: 99 in 100 at one look."
)
_DEALT_NOTE: Final = "Counted over expected. Shade: where 99 in 100 lie."

_STYLE: Final = """
  :root { color-scheme: light dark; --ink: #1d2329; --quiet: #58626c; --band: #dbe6ef; --point: #2f6c9e; }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e4e8eb; --quiet: #a3adb6; --band: #26384a; --point: #6aa9da; }
  }
  html { padding: 0 1rem; }
  body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 62rem; margin: 2rem auto; }
  svg { width: 100%; height: auto; font-size: 13px; }
  svg text { fill: var(--ink); }
  .band { fill: var(--band); } .expected, .axis { stroke: var(--quiet); } .point { fill: var(--point); }
  .grid { stroke: var(--quiet); stroke-width: 0.5; stroke-dasharray: 1 4; } .expected { stroke-dasharray: 6 3; }
  .course { fill: none; stroke: var(--point); stroke-width: 1.5; } .outside { fill: none; stroke: var(--ink); }
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One place of a plot: its label, what was seen, what was expected, and how far from that the band reaches.

    `at` is where it lies from left to right, in whatever measure; without it the points are evenly apart.
    """

    label: str
    seen: float
    expected: float
    tolerance: float
    at: float | None = None

    @property
    def is_outside(self) -> bool:
        """Whether it lies outside of the band."""
        return abs(self.seen - self.expected) > self.tolerance


@dataclass(frozen=True, slots=True)
class Plot:
    """Points from left to right, joined by a line where they follow each other.

    `width` is that of the drawing, whose letters are 13 high: a narrow one stays legible in a narrow place.  `note`
    says what line, dashes and shade are.  Nothing can be below `least`, and no part of the drawing is.
    """

    title: str
    y_label: str
    points: Sequence[Point]
    joined: bool
    width: int = 960
    note: str = ""
    least: float = -inf

    def svg(self, name: str) -> str:
        """The plot as an SVG element; `name` tells its parts from those of other plots of a page.

        Nothing is told by colour alone: a point outside of the band has a ring.
        """
        return "\n".join(self._lines(name))

    def outside(self) -> int:
        """How many points lie outside of the band."""
        return sum(point.is_outside for point in self.points)

    def _edges(self) -> list[float]:
        """Where the stretches of the points begin and end: half-way to their neighbours."""
        at = self._at()
        if len(at) == 1:
            return [at[0] - 0.5, at[0] + 0.5]
        halfway = [(one + other) / 2 for one, other in pairwise(at)]
        return [2 * at[0] - halfway[0], *halfway, 2 * at[-1] - halfway[-1]]

    def _at(self) -> list[float]:
        return [number if point.at is None else point.at for number, point in enumerate(self.points)]

    def _lines(self, name: str) -> Iterator[str]:
        low = min(min(p.seen, p.expected - p.tolerance) for p in self.points)
        high = max(max(p.seen, p.expected + p.tolerance) for p in self.points)
        margin = 0.05 * (high - low) or 1.0
        low, high = max(low - margin, self.least), high + margin
        edges = self._edges()

        def x(at: float) -> float:
            return _LEFT + (at - edges[0]) / (edges[-1] - edges[0]) * (self.width - _LEFT - _RIGHT)

        def y(value: float) -> float:
            return _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

        yield (
            f'<svg class="plot" viewBox="0 0 {self.width} {_HEIGHT}" role="img"'
            f' aria-labelledby="{name}-title {name}-desc">'
        )
        yield f'<title id="{name}-title">{escape(self.title)}</title>'
        yield f'<desc id="{name}-desc">{len(self.points)} points, {self.outside()} of them outside of the band.</desc>'
        for point, (begin, end) in zip(self.points, pairwise(edges), strict=True):
            top, bottom = y(point.expected + point.tolerance), y(max(point.expected - point.tolerance, low))
            yield (
                f'<rect class="band" x="{x(begin):.2f}" y="{top:.2f}" width="{x(end) - x(begin):.2f}"'
                f' height="{bottom - top:.2f}"/>'
            )
        for value in round_values(low, high):
            at = f'y1="{y(value):.2f}" y2="{y(value):.2f}"'
            yield f'<line class="grid" x1="{_LEFT}" x2="{self.width - _RIGHT}" {at}/>'
            yield f'<text x="{_LEFT - 8}" y="{y(value) + 4:.2f}" text-anchor="end">{value:.9g}</text>'
        for point, (begin, end) in zip(self.points, pairwise(edges), strict=True):
            yield (
                f'<line class="expected" x1="{x(begin):.2f}" x2="{x(end):.2f}"'
                f' y1="{y(point.expected):.2f}" y2="{y(point.expected):.2f}"/>'
            )
        places = [(x(at), point) for at, point in zip(self._at(), self.points, strict=True)]
        if self.joined:
            course = " ".join(f"{across:.2f},{y(point.seen):.2f}" for across, point in places)
            yield f'<polyline class="course" points="{course}"/>'
        for across, point in places:
            if point.is_outside:
                yield f'<circle class="outside" cx="{across:.2f}" cy="{y(point.seen):.2f}" r="6"/>'
            yield f'<circle class="point" cx="{across:.2f}" cy="{y(point.seen):.2f}" r="{self._radius()}"/>'
        yield from self._labels(places)
        middle = _TOP + (_HEIGHT - _TOP - _BOTTOM) / 2
        turned = f'transform="translate(14 {middle:.2f}) rotate(-90)"'
        yield f'<text {turned} text-anchor="middle">{escape(self.y_label)}</text>'
        yield "</svg>"

    def _radius(self) -> float:
        return 3 if len(self.points) <= _POINTS_APART else 1.5

    def _labels(self, places: Sequence[tuple[float, Point]]) -> Iterator[str]:
        """The points' labels: word below word where each has to be named, and else as many as there is room for.

        Every other one of these is of the class ``minor``, for a page to leave out where letters are large.
        """
        free_from, shown = float("-inf"), 0
        for across, point in places:
            if self.joined and across < free_from:
                continue
            free_from, shown = across + _LABEL_WIDTH, shown + 1
            minor = ' class="minor"' if self.joined and shown % 2 == 0 else ""
            words = [point.label] if self.joined else point.label.split(" ")
            told = "".join(
                f'<tspan x="{across:.2f}" dy="{1.15 * bool(line):g}em">{escape(word)}</tspan>'
                for line, word in enumerate(words)
            )
            yield f'<text{minor} y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{told}</text>'


def round_values(low: float, high: float) -> list[float]:
    """Round values from low to high, two to seven of them, all multiples of a step.

    >>> round_values(0.97, 0.9871)
    [0.97, 0.975, 0.98, 0.985]
    """
    power = 10.0 ** floor(log10(high - low))
    step = next(part * power for part in (0.1, 0.2, 0.5, 1, 2) if part * power * 7 > high - low)
    return [
        round(times * step, 12) for times in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
    ]


def page(found: Mapping[str, Any]) -> str:
    """What `casino_brag.watch.status.status` found, as one HTML file."""
    body = "\n".join(_body(found))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Live play</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>Live play</h1>\n{body}\n</body>\n</html>\n"
    )


def _body(found: Mapping[str, Any]) -> Iterator[str]:
    since = "the beginning" if found["since"] is None else found["since"]
    yield f"<p>From {since} to {found['until']}, as of {found['as_of']}. Bands hold 99 in 100 at one look.</p>"
    for number, version in enumerate(found["versions"]):
        evidence = version["evidence"]
        yield f"<h2>{escape(version['game'])}, version {version['version']}</h2>"
        yield (
            f"<p>Level: {evidence['level']}. Evidence: 10 to the power of {evidence['log10_e']} over"
            f" {evidence['rounds']:,} rounds.</p>"
        )
        drawn = list(plots(version))
        if not drawn:
            yield f"<p>{NO_DATA.capitalize()}.</p>"
        for place, plot in enumerate(drawn):
            yield f"<h3>{escape(plot.title)}</h3>\n{plot.svg(f'plot-{number}-{place}')}"


def plots(version: Mapping[str, Any], width: int = 960) -> Iterator[Plot]:
    """The plots of one version, as `casino_brag.watch.status.status` tells of it; none where nothing was played."""
    kinds = dict.fromkeys((row["wager"], row["currency"]) for row in version["course"])
    for kind in kinds:
        rows = [row for row in version["course"] if (row["wager"], row["currency"]) == kind]
        named = f"{WAGERS[kind[0]]} in {kind[1]}"
        points = [_return(row) for row in rows]
        yield Plot(f"Return so far, {named}", "RTP, %", points, True, width, _RETURN_NOTE, 0.0)
        yield Plot(
            f"Distance from what hands and decisions let expect, {named}",
            "standard deviations",
            [Point(row["day"], _distance(row), 0.0, Z[0.99]) for row in rows],
            True,
            width,
            _DISTANCE_NOTE,
        )
    if rounds := version["dealt"]["rounds"]:
        for hand in ("player", "dealer"):
            points = [_category(row, rounds) for row in version["dealt"]["categories"] if row["hand"] == hand]
            title = f"The {hand}'s categories beside their chances"
            yield Plot(title, "counted / expected", points, False, width, _DEALT_NOTE, 0.0)


def _return(row: Mapping[str, Any]) -> Point:
    theory = row["against_theory"]
    return Point(
        row["day"],
        *(
            100 * float(text)
            for text in (row["actual_rtp"]["value"], theory["expected_rtp"], theory["tolerance_99"])
        ),
    )


def _distance(row: Mapping[str, Any]) -> float:
    z = row["given_cards_and_decisions"]["z"]
    return REACH_MAX if z == "infinite" else max(-REACH_MAX, min(REACH_MAX, float(z)))


def _category(row: Mapping[str, Any], rounds: int) -> Point:
    expected = float(row["expected"])
    label = row["category"].replace("_", " ")
    return Point(label, row["counted"] / expected, 1.0, Z[0.99] * sqrt((1 - expected / rounds) / expected))
