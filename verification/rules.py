"""A paytable file, and what a round pays under it; without rounding, in Antes.

A paytable is kept as ``tomllib`` reads it.  It should be one that the server accepts: only the choices that steer a
computation are looked at again here, and a key that nobody knows changes the digest and nothing else.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

Paytable = Mapping[str, Any]

CATEGORIES = ("high_card", "pair", "flush", "run", "running_flush", "prial")
CHOICES = {
    "ranking.ace_low_run": ("highest", "second", "lowest", "not_a_run"),
    "dealer.qualifies_with": ("T", "J", "Q", "K", "A", "pair", "any"),
    "dealer.not_qualified.ante": ("wins", "push"),
    "dealer.not_qualified.play": ("wins", "push"),
    "tie.result": ("push", "dealer", "player"),
    "ante_bonus.paid": ("always", "not_beaten", "win"),
    "pair_bonus.on_fold": ("lost", "settled"),
}

ANTE_BONUS_EARNED = {
    "always": ("not_qualified", "win", "tie", "lose"),
    "not_beaten": ("not_qualified", "win", "tie"),
    "win": ("not_qualified", "win"),
}


def read_paytable(path: Path) -> Paytable:
    """The paytable in a file; ValueError for a choice that is none of those the rules know."""
    paytable = tomllib.loads(path.read_text(encoding="utf-8"))
    if sorted(paytable["ranking"]["categories"]) != sorted(CATEGORIES):
        raise ValueError(f"{path}: ranking.categories must name each of {', '.join(CATEGORIES)} once")
    for key, choices in CHOICES.items():
        table, *inner = key.split(".")
        if table not in paytable:  # a bonus the game does not have
            continue
        value = paytable[table]
        for name in inner:
            value = value[name]
        if value not in choices:
            raise ValueError(f"{path}: {key} is {value!r}: it must be one of {', '.join(choices)}")
    for table in ("ante", "play", "ante_bonus", "pair_bonus"):
        pays = paytable.get(table, {}).get("pays", {})
        for name, odds in pays.items() if isinstance(pays, dict) else [("", pays)]:
            try:
                Fraction(odds)
            except (ValueError, TypeError, ZeroDivisionError) as error:
                key = f"{table}.pays.{name}".rstrip(".")
                raise ValueError(f'{path}: {key} is {odds!r}: odds are 3 or "3/2"') from error
    return paytable


def exact(value: Fraction) -> int | str:
    """A number as paytables and PAR sheets write it: a whole one as an integer, others as "a/b", lowest terms."""
    return value.numerator if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def digest(paytable: Paytable) -> str:
    """SHA-256 over the paytable as RFC 8785 canonical JSON, with odds in lowest terms.

    For integers, text and ASCII keys that form is compact JSON with sorted keys.
    """
    document = deepcopy(dict(paytable))
    document["ante"]["pays"] = exact(Fraction(document["ante"]["pays"]))
    for table in ("play", "ante_bonus", "pair_bonus"):
        if table in document:
            pays = document[table]["pays"]
            document[table]["pays"] = {category: exact(Fraction(odds)) for category, odds in pays.items()}
    if not document.get("claims"):
        document.pop("claims", None)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode("utf-8")).hexdigest()


def settle(paytable: Paytable, category: str, outcome: str) -> dict[str, tuple[Fraction, Fraction]]:
    """The wagers of the main game as (staked, returned), by spot.

    ``category`` is the player's; ``outcome`` is "fold", "not_qualified", "win", "tie" or "lose".
    """
    ante = Fraction(1)
    if outcome == "fold":
        return {"ante": (ante, Fraction(0))}
    play = Fraction(paytable["play"]["multiple"])
    wagers = {
        "ante": (ante, ante * _back(paytable, outcome, "ante", paytable["ante"]["pays"])),
        "play": (play, play * _back(paytable, outcome, "play", paytable["play"]["pays"][category])),
    }
    bonus = paytable.get("ante_bonus")
    if bonus and category in bonus["pays"] and outcome in ANTE_BONUS_EARNED[bonus["paid"]]:
        wagers["ante_bonus"] = (Fraction(0), ante * Fraction(bonus["pays"][category]))
    return wagers


def _back(paytable: Paytable, outcome: str, spot: str, pays: int | str) -> Fraction:
    """What comes back for each unit staked on a wager that meets the dealer."""
    ending = {
        "not_qualified": paytable["dealer"]["not_qualified"][spot],
        "win": "wins",
        "tie": {"push": "push", "dealer": "loses", "player": "wins"}[paytable["tie"]["result"]],
        "lose": "loses",
    }[outcome]
    return {"wins": 1 + Fraction(pays), "push": Fraction(1), "loses": Fraction(0)}[ending]


def main_net(paytable: Paytable, category: str, outcome: str) -> Fraction:
    """What the player wins on Ante, Play and Ante Bonus together; below 0 what they lose."""
    wagers = settle(paytable, category, outcome).values()
    return sum((returned - staked for staked, returned in wagers), Fraction(0))


def pair_bonus_net(paytable: Paytable, category: str, outcome: str) -> Fraction:
    """What the player wins on a Pair Bonus of one unit."""
    bonus = paytable["pair_bonus"]
    if outcome == "fold" and bonus["on_fold"] == "lost":
        return Fraction(-1)
    return Fraction(bonus["pays"].get(category, -1))


def claim_holds(value: str, figure: Fraction) -> bool:
    """Whether a figure rounds to a percentage such as ``98 %`` or ``97.996 %``, to the digits it gives."""
    number = value.removesuffix("%").strip()
    decimals = len(number.partition(".")[2])
    return abs(100 * figure - Fraction(number)) <= Fraction(1, 2 * 10**decimals)
