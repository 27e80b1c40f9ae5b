"""Opening a round: two round trips, one that reads everything and one that writes everything.

Both are set-based: lists in, an item out for each.  Where the money is in an operator's wallet, the wallet is asked
between the two, with no connection held.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.jurisdictions import jurisdiction
from casino_brag.catalogue.operators import Funding
from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.catalogue.sessions import Caller, unknown_token
from casino_brag.db.pool import Connect
from casino_brag.errors import Code, ServiceError
from casino_brag.game.cards import PACK
from casino_brag.game.paytable import Refusal, StakeRefused
from casino_brag.game.rules import MINOR_MAX
from casino_brag.game.settlement import Stakes, maximum_payout_minor, play_stake_minor
from casino_brag.rng import MODULE_DIGEST, Draw, RngUnavailable, seeds
from casino_brag.rounds.commitments import Latest, Series, renew
from casino_brag.rounds.funding import Stake, staked
from casino_brag.rounds.house import House
from casino_brag.rounds.reading import must_name_the_sessions_game
from casino_brag.rounds.round import AWAITING_DECISION, Round, as_its_owner_sees, seal_context, sealed_form
from casino_brag.wallet.answers import Answer, Known, Outcome, Request, carry_out, operation, refusal

ATTEMPTS_MAX: Final = 4
"""How often a round is prepared, where its game's paytable or its commitment changed between reading and writing."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A player's request for a round.  `game` may be left to the session.

    `client_seed` is the player's own text for the deal; `commitment` the value that the player saw, in hex.
    """

    token_hash: bytes
    request: Request
    stakes: Stakes
    game: str | None = None
    client_seed: str | None = None
    commitment: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What the first round trip read for one request; `game_state` and `version_id` are the game's, if it exists.

    `closed` says whether the game was closed for the operator; `last_start` is when the player's last round began;
    `attended_at` is when the log was sealed.
    """

    caller: Caller
    known: Known
    game: str | None
    game_state: str | None
    version_id: UUID | None
    closed: str | None
    last_start: datetime | None
    attended_at: datetime
    latest: Latest | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A round that could be dealt: for whom, under which rules, and everything that will be written."""

    caller: Caller
    version: PaytableVersion
    op: Mapping[str, Any]


def open_round(connect: Connect, house: House, ask: Ask) -> Answer:
    """Takes the stakes, deals and answers; or repeats the first answer to the same request.

    Raises `ServiceError`: unauthenticated, idempotency_key_reused, session_expired, invalid, game_unavailable,
    stake_out_of_limits, payout_limit_exceeded, too_soon, rng_unavailable, sealing_behind, round_open,
    commitment_stale, insufficient_funds, balance_limit_exceeded, busy; and where the money is in an operator's
    wallet what `funding.staked` raises.  None of them takes a stake.
    """
    with connect() as conn:
        house.upkeep.attend(conn, house.generator)
        for _ in range(ATTEMPTS_MAX):
            prepared = _prepare(conn, house, ask)
            if isinstance(prepared, Answer):
                return prepared
            if prepared is None:
                continue
            if prepared.caller.wallet_url is not None:
                break
            (outcome,) = carry_out(conn, "round_open", [prepared.op])
            if outcome.name not in _CHANGED:
                return outcome.answer_or_refusal()
        else:
            raise _busy()
    return _open_from_wallet(connect, house, ask.stakes, prepared)


_CHANGED: Final = ("paytable_changed", "commitment_changed")


def _prepare(conn: psycopg.Connection[Any], house: House, ask: Ask) -> Prepared | Answer | None:
    """What will be written, or the answer that was given before; None when a commitment had to be made first."""
    (seen,) = read_for_opening(conn, [ask])
    if seen is None:
        raise unknown_token()
    if (answer := seen.known.answer_to(_bound_request(ask, seen))) is not None:
        return answer
    version = _acceptable(conn, house, ask, seen)
    _must_have_random_numbers(conn, house)
    _must_be_sealed(house, seen)
    if seen.latest is not None and seen.latest.in_play:
        raise refusal("round_open")
    if seen.latest is None or not seen.latest.serves(version.version_id):
        _renew(conn, house, seen, version)
        return None
    op = prepare_opening(house, ask, seen, version, seen.latest)
    return Prepared(seen.caller, version, op)


def _open_from_wallet(connect: Connect, house: House, stakes: Stakes, prepared: Prepared) -> Answer:
    """Opens a round whose stakes the operator's wallet is debited for."""
    caller = prepared.caller
    amounts = {"ante": stakes.ante_minor, "pair_bonus": stakes.pair_bonus_minor}
    if caller.funding == Funding.RESERVE:
        amounts = {"ante": sum(amounts.values()) + play_stake_minor(prepared.version.paytable, stakes)}
    stake = Stake(
        prepared.op["round_id"],
        prepared.version.game,
        {wager: amount_minor for wager, amount_minor in amounts.items() if amount_minor},
        decided=False,
    )

    def deal(conn: psycopg.Connection[Any], balance_minor: int) -> Outcome:
        op = {**prepared.op, "shown_balance_minor": balance_minor}
        (outcome,) = carry_out(conn, "round_open", [op])
        if outcome.name in (*_CHANGED, "replayed"):  # sent again it is answered, or dealt as things are then
            raise refusal("request_in_progress")
        if outcome.name != "opened":
            raise refusal(outcome.name)
        return outcome

    return staked(connect, house, caller, stake, deal).answer_or_refusal()


def _busy() -> ServiceError:
    return ServiceError(
        Code.BUSY, "The game's paytable or the commitment is being changed. Send the same request again."
    )


def read_for_opening(conn: psycopg.Connection[Any], asks: Sequence[Ask]) -> list[Seen | None]:
    """The first round trip: who calls, what is known of the request, what the game offers; None for no caller."""
    rows = conn.execute(
        """
        SELECT caller.*, known.fingerprint, known.status, known.body,
            coalesce(ask.game, caller.session_game), game.state, game.active_version_id,
            closure_of(caller.operator_id, game.game, game.active_version_id),
            (SELECT max(r.opened_at) FROM round AS r WHERE r.player_id = caller.player_id),
            (SELECT attended_at FROM audit_sealing), latest.*
        FROM unnest(%s::bytea[], %s::text[], %s::text[]) WITH ORDINALITY
            AS ask (token_hash, idempotency_key, game, item)
        LEFT JOIN session_caller AS caller USING (token_hash)
        -- LIMIT keeps this a look-up by the whole key; flattened, it would read all answers of the player.
        LEFT JOIN LATERAL (
            SELECT * FROM answer WHERE (answer.operator_id, answer.player_id, answer.idempotency_key)
                = (caller.operator_id, caller.player_id, ask.idempotency_key) LIMIT 1
        ) AS known ON true
        LEFT JOIN game ON game.game = coalesce(ask.game, caller.session_game)
        LEFT JOIN LATERAL latest_commitment(caller.player_id, game.game, caller.mode) AS latest ON true
        ORDER BY ask.item
        """,
        [[ask.token_hash for ask in asks], [ask.request.key for ask in asks], [ask.game for ask in asks]],
    ).fetchall()
    return [_seen(row) for row in rows]


def _seen(row: tuple[Any, ...]) -> Seen | None:
    caller, row = Caller.from_columns(row)
    if caller is None:
        return None
    known, (game, game_state, version_id, closed, last_start, attended_at) = Known(*row[:3]), row[3:9]
    latest, _ = Latest.from_columns(row[9:])
    return Seen(caller, known, game, game_state, version_id, closed, last_start, attended_at, latest)


def prepare_opening(
    house: House, ask: Ask, seen: Seen, version: PaytableVersion, latest: Latest
) -> Mapping[str, Any]:
    """Deals from the commitment, and puts everything that will be written into one operation."""
    caller, commitment = seen.caller, latest.commitment
    if ask.commitment is not None and ask.commitment != commitment.value.hex():
        raise refusal("commitment_stale")
    seed = commitment.open_seed(house.sealer)
    draw = seeds.deal(seed, commitment.round_id, version.digest, ask.client_seed)
    dealt = [str(PACK[number]) for number in draw.cards]
    context = seal_context(commitment.round_id, version.version_id)
    round_ = Round(
        round_id=commitment.round_id,
        session_id=caller.session_id,
        operator_id=caller.operator_id,
        player_id=caller.player_id,
        account_id=caller.account_id,
        mode=caller.mode,
        currency=caller.currency,
        game=version.game,
        paytable_version_id=version.version_id,
        rng_digest=MODULE_DIGEST,
        state=AWAITING_DECISION,
        opened_at=caller.read_at,
        ante_minor=ask.stakes.ante_minor,
        pair_bonus_minor=ask.stakes.pair_bonus_minor,
        payout_max_minor=maximum_payout_minor(version.paytable, ask.stakes),
        player_cards=dealt[:3],
        sealed_deal=house.sealer.seal(sealed_form(draw.index), context=context),
        client_seeds=caller.may_bring_client_seeds,
        client_seed=ask.client_seed,
        commitment=commitment,
    )
    return operation(
        round_.columns()
        | {
            "balance_max_minor": MINOR_MAX,
            "seconds_between_starts": jurisdiction(caller.jurisdiction).seconds_between_starts,
        },
        _bound_request(ask, seen),
        status=201,
        document=as_its_owner_sees(round_, version),
        audit=_entry(round_, version, caller, draw).text(),
    )


def _bound_request(ask: Ask, seen: Seen) -> Request:
    # The session's money and its game belong to what is asked for: real money is never answered with a demo round.
    return ask.request.within(str(seen.caller.account_id), seen.game or "")


def _acceptable(conn: psycopg.Connection[Any], house: House, ask: Ask, seen: Seen) -> PaytableVersion:
    """The paytable version that the request can be dealt under, after all that can be judged before drawing."""
    must_name_the_sessions_game(seen.caller, seen.game)
    if ask.client_seed is not None and not seen.caller.may_bring_client_seeds:
        off = "Client seeds are switched off for this session: leave it out."
        raise ServiceError(Code.INVALID, off, errors={"client_seed": [off]})
    seen.caller.must_be_live()
    if seen.game_state != "enabled" or seen.version_id is None or seen.closed is not None:
        raise refusal("game_unavailable")
    version = house.shelf.version(conn, seen.version_id)
    _check_jurisdiction(version, seen, ask.stakes)
    _check_stakes(version, seen.caller.currency, ask.stakes)
    return version


def _check_jurisdiction(version: PaytableVersion, seen: Seen, stakes: Stakes) -> None:
    rules, caller = jurisdiction(seen.caller.jurisdiction), seen.caller
    if not version.offered_in(rules.name):
        elsewhere = f"What the game offers now is not approved for {rules.title}."
        raise ServiceError(Code.GAME_UNAVAILABLE, elsewhere)
    if (problem := rules.floor_problem(version.figures)) is not None:
        raise ServiceError(Code.GAME_UNAVAILABLE, problem)
    total_minor = stakes.ante_minor + stakes.pair_bonus_minor + play_stake_minor(version.paytable, stakes)
    if (problem := rules.stake_problem(caller.currency, total_minor)) is not None:
        raise ServiceError(Code.STAKE_OUT_OF_LIMITS, problem, errors={"ante_minor": [problem]})
    if seen.last_start is not None:
        pace = timedelta(seconds=rules.seconds_between_starts)
        passed = caller.read_at - seen.last_start
        if (
            abs(passed) < pace
        ):  # a start that a clock that was set back has yet to come to is no reason to wait
            wait = pace - passed
            raise refusal("too_soon", retry_after_seconds=math.ceil(wait.total_seconds()))


def _check_stakes(version: PaytableVersion, currency: str, stakes: Stakes) -> None:
    try:
        version.paytable.check_stakes(currency, stakes.ante_minor, stakes.pair_bonus_minor)
    except StakeRefused as refused:
        code = (
            Code.PAYOUT_LIMIT_EXCEEDED
            if refused.reason is Refusal.PAYOUT_TOO_LARGE
            else Code.STAKE_OUT_OF_LIMITS
        )
        raise ServiceError(code, refused.detail, errors={refused.field: [refused.detail]}) from refused


def _must_have_random_numbers(conn: psycopg.Connection[Any], house: House) -> None:
    """Nothing is dealt while the module is in error, even where the seed was drawn before."""
    try:
        house.generator.check()
    except RngUnavailable as unavailable:
        raise _no_random_numbers(conn, house) from unavailable


def _must_be_sealed(house: House, seen: Seen) -> None:
    """Nothing is dealt while the log is not proven: what would be recorded now could be changed unseen."""
    if house.sealing_is_behind(seen.attended_at, seen.caller.read_at):
        raise ServiceError(
            Code.SEALING_BEHIND,
            "The log of the service is not being sealed. No stake was taken; try again later.",
        )


def _renew(conn: psycopg.Connection[Any], house: House, seen: Seen, version: PaytableVersion) -> None:
    caller = seen.caller
    series = Series(caller.operator_id, caller.player_id, caller.mode, version, seen.latest)
    try:
        renew(conn, house, [series], caller.read_at)
    except RngUnavailable as unavailable:
        raise _no_random_numbers(conn, house) from unavailable


def _no_random_numbers(conn: psycopg.Connection[Any], house: House) -> ServiceError:
    house.upkeep.attend(conn, house.generator)
    return ServiceError(
        Code.RNG_UNAVAILABLE, "No cards can be drawn at present. No stake was taken; try again later."
    )


def _entry(round_: Round, version: PaytableVersion, caller: Caller, draw: Draw) -> Entry:
    return Entry(
        type=EntryType.ROUND_OPENED,
        occurred_at=round_.opened_at,
        actor=f"player:{caller.player_id}",
        operator_id=round_.operator_id,
        player_id=round_.player_id,
        session_id=round_.session_id,
        round_id=round_.round_id,
        payload={
            "mode": round_.mode,
            "currency": round_.currency,
            "game": round_.game,
            "paytable_version": version.version,
            "paytable_digest": version.digest,
            "rng_digest": round_.rng_digest,
            "commitment": None if round_.commitment is None else round_.commitment.named(),
            "client_seeds": round_.client_seed_policy,
            "client_seed": round_.client_seed,
            "discards": draw.discards,
            "ante_minor": round_.ante_minor,
            "pair_bonus_minor": round_.pair_bonus_minor,
            "payout_max_minor": round_.payout_max_minor,
            "player_cards": round_.player_cards,
        },
    )
