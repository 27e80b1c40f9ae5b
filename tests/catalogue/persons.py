"""People of staff who draft, approve and put in force, for tests of the life of a paytable."""

from __future__ import annotations

import secrets
from fractions import Fraction
from typing import Any

import psycopg

from casino_brag.catalogue.drafts import Draft, approve_draft, create_draft, submit_draft
from casino_brag.config import shipped
from casino_brag.staff.people import Person, Role, Said, add_staff, working

GAME = "three-card-brag"
ORIGINAL = (shipped("paytables") / f"{GAME}.toml").read_text()
SAID = Said(actor="system:tests")
ONE = Fraction(1)
GIVEN: dict[str, Any] = {"jurisdictions": ["none"], "certificate": None, "note": "Why.", "ceiling": ONE}
"""What a submission says."""


def person(conn: psycopg.Connection[Any], *roles: Role) -> Person:
    """Somebody new with these roles."""
    name = "p" + secrets.token_hex(5)
    add_staff(conn, name, roles, SAID)
    return Person(working(conn, name)[0], name, frozenset(roles))


def revised(text: str = ORIGINAL) -> str:
    """A game's file with another limit, which no test before had."""
    return text.replace("max = 300000", f"max = {5 * (1_000 + secrets.randbelow(50_000_000))}", 1).replace(
        "payout_max = 5000000\n", "", 1
    )


def submitted(
    conn: psycopg.Connection[Any],
    by: Person,
    text: str | None = None,
    *,
    game: str = GAME,
    **given: Any,
) -> Draft:
    """A draft of this text, or of one that no test before had, that waits for approval."""
    draft = create_draft(conn, by, game, text=revised() if text is None else text)
    return submit_draft(conn, by, game, draft.number, revision=draft.revision, **GIVEN | given)


def approved(
    conn: psycopg.Connection[Any], by: Person, approver: Person, text: str | None = None, **wanted: Any
) -> int:
    """A version that these two made."""
    draft = submitted(conn, by, text, **wanted)
    assert draft.digest is not None
    return approve_draft(conn, approver, draft.game, draft.number, digest=draft.digest, ceiling=ONE)
