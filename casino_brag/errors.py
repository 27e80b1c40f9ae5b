"""Everything that can go wrong in operation, as one tree with one stable code per cause.

A code is part of the public contract: it never changes its meaning, and every answer with
``application/problem+json`` carries one.  The enum's order is the order of precedence: when a request is
wrong in several ways, the code that stands first is the one reported.

Programmers' errors are not here; they are assertions.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple


class Code(StrEnum):
    """The closed set of problem codes, in order of precedence."""

    RATE_LIMITED = "rate_limited"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    MALFORMED_REQUEST = "malformed_request"
    INVALID = "invalid"
    IDEMPOTENCY_KEY_MISSING = "idempotency_key_missing"
    UNAUTHENTICATED = "unauthenticated"
    SIGNATURE_INVALID = "signature_invalid"
    NONCE_REUSED = "nonce_reused"
    FORBIDDEN = "forbidden"
    PRECONDITION_REQUIRED = "precondition_required"
    WRONG_STATE = "wrong_state"
    SAME_PERSON = "same_person"
    PRECONDITION_FAILED = "precondition_failed"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    ROUND_NOT_FOUND = "round_not_found"
    SESSION_EXPIRED = "session_expired"
    GAME_UNAVAILABLE = "game_unavailable"
    STAKE_OUT_OF_LIMITS = "stake_out_of_limits"
    PAYOUT_LIMIT_EXCEEDED = "payout_limit_exceeded"
    TOO_SOON = "too_soon"
    RNG_UNAVAILABLE = "rng_unavailable"
    SEALING_BEHIND = "sealing_behind"
    REQUEST_IN_PROGRESS = "request_in_progress"
    PAYOUT_PENDING = "payout_pending"
    ROUND_OPEN = "round_open"
    COMMITMENT_STALE = "commitment_stale"
    ALREADY_DECIDED = "already_decided"
    ROUND_VOIDED = "round_voided"
    PROOF_UNAVAILABLE = "proof_unavailable"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    LIMIT_REACHED = "limit_reached"
    PLAYER_BLOCKED = "player_blocked"
    WALLET_REFUSED = "wallet_refused"
    WALLET_EXTERNAL = "wallet_external"
    BALANCE_LIMIT_EXCEEDED = "balance_limit_exceeded"
    WALLET_UNAVAILABLE = "wallet_unavailable"
    BUSY = "busy"
    DATABASE_UNAVAILABLE = "database_unavailable"
    INTERNAL_ERROR = "internal_error"


class Meaning(NamedTuple):
    """What a code means to a caller.

    ``status`` is the HTTP status; ``retryable`` says whether sending the same request again, unchanged, can
    succeed; ``retry_after_seconds`` goes into ``Retry-After`` where it is not None.
    """

    status: int
    title: str
    retryable: bool = False
    retry_after_seconds: int | None = None


MEANINGS: Final[Mapping[Code, Meaning]] = {
    Code.RATE_LIMITED: Meaning(429, "Too many requests", True, 1),
    Code.NOT_FOUND: Meaning(404, "There is nothing at this address"),
    Code.METHOD_NOT_ALLOWED: Meaning(405, "This address does not take that method"),
    Code.BODY_TOO_LARGE: Meaning(413, "The request body is too large"),
    Code.UNSUPPORTED_MEDIA_TYPE: Meaning(415, "The body must be JSON"),
    Code.MALFORMED_REQUEST: Meaning(400, "The request could not be read"),
    Code.INVALID: Meaning(422, "The request does not follow the contract"),
    Code.IDEMPOTENCY_KEY_MISSING: Meaning(422, "An Idempotency-Key header is needed"),
    Code.UNAUTHENTICATED: Meaning(401, "The caller is not known"),
    Code.SIGNATURE_INVALID: Meaning(401, "The request's signature does not hold"),
    Code.NONCE_REUSED: Meaning(401, "This signed request was seen before"),
    Code.FORBIDDEN: Meaning(403, "The caller has no role that may do this"),
    Code.PRECONDITION_REQUIRED: Meaning(428, "An If-Match header is needed"),
    Code.WRONG_STATE: Meaning(409, "It is not in a state in which this can be done"),
    Code.SAME_PERSON: Meaning(403, "Somebody else has to do this"),
    Code.PRECONDITION_FAILED: Meaning(412, "It has been changed meanwhile"),
    Code.IDEMPOTENCY_KEY_REUSED: Meaning(422, "The Idempotency-Key was used for another request"),
    Code.ROUND_NOT_FOUND: Meaning(404, "There is no such round"),
    Code.SESSION_EXPIRED: Meaning(401, "The session has ended"),
    Code.GAME_UNAVAILABLE: Meaning(409, "The game is not open"),
    Code.STAKE_OUT_OF_LIMITS: Meaning(422, "A stake is outside the limits"),
    Code.PAYOUT_LIMIT_EXCEEDED: Meaning(422, "The stakes could win more than the game may pay"),
    Code.TOO_SOON: Meaning(429, "The last round began too short a time ago", True, 5),
    Code.RNG_UNAVAILABLE: Meaning(503, "No cards can be drawn", True, 5),
    Code.SEALING_BEHIND: Meaning(503, "The log is not being sealed", True, 5),
    Code.REQUEST_IN_PROGRESS: Meaning(409, "Another request is being worked on", True, 1),
    Code.PAYOUT_PENDING: Meaning(409, "The last round is still being paid", True, 2),
    Code.ROUND_OPEN: Meaning(409, "A round is open already"),
    Code.COMMITMENT_STALE: Meaning(409, "The commitment is not the present one"),
    Code.ALREADY_DECIDED: Meaning(409, "The other decision was taken"),
    Code.ROUND_VOIDED: Meaning(409, "The round was voided"),
    Code.PROOF_UNAVAILABLE: Meaning(409, "There is no proof of this round yet"),
    Code.INSUFFICIENT_FUNDS: Meaning(409, "The balance does not cover the stake", True),
    Code.LIMIT_REACHED: Meaning(409, "A limit of the player's does not allow the stake", True),
    Code.PLAYER_BLOCKED: Meaning(409, "The player may not stake"),
    Code.WALLET_REFUSED: Meaning(409, "The operator's wallet refused the stake"),
    Code.WALLET_EXTERNAL: Meaning(409, "The money is in the operator's own wallet"),
    Code.BALANCE_LIMIT_EXCEEDED: Meaning(422, "The balance would become too large"),
    Code.WALLET_UNAVAILABLE: Meaning(503, "The operator's wallet did not answer", True, 5),
    Code.BUSY: Meaning(503, "The service is busy", True, 1),
    Code.DATABASE_UNAVAILABLE: Meaning(503, "The records cannot be reached", True, 2),
    Code.INTERNAL_ERROR: Meaning(500, "Something went wrong on our side", True),
}


class ServiceError(Exception):
    """An operating error with a stable code.

    ``detail`` is one sentence for a person and says what to do; it never holds SQL, a card or a secret.
    ``errors`` maps a field's name to what is wrong with it (used with 422).  ``retry_after_seconds`` is given where
    it is known better than the code's meaning knows it.
    """

    def __init__(
        self,
        code: Code,
        detail: str,
        *,
        errors: Mapping[str, list[str]] | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = errors
        self.retry_after_seconds = retry_after_seconds or MEANINGS[code].retry_after_seconds

    @property
    def meaning(self) -> Meaning:
        """The code's status, title and whether a retry can help."""
        return MEANINGS[self.code]


Errors = dict[str, list[str]]
"""What is wrong with what was given: sentences by the name of a field or the key of a paytable."""


def invalid(name: str, sentence: str) -> ServiceError:
    """The error of one thing that was given and will not do.

    >>> invalid("days", "Give 1 to 366.").errors
    {'days': ['Give 1 to 366.']}
    """
    return ServiceError(Code.INVALID, "Something given will not do.", errors={name: [sentence]})


class SetUpError(Exception):
    """Something about the installation stops a command; the text says what to do about it."""


def places_of(error: BaseException) -> list[str]:
    """The last places in the source that an error passed, which is all of it that may be logged beside its kind."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return places[-8:]
