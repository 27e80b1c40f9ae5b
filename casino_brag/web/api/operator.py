"""What an operator's back end calls: sessions, and its players' money in the built-in wallet."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import marshmallow as ma
from flask import Response, request
from marshmallow import fields

from casino_brag.catalogue.jurisdictions import DEFAULT, names
from casino_brag.catalogue.operators import SigningOperator
from casino_brag.catalogue.sessions import Mode, NewSession, close_session, hash_of, open_session
from casino_brag.db.clock import rfc3339
from casino_brag.errors import Code, ServiceError
from casino_brag.rounds.commitments import offer
from casino_brag.rounds.voiding import Voiding, VoidPolicy, answer_void
from casino_brag.wallet.answers import Request
from casino_brag.wallet.builtin import Direction, balance_minor, move
from casino_brag.wallet.currency import exponent
from casino_brag.web.api.fields import Whole, amount_minor, currency, one_of, printable, written
from casino_brag.web.api.idempotency import IDEMPOTENCY_KEY, answered, idempotency_key
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.api.schemas import RoundSchema
from casino_brag.web.api.signed import HEADERS, PROBLEMS, SIGNED, signing_caller
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "operator", "operator", url_prefix="/v1/operator", description="Calls of an operator's back end, signed."
)

_BODY: Final = (Code.BODY_TOO_LARGE, Code.UNSUPPORTED_MEDIA_TYPE, Code.MALFORMED_REQUEST, Code.INVALID)
_MOVING: Final = (*_BODY, Code.IDEMPOTENCY_KEY_MISSING, *PROBLEMS, Code.IDEMPOTENCY_KEY_REUSED)


class SessionRequest(ma.Schema):
    """A session to open."""

    player = fields.String(
        required=True,
        validate=[
            ma.validate.Length(1, 128, error="Give 1 to 128 characters."),
            Whole(
                r"^(?!\.{1,2}$)[\x21-\x2e\x30-\x7e]+$",
                error="Use visible ASCII characters without a slash, and more than dots: it stands in addresses.",
            ),
        ],
        metadata={"description": "The operator's own name for the player."},
    )
    currency = currency()
    mode = one_of(*Mode, required=True)
    game = printable(64, metadata={"description": "Restricts the session to it."})
    jurisdiction = one_of(*names(), load_default=DEFAULT)
    channel = printable(32)
    language = fields.String(
        load_default="en",
        validate=Whole(r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,4}$", error="Give a language tag."),
    )
    test = fields.Boolean(load_default=False, truthy={True}, falsy={False})
    return_url = fields.String(
        validate=Whole(
            r"^https?://[\x21-\x7e]{1,1016}$", error="Give an http or https address of visible ASCII."
        ),
    )


class OpenedSessionSchema(ma.Schema):
    """A session just opened.  The token is shown here only."""

    session_id = fields.UUID(required=True)
    token = fields.String(required=True)
    launch_url = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "The operator's front-end with the token; null when none is registered."},
    )
    expires_at = fields.String(required=True, metadata={"format": "date-time"})


class MovementRequest(ma.Schema):
    """An amount to move."""

    amount_minor = amount_minor(least=1, required=True)
    currency = currency()


class MovementSchema(ma.Schema):
    """An amount moved."""

    movement_id = fields.UUID(required=True)
    player = fields.String(required=True)
    currency = fields.String(required=True)
    amount_minor = fields.Integer(required=True)
    balance_minor = fields.Integer(required=True)


class BalanceQuery(ma.Schema):
    """Which balance."""

    currency = currency()


class BalanceSchema(ma.Schema):
    """What a player's account holds."""

    player = fields.String(required=True)
    currency = fields.String(required=True)
    exponent = fields.Integer(required=True)
    balance_minor = fields.Integer(required=True)


class VoidRequest(ma.Schema):
    """Why a round is voided, who approved it, and what its player gets."""

    reason = written(500, required=True)
    approver = written(
        100,
        required=True,
        metadata={"description": "Whoever approved it at the operator; not who asks for it."},
    )
    policy = one_of(
        *VoidPolicy,
        load_default=VoidPolicy.REFUND.value,
        metadata={
            "description": "`refund`: the stakes. `better`: the stakes, and what the better decision would have won."
        },
    )


@blueprint.route("/sessions", methods=["POST"], parameters=HEADERS)
@blueprint.doc(security=SIGNED)
@blueprint.arguments(SessionRequest)
@blueprint.response(201, OpenedSessionSchema)
@blueprint.problems(*_BODY, *PROBLEMS, Code.GAME_UNAVAILABLE)
def post_session(body: dict[str, Any]) -> dict[str, Any]:
    """Open a session for a player."""
    wanted = NewSession(**body | {"mode": Mode(body["mode"])})
    with service().database.connection() as conn:
        operator = signing_caller(conn)
        opened = open_session(conn, operator, wanted)
        offer(conn, service().house, hash_of(opened.token))
    launch_url = None if operator.launch_url is None else f"{operator.launch_url}#token={opened.token}"
    return {
        "session_id": opened.session_id,
        "token": opened.token,
        "launch_url": launch_url,
        "expires_at": rfc3339(opened.expires_at),
    }


@blueprint.route("/sessions/<uuid:session_id>", methods=["DELETE"], parameters=HEADERS)
@blueprint.doc(security=SIGNED)
@blueprint.response(204)
@blueprint.problems(*PROBLEMS, Code.NOT_FOUND)
def delete_session(session_id: UUID) -> None:
    """End a session.  Rounds that are open stay decidable."""
    with service().database.connection() as conn:
        operator = signing_caller(conn)
        if not close_session(conn, operator, session_id):
            raise ServiceError(Code.NOT_FOUND, "You have no open session of this id.")


@blueprint.route("/players/<player>/deposits", methods=["POST"], parameters=[IDEMPOTENCY_KEY, *HEADERS])
@blueprint.doc(security=SIGNED)
@blueprint.arguments(MovementRequest)
@blueprint.response(201, MovementSchema)
@blueprint.problems(*_MOVING, Code.WALLET_EXTERNAL, Code.BALANCE_LIMIT_EXCEEDED)
def post_deposit(body: dict[str, Any], player: str) -> Response:
    """Put money into a player's account."""
    return _move(Direction.DEPOSIT, body, player)


@blueprint.route("/players/<player>/withdrawals", methods=["POST"], parameters=[IDEMPOTENCY_KEY, *HEADERS])
@blueprint.doc(security=SIGNED)
@blueprint.arguments(MovementRequest)
@blueprint.response(201, MovementSchema)
@blueprint.problems(*_MOVING, Code.WALLET_EXTERNAL, Code.INSUFFICIENT_FUNDS)
def post_withdrawal(body: dict[str, Any], player: str) -> Response:
    """Take money out of a player's account."""
    return _move(Direction.WITHDRAWAL, body, player)


@blueprint.route("/players/<player>/balance", parameters=HEADERS)
@blueprint.doc(security=SIGNED)
@blueprint.arguments(BalanceQuery, location="query")
@blueprint.response(200, BalanceSchema)
@blueprint.problems(Code.INVALID, *PROBLEMS, Code.WALLET_EXTERNAL)
def get_balance(query: dict[str, Any], player: str) -> dict[str, Any]:
    """What a player's account holds."""
    _check_name(player)
    with service().database.connection() as conn:
        operator = signing_caller(conn)
        _must_have_the_built_in_wallet(operator)
        held = balance_minor(conn, operator.operator_id, player, query["currency"])
    return {
        "player": player,
        "currency": query["currency"],
        "exponent": exponent(query["currency"]),
        "balance_minor": held,
    }


@blueprint.route("/rounds/<uuid:round_id>/void", methods=["POST"], parameters=[IDEMPOTENCY_KEY, *HEADERS])
@blueprint.doc(security=SIGNED)
@blueprint.arguments(VoidRequest)
@blueprint.response(200, RoundSchema)
@blueprint.problems(*_MOVING, Code.ROUND_NOT_FOUND, Code.GAME_UNAVAILABLE)
def post_void(body: dict[str, Any], round_id: UUID) -> Response:
    """Void a round: its stakes go back, or what was lost if it is settled.  Again: the first answer."""
    wanted = Request.of(idempotency_key(), "POST", request.path, body)
    with service().database.connection() as conn:
        operator = signing_caller(conn)
        voiding = Voiding(
            reason=body["reason"],
            actor=f"operator:{operator.name}",
            approver=body["approver"],
            policy=VoidPolicy(body["policy"]),
            at=operator.read_at,
        )
        answer = answer_void(conn, service().house, operator.operator_id, round_id, voiding, wanted)
    return answered(answer)


def _move(direction: Direction, body: dict[str, Any], player: str) -> Response:
    _check_name(player)
    wanted = Request.of(idempotency_key(), "POST", request.path, body)
    with service().database.connection() as conn:
        operator = signing_caller(conn)
        _must_have_the_built_in_wallet(operator)
        answer = move(
            conn,
            wanted,
            direction=direction,
            operator_id=operator.operator_id,
            operator=operator.name,
            player=player,
            currency=body["currency"],
            amount_minor=body["amount_minor"],
            now=operator.read_at,
        )
    return answered(answer)


def _must_have_the_built_in_wallet(operator: SigningOperator) -> None:
    if operator.wallet_url is not None:
        raise ServiceError(
            Code.WALLET_EXTERNAL,
            "Your players' money is in your own wallet, which is debited and credited as they play.",
        )


def _check_name(player: str) -> None:
    if errors := SessionRequest(only=["player"]).validate({"player": player}):
        raise ServiceError(Code.INVALID, "The player's name will not do.", errors=errors)
