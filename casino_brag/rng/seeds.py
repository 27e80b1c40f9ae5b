"""From a seed to a deal, in a way that the player can check afterwards and nobody can predict.

A round's seed comes from the module's generator before the round is opened.  Its commitment is shown before any
stake; the seed itself is kept sealed until the round is over, and then revealed.  The deal follows from the seed,
the round, the rules and, if there is one, a text of the player's own, by a generator that is used for this one
deal.  The player's text is personalization: it adds to what the operator cannot foresee, and earns no entropy
credit, so that the quality of the deal rests on the seed alone.

Every byte of it is described in docs/rng.md, and computed a second time by ``verification/verify_round.py``.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final
from uuid import UUID

from casino_brag.rng.bounded import WORD_BYTES, below
from casino_brag.rng.deal import DEALS, Draw
from casino_brag.rng.generator import ENTROPY_BYTES, NONCE_BYTES, Drawn, Generator, length_prefixed
from casino_brag.rng.hmac_drbg import HmacDrbg

PROTOCOL: Final = "casino-brag-deal-1"
SEED_BYTES: Final = ENTROPY_BYTES + NONCE_BYTES

_COMMITMENT: Final = b"casino-brag commitment 1"
_DEAL: Final = b"casino-brag deal 1"


def draw_seed(generator: Generator, round_id: UUID) -> Drawn:
    """The seed of a round, 48 bytes.  Raises `RngUnavailable`."""
    return generator.generate(SEED_BYTES, "round seed", round_id.bytes)


def commitment_value(
    round_id: UUID, rules_digest: str, number: int, previous: bytes | None, seed: bytes
) -> bytes:
    """SHA-256 over round, rules, the commitment's place in its series, and seed.

    `rules_digest` is the paytable's, 64 hex digits.  `number` counts from 1; `previous` is the value of the
    commitment numbered one less, None for the first.

    >>> commitment_value(UUID(int=1), "00" * 32, 1, None, bytes(48)).hex()[:16]
    '325ae5b8ecf00c44'
    """
    assert len(seed) == SEED_BYTES
    parts = (
        _COMMITMENT,
        round_id.bytes,
        bytes.fromhex(rules_digest),
        number.to_bytes(8, "big"),
        previous or b"",
        seed,
    )
    return sha256(b"".join(map(length_prefixed, parts))).digest()


def deal(seed: bytes, round_id: UUID, rules_digest: str, client_seed: str | None) -> Draw:
    """The deal of a round: the same for the same four, and for nothing else.

    Raises `OutOfRange` where 64 words in a row had to be discarded, which a sound seed never does.

    >>> deal(bytes(48), UUID(int=1), "00" * 32, None) == deal(bytes(48), UUID(int=1), "00" * 32, "mine")
    False
    """
    assert len(seed) == SEED_BYTES
    client = b"" if client_seed is None else sha256(client_seed.encode()).digest()
    parts = (_DEAL, round_id.bytes, bytes.fromhex(rules_digest), client)
    child = HmacDrbg(seed[:ENTROPY_BYTES], seed[ENTROPY_BYTES:], b"".join(map(length_prefixed, parts)))
    index, discards = below(DEALS, lambda: int.from_bytes(child.generate(WORD_BYTES), "big"))
    child.wipe()
    return Draw(index, discards)
