"""The five commands that tell what a paytable is worth, run as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from casino_brag.game.paytable import Paytable
from casino_brag.odds.par_sheet import par_sheet
from tests.terminal import casino_brag, command

PAYTABLES = Path(__file__).parents[2] / "paytables"
BRAG = PAYTABLES / "three-card-brag.toml"
DOUBLE_PLAY = PAYTABLES / "double-play-brag.toml"

ON_ONE_PAYTABLE = ["par-sheet", "rank", "claims"]


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """A paytable of one's own: 3 Card Brag with a dearer Ante Bonus."""
    file = tmp_path / "my-brag.toml"
    text = BRAG.read_text(encoding="utf-8")
    text = text.replace('game = "three-card-brag"', 'game = "my-brag"')
    file.write_text(
        text.replace("running_flush = 4, prial = 5", "running_flush = 4, prial = 6"), encoding="utf-8"
    )
    return file


def test_a_par_sheet_in_json_is_the_document(edited: Path) -> None:
    told = command("par-sheet", edited, "--json")
    assert (told.code, told.err) == (0, "")
    assert json.loads(told.out) == par_sheet(Paytable.load(edited))
    assert command("par-sheet", edited, "--format", "json").out == told.out


def test_a_par_sheet_is_read_in_the_terminal_and_printed_from_a_browser(edited: Path) -> None:
    page, html = command("par-sheet", edited), command("par-sheet", edited, "--format", "html")
    assert (page.code, html.code) == (0, 0)
    assert page.out.startswith("# PAR sheet: 3 Card Brag\n")
    assert page.out == command("par-sheet", edited, "--format", "md").out
    assert html.out.startswith("<!doctype html>")
    HTMLParser().feed(html.out)
    rtp = f"{100 * par_sheet(Paytable.load(edited))['main']['rtp']:.6f}"
    assert rtp in page.out
    assert rtp in html.out


def test_the_outcomes_of_a_hand() -> None:
    told = command("outcomes", "4c Qs 6d", BRAG, "--json")
    assert told.code == 0
    assert json.loads(told.out) == {
        "cards": ["Qs", "6d", "4c"],
        "category": "high_card",
        "rank_class": 121,
        "dealer_not_qualified": 5_758,
        "win": 305,
        "tie": 26,
        "lose": 12_335,
        "expectation": {"play": -18_302, "fold": -18_424},
        "decision": "play",
    }
    read = command("outcomes", "4c Qs 6d", BRAG).out
    assert "Better: play" in read
    assert "12,335 of 18,424" in read


@pytest.mark.parametrize("cards", ["", "Qs 6d", "Qs Qs 4c", "10s 6d 4c", "Qs 6d 4c 3c"])
def test_what_is_no_hand_is_refused_with_an_example(cards: str) -> None:
    told = command("outcomes", cards, BRAG)
    assert (told.code, told.out) == (2, "")
    assert "Invalid value for 'CARDS'" in told.err


def test_the_order_of_hands_ends_with_its_digest() -> None:
    told = command("rank", BRAG)
    *lines, last = told.out.splitlines()
    assert len(lines) == 22_100
    assert (lines[0], lines[-1]) == ("1 high_card 5c 3c 2d", "741 prial 3d 3h 3s")
    text = "".join(line + "\n" for line in lines)
    assert last == f"sha256 {sha256(text.encode()).hexdigest()}"
    assert last == f"sha256 {par_sheet(Paytable.load(BRAG))['ranking_digest']}"


def test_a_claim_that_does_not_hold_is_told_with_the_exact_figure() -> None:
    told = command("claims", BRAG, DOUBLE_PLAY)
    assert told.code == 1
    holds, fails = told.out.splitlines()
    assert holds.startswith("three-card-brag: holds: ")
    assert fails.startswith("double-play-brag: DOES NOT HOLD: ")
    assert "99.541837 %" in fails
    assert command("claims", BRAG).code == 0
    as_data = json.loads(command("claims", BRAG, DOUBLE_PLAY, "--json").out)
    assert [(claim["game"], claim["holds"]) for claim in as_data] == [
        ("three-card-brag", True),
        ("double-play-brag", False),
    ]


def test_a_paytable_without_claims_claims_nothing(edited: Path) -> None:
    text = edited.read_text(encoding="utf-8")
    edited.write_text(text.partition("[[claims]]")[0], encoding="utf-8")
    told = command("claims", edited)
    assert (told.code, told.out) == (0, "my-brag: no claims\n")


def test_a_difference_tells_the_rule_the_figures_and_the_play(edited: Path) -> None:
    told = command("diff", BRAG, edited)
    assert (told.code, told.err) == (0, "")
    assert "ante_bonus.pays.prial  5 -> 6" in told.out
    assert "97.996138 % ->" in told.out
    assert "now worth playing: 0 hands" in told.out
    as_data = json.loads(command("diff", BRAG, edited, "--json").out)
    assert {"key": "ante_bonus.pays.prial", "old": 5, "new": 6} in as_data["rules"]


def test_the_difference_of_a_paytable_from_itself_is_none() -> None:
    assert (
        command("diff", BRAG, BRAG).out
        == "The same rules, limits and claims, under one digest: nothing changes.\n"
    )


def test_a_favouring_paytable_is_figured_and_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "double-play-brag.toml"
    bonus = "[ante_bonus]\npaid = 'always'\npays = { run = 1, running_flush = 4, prial = 5 }\n\n[pair_bonus]"
    file.write_text(DOUBLE_PLAY.read_text(encoding="utf-8").replace("[pair_bonus]", bonus), encoding="utf-8")
    told = command("par-sheet", file)
    assert told.code == 0
    assert told.err.startswith("Warning: play.pays: the main game returns 102.005057")
    assert "102.005057" in told.out
    assert "cannot be published" in told.out
    assert "Warning: play.pays: " in command("diff", DOUBLE_PLAY, file).out


@pytest.mark.parametrize(
    ("pays", "key"),
    [
        ("run = -1, running_flush = 4, prial = 5", "ante_bonus.pays.run"),
        ("run = 0, running_flush = 4, prial = 5", "ante_bonus.pays.run"),
        ("run = 1000000, running_flush = 4, prial = 5", "ante_bonus.pays.run"),
        ('run = "3/0", running_flush = 4, prial = 5', "ante_bonus.pays.run"),
        ("run = 1.5, running_flush = 4, prial = 5", "ante_bonus.pays.run"),
        ("run = 1, running_flush = 4, prail = 5", "prail: unknown key: did you mean 'prial'?"),
        ("run = 1, run = 2, prial = 5", "inline table key 'run'"),
    ],
)
@pytest.mark.parametrize("words", ON_ONE_PAYTABLE)
def test_odds_that_will_not_do_are_refused_with_their_key(
    edited: Path, words: str, pays: str, key: str
) -> None:
    text = edited.read_text(encoding="utf-8")
    edited.write_text(text.replace("run = 1, running_flush = 4, prial = 6", pays), encoding="utf-8")
    told = command(words, edited)
    assert (told.code, told.out) == (2, "")
    assert "Traceback" not in told.err
    assert str(edited) in told.err
    assert key in told.err


@pytest.mark.parametrize("category", ["high_card = 1, ", ", prial = 1"])
def test_a_missing_category_of_the_play_is_refused_with_its_key(edited: Path, category: str) -> None:
    text = edited.read_text(encoding="utf-8")
    before, play, after = text.partition("[play]")
    edited.write_text(before + play + after.replace(category, "", 1), encoding="utf-8")
    told = command("par-sheet", edited)
    assert told.code == 2
    assert f"play.pays.{category.strip(', =1')}: missing" in told.err


def test_a_key_that_is_given_twice_is_named(edited: Path) -> None:
    text = edited.read_text(encoding="utf-8")
    edited.write_text(text.replace("[ante]\n", "[ante]\npays = 2\n"), encoding="utf-8")
    told = command("par-sheet", edited)
    assert told.code == 2
    assert ": pays: not valid TOML: Cannot overwrite a value" in told.err


def test_a_category_ranked_twice_is_refused_with_its_key(edited: Path) -> None:
    text = edited.read_text(encoding="utf-8")
    edited.write_text(text.replace('"pair", "flush"', '"pair", "pair"'), encoding="utf-8")
    told = command("diff", BRAG, edited)
    assert told.code == 2
    assert "ranking.categories" in told.err


def test_a_file_that_is_not_there_is_named() -> None:
    told = casino_brag("par-sheet", "no-such-brag.toml")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("no-such-brag.toml: cannot be read")


def test_a_disk_that_is_full_is_told_in_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            [sys.executable, "-m", "casino_brag", "rank", BRAG],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert told.returncode == 2
    assert "No space left on device: make room" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_page_is_utf_8_whatever_the_terminal_is(encoding: str) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "casino_brag", "par-sheet", BRAG, "--format", "html"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        timeout=60,
        check=True,
    )
    assert "\u202f" in told.stdout.decode("utf-8")


def test_output_into_a_pipe_that_closes_early_ends_quietly() -> None:
    """``casino-brag rank FILE | head -1``"""
    pipe = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m casino_brag rank '{BRAG}' | head -1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert pipe.stdout == "1 high_card 5c 3c 2d\n"
    assert "Traceback" not in pipe.stderr
