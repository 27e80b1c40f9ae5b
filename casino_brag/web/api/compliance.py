"""What staff calls to check the service: the audit log and its proofs, random numbers, the program."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import psycopg
from flask import Response

from casino_brag.audit.listing import Filter, list_entries
from casino_brag.audit.part import verify_part
from casino_brag.audit.proving import inclusion, leaves_of
from casino_brag.db.clock import rfc3339
from casino_brag.errors import Code, ServiceError
from casino_brag.rounds.rng_status import rng_status
from casino_brag.rounds.upkeep import check_now
from casino_brag.staff.people import Role
from casino_brag.watch.status import status
from casino_brag.web.api.checkpoints import checkpoint
from casino_brag.web.api.compliance_schemas import (
    EntryPageSchema,
    EntryQuery,
    EntrySchema,
    InclusionProofSchema,
    InclusionQuery,
    IntegritySchema,
    RngStatusSchema,
    VerifiedSchema,
    VerifyRequest,
)
from casino_brag.web.api.lists import CSV, listed, page
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.api.rtp_schemas import RtpQuery, RtpStatusSchema
from casino_brag.web.api.staff import PROBLEMS, for_roles, staff_caller
from casino_brag.web.api.tables import wants_csv
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "compliance", "compliance", url_prefix="/v1", description="What staff reads and verifies."
)

AUDITORS: Final = (Role.AUDITOR,)
WATCHERS: Final = (Role.AUDITOR, Role.OPERATIONS)

_FILTERS: Final = tuple(field.name for field in fields(Filter))
_COLUMNS: Final = tuple(EntrySchema().fields)


@blueprint.route("/audit/entries")
@blueprint.doc(security=for_roles(AUDITORS), responses=CSV)
@blueprint.arguments(EntryQuery, location="query")
@blueprint.response(200, EntryPageSchema)
@blueprint.problems(Code.INVALID, *PROBLEMS)
def get_entries(query: dict[str, Any]) -> Response | dict[str, Any]:
    """The audit log, newest first."""
    wanted = Filter(**{name: query[name] for name in _FILTERS if name in query})
    with service().database.connection() as conn:
        staff_caller(conn, AUDITORS)

    def read(conn: psycopg.Connection[Any], after: Any, limit: int) -> list[dict[str, Any]]:
        return list_entries(conn, wanted, after=after, limit=limit)

    if wants_csv(query.get("format")):
        return listed("audit-entries", _COLUMNS, read, "entry_id", query)
    return page(read, "entry_id", query)


@blueprint.route("/audit/proof/inclusion")
@blueprint.doc(security=for_roles(AUDITORS))
@blueprint.arguments(InclusionQuery, location="query")
@blueprint.response(200, InclusionProofSchema)
@blueprint.problems(Code.NOT_FOUND, Code.INVALID, *PROBLEMS, Code.PROOF_UNAVAILABLE)
def get_inclusion(query: dict[str, Any]) -> dict[str, Any]:
    """That an entry, or every entry of a round, is in the tree of a checkpoint."""
    with service().database.connection() as conn:
        staff_caller(conn, AUDITORS)
        if not query.keys() & {"round_id", "entry_id"}:
            raise ServiceError(
                Code.INVALID,
                "Name a round or an entry.",
                errors={name: ["Give a round_id or an entry_id."] for name in ("round_id", "entry_id")},
            )
        leaves = leaves_of(conn, round_id=query.get("round_id"), entry_id=query.get("entry_id"))
        if not leaves:
            raise ServiceError(Code.NOT_FOUND, "There is no entry of this id. See GET /v1/audit/entries.")
        signed = checkpoint(conn, query.get("size"))
        if not all(leaf.is_in(signed) for leaf in leaves):
            raise ServiceError(
                Code.PROOF_UNAVAILABLE,
                f"The tree of {signed.tree_size} leaves does not have it, or not all of it. Ask for a larger one, or"
                " wait a few seconds for one.",
            )
        return inclusion(conn, leaves, signed)


@blueprint.route("/audit/verify", methods=["POST"])
@blueprint.doc(security=for_roles(AUDITORS))
@blueprint.arguments(VerifyRequest)
@blueprint.response(200, VerifiedSchema)
@blueprint.problems(
    Code.NOT_FOUND,
    Code.BODY_TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.MALFORMED_REQUEST,
    Code.INVALID,
    *PROBLEMS,
)
def post_verify(body: dict[str, Any]) -> dict[str, Any]:
    """Verify a part of the audit log: its entries, and that they are the ones that were signed."""
    first, last = body["first_leaf"], body.get("last_leaf")
    with service().database.connection() as conn:
        staff_caller(conn, AUDITORS, body)
        if last is not None and last < first:
            raise ServiceError(
                Code.INVALID,
                "The last leaf comes before the first.",
                errors={"last_leaf": ["Give the greater number last."]},
            )
        verified = verify_part(conn, first, last)
    if verified is None:
        raise ServiceError(
            Code.NOT_FOUND, "No signed tree has this leaf. What there is: GET /v1/audit/checkpoints."
        )
    return verified.document()


@blueprint.route("/rtp")
@blueprint.doc(security=for_roles(WATCHERS))
@blueprint.arguments(RtpQuery, location="query")
@blueprint.response(200, RtpStatusSchema)
@blueprint.problems(Code.INVALID, *PROBLEMS)
def get_rtp(query: dict[str, Any]) -> dict[str, Any]:
    """How live play stands: its return beside theory, the evidence against it, open cases."""
    with service().database.connection() as conn:
        staff_caller(conn, WATCHERS)
        return status(conn, **query)


@blueprint.route("/integrity/verify", methods=["POST"])
@blueprint.doc(security=for_roles(WATCHERS))
@blueprint.response(200, IntegritySchema)
@blueprint.problems(*PROBLEMS)
def post_integrity() -> dict[str, Any]:
    """Compare the program's files and the published paytables with their digests, and put the result on record.

    When they differ, the process that answers deals no more.
    """
    with service().database.connection() as conn:
        caller = staff_caller(conn, WATCHERS)
        found, checked_at = check_now(conn, service().house.generator, actor=caller.actor)
    return {
        "agrees": not found.problems,
        "checked_at": rfc3339(checked_at),
        "files": found.files,
        "paytables": found.paytables,
        "manifest_digest": found.manifest_digest,
        "problems": found.problems,
    }


@blueprint.route("/rng/status")
@blueprint.doc(security=for_roles(AUDITORS))
@blueprint.response(200, RngStatusSchema)
@blueprint.problems(*PROBLEMS)
def get_rng_status() -> dict[str, Any]:
    """How the random numbers are: the answering process's module, and the last 24 hours of all."""
    with service().database.connection() as conn:
        staff_caller(conn, AUDITORS)
        return rng_status(conn, service().house.generator)
