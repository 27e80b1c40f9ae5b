"""Shapes of answers, and of the requests of players."""

from __future__ import annotations

import marshmallow as ma
from marshmallow import fields

from casino_brag.catalogue.jurisdictions import Celebration
from casino_brag.catalogue.operators import InterruptionPolicy
from casino_brag.game.hands import Category
from casino_brag.game.settlement import Decision, Reason, Result, Spot
from casino_brag.web.api.fields import Whole, amount_minor, one_of, printable


class RoundQuery(ma.Schema):
    """A page of a player's rounds."""

    cursor = fields.UUID(metadata={"description": "`next_cursor` of the page before."})
    limit = fields.Integer(load_default=50, validate=ma.validate.Range(1, 200))


class CommitmentQuery(ma.Schema):
    """A page of a player's commitments in a game."""

    game = printable(
        64, metadata={"description": "The game; needed when the session is for no game in particular."}
    )
    cursor = fields.Integer(
        strict=False,
        validate=ma.validate.Range(1),
        metadata={"description": "`next_cursor` of the page before."},
    )
    limit = fields.Integer(load_default=50, validate=ma.validate.Range(1, 200))


class OpenRoundRequest(ma.Schema):
    """What a player stakes."""

    ante_minor = amount_minor(least=1, required=True, description="The Ante.")
    pair_bonus_minor = amount_minor(
        load_default=0, description="The Pair Bonus; absent or 0 when it is not staked."
    )
    game = printable(
        64, metadata={"description": "The game; needed when the session is for no game in particular."}
    )
    client_seed = fields.String(
        validate=Whole(r"^[\x21-\x7e]{1,128}$", error="Give 1 to 128 visible ASCII characters."),
        metadata={"description": "A text of the player's own, which the deal depends on."},
    )
    commitment = fields.String(
        validate=Whole(r"^[0-9a-f]{64}$", error="Give the value of a commitment, 64 hex digits."),
        metadata={"description": "The commitment that the player saw; another is refused."},
    )


class CommitmentSchema(ma.Schema):
    """What a round is dealt from, fixed before it: its number in the player's series, its SHA-256, its round."""

    number = fields.Integer(required=True)
    value = fields.String(required=True)
    round_id = fields.UUID(required=True)


class ListedCommitmentSchema(CommitmentSchema):
    """A commitment of a series, and what has become of it: settled, voided and expired ones can be proven."""

    made_at = fields.String(required=True, metadata={"format": "date-time"})
    state = one_of("waiting", "in_play", "settled", "voided", "expired", "lost", required=True)


class CommitmentPageSchema(ma.Schema):
    """A page of commitments, newest first."""

    items = fields.List(fields.Nested(ListedCommitmentSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class DecisionRequest(ma.Schema):
    """What a player decides."""

    decision = one_of(*Decision, required=True)


class PaytableSchema(ma.Schema):
    """The version of the rules that a round settles by."""

    version = fields.Integer(required=True)
    digest = fields.String(required=True)


class DecisionCostSchema(ma.Schema):
    """A decision that is open, and what it costs now."""

    decision = one_of(*Decision, required=True)
    cost_minor = fields.Integer(required=True)


class WagerSchema(ma.Schema):
    """A wager: its stake, and once it is settled its payout (stake included) and the reason."""

    spot = one_of(*Spot, required=True)
    stake_minor = fields.Integer(required=True)
    payout_minor = fields.Integer()
    reason = one_of(*Reason)


class RevealedSchema(ma.Schema):
    """What is revealed of a settled round; `href` has all that it takes to check it."""

    seed = fields.String(required=True)
    deal_index = fields.Integer(required=True)
    href = fields.String(required=True, metadata={"format": "uri-reference"})


class RoundSchema(ma.Schema):
    """A round as its player may see it now.  What follows from the dealer's cards is there once it is settled."""

    round_id = fields.UUID(required=True)
    game = fields.String(required=True)
    paytable = fields.Nested(PaytableSchema, required=True)
    state = one_of(
        "reserving", "awaiting_decision", "deciding", "settled", "cancelled", "voided", required=True
    )
    opened_at = fields.String(required=True, metadata={"format": "date-time"})
    currency = fields.String(required=True)
    player_cards = fields.List(fields.String(), required=True)
    player_category = one_of(*Category, required=True)
    commitment = fields.Nested(
        CommitmentSchema,
        required=True,
        allow_none=True,
        metadata={"description": "Null only for rounds from before there were commitments."},
    )
    client_seed = fields.String(required=True, allow_none=True)
    wagers = fields.List(fields.Nested(WagerSchema), required=True)
    decisions = fields.List(fields.Nested(DecisionCostSchema))
    settled_at = fields.String(metadata={"format": "date-time"})
    decision = one_of(*Decision)
    dealer_cards = fields.List(fields.String())
    dealer_category = one_of(*Category)
    dealer_qualified = fields.Boolean()
    result = one_of(*Result)
    total_staked_minor = fields.Integer()
    total_payout_minor = fields.Integer()
    net_minor = fields.Integer()
    celebrate = fields.Boolean(metadata={"description": "Whether more came back than was staked."})
    voided_at = fields.String(metadata={"format": "date-time"})
    void_reason = fields.String()
    refund_minor = fields.Integer(metadata={"description": "What a void returned to the player."})
    compensation_minor = fields.Integer(
        metadata={"description": "What the better decision would have won, where the void pays that too."}
    )
    payout_state = one_of(
        "paid",
        "pending",
        metadata={"description": "Whether what the round pays has reached the player's wallet."},
    )
    proof = fields.Nested(RevealedSchema, allow_none=True)
    next_commitment = fields.Nested(
        CommitmentSchema,
        allow_none=True,
        metadata={
            "description": "What the next round will be dealt from; in the answer to the decision only. "
            "Null where the game is closed or no random numbers can be had."
        },
    )
    balance_minor = fields.Integer(
        allow_none=True,
        metadata={
            "description": "After this request; in answers to a player's POST only. "
            "Null while the operator's wallet does not tell it."
        },
    )


class RoundPageSchema(ma.Schema):
    """A page of rounds, newest first."""

    items = fields.List(fields.Nested(RoundSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class ChainedSchema(ma.Schema):
    """A commitment with the value of the one before it, null for the first of its series."""

    number = fields.Integer(required=True)
    value = fields.String(required=True)
    previous = fields.String(required=True, allow_none=True)


class EvidenceSchema(ma.Schema):
    """The audit entry that closed the round: its text, and the SHA-256 over a zero byte and its bytes."""

    leaf_hash = fields.String(required=True)
    entry = fields.String(required=True)


class InclusionSchema(ma.Schema):
    """That the audit entry is in the log: its place, the hashes that lead from it to the root, and the signed root."""

    leaf_index = fields.Integer(required=True)
    tree_size = fields.Integer(required=True)
    proof = fields.List(
        fields.String(), required=True, metadata={"description": "RFC 9162, section 2.1.3; base64."}
    )
    checkpoint = fields.String(
        required=True, metadata={"description": "A signed note, as C2SP's tlog-checkpoint has it."}
    )
    verifier_keys = fields.List(
        fields.String(),
        required=True,
        metadata={
            "description": "Keys that sign checkpoints. Compare them with what was published elsewhere."
        },
    )


class ProofSchema(ma.Schema):
    """All that it takes to check a deal; what follows from a deal is there if there was one."""

    protocol = fields.String(required=True)
    round_id = fields.UUID(required=True)
    state = one_of("settled", "voided", "expired", required=True)
    game = fields.String(required=True)
    rules_digest = fields.String(required=True, metadata={"description": "The paytable's digest."})
    rng_digest = fields.String(
        required=True, metadata={"description": "That of the module that drew the seed."}
    )
    commitment = fields.Nested(ChainedSchema, required=True)
    seed = fields.String(required=True)
    client_seed = fields.String(allow_none=True)
    client_seeds = one_of("allowed", "off")
    deal_index = fields.Integer()
    discards = fields.Integer()
    player_cards = fields.List(fields.String())
    dealer_cards = fields.List(fields.String())
    audit = fields.Nested(EvidenceSchema, required=True)
    inclusion = fields.Nested(
        InclusionSchema,
        required=True,
        allow_none=True,
        metadata={"description": "Null in the seconds until the entry is sealed."},
    )


class StakeRangeSchema(ma.Schema):
    """What may be staked on a spot."""

    min_minor = fields.Integer(required=True)
    max_minor = fields.Integer(required=True)
    step_minor = fields.Integer(required=True)


class LimitsSchema(ma.Schema):
    """The limits of a game in a currency."""

    ante = fields.Nested(StakeRangeSchema, required=True)
    pair_bonus = fields.Nested(StakeRangeSchema, required=True, allow_none=True)
    payout_max_minor = fields.Integer(required=True, allow_none=True)
    maximum_win_minor = fields.Integer(
        required=True, metadata={"description": "The most a round can pay, stakes included."}
    )


class JurisdictionFlagsSchema(ma.Schema):
    """What a jurisdiction asks of a front-end.  The server sees to the seconds between starts and to the stakes."""

    title = fields.String(required=True)
    seconds_between_starts = fields.Integer(required=True)
    celebration = one_of(*Celebration, required=True)
    autoplay = fields.Boolean(
        required=True, metadata={"description": "Whether rounds may be started by themselves."}
    )
    skip = fields.Boolean(
        required=True, metadata={"description": "Whether a faster way to the result may be offered."}
    )
    net_position = fields.Boolean(required=True, metadata={"description": "Whether it has to be in sight."})
    elapsed_time = fields.Boolean(required=True, metadata={"description": "Whether it has to be in sight."})
    reality_check_minutes = fields.Integer(required=True, allow_none=True)
    history_days = fields.Integer(required=True, allow_none=True)
    history_on_request_days = fields.Integer(required=True, allow_none=True)
    stake_max_minor = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(),
        required=True,
        metadata={"description": "The most that a round may stake in all, by currency."},
    )
    client_seeds = fields.Boolean(required=True)


class InterruptionSchema(ma.Schema):
    """How long a round waits for its player, and what becomes of it then."""

    hours = fields.Integer(required=True)
    policy = one_of(*InterruptionPolicy, required=True)


class SessionSchema(ma.Schema):
    """Where the player stands."""

    session_id = fields.UUID(required=True)
    player = fields.String(required=True)
    mode = one_of("real", "demo", required=True)
    currency = fields.String(required=True)
    exponent = fields.Integer(required=True, metadata={"description": "Decimals of the currency's amounts."})
    balance_minor = fields.Integer(
        required=True,
        allow_none=True,
        metadata={"description": "Null while the operator's wallet does not tell it."},
    )
    game = fields.String(required=True, allow_none=True)
    limits = fields.Dict(keys=fields.String(), values=fields.Nested(LimitsSchema), required=True)
    jurisdiction = fields.String(required=True)
    jurisdiction_flags = fields.Nested(JurisdictionFlagsSchema, required=True)
    interruption = fields.Nested(InterruptionSchema, required=True)
    language = fields.String(required=True)
    return_url = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "Where the operator wants the player afterwards."},
    )
    net_position_minor = fields.Integer(required=True)
    elapsed_seconds = fields.Integer(required=True)
    open_round = fields.Nested(RoundSchema, required=True, allow_none=True)
    client_seeds = fields.Boolean(
        required=True, metadata={"description": "Whether a client seed may be brought into a deal."}
    )
    next_commitment = fields.Nested(
        CommitmentSchema,
        required=True,
        allow_none=True,
        metadata={
            "description": "That of the session's game; null where a round is open or none could be made."
        },
    )
    next_commitments = fields.Dict(
        keys=fields.String(),
        values=fields.Nested(CommitmentSchema),
        required=True,
        metadata={"description": "The same by game, for a session that is for no game in particular."},
    )
    expires_at = fields.String(required=True, metadata={"format": "date-time"})


class SectionSchema(ma.Schema):
    """A part of the rules in words."""

    title = fields.String(required=True)
    paragraphs = fields.List(fields.String(), required=True)


class FigureSchema(ma.Schema):
    """An exact figure of a game.  Figures of different denominators do not add up to 1."""

    wager = one_of("main", "pair_bonus", required=True)
    figure = one_of("rtp", "house_edge", required=True)
    value = fields.String(required=True, metadata={"description": "To eight places."})
    exact = fields.String(required=True, metadata={"description": "The same as a fraction."})
    denominator = fields.String(required=True)
    strategy = fields.String(required=True)


class NextChangeSchema(ma.Schema):
    """A change that is to come."""

    at = fields.String(required=True, metadata={"format": "date-time"})
    version = fields.Integer(required=True)
    notice = fields.String(required=True)


class ChangeSchema(ma.Schema):
    """When a game last changed, and the next change that is known of."""

    changed_at = fields.String(required=True, metadata={"format": "date-time"})
    notice = fields.String(required=True)
    next = fields.Nested(NextChangeSchema, required=True, allow_none=True)


class GameSchema(ma.Schema):
    """A published game: everything a player may want to know before staking."""

    game = fields.String(required=True)
    title = fields.String(required=True)
    state = one_of("enabled", "disabled", required=True)
    paytable = fields.Nested(PaytableSchema, required=True)
    ranking = fields.List(one_of(*Category), required=True, metadata={"description": "Best first."})
    rules = fields.List(fields.Nested(SectionSchema), required=True)
    pays = fields.Dict(
        keys=fields.String(),
        values=fields.Dict(keys=fields.String(), values=fields.String()),
        required=True,
        metadata={"description": "By spot and the player's category, to 1."},
    )
    limits = fields.Dict(keys=fields.String(), values=fields.Nested(LimitsSchema), required=True)
    rtp = fields.List(fields.Nested(FigureSchema), required=True)
    interruption_policy = fields.String(required=True)
    change = fields.Nested(ChangeSchema, required=True)


class GamePageSchema(ma.Schema):
    """The published games."""

    items = fields.List(fields.Nested(GameSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)
