"""Shapes of the live return to player.

Figures are texts of decimals, or whole numbers: each says the same wherever it is read.
"""

from __future__ import annotations

import marshmallow as ma
from marshmallow import fields

from casino_brag.catalogue.closures import ClosureState
from casino_brag.watch.cases import CaseState
from casino_brag.watch.evidence import Level
from casino_brag.watch.figures import By, Verdict
from casino_brag.web.api.fields import one_of, printable
from casino_brag.web.api.report_schemas import ReturnSchema


class RtpQuery(ma.Schema):
    """Of which game and days."""

    game = printable(64, metadata={"description": "This game only."})
    since = fields.Date(
        data_key="from", metadata={"description": "From this day (UTC) on; the beginning unless it is given."}
    )
    until = fields.Date(
        data_key="to", metadata={"description": "Up to this day, included; today unless it is given."}
    )


class ComparisonSchema(ma.Schema):
    """Actual return beside an expected one: how far apart they may be, and how far they are in deviations."""

    expected_rtp = fields.String(required=True)
    tolerance_95 = fields.String(required=True)
    tolerance_99 = fields.String(required=True)
    z = fields.String(required=True)
    verdict = one_of(*Verdict, required=True, metadata={"description": "At this one look."})


class ComparedSchema(ma.Schema):
    """What was staked and returned, and what that is compared with; without rounds there are no comparisons."""

    wager = one_of("main", "pair_bonus", required=True)
    currency = fields.String(required=True, allow_none=True)
    rounds = fields.Integer(required=True)
    staked_minor = fields.Integer()
    returned_minor = fields.Integer()
    actual_rtp = fields.Nested(ReturnSchema, required=True)
    theoretical_rtp = fields.Nested(ReturnSchema)
    against_theory = fields.Nested(ComparisonSchema)
    given_cards_and_decisions = fields.Nested(
        ComparisonSchema,
        metadata={
            "description": "With what the hands dealt and the decisions taken let expect: no skill in it."
        },
    )
    verdict = one_of(*Verdict, required=True)


class RtpFigureSchema(ComparedSchema):
    """The figures of a wager, of all of a version or of a part of it."""

    by = one_of(*By, required=True)
    value = fields.String(required=True, allow_none=True, metadata={"description": "Which part."})


class CourseSchema(ComparedSchema):
    """The figures of all days up to one."""

    day = fields.String(required=True, metadata={"format": "date"})
    rounds_of_day = fields.Integer(required=True)


class EvidenceLevelSchema(ma.Schema):
    """The evidence that a version does not return what it should, since it last began anew.

    It may be looked at as often as one likes.
    """

    level = one_of(*Level, required=True)
    chance = fields.String(
        required=True,
        allow_none=True,
        metadata={
            "description": "How probable it is at most that a version without a fault ever comes to this."
        },
    )
    log10_e = fields.String(required=True, metadata={"description": "Decimal logarithm of the e-value."})
    rounds = fields.Integer(required=True)
    impossible = fields.Integer(
        required=True, metadata={"description": "Payouts that the rules do not have."}
    )
    streams = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        required=True,
        metadata={"description": "Where it comes from, the strongest first: decimal logarithms."},
    )


class FitSchema(ma.Schema):
    """A chi-square test of what was dealt."""

    of = fields.String(required=True)
    chi_square = fields.String(required=True)
    degrees = fields.Integer(required=True)
    p = fields.String(required=True)


class DealtSchema(ma.Schema):
    """What was dealt, beside the chances of it."""

    rounds = fields.Integer(required=True)
    categories = fields.Raw(
        required=True,
        metadata={
            "description": "For `player` and `dealer`, each category as counted and expected; or `no data`."
        },
    )
    fits = fields.List(fields.Nested(FitSchema), required=True)


class RtpVersionSchema(ma.Schema):
    """A paytable version that is on offer or was played."""

    game = fields.String(required=True)
    version = fields.Integer(required=True)
    digest = fields.String(required=True)
    active = fields.Boolean(required=True)
    state = one_of("enabled", *ClosureState, required=True)
    evidence = fields.Nested(EvidenceLevelSchema, required=True)
    figures = fields.List(fields.Nested(RtpFigureSchema), required=True)
    dealt = fields.Nested(DealtSchema, required=True)
    course = fields.List(fields.Nested(CourseSchema), required=True)


class RtpCaseSchema(ma.Schema):
    """What an alert led to."""

    case_id = fields.UUID(required=True)
    game = fields.String(required=True)
    version = fields.Integer(required=True)
    level = one_of(*Level, required=True)
    state = one_of(*CaseState, required=True)
    opened_at = fields.String(required=True, metadata={"format": "date-time"})
    changed_at = fields.String(required=True, metadata={"format": "date-time"})


class RtpCheckSchema(ma.Schema):
    """A check that was made of all play."""

    check_id = fields.UUID(required=True)
    day = fields.String(required=True, metadata={"format": "date"})
    made_at = fields.String(required=True, metadata={"format": "date-time"})


class RtpStatusSchema(ma.Schema):
    """How live play stands: real money without tests."""

    as_of = fields.String(required=True, metadata={"format": "date-time"})
    since = fields.String(required=True, allow_none=True, metadata={"format": "date"})
    until = fields.String(required=True, metadata={"format": "date"})
    behind_leaves = fields.Integer(
        required=True, metadata={"description": "Entries of the log that are not added up yet."}
    )
    behind_since = fields.String(required=True, allow_none=True, metadata={"format": "date-time"})
    versions = fields.List(fields.Nested(RtpVersionSchema), required=True)
    cases = fields.List(
        fields.Nested(RtpCaseSchema), required=True, metadata={"description": "Those not closed."}
    )
    last_check = fields.Nested(RtpCheckSchema, required=True, allow_none=True)
