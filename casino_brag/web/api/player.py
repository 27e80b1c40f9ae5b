"""What a player's front-end calls."""

from __future__ import annotations

import re
from typing import Any, Final
from uuid import UUID

from flask import Response, request

from casino_brag.catalogue.games import limits_in
from casino_brag.catalogue.jurisdictions import jurisdiction
from casino_brag.catalogue.sessions import hash_of, read_caller
from casino_brag.db.clock import rfc3339
from casino_brag.errors import Code, ServiceError
from casino_brag.game.settlement import Decision, Stakes
from casino_brag.rounds import deciding, opening
from casino_brag.rounds.commitments import offered
from casino_brag.rounds.funding import wallet_balance_minor
from casino_brag.rounds.proving import proof
from casino_brag.rounds.reading import (
    Page,
    list_commitments,
    list_rounds,
    net_position_minor,
    open_rounds,
    read_round,
)
from casino_brag.wallet.answers import Request
from casino_brag.wallet.currency import exponent
from casino_brag.web.api.idempotency import IDEMPOTENCY_KEY, answered, idempotency_key
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.api.schemas import (
    CommitmentPageSchema,
    CommitmentQuery,
    DecisionRequest,
    OpenRoundRequest,
    ProofSchema,
    RoundPageSchema,
    RoundQuery,
    RoundSchema,
    SessionSchema,
)
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "player", "player", url_prefix="/v1", description="A player's session and rounds."
)

_TOKEN: Final = re.compile(r"(?i:bearer) ([A-Za-z0-9_-]{43})")

_SESSION: Final[list[dict[str, list[str]]]] = [{"session": []}]
_READING: Final = (Code.UNAUTHENTICATED, Code.BUSY, Code.DATABASE_UNAVAILABLE)
_MOVING: Final = (
    Code.BODY_TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.MALFORMED_REQUEST,
    Code.INVALID,
    Code.IDEMPOTENCY_KEY_MISSING,
    Code.UNAUTHENTICATED,
    Code.IDEMPOTENCY_KEY_REUSED,
    Code.REQUEST_IN_PROGRESS,
    Code.INSUFFICIENT_FUNDS,
    Code.LIMIT_REACHED,
    Code.PLAYER_BLOCKED,
    Code.WALLET_REFUSED,
    Code.WALLET_UNAVAILABLE,
    Code.GAME_UNAVAILABLE,
    Code.BUSY,
    Code.DATABASE_UNAVAILABLE,
)


@blueprint.route("/session")
@blueprint.doc(security=_SESSION)
@blueprint.response(200, SessionSchema)
@blueprint.problems(*_READING, Code.SESSION_EXPIRED)
def session() -> dict[str, Any]:
    """Where the player stands: balance, limits, and the round that waits for a decision."""
    token_hash = session_token_hash()
    with service().database.connection() as conn:
        caller = read_caller(conn, token_hash)
        caller.must_be_live()
        house = service().house
        waiting = open_rounds(conn, house, caller)
        limits = limits_in(conn, house.shelf, caller.currency, caller.session_game, caller.jurisdiction)
        net_minor = net_position_minor(conn, caller)
        commitments = offered(conn, house, caller)
    balance_minor: int | None = caller.balance_minor
    if caller.wallet_url is not None:
        balance_minor = wallet_balance_minor(service().database.connection, house, caller)
    return {
        "session_id": caller.session_id,
        "player": caller.player,
        "mode": caller.mode,
        "currency": caller.currency,
        "exponent": exponent(caller.currency),
        "balance_minor": balance_minor,
        "game": caller.session_game,
        "limits": limits,
        "jurisdiction": caller.jurisdiction,
        "jurisdiction_flags": jurisdiction(caller.jurisdiction).flags(),
        "interruption": {"hours": caller.interruption_hours, "policy": caller.interruption_policy},
        "language": caller.language,
        "return_url": caller.return_url,
        "net_position_minor": net_minor,
        "elapsed_seconds": int((caller.read_at - caller.session_opened_at).total_seconds()),
        "open_round": waiting[0] if waiting else None,
        "client_seeds": caller.may_bring_client_seeds,
        "next_commitment": commitments.get(caller.session_game or ""),
        "next_commitments": commitments,
        "expires_at": rfc3339(caller.expires_at),
    }


@blueprint.route("/rounds", methods=["POST"])
@blueprint.doc(security=_SESSION, parameters=[IDEMPOTENCY_KEY])
@blueprint.arguments(OpenRoundRequest)
@blueprint.response(201, RoundSchema)
@blueprint.problems(
    *_MOVING,
    Code.SESSION_EXPIRED,
    Code.STAKE_OUT_OF_LIMITS,
    Code.PAYOUT_LIMIT_EXCEEDED,
    Code.TOO_SOON,
    Code.RNG_UNAVAILABLE,
    Code.SEALING_BEHIND,
    Code.PAYOUT_PENDING,
    Code.ROUND_OPEN,
    Code.COMMITMENT_STALE,
    Code.BALANCE_LIMIT_EXCEEDED,
)
def open_round(body: dict[str, Any]) -> Response:
    """Stake an Ante, and a Pair Bonus if wanted; get three cards and a decision to take."""
    wanted = Request.of(idempotency_key(), "POST", "/v1/rounds", body)
    ask = opening.Ask(
        token_hash=session_token_hash(),
        request=wanted,
        stakes=Stakes(body["ante_minor"], body["pair_bonus_minor"]),
        game=body.get("game"),
        client_seed=body.get("client_seed"),
        commitment=body.get("commitment"),
    )
    return answered(opening.open_round(service().database.connection, service().house, ask))


@blueprint.route("/rounds/<uuid:round_id>/decision", methods=["POST"])
@blueprint.doc(security=_SESSION, parameters=[IDEMPOTENCY_KEY])
@blueprint.arguments(DecisionRequest)
@blueprint.response(200, RoundSchema)
@blueprint.problems(*_MOVING, Code.ROUND_NOT_FOUND, Code.ALREADY_DECIDED, Code.ROUND_VOIDED)
def decide(body: dict[str, Any], round_id: UUID) -> Response:
    """Play, staking the Play wager, or fold; the round is settled and paid."""
    wanted = Request.of(idempotency_key(), "POST", f"/v1/rounds/{round_id}/decision", body)
    ask = deciding.Ask(
        token_hash=session_token_hash(),
        request=wanted,
        round_id=round_id,
        decision=Decision(body["decision"]),
    )
    return answered(deciding.decide(service().database.connection, service().house, ask))


@blueprint.route("/rounds/<uuid:round_id>")
@blueprint.doc(security=_SESSION)
@blueprint.response(200, RoundSchema)
@blueprint.problems(*_READING, Code.ROUND_NOT_FOUND)
def get_round(round_id: UUID) -> dict[str, Any]:
    """A round as its player may see it now."""
    token_hash = session_token_hash()
    with service().database.connection() as conn:
        return read_round(conn, service().house, token_hash, round_id)


@blueprint.route("/rounds/<uuid:round_id>/proof")
@blueprint.doc(security=_SESSION)
@blueprint.response(200, ProofSchema)
@blueprint.problems(*_READING, Code.ROUND_NOT_FOUND, Code.PROOF_UNAVAILABLE)
def get_proof(round_id: UUID) -> dict[str, Any]:
    """All that it takes to check a round's deal without us, once the round is over."""
    token_hash = session_token_hash()
    with service().database.connection() as conn:
        return proof(conn, token_hash, round_id)


@blueprint.route("/commitments")
@blueprint.doc(security=_SESSION)
@blueprint.arguments(CommitmentQuery, location="query")
@blueprint.response(200, CommitmentPageSchema)
@blueprint.problems(*_READING, Code.INVALID, Code.SESSION_EXPIRED)
def get_commitments(query: dict[str, Any]) -> dict[str, Any]:
    """The player's commitments in a game, newest first: each a round, or one that was never dealt."""
    token_hash = session_token_hash()
    with service().database.connection() as conn:
        page = list_commitments(
            conn, token_hash, game=query.get("game"), after=query.get("cursor"), limit=query["limit"]
        )
    return _page(page)


@blueprint.route("/rounds")
@blueprint.doc(security=_SESSION)
@blueprint.arguments(RoundQuery, location="query")
@blueprint.response(200, RoundPageSchema)
@blueprint.problems(*_READING, Code.INVALID, Code.SESSION_EXPIRED)
def get_rounds(query: dict[str, Any]) -> dict[str, Any]:
    """The player's rounds, newest first."""
    token_hash = session_token_hash()
    with service().database.connection() as conn:
        page = list_rounds(conn, service().house, token_hash, after=query.get("cursor"), limit=query["limit"])
    return _page(page)


def _page(page: Page) -> dict[str, Any]:
    return {"items": page.items, "next_cursor": None if page.next_after is None else str(page.next_after)}


def session_token_hash() -> bytes:
    """The hash of the session token of this request; `unauthenticated` when there is none."""
    match = _TOKEN.fullmatch(request.headers.get("Authorization", ""))
    if match is None:
        raise ServiceError(Code.UNAUTHENTICATED, "Send the session's token: Authorization: Bearer <token>.")
    return hash_of(match[1])
