"""Every mistake a paytable file can hold is reported with its line, its key and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import process_time
from timeit import repeat

import pytest

from casino_brag.game.paytable import CLAIMS_MAX, CURRENCIES_MAX, Paytable, PaytableError
from casino_brag.game.paytable_file import (
    FILE_BYTES_MAX,
    LINE_LENGTH_MAX,
    LINES_MAX,
    PROBLEMS_MAX,
    Problem,
    key_lines,
)

GOOD = """\
game = "brag"
title = "Brag"
[ranking]
categories = ["high_card", "pair", "flush", "run", "running_flush", "prial"]
best_prial = "3"
ace_low_run = "highest"
[dealer]
qualifies_with = "Q"
[dealer.not_qualified]
ante = "wins"
play = "push"
[play]
multiple = 1
pays = { high_card = 1, pair = 1, flush = 1, run = 1, running_flush = 1, prial = 1 }
[ante]
pays = 1
[tie]
result = "push"
[ante_bonus]
paid = "always"
pays = { run = 1, running_flush = 4, prial = 5 }
[pair_bonus]
on_fold = "lost"
[pair_bonus.pays]
pair = 1
flush = 4
[limits.GBP]
ante = { min = 5, max = 300, step = 5 }
pair_bonus = { min = 5, max = 100, step = 5 }
payout_max = 5000
[[claims]]
figure = "rtp"
wager = "main"
value = "98 %"
source = "leaflet"
"""


def write(folder: Path, text: str | bytes, name: str = "brag.toml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def problems_of(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(PaytableError) as error:
        Paytable.load(path)
    assert str(error.value) == "\n".join(map(str, error.value.problems))
    return error.value.problems


def test_the_good_file_loads(tmp_path: Path) -> None:
    assert Paytable.load(write(tmp_path, GOOD)).title == "Brag"


CHANGES = [
    # what stands in the good file, what stands there instead, the line, the key, what the message says
    ('game = "brag"', 'game = "whist"', 1, "game", "'whist' is not the file's name"),
    ('game = "brag"', 'game = "Brag"', 1, "game", "give a name such as"),
    ('title = "Brag"\n', "", None, "title", "missing: give one line of text"),
    ('title = "Brag"', 'title = ""', 2, "title", "one line of text"),
    ('title = "Brag"', 'title = "  "', 2, "title", "one line of text"),
    ('title = "Brag"', 'title = "a\\nb"', 2, "title", "one line of text"),
    ('title = "Brag"', f'title = "{"x" * 81}"', 2, "title", "at most 80"),
    ('title = "Brag"', "title = 3", 2, "title", "3 will not do"),
    ('title = "Brag"', 'title = "Brag"\nrounding = "up"', 3, "rounding", "one of down"),
    ('title = "Brag"', 'title = "Brag"\ncolour = "red"', 3, "colour", "unknown key: remove it"),
    ('"pair", "flush"', '"pair", "pair"', 4, "ranking.categories", "each of these once"),
    ('"pair", "flush"', '"flush"', 4, "ranking.categories", "each of these once"),
    ('"pair", "flush"', '"triple", "flush"', 4, "ranking.categories", "each of these once"),
    ('"pair", "flush"', '["pair"], "flush"', 4, "ranking.categories", "each of these once"),
    ('best_prial = "3"', 'best_prial = "10"', 5, "ranking.best_prial", "one rank of 23456789TJQKA"),
    ('best_prial = "3"', "best_prial = 3", 5, "ranking.best_prial", "one rank of"),
    ('"highest"', '"middle"', 6, "ranking.ace_low_run", "one of highest, second, lowest, not_a_run"),
    ('ace_low_run = "highest"\n', "", 3, "ranking.ace_low_run", "missing"),
    (
        'qualifies_with = "Q"',
        'qualifies_with = "9"',
        8,
        "dealer.qualifies_with",
        "one of T, J, Q, K, A, pair, any",
    ),
    ('ante = "wins"', 'ante = "loses"', 10, "dealer.not_qualified.ante", "one of wins, push"),
    (
        'play = "push"',
        "play = true",
        11,
        "dealer.not_qualified.play",
        "true will not do: give one of wins, push",
    ),
    ("multiple = 1", "multiple = 0", 13, "play.multiple", "a whole number from 1 to 10"),
    ("multiple = 1", "multiple = 11", 13, "play.multiple", "a whole number from 1 to 10"),
    ("multiple = 1", "multiple = true", 13, "play.multiple", "true will not do"),
    ("multiple = 1", "multiple = 1.0", 13, "play.multiple", "1.0 will not do"),
    ("multiple = 1", "multipel = 1", 13, "play.multipel", "did you mean 'multiple'?"),
    ("multiple = 1\n", "", 12, "play.multiple", "missing"),
    (", prial = 1 }", " }", 14, "play.pays.prial", "missing: give odds to 1, from 0"),
    (", prial = 1 }", ", prial = 1, triple = 1 }", 14, "play.pays.triple", "unknown key"),
    (", prial = 1 }", ", prial = -1 }", 14, "play.pays.prial", "-1 will not do"),
    (", prial = 1 }", ", prial = 1.5 }", 14, "play.pays.prial", "a fraction such as '3/2'"),
    (", prial = 1 }", ', prial = "1.5" }', 14, "play.pays.prial", "a fraction such as '3/2'"),
    (", prial = 1 }", ', prial = "3/0" }', 14, "play.pays.prial", "a fraction such as '3/2'"),
    (", prial = 1 }", ', prial = "-3/2" }', 14, "play.pays.prial", "a fraction such as '3/2'"),
    (", prial = 1 }", ', prial = "٣/٢" }', 14, "play.pays.prial", "a fraction such as '3/2'"),
    (", prial = 1 }", ", prial = 1000000 }", 14, "play.pays.prial", "to 999999"),
    (", prial = 1 }", ", prial = 2024-01-01 }", 14, "play.pays.prial", "2024-01-01 will not do"),
    ("[ante]\npays = 1", "[ante]\npays = true", 16, "ante.pays", "true will not do"),
    ("[ante]\npays = 1\n", "", None, "ante", "missing: give a table"),
    ('[tie]\nresult = "push"', 'tie = "push"', 17, "ante.tie", "unknown key"),
    ('result = "push"', 'result = "house"', 18, "tie.result", "one of push, dealer, player"),
    ('paid = "always"', 'paid = "never"', 20, "ante_bonus.paid", "one of always, not_beaten, win"),
    ("prial = 5", "prial = 0", 21, "ante_bonus.pays.prial", "above 0"),
    ("{ run = 1, running_flush = 4, prial = 5 }", "{ }", 21, "ante_bonus.pays", "no category pays"),
    ("{ run = 1, running_flush = 4, prial = 5 }", "5", 21, "ante_bonus.pays", "5 will not do: give a table"),
    ('on_fold = "lost"', 'on_fold = "kept"', 23, "pair_bonus.on_fold", "one of lost, settled"),
    ("flush = 4\n", 'flush = "-4"\n', 26, "pair_bonus.pays.flush", "above 0"),
    ("[limits.GBP]", "[limits.gbp]", 27, "limits.gbp", "3 to 12 capital letters and digits"),
    ("[limits.GBP]", "[limits.GB]", 27, "limits.GB", "3 to 12 capital letters and digits"),
    ("min = 5, max = 300", "min = 0, max = 300", 28, "limits.GBP.ante.min", "a whole number from 1"),
    ("min = 5, max = 300", "min = 5, max = 4", 28, "limits.GBP.ante.max", "4 is below min = 5"),
    ("min = 5, max = 300", "min = 5, max = 303", 28, "limits.GBP.ante.max", "300 is the last below it"),
    ("min = 5, max = 300", f"min = 5, max = {2**53}", 28, "limits.GBP.ante.max", f"to {2**53 - 1}"),
    ("max = 300, step = 5", "max = 300, step = 0", 28, "limits.GBP.ante.step", "a whole number from 1"),
    ("max = 300, step = 5", 'max = 300, step = "5"', 28, "limits.GBP.ante.step", "'5' will not do"),
    ("max = 300, step = 5", "max = 300", 28, "limits.GBP.ante.step", "missing"),
    ("max = 100, step = 5", "max = 100, step = true", 29, "limits.GBP.pair_bonus.step", "true will not do"),
    (
        "pair_bonus = { min = 5, max = 100, step = 5 }\n",
        "",
        27,
        "limits.GBP.pair_bonus",
        "missing: give a table",
    ),
    ("payout_max = 5000", "payout_max = 44", 30, "limits.GBP.payout_max", "could pay 45"),
    ("payout_max = 5000", "payout_max = 0", 30, "limits.GBP.payout_max", "a whole number from 1"),
    ("payout_max = 5000", "payout = 5000", 30, "limits.GBP.payout", "did you mean 'payout_max'?"),
    ('figure = "rtp"', 'figure = "odds"', 32, "claims[0].figure", "one of rtp, house_edge, element_of_risk"),
    ('wager = "main"', 'wager = "side"', 33, "claims[0].wager", "one of main, pair_bonus"),
    ('value = "98 %"', 'value = "0.98"', 34, "claims[0].value", "a percentage such as"),
    ('value = "98 %"', "value = 98", 34, "claims[0].value", "a percentage such as"),
    ('source = "leaflet"\n', "", 31, "claims[0].source", "missing"),
    ('source = "leaflet"', 'source = "leaflet"\nby = "me"', 36, "claims[0].by", "unknown key"),
    # Odds and stakes that do not fit.
    (
        "[ante]\npays = 1",
        '[ante]\npays = "3/2"',
        16,
        "ante.pays",
        "an allowed GBP ante of 5 does not win whole",
    ),
    ("run = 1, running_flush = 1,", 'run = "3/2", running_flush = 1,', 14, "play.pays.run", "multiples of 2"),
    (
        "{ run = 1, running_flush = 4",
        '{ run = "1/10", running_flush = 4',
        21,
        "ante_bonus.pays.run",
        "multiples of 10",
    ),
    ("flush = 4\n", 'flush = "7/2"\n', 26, "pair_bonus.pays.flush", 'or set rounding = "down"'),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "says"), CHANGES)
def test_a_mistake_is_reported_with_line_key_and_remedy(
    tmp_path: Path, old: str, new: str, line: int | None, key: str, says: str
) -> None:
    assert GOOD.count(old) == 1
    path = write(tmp_path, GOOD.replace(old, new))
    matching = [problem for problem in problems_of(path) if problem.key == key]
    assert [(problem.file, problem.line) for problem in matching] == [(str(path), line)]
    assert says in matching[0].message


def test_all_mistakes_are_reported_at_once_in_file_order(tmp_path: Path) -> None:
    text = GOOD.replace('"highest"', '"up"').replace("multiple = 1", "multiple = 0").replace("98 %", "98")
    text = text.replace("flush = 4\n", 'flush = "7/2"\n')
    assert [(problem.line, problem.key) for problem in problems_of(write(tmp_path, text))] == [
        (6, "ranking.ace_low_run"),
        (13, "play.multiple"),
        (26, "pair_bonus.pays.flush"),
        (34, "claims[0].value"),
    ]


def test_a_problem_reads_as_file_line_key_and_message(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("multiple = 1", "multiple = 0"))
    (problem,) = problems_of(path)
    assert str(problem) == f"{path}:13: play.multiple: 0 will not do: give a whole number from 1 to 10"


def test_a_missing_table_is_one_problem(tmp_path: Path) -> None:
    text = GOOD.replace('[dealer.not_qualified]\nante = "wins"\nplay = "push"\n', "")
    assert [problem.key for problem in problems_of(write(tmp_path, text))] == ["dealer.not_qualified"]


def test_a_paytable_without_currencies_is_refused(tmp_path: Path) -> None:
    text = GOOD[: GOOD.index("[limits.GBP]")] + "[limits]\n"
    assert [(problem.line, problem.key) for problem in problems_of(write(tmp_path, text))] == [(27, "limits")]


def test_pair_bonus_limits_and_claims_need_a_pair_bonus(tmp_path: Path) -> None:
    start, end = GOOD.index("[pair_bonus]"), GOOD.index("[limits.GBP]")
    text = (GOOD[:start] + GOOD[end:]).replace('wager = "main"', 'wager = "pair_bonus"')
    assert [problem.key for problem in problems_of(write(tmp_path, text))] == [
        "limits.GBP.pair_bonus",
        "claims[0].wager",
    ]


def test_the_second_claim_has_its_own_line(tmp_path: Path) -> None:
    claim = GOOD[GOOD.index("[[claims]]") :]
    text = GOOD + claim.replace('"rtp"', '"odds"')
    assert [(problem.line, problem.key) for problem in problems_of(write(tmp_path, text))] == [
        (37, "claims[1].figure")
    ]


def test_odds_need_no_rounding_on_stakes_that_fit(tmp_path: Path) -> None:
    even = GOOD.replace("[ante]\npays = 1", '[ante]\npays = "6/5"')
    assert Paytable.load(write(tmp_path, even)).ante_pays.denominator == 5


def test_a_stake_that_only_some_steps_reach_is_found(tmp_path: Path) -> None:
    text = GOOD.replace("[ante]\npays = 1", '[ante]\npays = "1/10"').replace(
        "ante = { min = 5, max = 300, step = 5 }", "ante = { min = 10, max = 300, step = 5 }"
    )
    problems = {problem.key: problem for problem in problems_of(write(tmp_path, text))}
    assert "GBP ante of 15 does not" in problems["ante.pays"].message


def test_a_single_stake_needs_to_fit_by_itself_only(tmp_path: Path) -> None:
    text = GOOD.replace("[ante]\npays = 1", '[ante]\npays = "1/10"').replace(
        "ante = { min = 5, max = 300, step = 5 }", "ante = { min = 10, max = 10, step = 1 }"
    )
    assert Paytable.load(write(tmp_path, text)).limits["GBP"].ante.max_minor == 10


def test_the_smallest_ante_may_reach_the_largest_payout_exactly(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("payout_max = 5000", "payout_max = 45"))
    assert Paytable.load(path).limits["GBP"].payout_max_minor == 45


def test_a_doubled_play_makes_half_odds_whole(tmp_path: Path) -> None:
    half = GOOD.replace("run = 1, running_flush = 1,", 'run = "3/2", running_flush = 1,')
    assert Paytable.load(write(tmp_path, half.replace("multiple = 1", "multiple = 2"))).play_multiple == 2


def test_rounding_down_allows_any_odds(tmp_path: Path) -> None:
    text = GOOD.replace("[ante]\npays = 1", '[ante]\npays = "3/7"')
    text = text.replace('title = "Brag"', 'title = "Brag"\nrounding = "down"')
    assert Paytable.load(write(tmp_path, text)).rounding == "down"


UNREADABLE = [
    (b"", None, "", "the file is empty"),
    (b" \n\n", None, "", "the file is empty"),
    (b'game = "brag"\ntitle = "\xff"\n', 2, "", "not UTF-8"),
    (b'game = "brag"\ntitle = \n', 2, "title", "not valid TOML"),
    (b'game = "brag"\ngame = "brag"\n', 2, "game", "not valid TOML"),
    (b'game = "brag"\ntitle = "Br', 2, "", "not valid TOML"),
    (b"title = 1\ngame = " + b"9" * 5000 + b"\n[limits]\n", 2, "", "longer than 1000 characters: break it"),
    (b"title = 1\nx" + b".a" * 500 + b" = 1\n", 2, "", "longer than 1000 characters"),
    (b"game = " + b"[" * 20_000, 1, "", "longer than 1000 characters"),
    (b"game = " + b"[" * 990, None, "", "nested too deeply"),
    (b"game = [\n" + b"[\n" * 1990, None, "", "nested too deeply"),
    (
        b"title = 1\ngame = " + b"[" * 18 + b"]" * 18,
        2,
        "game",
        "more than 16 tables or lists within each other",
    ),
    (b"game" + b".a" * 400 + b" = 1\n", None, "game", "more than 16 tables or lists within each other"),
    (b"\n" * 1999 + b"title = 1\n", 2001, "", "more than 2000 lines"),
    (
        b"title = [" + b"0, " * 330 + b"\n" + (b"0, " * 330 + b"\n") * 12 + b"]",
        None,
        "",
        "more than 2000 values",
    ),
    (b"title = \x0b\n", 1, "title", "not valid TOML"),
    (b'title = "\xe2\x80\xa8"\ngame = \n', 2, "game", "not valid TOML"),
    (b"#" * (FILE_BYTES_MAX + 1), None, "", "larger than 65536 bytes"),
    (b"\x00" * 100, 1, "", "not valid TOML"),
]


@pytest.mark.parametrize(("content", "line", "key", "says"), UNREADABLE)
def test_a_damaged_file_is_one_problem(
    tmp_path: Path, content: bytes, line: int | None, key: str, says: str
) -> None:
    path = write(tmp_path, content)
    (problem,) = problems_of(path)
    assert (problem.file, problem.line, problem.key) == (str(path), line, key)
    assert says in problem.message


def test_a_long_file_within_the_limits_loads(tmp_path: Path) -> None:
    comments = "\n".join(
        ["# " + "x" * (LINE_LENGTH_MAX - 2)] * 50 + ["#"] * (LINES_MAX - 50 - GOOD.count("\n") - 1)
    )
    assert Paytable.load(write(tmp_path, f"{comments}\n{GOOD}")).title == "Brag"


def test_reading_ends_with_many_problems_and_says_so(tmp_path: Path) -> None:
    unknown = "".join(f"k{place} = 1\n" for place in range(PROBLEMS_MAX + 1))
    told = problems_of(write(tmp_path, unknown + GOOD))
    assert [problem.line for problem in told] == [*range(1, PROBLEMS_MAX + 1), None]
    assert told[-1].message.startswith("these are the first 200 problems")


@pytest.mark.parametrize(
    ("count", "keys"),
    [(CURRENCIES_MAX - 1, []), (CURRENCIES_MAX, [(27, "limits")])],
    ids=["most", "too many"],
)
def test_currencies_are_bounded(tmp_path: Path, count: int, keys: list[tuple[int, str]]) -> None:
    start, end = GOOD.index("[limits.GBP]"), GOOD.index("[[claims]]")
    limits = GOOD[start:end]
    more = "".join(limits.replace("GBP", f"C{place:03d}") for place in range(count))
    text = f"{GOOD[:start]}[limits]\n{limits}{more}{GOOD[end:]}"
    if keys:
        assert [(problem.line, problem.key) for problem in problems_of(write(tmp_path, text))] == keys
    else:
        assert len(Paytable.load(write(tmp_path, text)).limits) == CURRENCIES_MAX


def test_claims_are_bounded(tmp_path: Path) -> None:
    start = GOOD.index("[[claims]]")
    most = GOOD[:start] + GOOD[start:] * CLAIMS_MAX
    assert len(Paytable.load(write(tmp_path, most)).claims) == CLAIMS_MAX
    (problem,) = problems_of(write(tmp_path, most + GOOD[start:]))
    assert (problem.key, problem.message) == ("claims", "51 claims: give at most 50")


@pytest.mark.parametrize(
    "make",
    [
        lambda size: f"[{' ' * size}\n" * 20,
        lambda size: f"[{' ' * size}a {' ' * size}\n" * 20,
        lambda size: f"{' ' * size}a{' ' * size}.{' ' * size}\n" * 20,
        lambda size: f"{'a . ' * size}\n" * 20,
        lambda size: f"{'a' * size}\n" * 20,
        lambda size: "[[claims]]\n" * (8 * size),
        lambda size: "".join(f"[[z{place}]]\n" for place in range(8 * size)),
    ],
    ids=["header", "closed header", "key", "dotted key", "long key", "one list", "many lists"],
)
def test_the_lines_of_keys_are_found_in_time_that_grows_with_the_text(make: Callable[[int], str]) -> None:
    def least(text: str) -> float:
        return min(repeat(lambda: key_lines(text), timer=process_time, number=1, repeat=7))

    assert least(make(400)) < 9 * least(make(100))


def test_a_file_cut_off_before_its_last_limits_never_loads(tmp_path: Path) -> None:
    # The claims come last and are optional: a file cut after its limits is whole without them.
    for length in range(0, GOOD.index("payout_max"), 7):
        assert problems_of(write(tmp_path, GOOD[:length]))


def test_a_missing_file_is_one_problem(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path / "brag.toml")
    assert str(problem).startswith(f"{tmp_path / 'brag.toml'}: cannot be read: No such file")


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert problems_of(write(tmp_path, b"\xef\xbb\xbf" + GOOD.encode() + b"x = 1\n")) != []
    loaded = Paytable.load(write(tmp_path, b"\xef\xbb\xbf" + GOOD.encode()))
    assert loaded == Paytable.load(write(tmp_path, GOOD.encode()))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "brag.toml")
    (problem,) = problems_of(tmp_path / "brag.toml")
    assert "no regular file" in problem.message


def test_a_folder_is_no_paytable(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path)
    assert "cannot be read" in problem.message


def test_problems_of_a_document_have_keys_and_no_lines(tmp_path: Path) -> None:
    document = Paytable.load(write(tmp_path, GOOD)).document()
    document["play"]["multiple"] = None
    document["title"] = "\ud800"
    document["odd[key"] = 1
    with pytest.raises(PaytableError) as error:
        Paytable.from_document(document, file="draft 3")
    assert [(problem.file, problem.line, problem.key) for problem in error.value.problems] == [
        ("draft 3", None, "title"),
        ("draft 3", None, "play.multiple"),
        ("draft 3", None, "odd[key"),
    ]
