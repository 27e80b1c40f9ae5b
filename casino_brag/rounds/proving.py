"""The proof of a round: what its player needs to check the deal without us."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.audit import EntryType
from casino_brag.audit.records import first_checkpoint_covering, stored_hashes, verifier_keys
from casino_brag.audit.tree import inclusion_proof
from casino_brag.catalogue.sessions import read_caller
from casino_brag.errors import Code, ServiceError
from casino_brag.rng import PROTOCOL
from casino_brag.rounds.reading import round_not_found

_STATES: Final[Mapping[str, str]] = {
    EntryType.ROUND_SETTLED: "settled",
    EntryType.ROUND_VOIDED: "voided",
    EntryType.COMMITMENT_EXPIRED: "expired",
}
_DEALT: Final = ("client_seed", "client_seeds", "deal_index", "discards", "player_cards", "dealer_cards")


def proof(conn: psycopg.Connection[Any], token_hash: bytes, round_id: UUID) -> dict[str, Any]:
    """The proof of a round that is over, or of a commitment that was replaced before it was dealt from.

    All of it is taken from the audit entry that closed it, and the entry is part of it.  `inclusion` shows that this
    entry is in the log, by the first signed checkpoint that has it; None in the seconds before there is one.  Raises
    `ServiceError`: unauthenticated, round_not_found, proof_unavailable.
    """
    caller = read_caller(conn, token_hash)
    return _proof(conn, round_id, caller.player_id, caller.mode)


def any_proof(conn: psycopg.Connection[Any], round_id: UUID) -> dict[str, Any]:
    """The same of whichever player's round.  Raises `ServiceError`: round_not_found, proof_unavailable."""
    return _proof(conn, round_id, None, None)


def _proof(
    conn: psycopg.Connection[Any], round_id: UUID, player_id: UUID | None, mode: str | None
) -> dict[str, Any]:
    row = conn.execute(
        """
        SELECT entry.type, entry.payload, entry.bytes, entry.leaf_hash, leaf.leaf_index
        FROM (SELECT round_id, player_id, mode FROM commitment UNION SELECT round_id, player_id, mode FROM round)
            AS known
        LEFT JOIN audit_entry AS entry
            ON entry.round_id = known.round_id AND entry.type = ANY (%(types)s) AND entry.payload ? 'seed'
        LEFT JOIN audit_leaf AS leaf ON leaf.entry_id = entry.entry_id
        WHERE known.round_id = %(round_id)s
          AND (%(player_id)s::uuid IS NULL OR (known.player_id, known.mode) = (%(player_id)s, %(mode)s))
        """,
        {"types": list(_STATES), "round_id": round_id, "player_id": player_id, "mode": mode},
    ).fetchone()
    if row is None:
        raise round_not_found()
    kind, payload, entry, leaf_hash, leaf_index = row
    if kind is None:
        raise ServiceError(
            Code.PROOF_UNAVAILABLE,
            "A round is proven once it is over, if it was committed to beforehand and its seed could be revealed.",
        )
    found = {
        "protocol": PROTOCOL,
        "round_id": str(round_id),
        "state": _STATES[kind],
        "game": payload["game"],
        "rules_digest": payload["paytable_digest"],
        "rng_digest": payload["rng_digest"],
        "commitment": payload["commitment"],
        "seed": payload["seed"],
        "audit": {"leaf_hash": leaf_hash.hex(), "entry": entry.decode()},
        "inclusion": None if leaf_index is None else _inclusion(conn, leaf_index),
    }
    return found | {name: payload[name] for name in _DEALT if name in payload}


def _inclusion(conn: psycopg.Connection[Any], leaf_index: int) -> dict[str, Any] | None:
    checkpoint = first_checkpoint_covering(conn, leaf_index)
    if checkpoint is None:
        return None
    proof = inclusion_proof(stored_hashes(conn), leaf_index, checkpoint.tree_size)
    return {
        "leaf_index": leaf_index,
        "tree_size": checkpoint.tree_size,
        "proof": [b64encode(beside).decode() for beside in proof],
        "checkpoint": checkpoint.note,
        "verifier_keys": [key.text() for key in verifier_keys(conn)],
    }
