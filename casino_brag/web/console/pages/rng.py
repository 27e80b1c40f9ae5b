"""The random numbers and the program: how the module is, and whether what runs is what was shipped."""

from __future__ import annotations

from typing import Final

import psycopg
from flask import Blueprint, Response

from casino_brag.rounds.rng_status import rng_status
from casino_brag.rounds.upkeep import check_now
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Role
from casino_brag.web.console.forms import posted
from casino_brag.web.console.shell import page, render
from casino_brag.web.service import service

blueprint = Blueprint("rng", __name__)

AUDITORS: Final = (Role.AUDITOR,)

EVENTS: Final = {  # by the names of `casino_brag.rounds.rng_status`
    "self_tested": "Tested before first use: its files, and the known answers",
    "instantiated": "Began on fresh entropy",
    "forked": "Threw a parent's state away after a fork",
    "integrity_checked": "Tested again, as once a day",
    "failed": "Stopped for good: that process deals no more",
}


@page(blueprint, "/rng", roles=AUDITORS, methods=("GET", "POST"), nav="rng")
def rng(conn: psycopg.Connection[dict[str, object]], who: SignedIn) -> Response:
    """The module's state and what was on record of the last day; sent, it compares program and paytables anew."""
    form, checked, checked_at = posted(), None, None
    if form.sent:
        checked, checked_at = check_now(conn, service().house.generator, actor=who.person.actor)
    status = rng_status(conn, service().house.generator)
    return render(
        "rng.html.j2",
        status_=status,
        events=[(EVENTS[kind], event) for kind, event in status["events"].items()],
        checked=checked,
        checked_at=checked_at,
    )
