"""Shapes of an operator's reports and of its rounds in full, and what they are asked by."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import marshmallow as ma
from marshmallow import fields

from casino_brag.catalogue.operators import InterruptionPolicy
from casino_brag.catalogue.sessions import Mode
from casino_brag.game.hands import Category
from casino_brag.game.settlement import Decision, Result
from casino_brag.rounds.recall import STATES
from casino_brag.rounds.reports import NO_ACTIVITY, Period
from casino_brag.rounds.voiding import VoidPolicy
from casino_brag.wallet.transactions import Purpose
from casino_brag.web.api.fields import one_of, printable
from casino_brag.web.api.schemas import CommitmentSchema, PaytableSchema, WagerSchema
from casino_brag.web.api.tables import ROWS_MAX

LIMIT_MAX: Final = 200


class Moment(fields.AwareDateTime):
    """A time of RFC 3339 within the years that a clock can show."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:
        moment = super()._deserialize(value, attr, data, **kwargs)
        if not 1970 <= moment.year <= 9998:
            raise ma.ValidationError("Give a time of the years 1970 to 9998.")
        return moment.astimezone(UTC)


def _format() -> fields.String:
    said = f"Instead of the header `Accept`; a table has up to {ROWS_MAX:,} rows unless `limit` says fewer."
    return one_of("json", "csv", metadata={"description": said})


class Listed(ma.Schema):
    """A page of a list."""

    cursor = fields.UUID(metadata={"description": "`next_cursor` of the page before, or the last row's id."})
    limit = fields.Integer(validate=ma.validate.Range(1, LIMIT_MAX))
    format = _format()


class Times(ma.Schema):
    """A time to report of, as far as each of its fields can be judged alone."""

    since = Moment(
        data_key="from", metadata={"description": "From this time on; with `to` unless that is now."}
    )
    until = Moment(data_key="to", metadata={"description": "Before this time; now unless it is given."})
    period = one_of(
        *Period, metadata={"description": "To date, by UTC: instead of `from` and `to`; `day` at first."}
    )


def times_problem(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """What is wrong with the fields of a time beside each other, by field; empty where nothing is."""
    if "period" in data and data.keys() & {"since", "until"}:
        return {"period": ["Give a period, or from and to."]}
    if "until" in data and "since" not in data:
        return {"from": ["Give from as well."]}
    return {}


class Within(Times):
    """A time to report of."""

    @ma.validates_schema
    def _check(self, data: Mapping[str, Any], **_: Any) -> None:
        if problem := times_problem(data):
            raise ma.ValidationError(problem)


class OperatorRoundQuery(Listed):
    """Which rounds."""

    player = printable(128, metadata={"description": "The operator's own name for the player."})
    state = one_of(*STATES, metadata={"description": "As the rounds are now."})
    game = printable(64, metadata={"description": "The game."})
    since = Moment(data_key="from", metadata={"description": "Opened at this time or later."})
    until = Moment(data_key="to", metadata={"description": "Opened before this time."})
    mode = one_of(*Mode, load_default="real", metadata={"description": "`real` unless said otherwise."})
    test = fields.Boolean(
        load_default=False,
        truthy={"true"},
        falsy={"false"},
        metadata={"description": "Whether rounds of test sessions are listed too."},
    )


class PerformanceQuery(Within):
    """Of which time."""

    format = _format()


class InterruptedQuery(Listed):
    """What counts as interrupted."""

    minutes = fields.Integer(
        load_default=5,
        validate=ma.validate.Range(0, 525_600),
        metadata={"description": "Only what has been unfinished for so long."},
    )


class AlterationsQuery(Within, Listed):
    """Of which time."""


class WalletTransactionSchema(ma.Schema):
    """What an operator's wallet was asked about a round, and how it stands."""

    transaction_id = fields.UUID(required=True)
    purpose = one_of(*Purpose, required=True)
    wager = one_of("ante", "pair_bonus", "play", "payout", required=True)
    amount_minor = fields.Integer(required=True)
    state = one_of("pending", "cancelling", "done", "refused", "cancelled", required=True)
    reason = fields.String(required=True, allow_none=True)
    attempts = fields.Integer(required=True)
    last_problem = fields.String(required=True, allow_none=True)
    begun_at = fields.String(required=True, metadata={"format": "date-time"})
    ended_at = fields.String(required=True, allow_none=True, metadata={"format": "date-time"})


class VoidSchema(ma.Schema):
    """Why a round was taken back, who did and who approved it, and what came of it."""

    voided_at = fields.String(required=True, metadata={"format": "date-time"})
    reason = fields.String(required=True)
    actor = fields.String(required=True)
    approver = fields.String(required=True)
    policy = one_of(*VoidPolicy, required=True)
    refund_minor = fields.Integer(required=True)
    compensation_minor = fields.Integer(required=True)


class OperatorRoundSchema(ma.Schema):
    """A round in full.  What is not known yet is null: before the decision that is all about the dealer."""

    round_id = fields.UUID(required=True)
    player = fields.String(required=True)
    session_id = fields.UUID(required=True)
    channel = fields.String(required=True, allow_none=True)
    jurisdiction = fields.String(required=True)
    test = fields.Boolean(required=True)
    mode = one_of(*Mode, required=True)
    currency = fields.String(required=True)
    game = fields.String(required=True)
    paytable = fields.Nested(PaytableSchema, required=True)
    rng_digest = fields.String(required=True)
    commitment = fields.Nested(CommitmentSchema, required=True, allow_none=True)
    client_seed = fields.String(required=True, allow_none=True)
    state = one_of(*STATES, required=True)
    opened_at = fields.String(required=True, metadata={"format": "date-time"})
    settled_at = fields.String(required=True, allow_none=True, metadata={"format": "date-time"})
    player_cards = fields.List(fields.String(), required=True)
    player_category = one_of(*Category, required=True, allow_none=True)
    dealer_cards = fields.List(fields.String(), required=True, allow_none=True)
    dealer_category = one_of(*Category, required=True, allow_none=True)
    dealer_qualified = fields.Boolean(required=True, allow_none=True)
    decision = one_of(*Decision, required=True, allow_none=True)
    result = one_of(*Result, required=True, allow_none=True)
    wagers = fields.List(fields.Nested(WagerSchema), required=True)
    total_staked_minor = fields.Integer(required=True, allow_none=True)
    total_payout_minor = fields.Integer(required=True, allow_none=True)
    net_minor = fields.Integer(
        required=True, allow_none=True, metadata={"description": "The player's, with what a void gave back."}
    )
    payout_state = one_of("paid", "pending", required=True, allow_none=True)
    void = fields.Nested(VoidSchema, required=True, allow_none=True)
    wallet_transactions = fields.List(
        fields.Nested(WalletTransactionSchema),
        required=True,
        metadata={"description": "Oldest first; none where the money is in the built-in wallet."},
    )


class OperatorRoundPageSchema(ma.Schema):
    """A page of rounds, newest first."""

    items = fields.List(fields.Nested(OperatorRoundSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class ReportSchema(ma.Schema):
    """What a report begins with."""

    made_at = fields.String(required=True, metadata={"format": "date-time"})
    activity = one_of(
        "Activity",
        NO_ACTIVITY,
        required=True,
        metadata={"description": "Whether there is anything to report."},
    )


class OfATimeSchema(ReportSchema):
    """A report of a time."""

    since = fields.String(data_key="from", required=True, metadata={"format": "date-time"})
    until = fields.String(data_key="to", required=True, metadata={"format": "date-time"})


class ReturnSchema(ma.Schema):
    """A return to player: exactly, and to eight places, or `no data`."""

    value = fields.String(required=True)
    exact = fields.String(required=True, allow_none=True)


class TheoreticalReturnSchema(ReturnSchema):
    """A return to player that was computed, and the strategy that has it."""

    strategy = fields.String(required=True)


class WagerPerformanceSchema(ma.Schema):
    """What one type of wager took and paid.  `main` is Ante and Play with the Ante Bonus."""

    wager = one_of("main", "pair_bonus", required=True)
    staked_minor = fields.Integer(required=True)
    paid_minor = fields.Integer(required=True)
    actual_rtp = fields.Nested(ReturnSchema, required=True)
    theoretical_rtp = fields.Nested(TheoreticalReturnSchema, required=True)


class PerformanceSchema(ma.Schema):
    """What a version of a game took and paid in a currency; stakes and payouts are those of settled rounds."""

    game = fields.String(required=True)
    paytable = fields.Nested(PaytableSchema, required=True)
    currency = fields.String(required=True)
    rounds = fields.Integer(required=True, metadata={"description": "Settled, open and voided ones."})
    settled = fields.Integer(required=True)
    open_rounds = fields.Integer(required=True)
    voids = fields.Integer(required=True)
    held_minor = fields.Integer(required=True, metadata={"description": "Stakes of the open rounds."})
    refunded_minor = fields.Integer(required=True, metadata={"description": "Of voided rounds."})
    compensated_minor = fields.Integer(required=True, metadata={"description": "Of voided rounds."})
    kept_minor = fields.Integer(
        required=True, metadata={"description": "Winnings left to players whose settled rounds were voided."}
    )
    staked_minor = fields.Integer(required=True)
    paid_minor = fields.Integer(required=True)
    actual_rtp = fields.Nested(ReturnSchema, required=True)
    wagers = fields.List(fields.Nested(WagerPerformanceSchema), required=True)


class PerformanceReportSchema(OfATimeSchema):
    """Game performance: real money without tests, of rounds opened in the time."""

    items = fields.List(fields.Nested(PerformanceSchema), required=True)


class InterruptedSchema(ma.Schema):
    """A round that is unfinished, and what is done about it."""

    round_id = fields.UUID(required=True)
    player = fields.String(required=True)
    game = fields.String(required=True)
    currency = fields.String(required=True)
    state = one_of(
        "reserving", *STATES, required=True, metadata={"description": "Settled or voided: not yet paid."}
    )
    since = fields.String(required=True, metadata={"format": "date-time"})
    held_minor = fields.Integer(required=True)
    in_flight_minor = fields.Integer(
        required=True, metadata={"description": "Debits that a wallet has not answered for."}
    )
    owed_minor = fields.Integer(required=True, metadata={"description": "Payouts that it has not confirmed."})
    resolution = one_of(
        *InterruptionPolicy,
        "cancel",
        "credit",
        required=True,
        metadata={"description": "Of the round, or at the wallet."},
    )
    resolves_at = fields.String(
        required=True, metadata={"format": "date-time", "description": "When, or when that is tried again."}
    )
    attempts = fields.Integer(required=True)
    last_problem = fields.String(required=True, allow_none=True)


class HeldSchema(ma.Schema):
    """What is held, in flight and owed in a currency."""

    currency = fields.String(required=True)
    rounds = fields.Integer(required=True)
    held_minor = fields.Integer(required=True)
    in_flight_minor = fields.Integer(required=True)
    owed_minor = fields.Integer(required=True)


class InterruptedReportSchema(ReportSchema):
    """Real rounds that are unfinished, and the sums of all of them."""

    totals = fields.List(fields.Nested(HeldSchema), required=True)
    items = fields.List(fields.Nested(InterruptedSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class AlterationSchema(ma.Schema):
    """Something that was changed by hand: its entry in the audit log."""

    entry_id = fields.UUID(required=True)
    occurred_at = fields.String(required=True, metadata={"format": "date-time"})
    type = fields.String(required=True)
    actor = fields.String(required=True)
    authoriser = fields.String(required=True, allow_none=True)
    for_all = fields.Boolean(
        required=True, metadata={"description": "Whether it was changed for all operators."}
    )
    round_id = fields.UUID(required=True, allow_none=True)
    reason = fields.String(required=True, allow_none=True)
    before = fields.Dict(required=True, allow_none=True)
    after = fields.Dict(required=True, allow_none=True)
    payload = fields.Dict(required=True, allow_none=True)


class AlterationsReportSchema(OfATimeSchema):
    """Closures, voids, paytables put in force and changes of the operator's own set-up, newest first."""

    items = fields.List(fields.Nested(AlterationSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)
