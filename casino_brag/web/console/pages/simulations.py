"""Simulations: queued, followed while they are played, and read beside the exact figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log10
from typing import Any, Final
from uuid import UUID

import psycopg
from flask import Blueprint, Response, jsonify

from casino_brag.catalogue.drafts import DraftState, list_drafts
from casino_brag.catalogue.games import game_names
from casino_brag.catalogue.simulations import (
    ROUNDS_MAX,
    ROUNDS_MIN,
    SEED_BYTES,
    Simulation,
    cancel_simulation,
    list_simulations,
    queue_simulation,
    read_simulation,
)
from casino_brag.catalogue.versions import VersionState, list_versions
from casino_brag.errors import Code, Errors, ServiceError, invalid
from casino_brag.odds.strategies import Rule, Strategy
from casino_brag.staff.access import SignedIn
from casino_brag.watch.plots import Plot, Point
from casino_brag.web.console.forms import Form, asked, posted
from casino_brag.web.console.shell import back_to, fragment, page, render

blueprint = Blueprint("simulations", __name__)

ROWS: Final = 25
SUBJECTS_MAX: Final = 200
PLOT_WIDTH: Final = 560
PLOT_NOTE: Final = (
    "Line: simulated. Dashes: exact. Shade: where 95 in 100 lie. A ring marks what lies outside."
)

_SUBJECT: Final = re.compile(r"([a-z0-9-]{1,64}) (version|draft) ([1-9][0-9]{0,8})")
_ROUNDS: Final = re.compile(r"([0-9]{1,12})(?:e([0-9]{1,2}))?")

STRATEGIES: Final = (
    (Rule.MAX_EXPECTATION.value, "The least loss (max_expectation)"),
    (Rule.MAX_RTP.value, "The highest RTP (max_rtp)"),
    (Rule.DEALER_MIMIC.value, "As the dealer qualifies (dealer_mimic)"),
    (Rule.ALWAYS_PLAY.value, "Every hand is played (always_play)"),
    (Rule.FOLD_BELOW.value, "From a hand up (fold_below)"),
)

VERDICTS: Final = {
    "agrees": "It agrees with the exact figures: every test is well within what chance does.",
    "repeat": "A test is unusual, as chance does now and then. Run it again with another seed before concluding"
    " anything.",
    "disagrees": "It disagrees with the exact figures, and chance does not explain it.",
}

NAMES: Final = {
    "main_rtp": "RTP of the main game",
    "main_house_edge": "House edge of the main game",
    "pair_bonus_rtp": "RTP of the Pair Bonus",
    "total_rtp": "RTP of all wagers",
}


@page(blueprint, "/simulations", methods=("GET", "POST"), nav="simulations")
def overview(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """All simulations, and a form to queue one; `game`, `version` and `draft` of the query choose what at first."""
    form, query = posted(), asked()
    with form.attempt():
        if form.sent:
            queued = _queue(conn, who, form)
            return back_to(f"/console/simulations/{queued.simulation_id}", "The simulation was queued.")
    return render(
        "simulations.html.j2",
        status=form.status,
        form=form,
        subjects=list(_subjects(conn)),
        chosen=_chosen(query),
        strategies=STRATEGIES,
        **_listed(conn, query),
    )


@page(blueprint, "/simulations/list", nav="simulations", poll=True)
def listed(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """The list as it is now."""
    return fragment("_simulation_list.html.j2", **_listed(conn, asked()))


@page(blueprint, "/simulations/<uuid:simulation_id>", nav="simulations")
def one(conn: psycopg.Connection[Any], who: SignedIn, simulation_id: UUID) -> Response:
    """A simulation: how far it is, its figures beside the exact ones, how they settled, and its verdict."""
    return render("simulation.html.j2", **_told(read_simulation(conn, simulation_id)))


@page(blueprint, "/simulations/<uuid:simulation_id>/now", nav="simulations", poll=True)
def now(conn: psycopg.Connection[Any], who: SignedIn, simulation_id: UUID) -> Response:
    """The same as it is now, without the frame."""
    return fragment("_simulation_now.html.j2", **_told(read_simulation(conn, simulation_id)))


@page(blueprint, "/simulations/<uuid:simulation_id>/course", nav="simulations", poll=True)
def course(conn: psycopg.Connection[Any], who: SignedIn, simulation_id: UUID) -> Response:
    """What its plot is drawn from: rounds, and for each figure what is exact and the estimates, in percent."""
    found = read_simulation(conn, simulation_id)
    figures = {} if found.result is None else found.result["figures"]
    return jsonify(
        rounds=[point["rounds"] for point in found.course],
        figures={
            name: {
                "label": NAMES[name],
                "expected": 100 * figures[name]["expected"],
                "simulated": [100 * point["figures"][name]["simulated"] for point in found.course],
                "half_width": [100 * point["figures"][name]["half_width"] for point in found.course],
            }
            for name in (found.course[-1]["figures"] if found.course and figures else ())
        },
    )


@page(blueprint, "/simulations/<uuid:simulation_id>/cancel", methods=("POST",), nav="simulations")
def cancel(conn: psycopg.Connection[Any], who: SignedIn, simulation_id: UUID) -> Response:
    """Ends it."""
    path = f"/console/simulations/{simulation_id}"
    try:
        cancel_simulation(conn, who.person, simulation_id)
    except ServiceError as refused:
        if refused.code is not Code.WRONG_STATE:
            raise
        return back_to(path, refused.detail, "note")
    return back_to(path, "The simulation was cancelled.")


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure as a row: percents of what was simulated, its interval and what is exact."""

    name: str
    simulated: str
    half_width: str
    expected: str
    expected_exact: str
    z: str
    p: str


def _queue(conn: psycopg.Connection[Any], who: SignedIn, form: Form) -> Simulation:
    errors: Errors = {}
    subject = _SUBJECT.fullmatch(form.value("what"))
    if subject is None:
        errors["what"] = ["Choose a version or a draft."]
    rounds = _rounds(form.value("rounds"))
    if rounds is None or not ROUNDS_MIN <= rounds <= ROUNDS_MAX:
        errors["rounds"] = [f"Give {ROUNDS_MIN:,} to {ROUNDS_MAX:,} rounds, such as 1e9."]
    strategy = None
    try:
        strategy = Strategy.parse(_strategy_text(form))
    except ValueError as unknown:
        field = "below" if form.value("strategy") == Rule.FOLD_BELOW else "strategy"
        errors[field] = [f"{unknown}."]
    seed = form.value("seed").strip().lower()
    if seed and not re.fullmatch(rf"[0-9a-f]{{{2 * SEED_BYTES}}}", seed):
        errors["seed"] = [f"A seed has {2 * SEED_BYTES} hexadecimal digits."]
    if errors or subject is None or rounds is None or strategy is None:
        raise ServiceError(Code.INVALID, "The simulation was not queued.", errors=errors)
    game, kind, number = subject[1], subject[2], int(subject[3])
    try:
        return queue_simulation(
            conn,
            who.person,
            game,
            rounds=rounds,
            version=number if kind == "version" else None,
            draft=number if kind == "draft" else None,
            strategy=strategy,
            seed=bytes.fromhex(seed) if seed else None,
        )
    except ServiceError as refused:
        if refused.code in (Code.INVALID, Code.NOT_FOUND):
            raise invalid("what", refused.detail) from refused
        raise


def _rounds(text: str) -> int | None:
    """A number of rounds as people write it: 10,000,000, 10 000 000, 1e7.

    >>> _rounds("10,000,000"), _rounds("1e9"), _rounds("many")
    (10000000, 1000000000, None)
    """
    read = _ROUNDS.fullmatch(re.sub(r"[,_\s]", "", text).lower())
    return None if read is None else int(read[1]) * 10 ** int(read[2] or 0)


def _strategy_text(form: Form) -> str:
    name = form.value("strategy", Rule.MAX_EXPECTATION.value)
    return f"{name}:{form.value('below').strip()}" if name == Rule.FOLD_BELOW else name


def _subjects(conn: psycopg.Connection[Any]) -> Iterator[tuple[str, str]]:
    """What can be simulated, as options: versions in force, other versions, drafts that are open."""
    for game in game_names(conn):
        rows = list_versions(conn, game)
        for row in sorted(rows, key=lambda row: (row.state is not VersionState.ACTIVE, -row.version)):
            said = ", in force" if row.state is VersionState.ACTIVE else ""
            yield f"{game} version {row.version}", f"{game}, version {row.version}{said}"
    for draft in list_drafts(conn, limit=SUBJECTS_MAX):
        if draft.state in (DraftState.DRAFT, DraftState.SUBMITTED):
            named = f"{draft.game} draft {draft.number}"
            yield named, f"{draft.game}, draft {draft.number} ({draft.state}, of {draft.created_by})"


def _chosen(query: Form) -> str:
    """The option that a link from another page asks for."""
    for kind in ("draft", "version"):
        if number := query.value(kind):
            return f"{query.value('game')} {kind} {number}"
    return ""


def _listed(conn: psycopg.Connection[Any], query: Form) -> dict[str, Any]:
    found = list_simulations(conn, after=query.identifier("cursor"), limit=ROWS + 1)
    return {
        "simulations": found[:ROWS],
        "cursor": str(found[ROWS - 1].simulation_id) if len(found) > ROWS else None,
        "after": query.value("cursor"),
        "moving": any(not each.state.is_over for each in found[:ROWS]),
    }


def _told(found: Simulation) -> dict[str, Any]:
    result = found.result or {}
    return {
        "simulation": found,
        "figures": [_figure(name, told) for name, told in result.get("figures", {}).items()],
        "fits": result.get("fits", {}),
        "impossible": result.get("impossible", []),
        "result": found.result,
        "names": NAMES,
        "verdict": VERDICTS.get(found.conclusion or ""),
        "plots": list(_plots(found)),
    }


def _figure(name: str, told: Mapping[str, Any]) -> _Figure:
    return _Figure(
        NAMES.get(name, name),
        f"{100 * told['simulated']:.5f} %",
        f"{50 * (told['high'] - told['low']):.5f}",
        f"{100 * told['expected']:.6f} %",
        told["expected_exact"],
        f"{told['z']:+.2f}".replace("-", "−"),
        f"{told['p_adjusted']:.3g}",
    )


def _plots(found: Simulation) -> Iterator[tuple[str, Plot]]:
    """How each return settled: around the exact one, with the 95 % interval of the rounds so far; rounds by powers."""
    if not found.course or found.result is None:
        return
    for name in found.course[-1]["figures"]:
        expected = 100 * found.result["figures"][name]["expected"]
        yield (
            name,
            Plot(
                NAMES[name],
                "%",
                [
                    Point(
                        _short(point["rounds"]),
                        100 * point["figures"][name]["simulated"],
                        expected,
                        100 * point["figures"][name]["half_width"],
                        log10(point["rounds"]),
                    )
                    for point in found.course
                ],
                True,
                PLOT_WIDTH,
                PLOT_NOTE,
            ),
        )


def _short(rounds: int) -> str:
    """A number of rounds in little room.

    >>> _short(100_000), _short(4_194_304), _short(10**10)
    ('100 k', '4.19 m', '10 bn')
    """
    for size, unit in ((10**9, "bn"), (10**6, "m"), (10**3, "k")):
        if rounds >= size:
            return f"{rounds / size:.3g} {unit}"
    return str(rounds)
