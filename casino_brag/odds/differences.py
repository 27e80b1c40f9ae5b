"""What changes from one paytable to another: its rules, its figures, how to play it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from casino_brag.game.hands import Shape, places
from casino_brag.game.paytable import Paytable
from casino_brag.odds.outcomes import outcomes, rank_classes
from casino_brag.odds.par_sheet import ROW_NAMES, Document, par_sheet
from casino_brag.odds.strategies import MAX_EXPECTATION, Decisions

_APART: Final = (
    "main.strategy",
    "main.mistakes",
    "claims",
    "warnings",
    "game",
    "title",
    "digest",
    "rounding",
)
"""What a PAR sheet holds besides figures: told in other ways, or not to be compared line by line."""


def differences(old: Paytable, new: Paytable) -> Document:
    """All that differs between two paytables, as plain data.

    ``rules`` and ``figures`` list ``{key, old, new}`` with dotted keys, of the paytable and of the PAR sheet;
    None where one of the two has no such key.  ``strategy`` says how play for the highest expectation changes:
    how many of the 22,100 hands become worth playing or worth folding, and of which shapes they are, weakest
    first.  ``hands_reordered`` counts the hands whose rank class changes.

    >>> old = Paytable.load("paytables/three-card-brag.toml")
    >>> differences(old, old)["rules"], differences(old, old)["strategy"]["now_played"]["hands"]
    ([], 0)
    >>> found = differences(old, Paytable.load("paytables/double-play-brag.toml"))
    >>> next(rule for rule in found["rules"] if rule["key"] == "play.multiple")
    {'key': 'play.multiple', 'old': 1, 'new': 2}
    """
    sheets = par_sheet(old), par_sheet(new)
    return {
        "old": {"game": old.game, "digest": old.digest},
        "new": {"game": new.game, "digest": new.digest},
        "rules": rule_changes(old, new),
        "figures": [change for change in _changes(*sheets) if not change["key"].startswith(_APART)],
        "strategy": _strategy(old, new, *sheets),
        "hands_reordered": int((rank_classes(old.ranking) != rank_classes(new.ranking)).sum()),
        "warnings": sheets[1]["warnings"],
    }


def rule_changes(old: Paytable, new: Paytable) -> list[Document]:
    """What differs in the rules alone, as ``differences`` has it: no figure has to be computed for that.

    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> rule_changes(paytable, paytable)
    []
    """
    return _changes(old.document(), new.document())


def _strategy(old: Paytable, new: Paytable, old_sheet: Document, new_sheet: Document) -> Document:
    was, now = _played(old), _played(new)
    return {
        "old": old_sheet["main"]["strategy"],
        "new": new_sheet["main"]["strategy"],
        "now_played": _hands(new, now & ~was),
        "now_folded": _hands(new, was & ~now),
    }


def _played(paytable: Paytable) -> Decisions:
    """Whether each of the 22,100 hands is played."""
    plays: Decisions = MAX_EXPECTATION.decisions(paytable)[
        outcomes(paytable.ranking, paytable.qualifier).kind
    ]
    return plays


def _hands(paytable: Paytable, which: Decisions) -> Document:
    classes = np.unique(rank_classes(paytable.ranking)[which])
    shapes: list[Shape] = list(places(paytable.ranking))
    return {"hands": int(which.sum()), "shapes": [str(shapes[rank_class - 1]) for rank_class in classes]}


def _changes(old: Document, new: Document) -> list[Document]:
    before, after = dict(_leaves(old)), dict(_leaves(new))
    keys = [*before, *(key for key in after if key not in before)]
    return [
        {"key": key, "old": before.get(key), "new": after.get(key)}
        for key in keys
        if before.get(key) != after.get(key)
    ]


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and text of a document under its dotted key; rows of a list go by what names them, or by place."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for place, row in enumerate(value):
            names = (row[name] for name in ROW_NAMES if name in row)
            yield from _leaves(row, f"{key}.{next(names, place)}")
    else:
        yield key, value
