"""How somebody who was invited joins, for tests."""

from __future__ import annotations

from typing import Any

import psycopg

from casino_brag.errors import ServiceError
from casino_brag.staff.factors import Enrolment
from casino_brag.staff.invitations import Invitation, Joined, invited, join, offer_to
from tests.colleagues import PASSWORD, code_of
from tests.inprocess import AppHouse


def offered(house: AppHouse, conn: psycopg.Connection[Any], invitation: Invitation) -> Enrolment:
    who = invited(conn, invitation.token)
    assert who is not None
    return offer_to(house.sealer, who)


def joined(
    house: AppHouse,
    invitation: Invitation,
    offer: Enrolment,
    password: str = PASSWORD,
    code: str = "",
    join_code: str = "",
) -> Joined | ServiceError:
    """What the person gets, or the refusal."""
    try:
        return join(
            house.service.database.connection,
            house.sealer,
            invitation.token,
            password,
            offer.sealed,
            code or code_of(offer.secret),
            "::1",
            join_code=join_code,
        )
    except ServiceError as refused:
        return refused


def refusal(outcome: Joined | ServiceError) -> ServiceError:
    assert isinstance(outcome, ServiceError)
    return outcome
