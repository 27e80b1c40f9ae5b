from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Claim, ClaimFigure, ClaimWager, Limits, OnFold, Rounding, StakeRange
from casino_brag.odds.pages import html, markdown
from casino_brag.odds.pages.shown import percent
from casino_brag.odds.par_sheet import par_sheet

PAYTABLES = Path(__file__).parents[2] / "paytables"
BRAG = Paytable.load(PAYTABLES / "three-card-brag.toml")
DOUBLE_PLAY = Paytable.load(PAYTABLES / "double-play-brag.toml")
assert BRAG.pair_bonus is not None
FAVOURING = replace(DOUBLE_PLAY, ante_bonus=BRAG.ante_bonus, claims=())
NO_BONUS = replace(
    BRAG,
    ante_bonus=None,
    pair_bonus=None,
    limits={currency: replace(limits, pair_bonus=None) for currency, limits in BRAG.limits.items()},
)
FRACTIONAL = replace(
    BRAG,
    play_pays={**BRAG.play_pays, Category.PRIAL: Fraction(5, 2)},
    pair_bonus=replace(BRAG.pair_bonus, pays={Category.PAIR: Fraction(7, 4)}, on_fold=OnFold.SETTLED),
    limits={"GBP": Limits(StakeRange(4, 400, 4), StakeRange(4, 400, 4), None)},
)
ROUNDING = replace(
    FRACTIONAL,
    rounding=Rounding.DOWN,
    limits={"GBP": Limits(StakeRange(1, 400, 1), StakeRange(1, 400, 1), None)},
)
EVERY = {
    "three-card-brag": BRAG,
    "double-play-brag": DOUBLE_PLAY,
    "favouring": FAVOURING,
    "no bonus": NO_BONUS,
    "fractional odds": FRACTIONAL,
    "rounding": ROUNDING,
}
every_paytable = pytest.mark.parametrize("paytable", EVERY.values(), ids=EVERY)

VOID = {"meta"}


@cache
def document_of(paytable: Paytable) -> dict[str, Any]:
    return par_sheet(paytable)


@cache
def html_of(paytable: Paytable) -> str:
    return html(paytable, document_of(paytable))


@cache
def markdown_of(paytable: Paytable) -> str:
    return markdown(paytable, document_of(paytable))


class Reader(HTMLParser):
    """Reads a page whose elements must be closed in the order they were opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self._open):
            self.texts[tag][-1] += data

    def attributes(self, name: str) -> list[str]:
        return [
            value or "" for _, attributes in self.elements for key, value in attributes.items() if key == name
        ]


def plots(page: str) -> Iterator[list[tuple[Fraction, Fraction]]]:
    """For each plot, where its bars begin and how long they are, in hundredths of its width."""
    for drawing in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        yield [
            (Fraction(start), Fraction(length))
            for start, length in re.findall(r'<rect x="([0-9.]+)%" y="[0-9]+" width="([0-9.]+)%"', drawing)
        ]


def tables(page: str) -> list[list[str]]:
    return [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]


def exact_figures(node: dict[str, Any]) -> Iterator[tuple[str, int | str]]:
    for key, value in node.items():
        if isinstance(value, dict):
            yield from exact_figures(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    yield from exact_figures(item)
        elif key.endswith("_exact") and value is not None:
            yield key, value


@pytest.mark.parametrize(
    ("paytable", "figures"),
    [
        (
            BRAG,
            [
                "3 Card Brag",
                "97.996138 %",
                "3.354881 %",
                "97.864253 %",
                "Q-6-4 or better",
                "1.674208",
                "2.357491",
            ],
        ),
        (
            DOUBLE_PLAY,
            ["Double Play Brag", "99.541837 %", "0.986398 %", "97.864253 %", "K-3-2 or better", "2.152941"],
        ),
    ],
    ids=["three-card-brag", "double-play-brag"],
)
def test_both_forms_show_the_published_figures_of_the_shipped_games(
    paytable: Paytable, figures: list[str]
) -> None:
    for figure in (*figures, paytable.game, paytable.digest):
        assert figure in html_of(paytable)
        assert figure in markdown_of(paytable)


@every_paytable
def test_every_exact_figure_stands_in_both_forms(paytable: Paytable) -> None:
    document = document_of(paytable)
    compared = [
        {key: row[key] for key in ("rtp_exact", "house_edge_exact")}
        for row in document["main"]["alternatives"]
    ]
    shown = {**document, "main": {**document["main"], "alternatives": compared}}
    figures = list(exact_figures(shown))
    assert len(figures) > 30
    for key, exact in figures:
        assert f"<code>{exact}</code>" in html_of(paytable)
        assert f"| `{exact}` |" in markdown_of(paytable)
        if not key.endswith("variance_exact"):
            assert percent(exact) in html_of(paytable)
            assert percent(exact) in markdown_of(paytable)


@every_paytable
def test_no_form_takes_the_rtp_for_one_less_the_house_edge(paytable: Paytable) -> None:
    mistaken = percent(1 - Fraction(document_of(paytable)["main"]["house_edge_exact"]))
    assert mistaken not in html_of(paytable)
    assert mistaken not in markdown_of(paytable)


@every_paytable
def test_the_html_is_well_formed(paytable: Paytable) -> None:
    page = html_of(paytable)
    read = Reader(page)
    assert page.startswith('<!doctype html>\n<html lang="en">\n')
    identities = read.attributes("id")
    assert len(identities) == len(set(identities))
    named = [name for names in read.attributes("aria-labelledby") for name in names.split()]
    assert set(named) <= set(identities)
    assert {link.removeprefix("#") for link in read.attributes("href")} <= set(identities)


@every_paytable
def test_the_html_loads_and_runs_nothing(paytable: Paytable) -> None:
    page = html_of(paytable)
    read = Reader(page)
    assert {tag for tag, _ in read.elements}.isdisjoint(
        {"script", "link", "img", "iframe", "object", "base", "form"}
    )
    names = {name for _, attributes in read.elements for name in attributes}
    assert names.isdisjoint({"src", "srcset", "style"})
    assert not [name for name in names if name.startswith("on")]
    assert all(link.startswith("#") for link in read.attributes("href"))
    assert "://" not in page
    assert "url(" not in page
    assert "@import" not in page


@every_paytable
def test_each_plot_says_in_words_what_it_shows(paytable: Paytable) -> None:
    read = Reader(html_of(paytable))
    assert len(read.texts["svg"]) == len(read.texts["desc"]) == (3 if paytable.pair_bonus else 2)
    for caption, description in zip(read.texts["figcaption"], read.texts["desc"], strict=True):
        assert caption in read.texts["title"]
        assert description.count(" %") > 1
    for net, deals in document_of(paytable)["main"]["net_distribution"].items():
        assert f"{net.replace('-', '−')}: {percent(Fraction(deals, 407_170_400))}" in read.texts["desc"][0]


@every_paytable
def test_bars_are_as_long_as_their_values_are_large(paytable: Paytable) -> None:
    document = document_of(paytable)
    main, pair_bonus = document["main"], document["pair_bonus"]
    values = [[Fraction(deals) for deals in main["net_distribution"].values()]]
    if pair_bonus:
        values.append([Fraction(row["contribution_exact"]) for row in pair_bonus["rows"]])
    values.append([Fraction(figures["house_edge_exact"]) for figures in (main, *main["alternatives"])])
    for bars, wanted in zip(plots(html_of(paytable)), values, strict=True):
        assert len(bars) == len(wanted)
        width = max(0, *wanted) - min(0, *wanted)
        zero = -min(0, *wanted) / width
        for (start, length), value in zip(bars, wanted, strict=True):
            assert abs(length - 100 * abs(value) / width) < Fraction(1, 1000)
            touching = start if value >= 0 else start + length
            assert abs(touching - 100 * zero) < Fraction(1, 1000)


def test_markdown_bars_are_as_long_as_their_values_are_large() -> None:
    [contributions] = [
        table for table in tables(markdown_of(BRAG)) if "Contribution to the RTP by hand" in table[0]
    ]
    lengths = [row.count("█") for row in contributions[2:]]
    assert lengths == [9, 6, 20, 22, 30, 0]


def test_markdown_marks_bars_below_zero_and_those_too_short_to_draw() -> None:
    [strategies] = [table for table in tables(markdown_of(FAVOURING)) if "House edge by strategy" in table[0]]
    assert strategies[2].endswith("| −████ |")
    [nets] = [table for table in tables(markdown_of(BRAG)) if "Share of deals by net win" in table[0]]
    assert [row.split(" | ")[-1] for row in nets if row.startswith("|       4 |")] == ["▏ |"]


@every_paytable
def test_the_markdown_is_tidy(paytable: Paytable) -> None:
    page = markdown_of(paytable)
    assert page == markdown(paytable, par_sheet(paytable))
    assert page.endswith("|\n")
    assert not [line for line in page.splitlines() if line != line.rstrip()]
    assert "\n\n\n" not in page
    assert not [line for line in page.splitlines() if len(line) > 110 and not line.startswith("|")]


@every_paytable
def test_markdown_tables_are_rectangular(paytable: Paytable) -> None:
    for heading, rule, *rows in tables(markdown_of(paytable)):
        assert re.fullmatch(r"\|( -+:? \|)+", rule)
        columns = len(re.findall(r"(?<!\\)\|", heading))
        assert rows
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in (rule, *rows)} == {columns}


@every_paytable
def test_only_a_favouring_paytable_is_warned_of(paytable: Paytable) -> None:
    box = '<div class="warn" role="note">'
    warnings = document_of(paytable)["warnings"]
    assert bool(warnings) == (paytable is FAVOURING)
    assert (box in html_of(paytable)) == bool(warnings)
    assert ("\n> " in markdown_of(paytable)) == bool(warnings)
    text = "".join(Reader(html_of(paytable)).texts["body"])
    assert ("does not favour the player" in text) == (not warnings)
    for warning in warnings:
        assert warning in text
    assert ("cannot be published" in text) == bool(warnings)


@pytest.mark.parametrize(("paytable", "verdict"), [(BRAG, "holds"), (DOUBLE_PLAY, "DOES NOT HOLD")])
def test_a_claim_is_judged_in_words(paytable: Paytable, verdict: str) -> None:
    assert f'<td class="words">{verdict}</td>' in html_of(paytable)
    [claim] = [
        line for line in markdown_of(paytable).splitlines() if "| rules document of the game |" in line
    ]
    assert f"| {verdict} " in claim


def test_a_paytable_without_claims_says_so() -> None:
    assert "repeats no figures printed elsewhere" in html_of(FAVOURING)
    assert "repeats no figures printed elsewhere" in markdown_of(FAVOURING)


@every_paytable
def test_sections_are_there_when_they_have_something_to_say(paytable: Paytable) -> None:
    headings = Reader(html_of(paytable)).texts["h2"]
    assert [
        line.removeprefix("## ") for line in markdown_of(paytable).splitlines() if line[:3] == "## "
    ] == headings
    assert ("Pair Bonus" in headings) == ("Both together" in headings) == (paytable.pair_bonus is not None)
    assert ("Stakes and rounding" in headings) == (paytable.rounding is not None)


def test_figures_by_stake_are_shown_where_winnings_are_rounded() -> None:
    for row in document_of(ROUNDING)["per_stake"]["pair_bonus"]:
        stake, rtp = row["stake_minor"], percent(row["rtp_exact"])
        assert re.search(rf"^\| +{stake} \| {rtp} \|$", markdown_of(ROUNDING), flags=re.MULTILINE)
    assert "The figures here leave that out" in html_of(ROUNDING)


HOSTILE = '<script>alert("1")</script> & | `x` [a](http://b) *c*'


def test_titles_and_sources_are_shown_as_they_are_and_never_obeyed() -> None:
    claim = Claim(ClaimFigure.HOUSE_EDGE, ClaimWager.MAIN, "3.35 %", HOSTILE)
    paytable = replace(BRAG, title=HOSTILE, claims=(claim,))
    page = html(paytable, par_sheet(paytable))
    read = Reader(page)
    assert "script" not in {tag for tag, _ in read.elements}
    assert read.texts["h1"] == [f"PAR sheet: {HOSTILE}"]
    assert read.texts["title"][0] == f"PAR sheet: {HOSTILE}"
    assert HOSTILE in read.texts["td"]
    text = markdown(paytable, par_sheet(paytable))
    escaped = r'\<script\>alert("1")\</script\> \& \| \`x\` \[a\](http://b) \*c\*'
    assert text.startswith(f"# PAR sheet: {escaped}\n")
    assert f" {escaped} |\n" in text


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80))
def test_any_title_is_one_heading(title: str) -> None:
    document = {**document_of(NO_BONUS), "title": title}
    wanted = f"PAR sheet: {' '.join(title.split())}"
    assert Reader(html(NO_BONUS, document)).texts["h1"] == [wanted]
    heading, identity = markdown(NO_BONUS, document).split("\n\n")[:2]
    assert re.sub(r"\\(.)", r"\1", heading) == f"# {wanted}"
    assert identity.startswith("- Game: ")
