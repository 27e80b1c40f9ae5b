"""Shapes of queued simulations.

Figures are texts of decimals, or whole numbers: each says the same wherever it is read.
"""

from __future__ import annotations

from typing import Any, Final

import marshmallow as ma
from marshmallow import fields

from casino_brag.catalogue.simulations import ROUNDS_MAX, ROUNDS_MIN, SEED_BYTES, SimulationState
from casino_brag.odds.strategies import MAX_EXPECTATION, Strategy
from casino_brag.web.api.fields import Whole, WholeNumber, one_of, printable
from casino_brag.web.api.report_schemas import LIMIT_MAX

CONCLUSIONS: Final = ("agrees", "repeat", "disagrees")

NUMBER_MAX: Final = 2**31 - 1


def _number(description: str) -> WholeNumber:
    return WholeNumber(validate=ma.validate.Range(1, NUMBER_MAX), metadata={"description": description})


class SimulationRequest(ma.Schema):
    """What is to be played: a version of a game, or one of its drafts; without either the version that it offers."""

    game = printable(64, required=True, metadata={"description": "The game."})
    version = _number("This version of it.")
    draft = _number("This draft of it, as it is now; it must be without problems.")
    rounds = WholeNumber(
        required=True,
        validate=ma.validate.Range(ROUNDS_MIN, ROUNDS_MAX),
        metadata={"format": "int64", "description": "How many rounds."},
    )
    strategy = printable(
        100,
        load_default=str(MAX_EXPECTATION),
        metadata={
            "description": "How the player decides: `max_expectation`, `max_rtp`, `dealer_mimic`, `always_play`, or"
            " `fold_below:` and a hand such as `Q-6-4`."
        },
    )
    seed = fields.String(
        validate=Whole(
            rf"^[0-9a-f]{{{2 * SEED_BYTES}}}$", error=f"Give {2 * SEED_BYTES} hexadecimal digits, small ones."
        ),
        metadata={"description": "The seed of an earlier run, to repeat it; a fresh one unless it is given."},
    )

    @ma.validates("strategy")
    def _is_a_strategy(self, text: str, **_: Any) -> None:
        try:
            Strategy.parse(text)
        except ValueError as unknown:
            raise ma.ValidationError(f"{unknown}.") from unknown


class SimulationQuery(ma.Schema):
    """A page of simulations."""

    cursor = fields.UUID(metadata={"description": "`next_cursor` of the page before."})
    limit = fields.Integer(validate=ma.validate.Range(1, LIMIT_MAX))


class SimulationSchema(ma.Schema):
    """A simulation: what is played, and how far it is."""

    simulation_id = fields.UUID(required=True)
    game = fields.String(required=True)
    version = fields.Integer(required=True, allow_none=True)
    draft = fields.Integer(required=True, allow_none=True)
    digest = fields.String(required=True, metadata={"description": "The paytable's."})
    strategy = fields.String(required=True)
    rounds = fields.Integer(required=True)
    seed = fields.String(required=True, metadata={"description": "Repeats it with `casino-brag simulate`."})
    state = one_of(*SimulationState, required=True)
    queued_by = fields.String(required=True, metadata={"description": "The person's name."})
    queued_at = fields.String(required=True, metadata={"format": "date-time"})
    begun_at = fields.String(required=True, allow_none=True, metadata={"format": "date-time"})
    ended_at = fields.String(required=True, allow_none=True, metadata={"format": "date-time"})
    rounds_done = fields.Integer(required=True)
    conclusion = one_of(
        *CONCLUSIONS,
        required=True,
        allow_none=True,
        metadata={"description": "Whether it agrees with the exact figures; null until it is done."},
    )
    failure = fields.String(required=True, allow_none=True)


class SimulationPageSchema(ma.Schema):
    """A page of simulations, newest first."""

    items = fields.List(fields.Nested(SimulationSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class SimulatedFigureSchema(ma.Schema):
    """A figure as simulated, with its 95 % interval, beside the exact one."""

    simulated = fields.String(required=True)
    simulated_exact = fields.String(required=True)
    low = fields.String(required=True)
    high = fields.String(required=True)
    expected = fields.String(required=True)
    expected_exact = fields.String(required=True)
    z = fields.String(required=True, metadata={"description": "In exact standard deviations."})
    p = fields.String(required=True)
    p_adjusted = fields.String(required=True, metadata={"description": "For all tests at once (Holm)."})


class CountedSchema(ma.Schema):
    """How often something was counted, and was due."""

    counted = fields.Integer(required=True)
    expected = fields.String(required=True)


class SimulatedFitSchema(ma.Schema):
    """Counts against expectations: Pearson's chi-square."""

    cells = fields.Dict(keys=fields.String(), values=fields.Nested(CountedSchema), required=True)
    chi_square = fields.String(required=True)
    degrees = fields.Integer(required=True)
    p = fields.String(required=True)
    p_adjusted = fields.String(required=True)


class SimulationResultSchema(ma.Schema):
    """All that the rounds done say.  Its probabilities are for the end: looked at on the way they mean less."""

    stakes = fields.String(required=True, metadata={"description": "Ante and Pair Bonus, minor units."})
    plan_digest = fields.String(required=True)
    staked_minor = fields.Integer(required=True)
    returned_minor = fields.Integer(required=True)
    confidence = fields.String(required=True)
    figures = fields.Dict(keys=fields.String(), values=fields.Nested(SimulatedFigureSchema), required=True)
    fits = fields.Dict(keys=fields.String(), values=fields.Nested(SimulatedFitSchema), required=True)
    impossible = fields.List(
        fields.String(), required=True, metadata={"description": "Endings that were counted and cannot be."}
    )
    discards = fields.Integer(required=True)


class EstimateSchema(ma.Schema):
    """A return to player on the way, and half the width of its 95 % interval."""

    simulated = fields.String(required=True)
    half_width = fields.String(required=True)


class CoursePointSchema(ma.Schema):
    """What the first so many rounds say."""

    rounds = fields.Integer(required=True)
    figures = fields.Dict(keys=fields.String(), values=fields.Nested(EstimateSchema), required=True)


class SimulationDetailSchema(SimulationSchema):
    """A simulation with its figures so far, and how they came to be."""

    result = fields.Nested(SimulationResultSchema, required=True, allow_none=True)
    course = fields.List(fields.Nested(CoursePointSchema), required=True)
