"""A house in which something is going on: people, drafts, proposals, played rounds, a simulation, a case.

All of it is invented.
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID

import psycopg

from casino_brag.catalogue.activations import activate
from casino_brag.catalogue.drafts import approve_draft, create_draft, save_draft, submit_draft
from casino_brag.catalogue.editing import with_fields
from casino_brag.catalogue.simulations import ROUNDS_MIN, queue_simulation
from casino_brag.db.clock import clock
from casino_brag.ids import uuid7
from casino_brag.reports.kinds import ReportName
from casino_brag.staff.people import Role
from casino_brag.staff.proposals import Kind, decide, make_link, propose
from tests.colleagues import Colleague, colleague
from tests.running import Operator, RunningService

GAME = "three-card-brag"
OTHER_GAME = "double-play-brag"

Connection = psycopg.Connection[Any]
Addresses = dict[str, object]


def everything(house: RunningService, rounds: int) -> tuple[Colleague, Addresses]:
    """Has it all happen; somebody who may see every page, and what stands for what in the addresses of pages."""
    mara = colleague(house, Role.EDITOR, name="mara.lind")
    tomas = colleague(house, Role.APPROVER, name="tomas.reyes")
    olga = colleague(house, Role.OPERATIONS, name="olga.brandt")
    everybody = colleague(house, *Role, name="ines.okafor")
    operator = house.operator("harbour-lights")
    round_id = play(operator, rounds // 2)
    with house.connect() as conn:
        version = agreed(conn, mara, tomas)
        activate(conn, olga.person, GAME, version, reason="The floor opens with the new Pair Bonus.")
        offered_to_approvers(conn, mara, "50", "25", "Fifty for a prial at the Sunday table.")
        draft = create_draft(conn, mara.person, GAME, from_version=version)
        text = with_fields(draft.text, {"dealer.qualifies_with": "K"})
        save_draft(conn, mara.person, GAME, draft.number, text, revision=draft.revision)
        create_draft(conn, mara.person, OTHER_GAME)
        later = clock(conn) + timedelta(days=3)
        activate(conn, olga.person, GAME, 1, reason="Back to the printed felt for the festival.", at=later)
        wanted = {"roles": ["auditor"]}
        invited = propose(
            conn, olga.person, Kind.STAFF_INVITE, "jonas.berg", wanted, "The auditor of the year."
        )
        decide(conn, tomas.person, invited, True, "", lambda *_: None)
        token = make_link(conn, olga.person, invited).token
        propose(
            conn,
            olga.person,
            Kind.STAFF_INVITE,
            "lena.horvat",
            {"roles": ["editor"]},
            "Joins the studio team.",
        )
        queued = queue_simulation(conn, olga.person, GAME, rounds=ROUNDS_MIN, version=version)
    play(operator, rounds - rounds // 2)
    with house.connect() as conn:
        proposal = propose(
            conn,
            olga.person,
            Kind.ROUND_VOID,
            str(round_id),
            {"policy": "refund"},
            "The player's table was cut off.",
        )
        case = uuid7()
        conn.execute(
            "INSERT INTO rtp_case (case_id, paytable_version_id, level, state, opened_at, changed_at)"
            " SELECT %s, active_version_id, 'alert', 'open', now(), now() FROM game WHERE game = %s",
            [case, GAME],
        )
        entry = conn.execute("SELECT entry_id FROM audit_entry ORDER BY entry_id DESC LIMIT 1").fetchone()
    assert entry is not None
    return everybody, {
        "game": GAME,
        "version": version,
        "number": draft.number,
        "round_id": round_id,
        "proposal_id": proposal,
        "simulation_id": queued.simulation_id,
        "case_id": case,
        "entry_id": entry[0],
        "token": token,
        "kind": Kind.STAFF_INVITE,
        "name": ReportName.GAME_PERFORMANCE,
    }


def address(rule: str, named: Addresses) -> str:
    """A rule's address, from ``/console`` on: ``<uuid:round_id>`` is put in its place."""
    filled = re.sub(r"<(?:[^:>]+:)?(\w+)>", lambda part: str(named[part[1]]), rule)
    return filled.removeprefix("/console")


def play(operator: Operator, rounds: int) -> UUID:
    """Plays so many rounds for real money, at several tables; the id of the one that won most."""
    won: list[tuple[int, str]] = []
    for table in range(4):
        player = operator.real_player(2_000_000)
        for number in range(rounds // 4):
            opened = player.open(100 * (1 + (number + table) % 5), 100 if number % 2 else 0).json()
            good = opened["player_category"] != "high_card" or {
                card[0] for card in opened["player_cards"]
            } & set("QKA")
            settled = player.decide(opened["round_id"], "play" if good else "fold").json()
            won.append((settled["net_minor"], settled["round_id"]))
    return UUID(max(won)[1])


def agreed(conn: Connection, editor: Colleague, approver: Colleague) -> int:
    """A version that two people have made."""
    number = offered_to_approvers(conn, editor, "45", "28", "Forty-five for a prial, as the new felt says.")
    digest = conn.execute(
        "SELECT digest FROM paytable_draft WHERE game = %s AND number = %s", [GAME, number]
    ).fetchone()
    assert digest is not None
    return approve_draft(conn, approver.person, GAME, number, digest=digest[0], ceiling=Fraction(1))


def offered_to_approvers(
    conn: Connection, editor: Colleague, prial: str, running_flush: str, note: str
) -> int:
    """The number of a draft that waits for approval, with another Pair Bonus."""
    draft = create_draft(conn, editor.person, GAME, from_version=1)
    pays = {"pair_bonus.pays.prial": prial, "pair_bonus.pays.running_flush": running_flush}
    saved = save_draft(
        conn, editor.person, GAME, draft.number, with_fields(draft.text, pays), revision=draft.revision
    )
    submit_draft(
        conn,
        editor.person,
        GAME,
        saved.number,
        revision=saved.revision,
        jurisdictions=["none", "mga"],
        certificate=None,
        note=note,
        ceiling=Fraction(1),
    )
    return saved.number
