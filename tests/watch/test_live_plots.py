"""Plots of live play: where their parts lie, and that they say without colour what they show."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.watch.plots import Plot, Point, round_values

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 6))
POINTS = st.lists(
    st.builds(Point, st.text("abc ", max_size=9), NUMBERS, NUMBERS, NUMBERS.map(abs)), min_size=1, max_size=80
)


def parts(plot: Plot) -> ElementTree.Element:
    return ElementTree.fromstring(plot.svg("p"))


def of(svg: ElementTree.Element, kind: str) -> list[dict[str, float]]:
    """The numbers of all elements of a class."""
    return [
        {name: float(value) for name, value in item.attrib.items() if re.fullmatch(r"-?[0-9.]+", value)}
        for item in svg.iter()
        if item.get("class") == kind
    ]


@given(POINTS, st.booleans(), st.sampled_from([400, 560, 960]))
def test_whatever_the_points_everything_lies_within_the_drawing(
    points: list[Point], joined: bool, width: int
) -> None:
    svg = parts(Plot("A title", "y", points, joined, width))
    assert svg.get("viewBox") == f"0 0 {width} 260"
    assert len(of(svg, "band")) == len(of(svg, "point")) == len(points)
    for point in of(svg, "point"):
        assert 0 < point["cx"] < width
        assert 0 < point["cy"] < 260
    for band in of(svg, "band"):
        assert band["x"] >= 0
        assert band["x"] + band["width"] <= width
        assert band["height"] >= 0


def test_a_point_outside_of_the_band_has_a_ring_and_is_counted_in_words() -> None:
    svg = parts(Plot("t", "y", [Point("a", 1.0, 1.0, 0.1), Point("b", 1.2, 1.0, 0.1)], True))
    assert len(of(svg, "outside")) == 1
    description = svg.find("desc")
    assert description is not None
    assert description.text == "2 points, 1 of them outside of the band."
    assert svg.get("aria-labelledby") == "p-title p-desc"


def test_points_lie_where_they_are_said_to_be_and_else_evenly() -> None:
    places = [
        [circle["cx"] for circle in of(parts(Plot("t", "y", points, True)), "point")]
        for points in (
            [Point(str(at), 0.0, 0.0, 1.0, at) for at in (1.0, 2.0, 4.0)],
            [Point(str(number), 0.0, 0.0, 1.0) for number in range(3)],
        )
    ]
    (first, second, third), even = places
    assert third - second == pytest.approx(2 * (second - first), abs=0.1)
    assert even[2] - even[1] == pytest.approx(even[1] - even[0], abs=0.1)


def test_labels_leave_one_another_room_and_every_other_one_may_be_left_out() -> None:
    svg = parts(
        Plot("t", "y", [Point(f"2026-11-{day:02}", 0.0, 0.0, 1.0) for day in range(1, 31)], True, 560)
    )
    labels = [item for item in svg.iter("text") if item.find("tspan") is not None]
    at = [float(item[0].get("x", "0")) for item in labels]
    assert min(later - one for one, later in pairwise(at)) > 91
    assert [item.get("class") for item in labels[:4]] == [None, "minor", None, "minor"]


def test_each_of_the_categories_is_named_word_below_word() -> None:
    points = [Point(name, 1.0, 1.0, 0.1) for name in ("high card", "pair", "running flush")]
    svg = parts(Plot("t", "y", points, False, 400))
    named = [[part.text for part in item] for item in svg.iter("text") if item.find("tspan") is not None]
    assert named == [["high", "card"], ["pair"], ["running", "flush"]]


@given(NUMBERS, st.floats(1e-6, 1e9))
def test_round_values_are_a_few_evenly_apart_and_within(low: float, width: float) -> None:
    high = low + width
    values = round_values(low, high)
    if width > 1e-5 * abs(low):
        assert 2 <= len(values) <= 7
        assert low - width * 1e-6 <= values[0]
        assert values[-1] <= high + width * 1e-6


def test_nothing_is_drawn_below_what_is_possible() -> None:
    points = [Point("a", 0.0, 1.0, 3.0), Point("b", 2.0, 1.0, 0.5)]
    svg = parts(Plot("t", "y", points, False, least=0.0))
    assert all(not (label.text or "").startswith("-") for label in svg.iter("text"))
    assert max(float(band["y"]) + float(band["height"]) for band in of(svg, "band")) <= 214.0
