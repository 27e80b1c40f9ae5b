"""Live play: what it returned beside what it should, the evidence that something is wrong, alerts and their cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import psycopg
from flask import Blueprint, Response, request

from casino_brag.catalogue.games import game_names, published_games
from casino_brag.errors import Code, ServiceError, SetUpError
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Role
from casino_brag.watch.cases import CaseState, case_of, cases, change_case, changes_of
from casino_brag.watch.evidence import CHANCES, Level
from casino_brag.watch.figures import By
from casino_brag.watch.plots import Plot, plots
from casino_brag.watch.status import status
from casino_brag.web.console.forms import Form, asked, posted
from casino_brag.web.console.looks import money
from casino_brag.web.console.shell import back_to, fragment, page, render
from casino_brag.web.service import service

blueprint = Blueprint("live", __name__)

WATCHERS: Final = (Role.AUDITOR, Role.OPERATIONS)

PLOT_WIDTH: Final = 560

WAGERS: Final = (("", "All wagers"), ("main", "Main game"), ("pair_bonus", "Pair Bonus"))
BREAKDOWNS: Final = (
    (By.STAKE_BAND.value, "Stake band"),
    (By.CHANNEL.value, "Channel"),
    (By.OPERATOR.value, "Operator"),
)

LEVELS: Final = {
    Level.NONE: "within what chance does",
    Level.WARN: "somebody should look",
    Level.ALERT: "a case is opened",
    Level.SUSPEND: "reason enough to stop dealing",
}


@page(blueprint, "/live", roles=WATCHERS, nav="live")
def live(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """How live play stands; what of it is chosen by the query."""
    query = asked()
    return render("live.html.j2", form=query, wagers=WAGERS, breakdowns=BREAKDOWNS, **_found(conn, query))


@page(blueprint, "/live/now", roles=WATCHERS, nav="live", poll=True)
def live_now(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """The same as it is now, without the frame."""
    return fragment("_live.html.j2", **_found(conn, asked()))


@page(blueprint, "/live/cases", roles=WATCHERS, nav="live")
def all_cases(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """What alerts led to, those that are not closed first."""
    return render("live_cases.html.j2", cases=cases(conn))


@page(blueprint, "/live/cases/<uuid:case_id>", roles=WATCHERS, methods=("GET", "POST"), nav="live")
def case_page(conn: psycopg.Connection[Any], who: SignedIn, case_id: UUID) -> Response:
    """A case with its steps; noted in, said to be investigated, opened again or closed by whoever looks at it."""
    form = posted()
    try:
        case = case_of(conn, case_id)
    except SetUpError as unknown:
        raise ServiceError(Code.NOT_FOUND, "There is no such case.") from unknown
    with form.attempt():
        if form.sent:
            _change(conn, who, case_id, form)
            return back_to(f"/console/live/cases/{case_id}", "The case has a further step.")
    return render(
        "live_case.html.j2", status=form.status, form=form, case=case, changes=changes_of(conn, case_id)
    )


def _change(conn: psycopg.Connection[Any], who: SignedIn, case_id: UUID, form: Form) -> None:
    # The form that closes a case asks for a reason, and is no part of the other one.
    closing = form.value("step") == CaseState.CLOSED
    note = form.value("reason" if closing else "note").strip()
    try:
        if not note.isprintable():
            raise SetUpError("Write it on one line.")
        change_case(conn, case_id, CaseState(form.value("step")), note, actor=who.person.actor)
    except (SetUpError, ValueError) as wrong:
        errors = None if closing else {"note": [str(wrong)]}
        detail = str(wrong) if closing else "The case was not changed."
        raise ServiceError(Code.INVALID, detail, errors=errors) from wrong


@dataclass(frozen=True, slots=True)
class _Filters:
    """What is looked at: days (UTC, both included), and of which game, version, wager and currency."""

    game: str | None
    version: int | None
    wager: str
    currency: str
    by: By
    since: date | None
    until: date | None

    @classmethod
    def of(cls, query: Form) -> _Filters:
        """As the query says; what makes no sense is told at its field, and is as if it had not been said."""
        by = query.value("by", By.STAKE_BAND.value)
        since, until = query.day("from"), query.day("to")
        game = query.value("game")
        if not game.isprintable():
            query.errors["game"], game = ["There is no such game."], ""
        return cls(
            game or None,
            query.number("version"),
            query.value("wager") if query.value("wager") in dict(WAGERS) else "",
            query.value("currency").strip().upper(),
            By(by) if by in dict(BREAKDOWNS) else By.STAKE_BAND,
            since and since.date(),
            until and until.date(),
        )

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of figures is of what is looked at; a wager that nobody made has no currency."""
        return self.wager in ("", row["wager"]) and (
            not self.currency or row["currency"] in (None, self.currency)
        )


def _found(conn: psycopg.Connection[Any], query: Form) -> dict[str, Any]:
    wanted = _Filters.of(query)
    titles = {game["game"]: game["title"] for game in published_games(conn, service().house.shelf)}
    found = status(conn, game=wanted.game, since=wanted.since, until=wanted.until)
    return {
        "found": found,
        "versions": [
            _version(version, wanted)
            for version in found["versions"]
            if wanted.version in (None, version["version"])
        ],
        "by": wanted.by,
        "by_name": dict(BREAKDOWNS)[wanted.by.value],
        "games": [("", "All games"), *((game, titles.get(game, game)) for game in game_names(conn))],
        "titles": titles,
        "query": f"?{urlencode(request.args.to_dict())}" if request.args else "",
        "open_cases": found["cases"],
        "days": f"From {found['since'] or 'the beginning'} to {found['until']}",
    }


def _version(version: Mapping[str, Any], wanted: _Filters) -> dict[str, Any]:
    figures = [row for row in version["figures"] if wanted.holds(row)]
    shown = {**version, "course": [row for row in version["course"] if wanted.holds(row)]}
    level = Level(version["evidence"]["level"])
    return {
        "game": version["game"],
        "version": version["version"],
        "active": version["active"],
        "state": version["state"],
        "digest": version["digest"],
        "evidence": version["evidence"],
        "level": level,
        "level_says": LEVELS[level],
        "chance": CHANCES.get(level),
        "wholes": [_whole(row) for row in figures if row["by"] == By.VERSION],
        "parts": [_part(row) for row in figures if row["by"] == wanted.by],
        "plots": list(_plots(shown)),
        "fits": version["dealt"]["fits"],
        "dealt": version["dealt"]["rounds"],
    }


def _plots(version: Mapping[str, Any]) -> Iterator[tuple[Plot, str]]:
    """Each plot with a name for its parts."""
    for number, plot in enumerate(plots(version, PLOT_WIDTH)):
        yield plot, f"{version['game']}-{version['version']}-{number}"


def _whole(row: Mapping[str, Any]) -> dict[str, Any]:
    """All of a wager in one currency, as a block of figures."""
    if not row["rounds"]:
        return {"wager": row["wager"], "currency": None, "verdict": row["verdict"], "rounds": 0}
    return {
        "wager": row["wager"],
        "currency": row["currency"],
        "verdict": row["verdict"],
        "rounds": row["rounds"],
        "rtp": _percent(row["actual_rtp"]["value"]),
        "theory": _percent(row["theoretical_rtp"]["value"]),
        "tolerance": _percent(row["against_theory"]["tolerance_99"]),
        "z_theory": _signed(row["against_theory"]["z"]),
        "expected": _percent(row["given_cards_and_decisions"]["expected_rtp"]),
        "z": _signed(row["given_cards_and_decisions"]["z"]),
        "staked": money(row["staked_minor"], row["currency"]),
        "returned": money(row["returned_minor"], row["currency"]),
        "held": money(row["staked_minor"] - row["returned_minor"], row["currency"]),
    }


def _part(row: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a wager: the same, and which part."""
    value = row["value"]
    if row["by"] == By.STAKE_BAND:
        least, _, most = value.partition("-")
        currency = row["currency"]
        start = money(int(least), currency)
        value = (
            f"{start.removesuffix(f' {currency}')} to {money(int(most), currency)}" if most else f"{start} up"
        )
    return {**_whole(row), "value": "not named" if value is None else value}


def _percent(text: str) -> str:
    return f"{100 * float(text):.4f} %"


def _signed(z: str) -> str:
    return "infinite" if z == "infinite" else f"{float(z):+.2f}".replace("-", "−")
