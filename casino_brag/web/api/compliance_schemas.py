"""Shapes of what staff reads and verifies, and of the log's public face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import marshmallow as ma
from marshmallow import fields

from casino_brag.audit import EntryType
from casino_brag.audit.findings import Wrong
from casino_brag.audit.part import LEAVES_MAX
from casino_brag.game.rules import MINOR_MAX
from casino_brag.web.api.fields import WholeNumber, one_of, written
from casino_brag.web.api.report_schemas import LIMIT_MAX, Listed, Moment

BASE64: Final = "byte"
"""The format, in OpenAPI, of bytes written as base64."""


def _base64(**kwargs: Any) -> fields.String:
    return fields.String(required=True, metadata={"format": BASE64, **kwargs})


def _size(description: str, **kwargs: Any) -> fields.Integer:
    return fields.Integer(
        strict=False,
        validate=ma.validate.Range(1, 2**63 - 1),
        metadata={"description": description},
        **kwargs,
    )


class EntryQuery(Listed):
    """Which entries."""

    type = one_of(*EntryType, metadata={"description": "What happened."})
    actor = written(200, metadata={"description": "Who did it, such as `staff:NAME` or `operator:NAME`."})
    operator_id = fields.UUID(metadata={"description": "Of this operator."})
    player_id = fields.UUID(metadata={"description": "Of this player, by the id that entries have."})
    session_id = fields.UUID(metadata={"description": "Of this session."})
    round_id = fields.UUID(metadata={"description": "Of this round."})
    since = Moment(data_key="from", metadata={"description": "At this time or later."})
    until = Moment(data_key="to", metadata={"description": "Before this time."})


class EntrySchema(ma.Schema):
    """An entry of the audit log: its columns, its place, and the bytes that are hashed, of which all else follows."""

    entry_id = fields.UUID(required=True)
    type = one_of(*EntryType, required=True)
    occurred_at = fields.String(required=True, metadata={"format": "date-time"})
    actor = fields.String(required=True)
    authoriser = fields.String(required=True, allow_none=True)
    operator_id = fields.UUID(required=True, allow_none=True)
    player_id = fields.UUID(required=True, allow_none=True)
    session_id = fields.UUID(required=True, allow_none=True)
    round_id = fields.UUID(required=True, allow_none=True)
    reason = fields.String(required=True, allow_none=True)
    before = fields.Dict(required=True, allow_none=True)
    after = fields.Dict(required=True, allow_none=True)
    payload = fields.Dict(required=True, allow_none=True)
    leaf_index = fields.Integer(
        required=True,
        allow_none=True,
        metadata={"description": "Its place in the tree, from 0; null while it has none."},
    )
    bytes_b64 = _base64(description="The entry as RFC 8785 has it.")


class EntryPageSchema(ma.Schema):
    """A page of entries, newest first."""

    items = fields.List(fields.Nested(EntrySchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class CheckpointQuery(ma.Schema):
    """A page of checkpoints."""

    cursor = _size("`next_cursor` of the page before: only smaller trees.")
    limit = fields.Integer(load_default=50, validate=ma.validate.Range(1, LIMIT_MAX))


class CheckpointSchema(ma.Schema):
    """What the tree was when it had so many leaves, signed."""

    tree_size = fields.Integer(required=True)
    root_hash = _base64(description="RFC 9162.")
    made_at = fields.String(required=True, metadata={"format": "date-time"})
    note = fields.String(required=True, metadata={"description": "The signed note, a C2SP tlog-checkpoint."})


class CheckpointPageSchema(ma.Schema):
    """A page of checkpoints, newest first."""

    items = fields.List(fields.Nested(CheckpointSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class KeySchema(ma.Schema):
    """A key that has signed checkpoints."""

    verifier_key = fields.String(
        required=True, metadata={"description": "Name, key hash and base64 of the key, joined by `+`."}
    )


class KeyPageSchema(ma.Schema):
    """All of them.  Whose they are is to be learnt elsewhere."""

    items = fields.List(fields.Nested(KeySchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class ConsistencyQuery(ma.Schema):
    """Between which checkpoints."""

    old = _size("The size of the older checkpoint's tree.", required=True)
    new = _size("The size of the newer one's.", required=True)

    @ma.validates_schema
    def _check(self, data: Mapping[str, Any], **_: Any) -> None:
        if {"old", "new"} <= data.keys() and data["old"] > data["new"]:
            raise ma.ValidationError("Give the smaller size first.", "old")


class ConsistencyProofSchema(ma.Schema):
    """That the newer tree begins with the older one: both signed notes, and the hashes between them (RFC 9162)."""

    old = fields.String(required=True)
    new = fields.String(required=True)
    proof = fields.List(_base64(), required=True)


class InclusionQuery(ma.Schema):
    """Of what, and in which tree."""

    round_id = fields.UUID(
        metadata={"description": "All entries of this round. This or `entry_id` is needed."}
    )
    entry_id = fields.UUID(metadata={"description": "This entry."})
    size = _size("The size of a checkpoint's tree; the newest unless it is given.")


class IncludedEntrySchema(ma.Schema):
    """An entry, and the hashes that lead from it to the root (RFC 9162)."""

    bytes_b64 = _base64()
    leaf_index = fields.Integer(required=True)
    inclusion_proof = fields.List(_base64(), required=True)


class InclusionProofSchema(ma.Schema):
    """That entries are in the tree of a signed checkpoint."""

    entries = fields.List(fields.Nested(IncludedEntrySchema), required=True)
    tree_size = fields.Integer(required=True)
    checkpoint = fields.String(required=True, metadata={"description": "The signed note."})
    verifier_key = fields.String(required=True)


class VerifyRequest(ma.Schema):
    """Which leaves of the log."""

    first_leaf = WholeNumber(
        load_default=0,
        validate=ma.validate.Range(0, MINOR_MAX),
        metadata={"description": "From this one on; the first is 0."},
    )
    last_leaf = WholeNumber(
        validate=ma.validate.Range(0, MINOR_MAX),
        metadata={"description": "Up to this one, included; all there are unless it is given."},
    )


class FindingSchema(ma.Schema):
    """One thing that is wrong."""

    wrong = one_of(*Wrong, required=True)
    leaf_index = fields.Integer(required=True, allow_none=True)
    entry_id = fields.String(required=True, allow_none=True)
    detail = fields.String(required=True)


class VerifiedSchema(ma.Schema):
    """What was verified in the newest signed tree, and what is wrong: how much, and the first of it."""

    holds = fields.Boolean(required=True)
    first_leaf = fields.Integer(required=True)
    last_leaf = fields.Integer(required=True)
    next_leaf = fields.Integer(
        required=True,
        allow_none=True,
        metadata={"description": f"Where to go on: one call verifies {LEAVES_MAX:,} leaves at most."},
    )
    tree_size = fields.Integer(required=True)
    checkpoint = fields.String(required=True, metadata={"description": "The signed note."})
    wrong = fields.Integer(required=True)
    findings = fields.List(fields.Nested(FindingSchema), required=True)


class IntegritySchema(ma.Schema):
    """What was compared with its digest, and what did not agree."""

    agrees = fields.Boolean(required=True)
    checked_at = fields.String(required=True, metadata={"format": "date-time"})
    files = fields.Integer(required=True)
    paytables = fields.Integer(required=True)
    manifest_digest = fields.String(required=True)
    problems = fields.List(fields.String(), required=True)


class RngEventSchema(ma.Schema):
    """How often processes put such an event on record in the last 24 hours, and when they last did."""

    count = fields.Integer(required=True)
    last_at = fields.String(required=True, allow_none=True, metadata={"format": "date-time"})


class RngEventsSchema(ma.Schema):
    """The events of all processes."""

    self_tested = fields.Nested(RngEventSchema, required=True)
    instantiated = fields.Nested(RngEventSchema, required=True)
    forked = fields.Nested(RngEventSchema, required=True)
    integrity_checked = fields.Nested(RngEventSchema, required=True)
    failed = fields.Nested(RngEventSchema, required=True)


class RngFailureSchema(ma.Schema):
    """A module that stopped for good, with its process."""

    occurred_at = fields.String(required=True, metadata={"format": "date-time"})
    actor = fields.String(required=True)
    reason = fields.String(required=True)


class RngStatusSchema(ma.Schema):
    """How the module of the process that answers is, and what all processes have put on record."""

    module_digest = fields.String(required=True)
    protocol = fields.String(required=True, metadata={"description": "Of deals that can be checked."})
    process = fields.Integer(required=True)
    state = one_of("uninstantiated", "self_test", "ready", "reseeding", "error", required=True)
    failure = fields.String(required=True, allow_none=True)
    events = fields.Nested(RngEventsSchema, required=True)
    failures = fields.List(
        fields.Nested(RngFailureSchema),
        required=True,
        metadata={"description": "The newest 20 of the last 24 hours."},
    )
