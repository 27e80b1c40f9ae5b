"""A paytable's text as a form has it: put together from its fields, changed by its buttons, spread over its fields.

The form always holds the text, comments and all, and beside it a field for each value.  What is typed into the fields
is put into the text; where the text itself was typed, there are no fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from casino_brag.catalogue.editing import fields_of, with_fields
from casino_brag.errors import Errors, ServiceError
from casino_brag.game.cards import RANKS
from casino_brag.game.hands import AceLowRun, Category
from casino_brag.game.paytable import CLAIMS_MAX, CURRENCIES_MAX
from casino_brag.game.paytable_file import PaytableError
from casino_brag.game.rules import (
    BonusPaid,
    ClaimFigure,
    ClaimWager,
    OnFold,
    Qualifier,
    Rounding,
    TieResult,
    Unqualified,
)
from casino_brag.game.rules_text import QUALIFIER_NAMES
from casino_brag.web.console.forms import Form

PREFIX: Final = "f:"
"""Before the names of fields that stand for keys of the paytable."""

TABS: Final = ("fields", "text")

_CATEGORY: Final = "|".join(Category)
_CURRENCY: Final = re.compile(r"[A-Z0-9]{3,12}")
_KEY: Final = re.compile(
    r"title|rounding|ranking\.(categories|best_prial|ace_low_run)|dealer\.qualifies_with"
    r"|dealer\.not_qualified\.(ante|play)|play\.multiple|ante\.pays|tie\.result|ante_bonus\.paid|pair_bonus\.on_fold"
    rf"|(play|ante_bonus|pair_bonus)\.pays\.({_CATEGORY})"
    r"|limits\.[A-Z0-9]{3,12}\.(payout_max|(ante|pair_bonus)\.(min|max|step))"
    r"|claims\[[0-9]{1,3}\]\.(figure|wager|value|source)"
)
"""The keys that have a field in the form; what else a form brings is not looked at."""
_CLAIM: Final = re.compile(r"(claims\[[0-9]{1,3}\])\..*")

_NEW_TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "ante_bonus": {"paid": "always", "pays.run": "1", "pays.running_flush": "4", "pays.prial": "5"},
    "pair_bonus": {
        "on_fold": "lost",
        "pays.pair": "1",
        "pays.flush": "4",
        "pays.run": "6",
        "pays.running_flush": "30",
        "pays.prial": "40",
    },
}
"""What a bonus begins with when it is switched on: something that can be played."""

_NEW_LIMITS: Final = {"ante.min": "100", "ante.max": "10000", "ante.step": "100"}
_NEW_CLAIM: Final = {"figure": "rtp", "wager": "main", "value": "98 %", "source": "where it is printed"}

CHOICES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "ranking.best_prial": (
        ("", "aces, in natural order"),
        *((rank, f"{rank}-{rank}-{rank}, then aces") for rank in reversed(RANKS[:-1])),
    ),
    "ranking.ace_low_run": (
        (AceLowRun.HIGHEST, "the highest run"),
        (AceLowRun.SECOND, "second to A-K-Q"),
        (AceLowRun.LOWEST, "the lowest run"),
        (AceLowRun.NOT_A_RUN, "no run at all"),
    ),
    "dealer.qualifies_with": (
        *((qualifier, text.removesuffix(" or better")) for qualifier, text in QUALIFIER_NAMES.items()),
        (Qualifier.ANY, "any hand"),
    ),
    "dealer.not_qualified": ((Unqualified.WINS, "is paid"), (Unqualified.PUSH, "is returned")),
    "tie.result": (
        (TieResult.PUSH, "both are returned"),
        (TieResult.DEALER, "the dealer wins"),
        (TieResult.PLAYER, "the player wins"),
    ),
    "ante_bonus.paid": (
        (BonusPaid.ALWAYS, "whenever played"),
        (BonusPaid.NOT_BEATEN, "unless beaten"),
        (BonusPaid.WIN, "only on a win"),
    ),
    "pair_bonus.on_fold": (
        (OnFold.LOST, "it is lost"),
        (OnFold.SETTLED, "it is settled"),
    ),
    "rounding": (("", "never: all are whole"), (Rounding.DOWN, "down")),
    "figure": (
        (ClaimFigure.RTP, "return to player"),
        (ClaimFigure.HOUSE_EDGE, "house edge"),
        (ClaimFigure.ELEMENT_OF_RISK, "element of risk"),
    ),
    "wager": ((ClaimWager.MAIN, "main game"), (ClaimWager.PAIR_BONUS, "Pair Bonus")),
}
"""What can be chosen for a key, in words."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The text that a form stands for, and what is wrong with the form itself, by field."""

    text: str
    errors: Errors = field(default_factory=dict)


def typed(form: Form) -> Typed:
    """The text of a form: as it was typed, or with what was typed into the fields put in."""
    text = form.value("text").replace("\r\n", "\n")
    if form.value("tab") != "fields":
        return Typed(text)
    changes = {key: value for key, value in form.named(PREFIX).items() if _KEY.fullmatch(key)}
    try:
        return Typed(with_fields(text, changes))
    except (PaytableError, ServiceError) as error:
        return Typed(text, _told(error))


def done_to(text: str, button: str, form: Form) -> Typed:
    """The text after one of the form's buttons: ``up:flush``, ``add:pair_bonus``, ``drop:limits.EUR`` …"""
    what, _, key = button.partition(":")
    changes: Mapping[str, str] = {}
    try:
        present = fields_of(text)
        match what:
            case "up" | "down":
                changes = _moved(present, key, 1 if what == "up" else -1)
            case "add" if key in _NEW_TABLES:
                changes = _new_table(present, key)
            case "add" if key == "claim":
                changes = _new_claim(present)
            case "add" if key == "currency":
                return _with_currency(text, present, form.value("new_currency").strip().upper())
            case "drop":
                changes = _without(present, key)
        return Typed(with_fields(text, changes))
    except (PaytableError, ServiceError) as error:
        return Typed(text, _told(error))


def spread(form: Form, text: str) -> bool:
    """Fills the form's text and fields from a text; whether it could be.

    A text that is no TOML has no fields, nor has one with more currencies, claims or categories than a paytable may
    have, for which the page has no end.
    """
    form.put("text", text)
    try:
        fields = fields_of(text)
    except PaytableError:
        return False
    form.clear(PREFIX)
    for key, value in fields.items():
        form.put(f"{PREFIX}{key}", value)
    fits = (
        len(currencies(form)) <= CURRENCIES_MAX
        and len(claims(form)) <= CLAIMS_MAX
        and len(ranking(form)) <= len(Category)
    )
    if not fits:
        form.clear(PREFIX)
    return fits


def currencies(form: Form) -> list[str]:
    """The currencies that the form has limits for, in the order of the text."""
    return list(dict.fromkeys(key.split(".")[1] for key in form.named(PREFIX) if key.startswith("limits.")))


def claims(form: Form) -> list[str]:
    """The claims of the form, by the beginnings of their keys."""
    return list(dict.fromkeys(found[1] for key in form.named(PREFIX) if (found := _CLAIM.fullmatch(key))))


def ranking(form: Form) -> list[str]:
    """The categories as the form has them, strongest first."""
    return [name.strip() for name in form.value(f"{PREFIX}ranking.categories").split(",") if name.strip()][
        ::-1
    ]


def _told(error: PaytableError | ServiceError) -> Errors:
    """What is wrong with a text that fields cannot be put into, at the field of the text."""
    if isinstance(error, PaytableError):
        return {"text": [problem.message for problem in error.problems]}
    return {
        "text": [f"{sentence}: mend the text" for told in (error.errors or {}).values() for sentence in told]
    }


def _moved(present: Mapping[str, str], category: str, by: int) -> dict[str, str]:
    """The order with a category one place stronger, or weaker; as it is where there is no such place."""
    order = [name.strip() for name in present.get("ranking.categories", "").split(",")]
    if category in order and 0 <= order.index(category) + by < len(order):
        place = order.index(category)
        order[place], order[place + by] = order[place + by], order[place]
    return {"ranking.categories": ", ".join(order)}


def _new_table(present: Mapping[str, str], name: str) -> dict[str, str]:
    if any(key.startswith(f"{name}.") for key in present):
        return {}
    new = {f"{name}.{key}": value for key, value in _NEW_TABLES[name].items()}
    if name == "pair_bonus":
        # A wager of its own needs limits; those of the Ante are what the table takes already.
        ante = {key: value for key, value in present.items() if re.fullmatch(r"limits\.\w+\.ante\.\w+", key)}
        new |= {key.replace(".ante.", ".pair_bonus."): value for key, value in ante.items()}
    return new


def _new_claim(present: Mapping[str, str]) -> dict[str, str]:
    claims = {name.partition("]")[0] for name in present if name.startswith("claims[")}
    return {f"claims[{len(claims)}].{name}": value for name, value in _NEW_CLAIM.items()}


def _without(present: Mapping[str, str], name: str) -> dict[str, str]:
    """What takes a table away, and with the Pair Bonus its limits."""
    gone = {name: ""}
    if name == "pair_bonus":
        gone |= {
            key.rpartition(".")[0]: ""
            for key in present
            if re.fullmatch(r"limits\.\w+\.pair_bonus\.\w+", key)
        }
    return gone


def _with_currency(text: str, present: Mapping[str, str], code: str) -> Typed:
    if not _CURRENCY.fullmatch(code):
        return Typed(text, {"new_currency": ["a currency code has 3 to 12 capital letters and digits"]})
    if any(key.startswith(f"limits.{code}.") for key in present):
        return Typed(text, {"new_currency": [f"{code} has limits already"]})
    new = {f"limits.{code}.{key}": value for key, value in _NEW_LIMITS.items()}
    if any(key.startswith("pair_bonus.") for key in present):
        new |= {key.replace(".ante.", ".pair_bonus."): value for key, value in new.items()}
    return Typed(with_fields(text, new))
