"""Plots: what they show, and that a browser can read them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from casino_brag.laboratory.plots import Plot

SVG = ElementTree.Element


def drawn(plot: Plot) -> SVG:
    return ElementTree.fromstring(plot.svg("plot"))


def of_class(svg: SVG, name: str) -> list[SVG]:
    return [element for element in svg.iter() if element.get("class") == name]


@pytest.fixture
def plot() -> Plot:
    """Ten things expected 1,000 times each; the fourth was counted too seldom."""
    counted = [1_000, 1_030, 970, 800, 1_010, 1_090, 1_020, 980, 1_050, 1_050]
    return Plot("Cards & bytes", "thing <x>", counted, [1_000.0] * 10, [(0, "first"), (9, "last")])


def test_every_point_is_drawn_over_its_band(plot: Plot) -> None:
    svg = drawn(plot)
    points, bands = of_class(svg, "point"), of_class(svg, "band")
    assert len(points) == len(bands) == 10
    (line,) = of_class(svg, "expected")
    middle = float(line.get("y1", ""))
    heights = [float(point.get("cy", "")) for point in points]
    assert heights[0] == middle
    assert heights[5] < middle < heights[3], "more is higher"
    outside = [
        not float(band.get("y", "")) <= height <= float(band.get("y", "")) + float(band.get("height", ""))
        for height, band in zip(heights, bands, strict=True)
    ]
    assert outside == [False] * 3 + [True] + [False] * 6
    assert plot.outside() == 1


def test_the_band_is_wider_where_less_is_expected() -> None:
    svg = drawn(Plot("Categories", "category", [9_000, 900, 100], [9_000.0, 900.0, 100.0], []))
    heights = [float(band.get("height", "")) for band in of_class(svg, "band")]
    assert heights == sorted(heights)
    # Of 10,000, the band of 100 expected is 3.29 standard deviations: 3.29 x sqrt(100 x 0.99) / 100.
    reach = 1.1 * 0.32740
    assert heights[2] == pytest.approx(0.32740 / reach * (300 - 14 - 52), abs=0.1)


def test_axes_are_labelled(plot: Plot) -> None:
    texts = [element.text for element in drawn(plot).iter() if element.tag.endswith("text")]
    assert {"counted / expected", "thing <x>", "first", "last", "1", "0.9", "1.1"} <= set(texts)


def test_a_plot_is_told_to_those_who_do_not_see_it(plot: Plot) -> None:
    svg = drawn(plot)
    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby") == "plot-title plot-desc"
    told = {element.get("id"): element.text for element in svg}
    assert told["plot-title"] == "Cards & bytes"
    description = "10 points between 0.8000 and 1.0900 of what is expected, 1 of them outside of the band."
    assert told["plot-desc"] == description
