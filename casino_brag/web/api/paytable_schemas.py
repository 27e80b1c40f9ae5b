"""Shapes of paytables as staff reads and changes them: drafts, versions, and what became of each."""

from __future__ import annotations

from typing import Any, Final

import marshmallow as ma
from marshmallow import fields

from casino_brag.audit import EntryType
from casino_brag.catalogue.drafts import CERTIFICATE_LENGTH_MAX, DraftState
from casino_brag.catalogue.versions import VersionState
from casino_brag.game.paytable import GAME_NAME_LENGTH_MAX
from casino_brag.staff.acting import REASON_LENGTH_MAX
from casino_brag.web.api.fields import Whole, WholeNumber, one_of, printable, written
from casino_brag.web.api.report_schemas import LIMIT_MAX, Moment
from casino_brag.web.api.schemas import PaytableSchema
from casino_brag.web.api.simulation_schemas import NUMBER_MAX

TEXT_LENGTH_MAX: Final = 60_000
"""So many characters of a file fit a body beside what else it says."""
JURISDICTIONS_MAX: Final = 100


def _text(description: str, *, least: int = 1, **kwargs: Any) -> fields.String:
    """The text of a paytable's file; what is in it is judged later, and at the keys of the paytable."""
    return fields.String(
        validate=ma.validate.Length(least, TEXT_LENGTH_MAX, error="Give {min} to {max} characters."),
        metadata={"description": description},
        **kwargs,
    )


def _number(description: str) -> WholeNumber:
    return WholeNumber(validate=ma.validate.Range(1, NUMBER_MAX), metadata={"description": description})


def _why(description: str) -> fields.String:
    return written(REASON_LENGTH_MAX, required=True, metadata={"description": description})


def _time(**kwargs: Any) -> fields.String:
    return fields.String(required=True, metadata={"format": "date-time"}, **kwargs)


def _jurisdictions(**kwargs: Any) -> fields.List[str]:
    return fields.List(
        printable(63),
        validate=ma.validate.Length(1, JURISDICTIONS_MAX),
        metadata={"description": "Names of jurisdictions, in whose sessions it shall be offered."},
        **kwargs,
    )


def _certificate() -> fields.String:
    return written(
        CERTIFICATE_LENGTH_MAX,
        metadata={"description": "Reference of the one that covers it, where a jurisdiction asks for one."},
    )


def sentences(description: str) -> fields.Dict:
    """What is wrong, by key."""
    return fields.Dict(
        keys=fields.String(),
        values=fields.List(fields.String()),
        required=True,
        metadata={"description": description},
    )


class DraftRequest(ma.Schema):
    """A draft to begin: with a text, with that of a version or of another draft, or else of the active version."""

    game = printable(
        GAME_NAME_LENGTH_MAX,
        required=True,
        metadata={"description": "The game, which need not exist yet: lower-case letters, digits, hyphens."},
    )
    text = _text("A paytable's file, finished or not.")
    from_version = _number("Begin with the text of this version.")
    from_draft = _number(
        "Begin with the text of this draft, whatever became of it; or, with a `text`, the draft it was made of."
    )


class SaveRequest(ma.Schema):
    """Another text for a draft."""

    text = _text("A paytable's file, finished or not.", required=True)


class PreviewRequest(ma.Schema):
    """What to look at; all that is left out is the draft's own."""

    text = _text("A text that is not saved.", least=0)
    jurisdictions = _jurisdictions()
    certificate = _certificate()


class SubmitRequest(ma.Schema):
    """What is said of a draft when it is submitted."""

    jurisdictions = _jurisdictions(required=True)
    certificate = _certificate()
    note = _why("Why it was made, on one line; kept for good.")


class ApproveRequest(ma.Schema):
    """What is approved: this content and no other."""

    digest = fields.String(
        required=True,
        validate=Whole(r"^[0-9a-f]{64}$", error="Give 64 hexadecimal digits, small ones."),
        metadata={"description": "As the submitted draft has it."},
    )


class ReasonRequest(ma.Schema):
    """Why something is done."""

    reason = _why("On one line; kept for good.")


class ActivateRequest(ReasonRequest):
    """When a version comes into force, and why."""

    at = Moment(metadata={"description": "At this time, at most 366 days ahead; now unless it is given."})


class ListQuery(ma.Schema):
    """A page of a list."""

    cursor = fields.UUID(metadata={"description": "`next_cursor` of the page before."})
    limit = fields.Integer(validate=ma.validate.Range(1, LIMIT_MAX))


class DraftQuery(ListQuery):
    """Which drafts."""

    state = one_of(*DraftState, metadata={"description": "As they are now."})


class DraftSchema(ma.Schema):
    """A draft.  What is said at its submission and its decision is null before."""

    draft_id = fields.UUID(required=True)
    game = fields.String(required=True)
    number = fields.Integer(required=True)
    state = one_of(*DraftState, required=True)
    revision = fields.Integer(required=True, metadata={"description": "Another after every change."})
    started_from = fields.Integer(
        required=True, allow_none=True, metadata={"description": "The version whose text it began with."}
    )
    created_by = fields.String(required=True, metadata={"description": "The person's name, as all here."})
    editors = fields.List(
        fields.String(), required=True, metadata={"description": "Everybody who made or saved it."}
    )
    created_at = _time()
    changed_at = _time()
    submitted_by = fields.String(required=True, allow_none=True)
    submitted_at = _time(allow_none=True)
    digest = fields.String(required=True, allow_none=True)
    jurisdictions = fields.List(fields.String(), required=True, allow_none=True)
    certificate = fields.String(required=True, allow_none=True)
    note = fields.String(required=True, allow_none=True)
    decided_by = fields.String(required=True, allow_none=True)
    decided_at = _time(allow_none=True)
    decision_reason = fields.String(required=True, allow_none=True)
    version = fields.Integer(
        required=True, allow_none=True, metadata={"description": "What it became when it was approved."}
    )


class DraftPageSchema(ma.Schema):
    """A page of drafts, newest first."""

    items = fields.List(fields.Nested(DraftSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class DraftDetailSchema(DraftSchema):
    """A draft with its text."""

    text = fields.String(required=True)
    document = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "What was submitted, as RFC 8785 has it: `digest` is its SHA-256."},
    )
    problems = sentences("What is wrong with the text, by key of the paytable; the empty key is all of it.")


class VersionSchema(ma.Schema):
    """A version.  Of one that came from a file nobody is known to have approved it, and it is for all jurisdictions."""

    game = fields.String(required=True)
    version = fields.Integer(required=True)
    digest = fields.String(required=True)
    state = one_of(*VersionState, required=True)
    draft = fields.Integer(required=True, allow_none=True, metadata={"description": "The draft that it was."})
    published_at = _time()
    approved_by = fields.String(required=True, allow_none=True)
    jurisdictions = fields.List(fields.String(), required=True, allow_none=True)
    certificate = fields.String(required=True, allow_none=True)
    note = fields.String(required=True, allow_none=True)
    activated_at = _time(allow_none=True)
    scheduled_at = _time(allow_none=True)
    scheduled_by = fields.String(required=True, allow_none=True)
    retired_at = _time(allow_none=True)


class VersionPageSchema(ma.Schema):
    """All versions of a game, newest first."""

    items = fields.List(fields.Nested(VersionSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class VersionDetailSchema(VersionSchema):
    """A version with what it says."""

    paytable = fields.Dict(required=True, metadata={"description": "What the digest is of, read."})


class ParSheetQuery(ma.Schema):
    """In which form."""

    format = one_of(
        "json", "html", "markdown", load_default="json", metadata={"description": "`html` is fit to print."}
    )


class ScheduledSchema(PaytableSchema):
    """A version that is to come into force."""

    at = _time(attribute="scheduled_at")


class OpenDraftSchema(ma.Schema):
    """A draft that is being written, or waits for a decision."""

    number = fields.Integer(required=True)
    state = one_of(DraftState.DRAFT, DraftState.SUBMITTED, required=True)
    created_by = fields.String(required=True)
    changed_at = _time()


class GamePaytablesSchema(ma.Schema):
    """A game: what is in force, what comes, and what is being written."""

    game = fields.String(required=True)
    active = fields.Nested(PaytableSchema, required=True, allow_none=True)
    scheduled = fields.Nested(ScheduledSchema, required=True, allow_none=True)
    open_drafts = fields.List(
        fields.Nested(OpenDraftSchema),
        required=True,
        metadata={"description": f"Newest first, at most {LIMIT_MAX}."},
    )


class GamePaytablesPageSchema(ma.Schema):
    """All games by name."""

    items = fields.List(fields.Nested(GamePaytablesSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class HappeningSchema(ma.Schema):
    """An entry of the audit log about a game: who did what, when and why."""

    entry_id = fields.UUID(required=True)
    occurred_at = _time()
    type = one_of(*EntryType, required=True)
    actor = fields.String(required=True)
    authoriser = fields.String(required=True, allow_none=True)
    reason = fields.String(required=True, allow_none=True)
    before = fields.Dict(required=True, allow_none=True)
    after = fields.Dict(required=True, allow_none=True)
    payload = fields.Dict(required=True, allow_none=True)


class HistoryPageSchema(ma.Schema):
    """A page of what happened, newest first."""

    items = fields.List(fields.Nested(HappeningSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)
