"""What a paytable's text would bring, beside the version in force: exact, within milliseconds, and not on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any, Final

import marshmallow as ma
from marshmallow import fields

from casino_brag.catalogue.guards import broken_guards, check_text
from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.game.paytable import Paytable
from casino_brag.odds.differences import rule_changes
from casino_brag.odds.returns import main_game, pair_bonus_game, played
from casino_brag.odds.strategies import MAX_EXPECTATION
from casino_brag.web.api.fields import one_of
from casino_brag.web.api.paytable_schemas import sentences

FIGURES: Final = (
    *("rtp", "house_edge", "element_of_risk"),
    *("variance", "hit_frequency", "push_frequency"),
)
"""Figures of a type of wager, by the names that its returns have them under."""


class PreviewFigureSchema(ma.Schema):
    """A figure of the text and of the version in force; null where one of them has no such wager."""

    wager = one_of("main", "pair_bonus", required=True)
    figure = one_of(*FIGURES, required=True)
    value = fields.String(required=True, allow_none=True, metadata={"description": "To eight places."})
    exact = fields.String(required=True, allow_none=True, metadata={"description": "As a fraction."})
    active_value = fields.String(required=True, allow_none=True)
    active_exact = fields.String(required=True, allow_none=True)


class PlayedSchema(ma.Schema):
    """The best play of the main game."""

    hands = fields.Integer(required=True, metadata={"description": "How many of the 22,100 are played."})
    lowest = fields.String(required=True, allow_none=True, metadata={"description": "The weakest of them."})
    is_rank_threshold = fields.Boolean(
        required=True, metadata={"description": "Whether they are just the hands from that one up."}
    )


class BestPlaySchema(ma.Schema):
    """The best play under the text, and under the version in force."""

    new = fields.Nested(PlayedSchema, required=True)
    active = fields.Nested(PlayedSchema, required=True, allow_none=True)


class RuleChangeSchema(ma.Schema):
    """A key of the paytable that has another value; null where there is no such key."""

    key = fields.String(required=True)
    old = fields.Raw(required=True, allow_none=True)
    new = fields.Raw(required=True, allow_none=True)


class PreviewSchema(ma.Schema):
    """What a text would bring.  Of one that is no paytable there are only its problems."""

    digest = fields.String(required=True, allow_none=True)
    problems = sentences("What is wrong with the text, by key of the paytable; the empty key is all of it.")
    guards = sentences("What else would stop a submission, by key of the paytable or field of the request.")
    compared_with = fields.Integer(
        required=True, allow_none=True, metadata={"description": "The version in force."}
    )
    figures = fields.List(fields.Nested(PreviewFigureSchema), required=True)
    best_play = fields.Nested(BestPlaySchema, required=True, allow_none=True)
    rules = fields.List(fields.Nested(RuleChangeSchema), required=True)


def preview(
    game: str,
    text: str,
    active: PaytableVersion | None,
    jurisdictions: Sequence[str],
    certificate: str | None,
    ceiling: Fraction,
) -> dict[str, Any]:
    """What a text would bring to a game; by the guards of these jurisdictions, this certificate and this ceiling."""
    checked = check_text(game, text)
    new, old = checked.paytable, None if active is None else active.paytable
    told: dict[str, Any] = {
        "digest": None if new is None else new.digest,
        "problems": checked.problems,
        "guards": {} if new is None else broken_guards(new, jurisdictions, certificate, ceiling),
        "compared_with": None if active is None else active.version,
        "figures": [],
        "best_play": None,
        "rules": [],
    }
    if new is not None:
        told["figures"] = _beside(_figures(new), {} if old is None else _figures(old))
        told["best_play"] = {"new": _best_play(new), "active": None if old is None else _best_play(old)}
        told["rules"] = [] if old is None else rule_changes(old, new)
    return told


def _figures(paytable: Paytable) -> dict[tuple[str, str], Fraction]:
    wagers = {"main": main_game(paytable), "pair_bonus": pair_bonus_game(paytable)}
    return {
        (wager, figure): getattr(game, figure)
        for wager, game in wagers.items()
        if game is not None
        for figure in FIGURES
    }


def _beside(
    new: dict[tuple[str, str], Fraction], old: dict[tuple[str, str], Fraction]
) -> list[dict[str, str | None]]:
    rows = []
    for named in dict.fromkeys([*new, *old]):
        (value, exact), (active_value, active_exact) = _both(new.get(named)), _both(old.get(named))
        rows.append(
            {
                "wager": named[0],
                "figure": named[1],
                "value": value,
                "exact": exact,
                "active_value": active_value,
                "active_exact": active_exact,
            }
        )
    return rows


def _both(figure: Fraction | None) -> tuple[str | None, str | None]:
    return (None, None) if figure is None else (f"{figure.numerator / figure.denominator:.8f}", str(figure))


def _best_play(paytable: Paytable) -> dict[str, Any]:
    return asdict(played(paytable, MAX_EXPECTATION.decisions(paytable)))
