"""Commitments: the seed of a player's next round is drawn, sealed and committed to before anything is staked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.catalogue.sessions import Caller, read_caller
from casino_brag.db.records import as_jsonb
from casino_brag.errors import ServiceError
from casino_brag.ids import uuid7
from casino_brag.rng import MODULE_DIGEST, RngUnavailable, commitment_value, draw_seed
from casino_brag.rounds.house import House
from casino_brag.sealing import SealBroken, Sealer

_WHY_REPLACED: Final = (
    "Before a round was dealt from it, the paytable or the key was replaced, or the database restarted."
)
_WHY_LOST: Final = "Its seed could not be opened with the keys of whoever gave it up."


@dataclass(frozen=True, slots=True)
class Commitment:
    """What a round is, or will be, dealt from; `number` and `previous` give its place in its series."""

    round_id: UUID
    number: int
    previous: bytes | None
    value: bytes
    rng_digest: str
    sealed_seed: bytes = field(repr=False)

    def named(self) -> dict[str, Any]:
        """The commitment as its player sees it before a round and after."""
        return {"number": self.number, "value": self.value.hex(), "round_id": str(self.round_id)}

    def chained(self) -> dict[str, Any]:
        """The commitment with the value before it, as it stands in proofs and records."""
        previous = None if self.previous is None else self.previous.hex()
        return {"number": self.number, "value": self.value.hex(), "previous": previous}

    def open_seed(self, sealer: Sealer) -> bytes:
        """The seed; `SealBroken` when it was altered or its key is not there."""
        return sealer.open(self.sealed_seed, context=_seal_context(self.round_id))


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest commitment of a series.  `over`: it is over; `in_play`: an open round was dealt from it.

    `present` is false once the database was started anew, or restored, since it was made.
    """

    commitment: Commitment
    version_id: UUID
    rules_digest: str
    over: bool
    in_play: bool
    present: bool

    @classmethod
    def from_columns(cls, row: Sequence[Any]) -> tuple[Latest | None, Sequence[Any]]:
        """The latest of a row that begins with ``latest_commitment``'s columns, None where there is none; the rest."""
        of_commitment, of_latest, rest = row[:6], row[6:11], row[11:]
        return (None if row[0] is None else cls(Commitment(*of_commitment), *of_latest)), rest

    def serves(self, version_id: UUID) -> bool:
        """Whether a round of this paytable version can be dealt from it, or is being dealt."""
        return self.present and not self.over and self.version_id == version_id


@dataclass(frozen=True, slots=True)
class Series:
    """The commitments of a player in a game and mode: the newest, if any, and the rules of the next."""

    operator_id: UUID
    player_id: UUID
    mode: str
    version: PaytableVersion
    latest: Latest | None

    def entry(self, kind: EntryType, now: datetime, commitment: Commitment, **said: Any) -> Entry:
        """An audit entry about one of them."""
        return Entry(
            type=kind,
            occurred_at=now,
            actor="system:rounds",
            operator_id=self.operator_id,
            player_id=self.player_id,
            round_id=commitment.round_id,
            **said,
        )


@dataclass(frozen=True, slots=True)
class Made:
    """A commitment just made, not yet written: its row, and its entry's text."""

    commitment: Commitment
    row: Mapping[str, Any]
    audit: str


def make(house: House, series: Series, now: datetime) -> Made:
    """Draws a seed and commits to it, as the next of its series.  Raises `RngUnavailable`."""
    version, before = series.version, None if series.latest is None else series.latest.commitment
    round_id = uuid7()
    drawn = draw_seed(house.generator, round_id)
    number, previous = (1, None) if before is None else (before.number + 1, before.value)
    value = commitment_value(round_id, version.digest, number, previous, drawn.output)
    sealed_seed = house.sealer.seal(drawn.output, context=_seal_context(round_id))
    commitment = Commitment(round_id, number, previous, value, MODULE_DIGEST, sealed_seed)
    row = {
        "round_id": round_id,
        "player_id": series.player_id,
        "game": version.game,
        "mode": series.mode,
        "number": number,
        "previous": previous,
        "value": value,
        "paytable_version_id": version.version_id,
        "rules_digest": version.digest,
        "rng_digest": MODULE_DIGEST,
        "sealed_seed": sealed_seed,
        "made_at": now,
    }
    draw = {"rng_instance": drawn.instance, "rng_reseeds": drawn.reseeds, "rng_request": drawn.request}
    said = commitment_record(commitment, game=version.game, rules_digest=version.digest)
    entry = series.entry(
        EntryType.COMMITMENT_MADE, now, commitment, payload=said | {"mode": series.mode} | draw
    )
    return Made(commitment, row, entry.text())


def commitment_record(commitment: Commitment, *, game: str, rules_digest: str) -> dict[str, Any]:
    """What an audit entry says of a commitment."""
    return {
        "game": game,
        "paytable_digest": rules_digest,
        "rng_digest": commitment.rng_digest,
        "commitment": commitment.chained(),
    }


def renew(
    conn: psycopg.Connection[Any],
    house: House,
    renewed: Sequence[Series],
    now: datetime,
    *,
    give_up_lost: bool = False,
) -> int:
    """Makes the next commitment of each series; one that was never dealt from is revealed and over with that.

    How many were made: a series that somebody else has moved on meanwhile is left as it is.  Raises
    `RngUnavailable`, and `SealBroken` where a seed cannot be revealed, unless that is to be given up.
    """
    ops = []
    for series in renewed:
        made = make(house, series, now)
        ops.append({**made.row, "audit": made.audit, **_replaced(house, series, now, give_up_lost)})
    outcomes = conn.execute("SELECT outcome FROM commitment_make(%s)", [as_jsonb(ops)]).fetchall()
    return outcomes.count(("made",))


def _replaced(house: House, series: Series, now: datetime, give_up_lost: bool) -> dict[str, Any]:
    latest = series.latest
    if latest is None or latest.over:
        return {}
    commitment = latest.commitment
    said = commitment_record(commitment, game=series.version.game, rules_digest=latest.rules_digest)
    try:
        seed = commitment.open_seed(house.sealer)
        kind, reason, said = EntryType.COMMITMENT_EXPIRED, _WHY_REPLACED, said | {"seed": seed.hex()}
    except SealBroken:
        if not give_up_lost:
            raise
        kind, reason, seed = EntryType.COMMITMENT_LOST, _WHY_LOST, None
    entry = series.entry(kind, now, commitment, reason=reason, payload=said)
    return {
        "replaced_id": commitment.round_id,
        "replaced_seed": seed,
        "replaced_audit": entry.text(),
    }


def offer(conn: psycopg.Connection[Any], house: House, token_hash: bytes) -> None:
    """Sees to it that each game a session may play has a commitment for its player's next round.

    Without random numbers there is none to offer, which keeps nobody from opening a session.
    """
    caller = read_caller(conn, token_hash)
    house.upkeep.attend(conn, house.generator)
    for series in _playable(conn, house, caller):
        if _lacks_one(series):
            try:
                renew(conn, house, [series], caller.read_at)
            except RngUnavailable:
                house.upkeep.attend(conn, house.generator)
            except SealBroken:
                pass  # `/readyz` tells it, and so does a deal; a session is opened all the same


def _lacks_one(series: Series) -> bool:
    latest = series.latest
    return latest is None or not (latest.in_play or latest.serves(series.version.version_id))


def offered(conn: psycopg.Connection[Any], house: House, caller: Caller) -> dict[str, dict[str, Any]]:
    """What the player's next rounds will be dealt from, by game; nothing for a game whose round is open."""
    return {
        series.version.game: series.latest.commitment.named()
        for series in _playable(conn, house, caller)
        if series.latest is not None
        and not series.latest.in_play
        and series.latest.serves(series.version.version_id)
    }


def _playable(conn: psycopg.Connection[Any], house: House, caller: Caller) -> list[Series]:
    rows = conn.execute(
        "SELECT latest.*, game.active_version_id"
        " FROM game LEFT JOIN LATERAL latest_commitment(%s, game.game, %s) AS latest ON true"
        " WHERE (%s::text IS NULL OR game.game = %s) AND game.state = 'enabled' ORDER BY game.game",
        [caller.player_id, caller.mode, caller.session_game, caller.session_game],
    ).fetchall()
    found = []
    for row in rows:
        latest, (version_id,) = Latest.from_columns(row)
        with suppress(ServiceError):  # a game whose version was altered takes no other with it
            version = house.shelf.version(conn, version_id)
            if version.offered_in(caller.jurisdiction):
                found.append(Series(caller.operator_id, caller.player_id, caller.mode, version, latest))
    return found


def _seal_context(round_id: UUID) -> str:
    return f"seed of round {round_id}"
