"""The exact figures of one paytable, by comparing every one of its 407,170,400 deals.

The figures are printed to be read; or with --json in the layout of a PAR sheet; or with --hands there are printed, in
their place, the outcome counts of all 22,100 hands as CSV.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

from enumeration import HANDS, OUTCOMES, highest_first
from figures import Game, par_sheet
from rules import Paytable, read_paytable


def main() -> None:
    """Read the command line and print what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("file", type=Path, help="a paytable file")
    layout = parser.add_mutually_exclusive_group()
    layout.add_argument("--json", action="store_true", help="the figures as JSON")
    layout.add_argument("--hands", action="store_true", help="the four outcome counts of each hand as CSV")
    arguments = parser.parse_args()
    try:
        paytable = read_paytable(arguments.file)
    except (OSError, ValueError, KeyError) as error:
        parser.error(f"{arguments.file} is no paytable: {error!r}")
    if arguments.hands:
        print_hands(paytable)
    elif arguments.json:
        print(json.dumps(par_sheet(paytable), indent=2, ensure_ascii=False))
    else:
        print_figures(paytable)


def print_hands(paytable: Paytable) -> None:
    """One line for each hand of the player: cards, category, rank class and the four counts."""
    game = Game.of(paytable)
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("cards", "category", "rank_class", *OUTCOMES))
    for hand, category, rank_class, counts in zip(HANDS, *game.ranked, game.counts.tolist(), strict=True):
        table.writerow((" ".join(highest_first(hand)), category, int(rank_class), *counts))


def print_figures(paytable: Paytable) -> None:
    """The figures as lines of a name, a value and, where the value is not whole, its fraction."""
    sheet = par_sheet(paytable)
    counts = Game.of(paytable).counts.sum(axis=0).tolist()
    print(f"{paytable['title']} ({paytable['game']}), sha256 {sheet['digest']}")
    print("\nIf every hand were played")
    for outcome, deals in zip(OUTCOMES, counts, strict=True):
        print_line(outcome, f"{deals:,} deals")
    main = sheet["main"]
    print_table("\nMain game, highest expectation", main)
    print("  what the player wins, in Antes")
    for net, deals in main["net_distribution"].items():
        print_line(f"{net:>6}", f"{deals:,} deals")
    for other in main["alternatives"]:
        print_table(f"\nMain game, {other['name']}", other)
    for wager in main["wagers"]:
        print_table(f"\nOf it, {wager['spot']}", wager)
    if sheet["pair_bonus"] is not None:
        print_table("\nPair Bonus", sheet["pair_bonus"])
        print_table("\nOne Ante and one unit of Pair Bonus", sheet["combined"])
    for claim in sheet["claims"]:
        print(f"\nClaim: {claim['figure']} of {claim['wager']} is {claim['value']} ({claim['source']})")
        verdict = "holds" if claim["holds"] else "does not hold"
        print_line(verdict, f"{claim['exact']:.10f} = {claim['exact_fraction']}")


def print_table(heading: str, figures: dict[str, Any]) -> None:
    """Every figure of a table that is a single value, and those of its strategy."""
    print(heading)
    for name, value in (figures | figures.get("strategy", {})).items():
        if isinstance(value, float):
            fraction = figures.get(f"{name}_exact")
            print_line(name, f"{value:.10f}" + (f" = {fraction}" if fraction is not None else ""))
        elif type(value) is int and not name.endswith("_exact"):
            print_line(name, f"{value:,}")
        elif name in ("lowest_hand_played", "is_rank_threshold", "on_fold"):
            print_line(name, f"{value}")


def print_line(name: str, value: str) -> None:
    """One aligned line."""
    print(f"  {name:<24}{value}")


if __name__ == "__main__":
    main()
