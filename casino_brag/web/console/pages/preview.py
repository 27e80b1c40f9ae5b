"""What a paytable would bring, shown at every change of its text: figures, play, guards.  Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from flask import Blueprint, Response

from casino_brag.catalogue.guards import broken_guards, check_text
from casino_brag.catalogue.jurisdictions import jurisdiction, names
from casino_brag.catalogue.paytables import PaytableVersion, published_figures
from casino_brag.errors import Errors
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Limits
from casino_brag.game.rules_text import rules_in_words
from casino_brag.odds.claims import Judgement, judge_claims
from casino_brag.odds.differences import rule_changes
from casino_brag.odds.par_sheet import Document
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Role
from casino_brag.web.console.drafting import typed
from casino_brag.web.console.figures import Row, Telling, Worth, rows, worths
from casino_brag.web.console.forms import posted
from casino_brag.web.console.looks import key_in_words, money
from casino_brag.web.console.pictures import Bar, StrategyMap, distribution, strategy_map
from casino_brag.web.console.shell import fragment, page
from casino_brag.web.service import service

blueprint = Blueprint("preview", __name__)

TOML: Final = "application/toml; charset=utf-8"

NUMBER: Final = "<int(max=2147483647):number>"
VERSION: Final = "<int(max=2147483647):version>"
"""Numbers of drafts and versions in an address; a larger one is no number that the database has."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a jurisdiction's floors allow a paytable; `certificate` says whether it asks for one."""

    name: str
    title: str
    problem: str | None
    certificate: bool


@dataclass(frozen=True, slots=True)
class Stakes:
    """What one currency may stake and win, in words."""

    currency: str
    ante: str
    pair_bonus: str
    payout_max: str

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of a table's row."""
        return (self.currency, self.ante, self.pair_bonus, self.payout_max)


@dataclass(frozen=True, slots=True)
class Consequences:
    """All that follows from a paytable, against another one; of a text that is none, only what is wrong with it.

    `problems` and `broken`, of the guards, are sentences by key.  `against` names the other one; empty where there is
    none.
    """

    paytable: Paytable | None
    problems: Mapping[str, list[str]]
    broken: Mapping[str, list[str]]
    against: str
    told: Telling | None = None
    worths: Sequence[Worth] = ()
    picture: StrategyMap | None = None
    bars: Sequence[Bar] = ()
    rules: Sequence[Document] = ()
    words: Sequence[Any] = ()
    standings: Sequence[Standing] = ()
    stakes: Sequence[Stakes] = ()
    claims: Sequence[Judgement] = ()

    @property
    def figures(self) -> tuple[Row, ...]:
        """The figures of all types of wager, as the rows of a table."""
        return rows(self.worths)

    @property
    def rule_rows(self) -> tuple[tuple[str, str], ...]:
        """The rules that differ, in words, as the rows of a table."""
        return tuple(
            (key_in_words(rule["key"]), f"{_value(rule['old'])} → {_value(rule['new'])}")
            for rule in self.rules
        )

    @property
    def complaints(self) -> Errors:
        """Everything that stands in the way of submitting it, by key."""
        return {**self.problems, **self.broken}


def consequences_of_text(game: str, text: str, active: PaytableVersion | None) -> Consequences:
    """What follows from a draft's text, against the version in force."""
    checked = check_text(game, text)
    against = "" if active is None else f"version {active.version}, in force"
    if checked.paytable is None:
        return Consequences(None, checked.problems, {}, against)
    return consequences(checked.paytable, None if active is None else active.paytable, against)


def consequences(paytable: Paytable, other: Paytable | None, against: str) -> Consequences:
    """What follows from a paytable, against another one."""
    figures = published_figures(paytable)
    return Consequences(
        paytable,
        {},
        broken_guards(paytable, (), None, service().config.rtp_ceiling),
        against,
        Telling.of(paytable),
        worths(paytable, other),
        strategy_map(paytable, other),
        distribution(paytable, other),
        () if other is None else rule_changes(other, paytable),
        rules_in_words(paytable),
        tuple(_standing(name, figures) for name in names()),
        tuple(_stakes(currency, limits) for currency, limits in paytable.limits.items()),
        judge_claims(paytable),
    )


@page(
    blueprint,
    f"/paytables/<game>/drafts/{NUMBER}/preview",
    roles=(Role.EDITOR,),
    methods=("POST",),
    recorded=False,
)
def preview(conn: psycopg.Connection[Any], who: SignedIn, game: str, number: int) -> Response:
    """What the text in the form would bring; it need not be saved, nor be a paytable."""
    text = typed(posted())
    shown = consequences_of_text(game, text.text, service().house.shelf.active(conn, game))
    if text.errors:
        problems = {"": [sentence for told in text.errors.values() for sentence in told]}
        shown = Consequences(None, problems, {}, shown.against)
    return fragment("preview.html.j2", shown=shown)


def _standing(name: str, figures: Sequence[Mapping[str, str]]) -> Standing:
    found = jurisdiction(name)
    return Standing(name, found.title, found.floor_problem(figures), found.certificate)


def _value(value: Any) -> str:
    """A rule's value as a person writes it."""
    if value is None:
        return "nothing"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _stakes(currency: str, limits: Limits) -> Stakes:
    def between(low: int, high: int) -> str:
        return f"{money(low, currency).split()[0]} – {money(high, currency)}"

    bonus = limits.pair_bonus
    return Stakes(
        currency,
        between(limits.ante.min_minor, limits.ante.max_minor),
        "–" if bonus is None else between(bonus.min_minor, bonus.max_minor),
        "no limit" if limits.payout_max_minor is None else money(limits.payout_max_minor, currency),
    )
