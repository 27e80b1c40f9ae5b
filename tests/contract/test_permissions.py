"""Who may call what: every address of the API, every role of staff, and those who cannot show who they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

import pytest
import requests

from casino_brag.catalogue.simulations import ROUNDS_MIN
from casino_brag.staff.people import Role, Said, hash_of, revoke
from tests.inprocess import AppHouse, app_house_in, openapi_document
from tests.running import CALL_SECONDS, Player, code_of

ANYONE: Final = "anyone"
PLAYER: Final = "player"
OPERATOR: Final = "operator"

ALL: Final = frozenset(Role)
EDITOR: Final = frozenset({Role.EDITOR})
APPROVER: Final = frozenset({Role.APPROVER})
AUDITOR: Final = frozenset({Role.AUDITOR})
OPERATIONS: Final = frozenset({Role.OPERATIONS})

MAY: Final[Mapping[str, str | frozenset[Role]]] = {
    "GET /v1/games": ANYONE,
    "GET /v1/games/{game}": ANYONE,
    "GET /healthz": ANYONE,
    "GET /readyz": ANYONE,
    "GET /v1/audit/checkpoints": ANYONE,
    "GET /v1/audit/checkpoints/latest": ANYONE,
    "GET /v1/audit/keys": ANYONE,
    "GET /v1/audit/proof/consistency": ANYONE,
    "GET /v1/session": PLAYER,
    "POST /v1/rounds": PLAYER,
    "GET /v1/rounds": PLAYER,
    "POST /v1/rounds/{round_id}/decision": PLAYER,
    "GET /v1/rounds/{round_id}": PLAYER,
    "GET /v1/rounds/{round_id}/proof": PLAYER,
    "GET /v1/commitments": PLAYER,
    "POST /v1/operator/sessions": OPERATOR,
    "DELETE /v1/operator/sessions/{session_id}": OPERATOR,
    "POST /v1/operator/players/{player}/deposits": OPERATOR,
    "POST /v1/operator/players/{player}/withdrawals": OPERATOR,
    "GET /v1/operator/players/{player}/balance": OPERATOR,
    "GET /v1/operator/games": OPERATOR,
    "POST /v1/operator/games/{game}/disable": OPERATOR,
    "POST /v1/operator/games/{game}/drain": OPERATOR,
    "POST /v1/operator/games/{game}/enable": OPERATOR,
    "GET /v1/operator/rounds": OPERATOR,
    "GET /v1/operator/rounds/{round_id}": OPERATOR,
    "POST /v1/operator/rounds/{round_id}/void": OPERATOR,
    "GET /v1/operator/reports/game-performance": OPERATOR,
    "GET /v1/operator/reports/interrupted": OPERATOR,
    "GET /v1/operator/reports/alterations": OPERATOR,
    "GET /v1/audit/entries": AUDITOR,
    "GET /v1/audit/proof/inclusion": AUDITOR,
    "POST /v1/audit/verify": AUDITOR,
    "GET /v1/rng/status": AUDITOR,
    "GET /v1/rtp": AUDITOR | OPERATIONS,
    "GET /v1/reports/{name}": AUDITOR | OPERATIONS,
    "POST /v1/integrity/verify": AUDITOR | OPERATIONS,
    "GET /v1/paytables": ALL,
    "POST /v1/paytables": EDITOR,
    "GET /v1/paytables/{game}/drafts": ALL,
    "GET /v1/paytables/{game}/drafts/{number}": ALL,
    "PUT /v1/paytables/{game}/drafts/{number}": EDITOR,
    "POST /v1/paytables/{game}/drafts/{number}/preview": ALL,
    "POST /v1/paytables/{game}/drafts/{number}/submit": EDITOR,
    "POST /v1/paytables/{game}/drafts/{number}/approve": APPROVER,
    "POST /v1/paytables/{game}/drafts/{number}/reject": EDITOR | APPROVER,
    "GET /v1/paytables/{game}/versions": ALL,
    "GET /v1/paytables/{game}/versions/{version}": ALL,
    "GET /v1/paytables/{game}/versions/{version}/par-sheet": ALL,
    "GET /v1/paytables/{game}/versions/{version}/file": ALL,
    "POST /v1/paytables/{game}/versions/{version}/activate": OPERATIONS,
    "POST /v1/paytables/{game}/versions/{version}/retire": OPERATIONS,
    "POST /v1/paytables/{game}/unschedule": OPERATIONS,
    "GET /v1/paytables/{game}/history": ALL,
    "POST /v1/simulations": ALL,
    "GET /v1/simulations": ALL,
    "GET /v1/simulations/{simulation_id}": ALL,
    "POST /v1/simulations/{simulation_id}/cancel": ALL,
}
"""Who may make each call: anyone, a player, an operator, or staff with one of these roles."""

NOWHERE: Final = {"number": "999999", "version": "999999"}
"""What calls of staff name, so that nothing is changed by one that is let through."""

PLACES: Final = NOWHERE | {
    "game": "three-card-brag",
    "player": "p",
    "name": "voids",
    **{name: str(UUID(int=1)) for name in ("round_id", "session_id", "simulation_id")},
}

WHY: Final = {"reason": "A test."}
BODIES: Final[Mapping[str, Any]] = {
    "POST /v1/rounds": {"ante_minor": 100},
    "POST /v1/rounds/{round_id}/decision": {"decision": "fold"},
    "POST /v1/operator/sessions": {"player": "p", "currency": "GBP", "mode": "demo"},
    "POST /v1/operator/players/{player}/deposits": {"amount_minor": 1, "currency": "GBP"},
    "POST /v1/operator/players/{player}/withdrawals": {"amount_minor": 1, "currency": "GBP"},
    "POST /v1/operator/games/{game}/disable": WHY,
    "POST /v1/operator/games/{game}/drain": WHY,
    "POST /v1/operator/games/{game}/enable": WHY,
    "POST /v1/operator/rounds/{round_id}/void": WHY | {"approver": "A tester"},
    "POST /v1/audit/verify": {"first_leaf": 0, "last_leaf": 0},
    "POST /v1/paytables": {"game": "three-card-brag", "from_version": 999_999},
    "PUT /v1/paytables/{game}/drafts/{number}": {"text": "x"},
    "POST /v1/paytables/{game}/drafts/{number}/preview": {},
    "POST /v1/paytables/{game}/drafts/{number}/submit": {"jurisdictions": ["none"], "note": "A test."},
    "POST /v1/paytables/{game}/drafts/{number}/approve": {"digest": "0" * 64},
    "POST /v1/paytables/{game}/drafts/{number}/reject": WHY,
    "POST /v1/paytables/{game}/versions/{version}/activate": WHY,
    "POST /v1/paytables/{game}/versions/{version}/retire": WHY,
    "POST /v1/paytables/{game}/unschedule": WHY,
    "POST /v1/simulations": {"game": "nothing", "rounds": ROUNDS_MIN},
}
QUERIES: Final[Mapping[str, Mapping[str, str]]] = {
    "GET /v1/operator/players/{player}/balance": {"currency": "GBP"},
    "GET /v1/audit/proof/consistency": {"old": "1", "new": "1"},
    "GET /v1/audit/proof/inclusion": {"entry_id": str(UUID(int=1))},
}

SECURITY: Final[Mapping[str, Any]] = {ANYONE: None, PLAYER: [{"session": []}], OPERATOR: [{"signature": []}]}

every_call = pytest.mark.parametrize("call", MAY)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("permissions")) as started:
        yield started


@pytest.fixture(scope="module")
def staff(house: AppHouse) -> dict[Role, Player]:
    """One person of each role."""
    return {role: house.staff(role) for role in Role}


@pytest.fixture(scope="module")
def nobodies(house: AppHouse) -> dict[str, str | None]:
    """What those send who cannot show who they are; persons among them had every role."""
    roles = tuple(Role)
    expired, revoked, retired = house.staff(*roles), house.staff(*roles), house.staff(*roles)
    old, said = "cbs_" + "e" * 43, Said(actor="system:tests")
    with house.connect() as conn:
        conn.execute(
            "INSERT INTO staff_token (token_id, staff_id, token_hash, label, issued_at, expires_at)"
            " SELECT 't_0123456789ab', staff_id, %s, 'old', now() - interval '2 days', now() - interval '1 day'"
            " FROM staff WHERE name = %s",
            [hash_of(old), expired.name],
        )
        (token_id,) = conn.execute(
            "SELECT token_id FROM staff_token JOIN staff USING (staff_id) WHERE name = %s", [revoked.name]
        ).fetchone() or ("",)
        revoke(conn, token_id, said)
        revoke(conn, retired.name, said)
    return {
        "nothing": None,
        "an expired token": f"Bearer {old}",
        "a revoked token": f"Bearer {revoked.token}",
        "a token of somebody who has retired": f"Bearer {retired.token}",
        "a token that nobody has": "Bearer cbs_" + "A" * 43,
        "another scheme": f"Basic {expired.token}",
        "no token": "Bearer",
    }


def made(house: AppHouse, call: str, authorization: str | None) -> requests.Response:
    """The answer to a call whose form is right, by whoever this is."""
    method, path = call.split(" ")
    with house.connect() as conn:
        conn.execute("DELETE FROM staff_failure")  # the address is not shut out
    headers = {"Idempotency-Key": "k", "If-Match": "*"}
    if authorization is not None:
        headers["Authorization"] = authorization
    return requests.request(
        method,
        house.base + re.sub(r"\{(\w+)\}", lambda found: PLACES[found[1]], path),
        params=QUERIES.get(call),
        json=BODIES.get(call),
        headers=headers,
        timeout=CALL_SECONDS,
    )


def test_every_address_is_in_the_table_with_what_the_document_declares() -> None:
    declared = {
        f"{method.upper()} {path}": operation.get("security")
        for path, item in openapi_document()["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }
    assert declared == {
        call: SECURITY[may] if isinstance(may, str) else [{"staff": [role]} for role in Role if role in may]
        for call, may in MAY.items()
    }


def test_every_address_of_the_application_is_in_the_document(house: AppHouse) -> None:
    """So that none is forgotten in the table by being forgotten in the document."""
    served = {
        f"{method} " + re.sub(r"<(?:[^:<>]*:)?([^<>]+)>", r"{\1}", rule.rule)
        for rule in house.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.rule.startswith("/v1/")
    }
    assert served == {call for call in MAY if " /v1/" in call}


@every_call
def test_a_role_may_make_the_calls_that_are_for_it_and_no_other(
    house: AppHouse, staff: dict[Role, Player], call: str
) -> None:
    may = MAY[call]
    for role, person in staff.items():
        answer = made(house, call, f"Bearer {person.token}")
        if may == ANYONE:
            assert answer.status_code not in (401, 403), role
        elif isinstance(may, str):  # a token of staff opens neither a player's door nor an operator's
            assert code_of(answer) == "unauthenticated", role
        elif role in may:
            assert answer.status_code not in (401, 403, 422), (role, answer.text)
        else:
            assert code_of(answer) == "forbidden", role


@every_call
def test_who_cannot_show_who_it_is_may_make_no_call_that_is_not_for_anyone(
    house: AppHouse, nobodies: dict[str, str | None], call: str
) -> None:
    for sent, authorization in nobodies.items():
        answer = made(house, call, authorization)
        if MAY[call] == ANYONE:
            assert answer.status_code not in (401, 403), sent
        else:
            assert code_of(answer) == "unauthenticated", sent
            assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("call", [call for call, may in MAY.items() if not isinstance(may, str)])
def test_a_players_token_opens_nothing_of_staff(house: AppHouse, call: str) -> None:
    assert code_of(made(house, call, f"Bearer {house.player().token}")) == "unauthenticated"
