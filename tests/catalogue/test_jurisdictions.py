"""Jurisdictions: every mistake in their files is named, and what each asks is held to the minor unit."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.catalogue.jurisdictions import (
    Celebration,
    Jurisdiction,
    JurisdictionError,
    jurisdiction,
    load_jurisdictions,
    names,
)
from casino_brag.catalogue.paytables import published_figures
from casino_brag.errors import SetUpError
from casino_brag.game.paytable import Paytable

ROOT = Path(__file__).parents[2]

GOOD = """\
title = "Testland"
source = ["Gaming Act, section 1"]
rtp_floor_main = "9/10"
rtp_floor_pair_bonus = "3/4"
certificate = true
seconds_between_starts = 5
celebration = "net_win"
autoplay = false
skip = false
net_position = true
elapsed_time = true
reality_check_minutes = 60
history_days = 90
history_on_request_days = 365
client_seeds = false
[stake_max]
GBP = 500
"""
REQUIRED = [
    "title",
    "source",
    "certificate",
    "seconds_between_starts",
    "celebration",
    "autoplay",
    "skip",
    "net_position",
    "elapsed_time",
    "client_seeds",
]
OPTIONAL = [
    "rtp_floor_main",
    "rtp_floor_pair_bonus",
    "reality_check_minutes",
    "history_days",
    "history_on_request_days",
]

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a jurisdiction's file beside a good `none.toml`, and says where both are."""

    def written(text: str, name: str = "test") -> Path:
        (tmp_path / "none.toml").write_text(GOOD)
        (tmp_path / f"{name}.toml").write_text(text)
        return tmp_path

    return written


def with_line(key: str, value: str | None) -> str:
    """The good file with another value of a key, or without the key."""
    kept = [line for line in GOOD.splitlines() if not line.startswith(f"{key} =")]
    assert len(kept) == GOOD.count("\n") - 1
    before = kept.index("[stake_max]") if key != "GBP" else len(kept)
    return "\n".join(kept[:before] + ([] if value is None else [f"{key} = {value}"]) + kept[before:])


def problems(directory: Path) -> list[str]:
    with pytest.raises(JurisdictionError) as raised:
        load_jurisdictions(directory)
    assert str(raised.value).splitlines() == [str(problem) for problem in raised.value.problems]
    return [str(problem).removeprefix(f"{directory}/") for problem in raised.value.problems]


# The shipped files.


def test_the_shipped_jurisdictions_are_those_that_sessions_may_name() -> None:
    assert names() == ("gb", "mga", "nj", "none", "ontario")
    assert [jurisdiction(name).name for name in names()] == list(names())


def test_none_asks_for_nothing_but_an_honest_celebration() -> None:
    none = jurisdiction("none")
    assert (none.rtp_floor_main, none.rtp_floor_pair_bonus, none.stake_max_minor) == (None, None, {})
    assert none.flags() == {
        "title": "No particular jurisdiction",
        "seconds_between_starts": 0,
        "celebration": "net_win",
        "autoplay": True,
        "skip": True,
        "net_position": False,
        "elapsed_time": False,
        "reality_check_minutes": None,
        "history_days": None,
        "history_on_request_days": None,
        "stake_max_minor": {},
        "client_seeds": True,
    }


def test_great_britain_slows_the_game_down_and_shows_what_it_costs() -> None:
    assert jurisdiction("gb").flags() == {
        "title": "Great Britain",
        "seconds_between_starts": 5,
        "celebration": "net_win",
        "autoplay": False,
        "skip": False,
        "net_position": True,
        "elapsed_time": True,
        "reality_check_minutes": None,
        "history_days": 92,
        "history_on_request_days": 366,
        "stake_max_minor": {},
        "client_seeds": True,
    }


@pytest.mark.parametrize(
    ("name", "floor", "celebration"),
    [
        ("gb", None, Celebration.NET_WIN),
        ("mga", Fraction(85, 100), Celebration.ANY_PAYOUT),
        ("nj", Fraction(83, 100), Celebration.ANY_PAYOUT),
        ("none", None, Celebration.NET_WIN),
        ("ontario", None, Celebration.NET_WIN),
    ],
)
def test_floors_and_celebrations_are_those_of_the_table_in_the_manual(
    name: str, floor: Fraction | None, celebration: Celebration
) -> None:
    found = jurisdiction(name)
    assert (found.rtp_floor_main, found.rtp_floor_pair_bonus) == (floor, floor)
    assert found.celebration is celebration


def test_a_name_that_is_not_installed_is_answered_with_those_that_are() -> None:
    with pytest.raises(SetUpError, match=r"'GB': the installation has gb, mga, nj, none, ontario\."):
        jurisdiction("GB")


# Reading.


def test_a_file_is_read_as_it_is_written(write: Write) -> None:
    assert load_jurisdictions(write(GOOD))["test"] == Jurisdiction(
        name="test",
        title="Testland",
        source=("Gaming Act, section 1",),
        rtp_floor_main=Fraction(9, 10),
        rtp_floor_pair_bonus=Fraction(3, 4),
        certificate=True,
        seconds_between_starts=5,
        celebration=Celebration.NET_WIN,
        autoplay=False,
        skip=False,
        net_position=True,
        elapsed_time=True,
        reality_check_minutes=60,
        history_days=90,
        history_on_request_days=365,
        stake_max_minor={"GBP": 500},
        client_seeds=False,
    )


@pytest.mark.parametrize("key", OPTIONAL)
def test_a_key_that_may_be_left_out_is_none_then(write: Write, key: str) -> None:
    assert getattr(load_jurisdictions(write(with_line(key, None)))["test"], key) is None


def test_without_a_table_of_stakes_there_is_no_largest_one(write: Write) -> None:
    found = load_jurisdictions(write(GOOD.partition("[stake_max]")[0]))["test"]
    assert found.stake_max_minor == {}


@pytest.mark.parametrize("key", REQUIRED)
def test_a_missing_key_is_named(write: Write, key: str) -> None:
    (problem,) = problems(write(with_line(key, None)))
    assert problem.startswith(f"test.toml: {key}: missing: give ")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("title", '"  "', "give one line of text"),
        ("title", "7", "7 will not do: give one line of text"),
        ("source", "[]", "[] will not do: give a list of one or more lines of text"),
        ("source", '"RTS 14"', "'RTS 14' will not do: give a list"),
        ("source", '["RTS 14", 14]', "['RTS 14', 14] will not do"),
        ("source", '["RTS 14", " "]', "['RTS 14', ' '] will not do"),
        ("source", '["two\\nlines"]', "will not do"),
        ("source", f'["{"x" * 301}"]', "each of at most 300 characters"),
        ("rtp_floor_main", "0.85", "0.85 will not do: give a fraction above 0 and up to 1, such as '17/20'"),
        ("rtp_floor_main", '"85 %"', "'85 %' will not do"),
        ("rtp_floor_main", '"101/100"', "'101/100' will not do"),
        ("rtp_floor_pair_bonus", '"0/1"', "'0/1' will not do"),
        ("rtp_floor_pair_bonus", '"1/0"', "'1/0' will not do"),
        ("rtp_floor_pair_bonus", "true", "true will not do"),
        ("seconds_between_starts", "-1", "-1 will not do: give a whole number from 0 to 60"),
        ("seconds_between_starts", "5.0", "5.0 will not do"),
        ("seconds_between_starts", "61", "61 will not do"),
        ("celebration", '"always"', "'always' will not do: give one of net_win, any_payout"),
        ("certificate", '"yes"', "'yes' will not do: give true or false"),
        ("autoplay", '"no"', "'no' will not do: give true or false"),
        ("skip", "0", "0 will not do: give true or false"),
        ("net_position", "1", "1 will not do: give true or false"),
        ("elapsed_time", "[]", "[] will not do: give true or false"),
        ("reality_check_minutes", "0", "0 will not do: give a whole number from 1 to 1440"),
        ("history_days", "true", "true will not do: give a whole number from 1 to 3660"),
        ("history_on_request_days", "3661", "3661 will not do"),
        ("client_seeds", '"true"', "'true' will not do: give true or false"),
    ],
)
def test_a_wrong_value_is_named_with_file_line_and_key(
    write: Write, key: str, value: str, message: str
) -> None:
    (problem,) = problems(write(with_line(key, value)))
    assert problem.startswith(f"test.toml:15: {key}: ")
    assert message in problem


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("GBP = 0", "stake_max.GBP: 0 will not do: give a whole number from 1 to "),
        ("GBP = 5.5", "stake_max.GBP: 5.5 will not do"),
        ("gbp = 500", "stake_max.gbp: no currency has this code"),
    ],
)
def test_a_wrong_largest_stake_is_named_with_its_currency(write: Write, line: str, problem: str) -> None:
    (found,) = problems(write(GOOD.replace("GBP = 500", line)))
    assert found.startswith(f"test.toml:17: {problem}")


def test_largest_stakes_that_are_no_table_are_refused(write: Write) -> None:
    text = GOOD.partition("[stake_max]")[0] + "stake_max = 500\n"
    assert problems(write(text)) == ["test.toml:16: stake_max: 500 will not do: give a table"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("auto_play = true", "test.toml:1: auto_play: unknown key: did you mean 'autoplay'?"),
        ("zzzz = 1", "test.toml:1: zzzz: unknown key: remove it"),
    ],
)
def test_an_unknown_key_is_refused(write: Write, line: str, problem: str) -> None:
    assert problems(write(f"{line}\n{GOOD}")) == [problem]


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "the file is empty"), ("title = ", "test.toml:1: not valid TOML"), ("a = 1\na = 2", "TOML")],
)
def test_a_file_that_cannot_be_read_is_named(write: Write, text: str, problem: str) -> None:
    (found,) = problems(write(text))
    assert found.startswith("test.toml")
    assert problem in found


@pytest.mark.parametrize("name", ["GB", "g b", "-gb", "gb_"])
def test_a_file_has_to_be_named_as_sessions_can_name_it(write: Write, name: str) -> None:
    (found,) = problems(write(GOOD, name))
    assert (
        found == f"{name}.toml: a jurisdiction's file is named after it in lower case, as gb.toml: rename it"
    )


def test_all_problems_of_all_files_are_named_at_once(write: Write) -> None:
    write(GOOD.replace("5\n", "-5\n", 1).replace("net_win", "win"), "first")
    found = problems(write(with_line("skip", None), "second"))
    assert [problem.rpartition(": ")[0].split(": ")[:2] for problem in found] == [
        ["first.toml:6", "seconds_between_starts"],
        ["first.toml:7", "celebration"],
        ["second.toml", "skip"],
    ]


def test_the_jurisdiction_of_sessions_that_name_none_has_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "test.toml").write_text(GOOD)
    assert problems(tmp_path) == ["none.toml: there is no such file: restore it"]


# What is enforced.


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("file", sorted((ROOT / "paytables").glob("*.toml")), ids=lambda file: file.stem)
def test_the_shipped_games_may_be_offered_everywhere(name: str, file: Path) -> None:
    assert jurisdiction(name).floor_problem(published_figures(Paytable.load(file))) is None


def figures(main: Fraction, pair_bonus: Fraction | None = None) -> list[dict[str, str]]:
    """Published figures with these returns, and a house edge that no floor is about."""
    published = [
        {"wager": "main", "figure": "rtp", "exact": str(main)},
        {"wager": "main", "figure": "house_edge", "exact": str(1 - main)},
    ]
    if pair_bonus is not None:
        published.append({"wager": "pair_bonus", "figure": "rtp", "exact": str(pair_bonus)})
    return published


@given(below=st.fractions(min_value=Fraction(1, 10**30), max_value=Fraction(1, 10)))
def test_a_floor_is_met_by_what_is_exactly_on_it_and_by_nothing_less(below: Fraction) -> None:
    for name, floor in (("mga", Fraction(85, 100)), ("nj", Fraction(83, 100))):
        asked = jurisdiction(name)
        assert asked.floor_problem(figures(floor)) is None
        assert asked.floor_problem(figures(floor, floor)) is None
        main, pair_bonus = (
            asked.floor_problem(figures(floor - below, floor)),
            asked.floor_problem(figures(floor, floor - below)),
        )
        assert main is not None
        assert "the main game" in main
        assert str(floor - below) in main
        assert pair_bonus is not None
        assert "the Pair Bonus" in pair_bonus


def test_floors_of_the_two_wagers_are_held_apart(write: Write) -> None:
    found = load_jurisdictions(write(GOOD))["test"]
    assert found.floor_problem(figures(Fraction(9, 10), Fraction(3, 4))) is None
    assert found.floor_problem(figures(Fraction(89, 100), Fraction(1))) == (
        "In Testland the main game has to return at least 90 % of what is staked; its exact return is 89/100."
    )
    assert found.floor_problem(figures(Fraction(1), Fraction(74, 100))) == (
        "In Testland the Pair Bonus has to return at least 75 % of what is staked; its exact return is 37/50."
    )


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("staked", [1, 100, 250])
@pytest.mark.parametrize("more", [-250, -1, 0, 1, 1000])
def test_a_win_is_what_the_jurisdiction_calls_one(name: str, staked: int, more: int) -> None:
    payout = max(0, staked + more)
    any_payout = name in {"mga", "nj"}
    assert jurisdiction(name).celebrates(staked, payout) == (payout > 0 if any_payout else payout > staked)


@pytest.mark.parametrize("name", names())
def test_no_shipped_jurisdiction_limits_the_stakes_of_a_table_game(name: str) -> None:
    assert jurisdiction(name).stake_problem("GBP", 2**53 - 1) is None


def test_a_largest_stake_holds_to_the_minor_unit_and_in_its_currency_only(write: Write) -> None:
    found = load_jurisdictions(write(GOOD))["test"]
    assert found.stake_problem("GBP", 500) is None
    assert found.stake_problem("EUR", 501) is None
    assert found.stake_problem("GBP", 501) == (
        "In Testland a round may stake at most 500 minor units of GBP in all; this one could come to 501."
    )


def test_flags_are_json_of_the_same_keys_everywhere(write: Write) -> None:
    everywhere = [*map(jurisdiction, names()), load_jurisdictions(write(GOOD))["test"]]
    assert {tuple(asked.flags()) for asked in everywhere} == {tuple(everywhere[0].flags())}
    flags = everywhere[-1].flags()
    assert json.loads(json.dumps(flags)) == flags
    assert flags["stake_max_minor"] == {"GBP": 500}
    assert (flags["reality_check_minutes"], flags["client_seeds"]) == (60, False)
