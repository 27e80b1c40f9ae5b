"""Rounds: found by what is known of them, and each replayed card by card, with its proof and all that is on record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import psycopg
from flask import Blueprint, Response, request

from casino_brag.audit.listing import Filter as EntryFilter
from casino_brag.audit.listing import list_entries
from casino_brag.catalogue.games import game_names
from casino_brag.catalogue.operators import operator_id_of, operator_names
from casino_brag.catalogue.sessions import Mode
from casino_brag.db.clock import clock
from casino_brag.db.instant import one_instant
from casino_brag.errors import Code, ServiceError, SetUpError
from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules_text import odds_text
from casino_brag.game.settlement import Decision, Result, Spot
from casino_brag.odds.one_hand import one_hand
from casino_brag.odds.outcomes import DEALER_HANDS
from casino_brag.replay.reading import read_rules_of
from casino_brag.replay.records import Row, only
from casino_brag.rounds import proposed
from casino_brag.rounds.proving import any_proof
from casino_brag.rounds.recall import STATES, Filter, list_operator_rounds, read_operator_round
from casino_brag.rounds.reports import interrupted
from casino_brag.rounds.round import AWAITING_DECISION, DECIDING, SETTLED, VOIDED, hand
from casino_brag.rounds.voiding import VoidPolicy
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Role
from casino_brag.staff.proposals import Kind, ProposalState, recent_proposals
from casino_brag.web.api.lists import listed
from casino_brag.web.api.reports import ROUND_COLUMNS, flat_round
from casino_brag.web.console.forms import Form, asked, posted
from casino_brag.web.console.pages.people import WORDS
from casino_brag.web.console.replayed import checks, read_row
from casino_brag.web.console.shell import back_to, download, page, render, require_proof
from casino_brag.web.service import service

blueprint = Blueprint("rounds", __name__)

READERS: Final = (Role.AUDITOR, Role.OPERATIONS)

SHOWN: Final = 50
ENTRIES_SHOWN: Final = 100

DAYS_BACK: Final = 30
"""So far back is searched at first: what is rare may lie behind all the rounds there ever were."""

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "state": STATES,
    "result": tuple(Result),
    "mode": tuple(Mode),
}

_MOVES: Final = ("ante", "pair_bonus", "play", "stakes", "payout", "refund", "compensation")

_POLICIES: Final = (
    (VoidPolicy.REFUND.value, "The stakes"),
    (VoidPolicy.BETTER.value, "The stakes, and what the better decision would have won"),
)


@page(blueprint, "/rounds", roles=READERS, nav="rounds")
def rounds(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Rounds by what is known of them, newest first."""
    query = asked()
    if not query.sent:
        query.put("since", (clock(conn) - timedelta(days=DAYS_BACK)).date().isoformat())
    if round_id := _named_round(conn, query):
        return back_to(f"/console/rounds/{round_id}")
    operator_id, wanted = _wanted(conn, query)
    after = query.identifier("cursor")
    found = list_operator_rounds(conn, operator_id, wanted, after=after, limit=SHOWN + 1)
    said = {name: value for name, value in request.args.items() if value and name != "cursor"}
    said = said or {"since": query.value("since")}
    return render(
        "rounds.html.j2",
        form=query,
        rounds=[_shown(one) for one in found[:SHOWN]],
        cursor=found[SHOWN - 1]["round_id"] if len(found) > SHOWN else None,
        query=f"?{urlencode(said)}",
        operators=_options("All operators", operator_names(conn)),
        games=_options("All games", game_names(conn)),
        states=_spoken("All states", STATES),
        results=_spoken("All results", Result),
        demonstrations=0 if found or after else _demonstrations(conn, operator_id, wanted),
        demonstrations_query=f"?{urlencode(said | {'mode': Mode.DEMO.value})}",
        shown_most=SHOWN,
        modes=[(Mode.REAL.value, "Real money"), (Mode.DEMO.value, "Demonstration")],
    )


@page(blueprint, "/rounds.csv", roles=READERS, nav="rounds", connected=False)
def rounds_csv(who: SignedIn) -> Response:
    """The same as a table; of a query that makes no sense there is none."""
    query = asked()
    with service().database.connection() as conn:
        operator_id, wanted = _wanted(conn, query)
    if query.errors:
        raise ServiceError(Code.INVALID, "Say otherwise which rounds are meant.", errors=query.errors)

    def read(conn: psycopg.Connection[Any], after: Any, limit: int) -> list[dict[str, Any]]:
        return list_operator_rounds(conn, operator_id, wanted, after=after, limit=limit)

    return listed("rounds", ("operator", *ROUND_COLUMNS), read, "round_id", {}, flat=flat_round)


@page(blueprint, "/rounds/<uuid:round_id>", roles=READERS, nav="rounds")
def one_round(conn: psycopg.Connection[Any], who: SignedIn, round_id: UUID) -> Response:
    """One round, card by card: stakes, hands, decision, settlement, money, proof, and the log's entries."""
    with one_instant(conn):
        found = _found(conn, round_id)
        # The round itself, if it is unfinished; else an older one.
        waiting = interrupted(conn, None, clock(conn), after=UUID(int=round_id.int + 1), limit=1)
        entries = list_entries(conn, EntryFilter(round_id=round_id), after=None, limit=ENTRIES_SHOWN)
        proposals = [
            one
            for one in recent_proposals(conn)
            if one.kind is Kind.ROUND_VOID and one.subject == str(round_id)
        ]
        row = read_row(conn, datetime.fromisoformat(found["opened_at"]), round_id)
        rules = read_rules_of(conn, row.version_id)
    ending = only(row.kept.settled_payloads or row.kept.voided_payloads)
    return render(
        "round.html.j2",
        round=_shown(found),
        waiting=next((one for one in waiting if one["round_id"] == str(round_id)), None),
        entries=entries[::-1],
        proposals=proposals,
        proposed=any(one.state is ProposalState.OPEN for one in proposals),
        words=WORDS,
        worth=_worth(rules.paytable, row),
        wagers=[_wager(rules.paytable, wager, found["player_category"]) for wager in found["wagers"]],
        category=None
        if rules.paytable is None
        else rules.paytable.ranking.category(hand(found["player_cards"])),
        moved=_moved(row),
        row=row,
        ending=ending if isinstance(ending, dict) else {},
        checks=checks(row, rules),
        reads_log=Role.AUDITOR in who.person.roles,
        may_propose=Role.OPERATIONS in who.person.roles and found["state"] != VOIDED,
    )


@page(blueprint, "/rounds/<uuid:round_id>/proof.json", roles=READERS, nav="rounds")
def round_proof(conn: psycopg.Connection[Any], who: SignedIn, round_id: UUID) -> Response:
    """What proves the deal to others: a file for ``verification/verify_round.py``."""
    return download(f"{round_id}.json", json.dumps(any_proof(conn, round_id), indent=1), "application/json")


@page(
    blueprint,
    "/rounds/<uuid:round_id>/void",
    roles=(Role.OPERATIONS,),
    methods=("GET", "POST"),
    nav="rounds",
)
def propose_void(conn: psycopg.Connection[Any], who: SignedIn, round_id: UUID) -> Response:
    """Proposes that a round is voided, which an approver decides."""
    found, form = _found(conn, round_id), posted()
    with form.attempt():
        if form.sent:
            require_proof(conn, who, form)
            proposed.propose_void(conn, who.person, round_id, form.value("policy"), form.value("reason"))
            return back_to(f"/console/rounds/{round_id}", "The void is proposed. An approver decides it.")
    return render(
        "round_void.html.j2",
        form=form,
        round=_shown(found),
        settled=found["state"] == SETTLED,
        policies=_POLICIES,
        status=form.status,
    )


def _found(conn: psycopg.Connection[Any], round_id: UUID) -> dict[str, Any]:
    found = read_operator_round(conn, None, round_id)
    if found is None:
        raise ServiceError(Code.NOT_FOUND, "There is no round of this id.")
    return found


def _shown(found: dict[str, Any]) -> dict[str, Any]:
    """A round's record, with what was staked so far and whether the round is open."""
    staked_minor = found["total_staked_minor"]
    if staked_minor is None:
        staked_minor = sum(wager["stake_minor"] for wager in found["wagers"])
    return found | {"staked_minor": staked_minor, "open": found["state"] in (AWAITING_DECISION, DECIDING)}


def _worth(paytable: Paytable | None, row: Row) -> dict[str, Any] | None:
    """What each decision was worth before the dealer's cards were known: over all that the dealer could hold."""
    if paytable is None:
        return None
    counted = one_hand(paytable, hand(row.kept.player_cards))
    worth = {
        decision: Fraction(counted["expectation"][decision.value]) / DEALER_HANDS for decision in Decision
    }
    return {
        "counted": [
            (spot, counted[spot], Fraction(counted[spot], DEALER_HANDS))
            for spot in ("dealer_not_qualified", "win", "tie", "lose")
        ],
        "hands": DEALER_HANDS,
        "decisions": [
            (decision.value, antes, round(antes * row.ante_minor)) for decision, antes in worth.items()
        ],
        "better": counted["decision"],
        "cost": abs(worth[Decision.PLAY] - worth[Decision.FOLD]),
    }


def _moved(row: Row) -> list[list[str]]:
    """What was moved, in the order of a round: kind, amount, from and to."""
    moved = [text.split(" ", 2) for text in row.kept.transfers or ()]
    return sorted(moved, key=lambda one: _MOVES.index(one[0]) if one[0] in _MOVES else len(_MOVES))


def _wager(paytable: Paytable | None, wager: Mapping[str, Any], category: str | None) -> dict[str, Any]:
    """A wager, with how it came out and the odds that it was paid at."""
    shown: dict[str, Any] = {"reason": None, "payout_minor": None, **wager, "outcome": "", "pays": ""}
    payout_minor = shown["payout_minor"]
    if payout_minor is None or category is None:
        return shown
    over = payout_minor - wager["stake_minor"]
    shown["outcome"] = "won" if over > 0 else "returned" if over == 0 else "lost"
    if over > 0 and paytable is not None:
        shown["pays"] = _pays(paytable, Spot(wager["spot"]), Category(category))
    return shown


def _pays(paytable: Paytable, spot: Spot, category: Category) -> str:
    match spot:
        case Spot.ANTE:
            odds: Fraction | None = paytable.ante_pays
        case Spot.PLAY:
            odds = paytable.play_pays[category]
        case Spot.ANTE_BONUS:
            odds = paytable.ante_bonus.pays.get(category) if paytable.ante_bonus else None
        case Spot.PAIR_BONUS:
            odds = paytable.pair_bonus.pays.get(category) if paytable.pair_bonus else None
    return "" if odds is None else odds_text(odds)


def _wanted(conn: psycopg.Connection[Any], query: Form) -> tuple[UUID | None, Filter]:
    """What a query asks for; what makes no sense is told at its field, and is as if it had not been said."""
    said: dict[str, Any] = {}
    for name, choices in _CHOICES.items():
        if text := query.value(name):
            if text in choices:
                said[name] = text
            else:
                query.errors[name] = ["Choose one that there is."]
    for name in ("player", "game"):
        text = query.value(name).strip()
        if text and text.isprintable() and len(text) <= 128:
            said[name] = text
    said["version"] = query.number("version")
    said["test"] = query.value("test") == "yes"
    said["since"], said["until"] = query.day("since"), query.day("until", later=1)
    return _operator(conn, query), Filter(**said)


def _demonstrations(conn: psycopg.Connection[Any], operator_id: UUID | None, wanted: Filter) -> int:
    """How many demonstration rounds there are instead of those for real money, counted to one more than are shown."""
    if wanted.mode != Mode.REAL:
        return 0
    return len(
        list_operator_rounds(
            conn, operator_id, replace(wanted, mode=Mode.DEMO.value), after=None, limit=SHOWN + 1
        )
    )


def _operator(conn: psycopg.Connection[Any], query: Form) -> UUID | None:
    name = query.value("operator")
    if not name:
        return None
    try:
        return operator_id_of(conn, name if name.isprintable() else "?")
    except SetUpError:
        query.errors["operator"] = ["There is no such operator."]
        return None


def _named_round(conn: psycopg.Connection[Any], query: Form) -> UUID | None:
    """The round whose id was typed, if there is one."""
    round_id = query.identifier("round")
    if round_id is None or read_operator_round(conn, None, round_id) is not None:
        return round_id
    query.errors["round"] = ["There is no round of this id."]
    return None


def _options(everything: str, names: list[str]) -> list[tuple[str, str]]:
    return [("", everything), *((name, name) for name in names)]


def _spoken(everything: str, values: Any) -> list[tuple[str, str]]:
    return [("", everything), *((value, value.replace("_", " ").capitalize()) for value in values)]
