"""How live play stands, as one page of plots that loads nothing and runs nothing.

Three kinds: the return of all days up to each day with its narrowing band, its distance from what hands and decisions
let expect in standard deviations, and the dealt categories beside their chances.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt
from typing import Any, Final

from casino_brag.rounds.reports import NO_DATA
from casino_brag.watch.bands import Z

REACH_MAX: Final = 12.0
"""As far as distances are drawn, in standard deviations: what lies beyond is drawn there."""

_WIDTH, _HEIGHT = 960, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 16, 14, 46

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
  .course { fill: none; stroke: var(--point); stroke-width: 1.5; }
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One place of a plot: its label, what was seen, what was expected, and how far from that 99 in 100 lie."""

    label: str
    seen: float
    expected: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class Plot:
    """Points from left to right, joined by a line where they follow each other in time."""

    title: str
    y_label: str
    points: Sequence[Point]
    joined: bool

    def svg(self, name: str) -> str:
        """The plot as an SVG element; `name` tells its parts from those of other plots of a page."""
        return "\n".join(self._lines(name))

    def outside(self) -> int:
        """How many points lie outside of the band."""
        return sum(abs(point.seen - point.expected) > point.tolerance for point in self.points)

    def _lines(self, name: str) -> Iterator[str]:
        low = min(min(p.seen, p.expected - p.tolerance) for p in self.points)
        high = max(max(p.seen, p.expected + p.tolerance) for p in self.points)
        margin = 0.05 * (high - low) or 1.0
        low, high = low - margin, high + margin
        step = (_WIDTH - _LEFT - _RIGHT) / len(self.points)

        def x(number: float) -> float:
            return _LEFT + (number + 0.5) * step

        def y(value: float) -> float:
            return _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

        yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{name}-title {name}-desc">'
        yield f'<title id="{name}-title">{escape(self.title)}</title>'
        yield f'<desc id="{name}-desc">{len(self.points)} points, {self.outside()} of them outside of the band.</desc>'
        for number, point in enumerate(self.points):
            top, height = y(point.expected + point.tolerance), y(-point.tolerance) - y(point.tolerance)
            yield (
                f'<rect class="band" x="{x(number) - step / 2:.2f}" y="{top:.2f}" width="{step:.2f}"'
                f' height="{height:.2f}"/>'
            )
            yield (
                f'<line class="expected" x1="{x(number) - step / 2:.2f}" x2="{x(number) + step / 2:.2f}"'
                f' y1="{y(point.expected):.2f}" y2="{y(point.expected):.2f}"/>'
            )
        if self.joined:
            course = " ".join(
                f"{x(number):.2f},{y(point.seen):.2f}" for number, point in enumerate(self.points)
            )
            yield f'<polyline class="course" points="{course}"/>'
        for number, point in enumerate(self.points):
            yield f'<circle class="point" cx="{x(number):.2f}" cy="{y(point.seen):.2f}" r="3"/>'
        for part in range(5):
            value = low + (high - low) * part / 4
            yield f'<text x="{_LEFT - 8}" y="{y(value) + 4:.2f}" text-anchor="end">{value:.5g}</text>'
        shown = max(1, len(self.points) // 8)
        for number, point in list(enumerate(self.points))[::shown]:
            place = f'x="{x(number):.2f}" y="{_HEIGHT - _BOTTOM + 18}"'
            yield f'<text {place} text-anchor="middle">{escape(point.label)}</text>'
        middle = _TOP + (_HEIGHT - _TOP - _BOTTOM) / 2
        turned = f'transform="translate(14 {middle:.2f}) rotate(-90)"'
        yield f'<text {turned} text-anchor="middle">{escape(self.y_label)}</text>'
        yield "</svg>"


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
        plots = list(_plots(version))
        if not plots:
            yield f"<p>{NO_DATA.capitalize()}.</p>"
        for place, plot in enumerate(plots):
            yield f"<h3>{escape(plot.title)}</h3>\n{plot.svg(f'plot-{number}-{place}')}"


def _plots(version: Mapping[str, Any]) -> Iterator[Plot]:
    kinds = dict.fromkeys((row["wager"], row["currency"]) for row in version["course"])
    for kind in kinds:
        rows = [row for row in version["course"] if (row["wager"], row["currency"]) == kind]
        named = f"{kind[0].replace('_', ' ')} in {kind[1]}"
        yield Plot(f"Return so far, {named}", "RTP", [_return(row) for row in rows], joined=True)
        yield Plot(
            f"Distance from what hands and decisions let expect, {named}",
            "standard deviations",
            [Point(row["day"], _distance(row), 0.0, Z[0.99]) for row in rows],
            joined=True,
        )
    if rounds := version["dealt"]["rounds"]:
        for hand in ("player", "dealer"):
            points = [_category(row, rounds) for row in version["dealt"]["categories"] if row["hand"] == hand]
            yield Plot(
                f"The {hand}'s categories beside their chances", "counted / expected", points, joined=False
            )


def _return(row: Mapping[str, Any]) -> Point:
    theory = row["against_theory"]
    return Point(
        row["day"],
        *(
            float(text)
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
