"""The auditors' scripts by themselves: what they are made of, what they print, and every difference they find."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from casino_brag.game.paytable import Paytable
from casino_brag.odds.outcomes import outcomes

CHECKOUT = Path(__file__).parents[2]
PAYTABLES = CHECKOUT / "paytables"
DATA = CHECKOUT / "tests" / "data"
SCRIPTS = sorted(path.stem for path in (CHECKOUT / "verification").glob("*.py"))
GAMES = ("double-play-brag", "three-card-brag")


@pytest.fixture(scope="module")
def computed_sheets(scripts: SimpleNamespace) -> dict[str, dict[str, Any]]:
    """What the scripts compute for each shipped game."""
    files = {name: scripts.rules.read_paytable(PAYTABLES / f"{name}.toml") for name in GAMES}
    return {name: scripts.figures.par_sheet(paytable) for name, paytable in files.items()}


@pytest.fixture
def copy(tmp_path: Path, computed_sheets: dict[str, dict[str, Any]]) -> Path:
    """A checkout of nothing but the scripts, the paytables and a PAR sheet computed for each of these."""
    for directory in ("verification", "paytables"):
        copytree(CHECKOUT / directory, tmp_path / directory)
    for name, sheet in computed_sheets.items():
        write_sheet(tmp_path, name, sheet)
    return tmp_path


def write_sheet(checkout: Path, name: str, sheet: dict[str, Any]) -> None:
    (checkout / "paytables" / f"{name}.par.json").write_text(json.dumps(sheet), encoding="utf-8")


def read_sheet(checkout: Path, name: str) -> dict[str, Any]:
    sheet: dict[str, Any] = json.loads((checkout / "paytables" / f"{name}.par.json").read_text("utf-8"))
    return sheet


def run(checkout: Path, script: str, *arguments: str, python: tuple[str, ...] = ()) -> Any:
    command = [sys.executable, *python, f"verification/{script}.py", *arguments]
    return subprocess.run(
        command, check=False, cwd=checkout, env={}, capture_output=True, encoding="utf-8", timeout=120
    )


# What the scripts are made of


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_imports_the_standard_library_numpy_and_its_neighbours_only(script: str) -> None:
    tree = ast.parse((CHECKOUT / "verification" / f"{script}.py").read_text("utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    tops = {name.partition(".")[0] for name in imported}
    parquet = {"pyarrow"} if script == "verify_log" else set()  # if it is there
    assert tops <= set(sys.stdlib_module_names) | {"numpy", *SCRIPTS} | parquet
    assert script not in {*sys.stdlib_module_names, "numpy"}


def test_no_script_loads_the_package(copy: Path) -> None:
    for script, arguments in (
        ("brute_force", ("paytables/three-card-brag.toml",)),
        ("published", ()),
        ("check_paytables", ()),
    ):
        done = run(copy, script, *arguments, python=("-X", "importtime"))
        assert done.returncode == 0, done.stderr
        loaded = re.findall(r"^import time:.*\| +([\w.]+)$", done.stderr, re.MULTILINE)
        assert "enumeration" in loaded
        assert [name for name in loaded if name.startswith("casino_brag")] == []


# brute_force


@pytest.mark.parametrize("name", GAMES)
def test_brute_force_finds_the_known_figures(name: str) -> None:
    done = run(CHECKOUT, "brute_force", f"paytables/{name}.toml", "--json")
    main = json.loads(done.stdout)["main"]
    known = json.loads((DATA / "games.json").read_text("utf-8"))[name]
    for key in ("deals", "net_antes", "total_staked_antes", "net_distribution"):
        assert main[key] == known[key]
    assert main["strategy"] == {
        "name": "max_expectation",
        "hands_played": known["optimal_hands_played"],
        "lowest_hand_played": known["lowest_hand_played"],
        "is_rank_threshold": True,
    }
    assert "407,170,400 of 407,170,400 deals" in done.stderr


def test_brute_force_counts_every_hand_as_known_and_as_the_package_does() -> None:
    done = run(CHECKOUT, "brute_force", "paytables/three-card-brag.toml", "--hands")
    rows = {row["cards"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
    assert len(rows) == 22_100
    for known in json.loads((DATA / "hands.json").read_text("utf-8"))["hands"]:
        cards = sorted(known["cards"], key=lambda card: (-"23456789TJQKA".index(card[0]), card[1]))
        assert rows[" ".join(cards)] == {
            "cards": " ".join(cards),
            "category": known["category"],
            "rank_class": str(known["rank_class"]),
            "not_qualified": str(known["dealer_not_qualified"]),
            "win": str(known["win"]),
            "tie": str(known["tie"]),
            "lose": str(known["lose"]),
        }
    paytable = Paytable.load(PAYTABLES / "three-card-brag.toml")
    counted = outcomes(paytable.ranking, paytable.qualifier)
    counts = [
        [int(row[column]) for column in ("not_qualified", "win", "tie", "lose")] for row in rows.values()
    ]
    assert np.array_equal(counts, counted.counts[counted.kind])


def test_brute_force_prints_figures_to_read() -> None:
    done = run(CHECKOUT, "brute_force", "paytables/double-play-brag.toml")
    for line in (
        "not_qualified +123,809,280 deals",
        r"net_antes +-4,016,320",
        r"rtp +0\.9954183707 = 779105/782691",
        "lowest_hand_played +K-3-2",
        "11 +667,840 deals",
        r"covariance +\d\.\d{10} = \d+/\d+",
        "does not hold +0.9954183707 = 779105/782691",
    ):
        assert re.search(rf"^ +{line}$", done.stdout, re.MULTILINE), line


def test_brute_force_refuses_a_choice_the_rules_do_not_know(copy: Path) -> None:
    file = copy / "paytables" / "three-card-brag.toml"
    file.write_text(file.read_text("utf-8").replace('result = "push"', 'result = "split"'), encoding="utf-8")
    done = run(copy, "brute_force", "paytables/three-card-brag.toml")
    assert done.returncode == 2
    assert "tie.result is 'split': it must be one of push, dealer, player" in done.stderr


# published


def test_the_published_figures_of_three_card_poker_come_out() -> None:
    done = run(CHECKOUT, "published")
    assert done.returncode == 0
    assert done.stdout.endswith("16 of 16 published figures agree\n")


def test_a_published_figure_that_does_not_come_out_fails(copy: Path) -> None:
    script = copy / "verification" / "published.py"
    script.write_text(script.read_text("utf-8").replace('"3.37 %"', '"3.38 %"'), encoding="utf-8")
    done = run(copy, "published")
    assert done.returncode == 1
    assert re.search(r"^house edge +3\.38 %.*DIFFERS$", done.stdout, re.MULTILINE)
    assert done.stdout.endswith("15 of 16 published figures agree\n")


# check_paytables


def test_the_par_sheets_of_the_shipped_games_agree() -> None:
    done = run(CHECKOUT, "check_paytables")
    assert done.returncode == 0, done.stdout
    for name in GAMES:
        assert f"{name}.toml: every figure agrees" in done.stdout


def test_a_claim_that_does_not_hold_is_reported_and_is_no_difference(copy: Path) -> None:
    done = run(copy, "check_paytables")
    assert done.returncode == 0
    assert re.findall("claim that does not hold: .*", done.stdout) == [
        "claim that does not hold: 'rules document of the game' says rtp of main is 98 %; it is"
        " 99.541837% = 779105/782691"
    ]


def test_an_altered_par_sheet_is_found_by_the_command(copy: Path) -> None:
    sheet = read_sheet(copy, "three-card-brag")
    sheet["main"]["net_antes"] += 1
    write_sheet(copy, "three-card-brag", sheet)
    done = run(copy, "check_paytables")
    assert done.returncode == 1
    assert "main.net_antes: the PAR sheet says -13660083, computed -13660084" in done.stdout
    assert done.stdout.count("WRONG") == 1


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, list[str | int], Any]]:
    """Every single value of a document: its name as the script writes it, the way to it, and itself."""
    if isinstance(value, dict):
        for name, inner in value.items():
            for label, way, leaf in leaves(inner, f"{key}.{name}" if key else name):
                yield label, [name, *way], leaf
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            name = inner.get("name") or inner.get("spot") or inner.get("category") or place
            for label, way, leaf in leaves(inner, f"{key}[{name}]"):
                yield label, [place, *way], leaf
    else:
        yield key, [], value


def altered(leaf: Any) -> Any:
    """Another value of the same kind, as near as can be."""
    if isinstance(leaf, bool) or leaf is None:
        return not leaf
    if isinstance(leaf, str):
        return leaf + "0"
    return leaf + 1 if isinstance(leaf, int) else leaf + 3e-12


@pytest.mark.parametrize("name", GAMES)
def test_no_single_value_of_a_par_sheet_can_be_altered_or_lost_unnoticed(
    name: str, scripts: SimpleNamespace, computed_sheets: dict[str, dict[str, Any]]
) -> None:
    computed = computed_sheets[name]
    differences = scripts.check_paytables.differences
    assert list(differences(computed, deepcopy(computed))) == []
    every = list(leaves(computed))
    assert len(every) > 200
    for label, way, leaf in every:
        sheet = deepcopy(computed)
        table: Any = sheet
        for step in way[:-1]:
            table = table[step]
        table[way[-1]] = altered(leaf)
        (difference,) = differences(computed, sheet)
        assert difference == f"{label}: the PAR sheet says {altered(leaf)!r}, computed {leaf!r}"
        del table[way[-1]]
        (difference,) = differences(computed, sheet)
        assert difference == f"{label}: missing; computed {leaf!r}"


def test_a_value_nobody_knows_is_noticed(
    scripts: SimpleNamespace, computed_sheets: dict[str, dict[str, Any]]
) -> None:
    computed = computed_sheets["three-card-brag"]
    sheet = deepcopy(computed)
    sheet["main"]["net_distribution"]["8"] = 0
    sheet["main"]["wagers"].append({"spot": "tip"})
    sheet["pair_bonus"] = None
    assert [line.partition(":")[0] for line in scripts.check_paytables.differences(computed, sheet)] == [
        "main.net_distribution.8",
        "main.wagers",
        "pair_bonus",
    ]


def check(scripts: SimpleNamespace, checkout: Path, name: str = "three-card-brag") -> list[str]:
    """The differences of one PAR sheet, in this process, where nothing is enumerated twice."""
    paytables = checkout / "paytables"
    found: list[str] = scripts.check_paytables.check(
        paytables / f"{name}.toml", paytables / f"{name}.par.json"
    )[0]
    return found


def test_an_altered_paytable_no_longer_agrees(copy: Path, scripts: SimpleNamespace) -> None:
    file = copy / "paytables" / "three-card-brag.toml"
    pays = "pays = { run = 1, running_flush = 4, prial = 5 }"
    assert file.read_text("utf-8").count(pays) == 1
    file.write_text(file.read_text("utf-8").replace(pays, pays.replace("5", "6")), encoding="utf-8")
    found = {line.partition(":")[0] for line in check(scripts, copy)}
    assert {"digest", "main.net_antes", "main.rtp_exact", "main.wagers[ante_bonus].returned"} <= found
    assert "pair_bonus.net" not in found


def test_an_altered_comment_changes_nothing(copy: Path, scripts: SimpleNamespace) -> None:
    file = copy / "paytables" / "three-card-brag.toml"
    file.write_text(f"# Another comment.\n{file.read_text('utf-8')}", encoding="utf-8")
    assert check(scripts, copy) == []


def test_other_thresholds_than_the_usual_are_checked_too(copy: Path, scripts: SimpleNamespace) -> None:
    paytable = scripts.rules.read_paytable(PAYTABLES / "three-card-brag.toml")
    names = ["max_rtp", "dealer_mimic", "always_play", "fold_below:K", "fold_below:pair", "fold_below:Q-6-4"]
    write_sheet(copy, "three-card-brag", scripts.figures.par_sheet(paytable, names))
    assert check(scripts, copy) == []
    sheet = read_sheet(copy, "three-card-brag")
    assert sheet["main"]["alternatives"][3]["strategy"]["lowest_hand_played"] == "K-3-2"
    assert sheet["main"]["alternatives"][4]["strategy"]["lowest_hand_played"] == "3-2-2"
    assert sheet["main"]["alternatives"][5]["net_antes"] == sheet["main"]["net_antes"]
    sheet["main"]["alternatives"][3]["name"] = "fold_below:9"
    write_sheet(copy, "three-card-brag", sheet)
    assert any(
        line.startswith("main.alternatives[fold_below:9].net_antes: the PAR sheet says")
        for line in check(scripts, copy)
    )


def test_a_strategy_that_is_none_is_named(copy: Path, scripts: SimpleNamespace) -> None:
    for name in ("play_hunches", "fold_below:3", "fold_below:K-2-3", "max_rtp:Q"):
        sheet = read_sheet(copy, "three-card-brag")
        sheet["main"]["alternatives"][0]["name"] = name
        write_sheet(copy, "three-card-brag", sheet)
        (sentence,) = check(scripts, copy)
        assert "cannot be compared" in sentence
        assert repr(name.removeprefix("fold_below:")) in sentence


def test_a_strategy_that_is_left_out_is_named(copy: Path, scripts: SimpleNamespace) -> None:
    sheet = read_sheet(copy, "three-card-brag")
    del sheet["main"]["alternatives"][1]
    write_sheet(copy, "three-card-brag", sheet)
    assert check(scripts, copy) == ["main.alternatives: dealer_mimic is missing"]


def test_a_paytable_under_another_name_is_named(copy: Path, scripts: SimpleNamespace) -> None:
    for suffix in ("toml", "par.json"):
        file = copy / "paytables" / f"three-card-brag.{suffix}"
        file.rename(file.with_name(f"brag.{suffix}"))
    (sentence,) = check(scripts, copy, "brag")
    assert sentence.startswith("game: 'three-card-brag' is not the name of")


def test_a_missing_an_extra_and_a_broken_par_sheet_fail(copy: Path) -> None:
    sheet = copy / "paytables" / "three-card-brag.par.json"
    sheet.rename(sheet.with_name("four-card-brag.par.json"))
    (copy / "paytables" / "double-play-brag.par.json").write_text("{", encoding="utf-8")
    done = run(copy, "check_paytables", "paytables")
    assert done.returncode == 1
    assert re.findall("WRONG +(.*?):?$", done.stdout.partition(" cannot be compared")[0], re.MULTILINE) == [
        "paytables/four-card-brag.par.json belongs to no paytable",
        "paytables/three-card-brag.toml has no PAR sheet",
        "paytables/double-play-brag.par.json",
    ]


def test_a_directory_without_paytables_is_no_success(tmp_path: Path) -> None:
    done = run(CHECKOUT, "check_paytables", str(tmp_path))
    assert done.returncode == 2
    assert "holds no paytable" in done.stderr
