"""From a seed to a deal once more, written a second time from its description ("The verifiable deal", docs/rng.md).

So a deal is found too that a fault of the random number module dealt; and it takes half as long, since a generator
that answers one request needs no state for another.
"""

from __future__ import annotations

from hashlib import sha256
from hmac import digest as hmac
from typing import Final
from uuid import UUID

import numpy as np

from casino_brag.game.cards import PACK
from casino_brag.replay.settling import Integers
from casino_brag.rng import DEALS, seeds

CARDS_DEALT: Final = 6

_WORDS: Final = 1 << 64
_ZEROS, _ONES = b"\x00" * 32, b"\x01" * 32
_PROTOCOL: Final = b"\x00\x00\x00\x12casino-brag deal 1"


def deal_index(seed: bytes, round_id: UUID, rules_digest: str, client_seed: str | None) -> tuple[int, int]:
    """The index of a round's deal, and how many words were discarded on the way to it.

    `seed` has 48 bytes, and `rules_digest` 64 hex digits.

    >>> published = bytes(range(48)), UUID("0192a4b8-7c00-7abc-8def-0123456789ab")
    >>> rules_digest = "3c08645ae4df6b82ccdbefdb73dfa4ac98472b4b43980c40f9950a67b942dc54"
    >>> deal_index(*published, rules_digest, None)
    (5005746627, 0)
    """
    assert len(seed) == seeds.SEED_BYTES
    hashed = b"" if client_seed is None else sha256(client_seed.encode()).digest()
    material = (
        (seed + _PROTOCOL + b"\x00\x00\x00\x10" + round_id.bytes)
        + (b"\x00\x00\x00\x20" + bytes.fromhex(rules_digest))
        + (len(hashed).to_bytes(4, "big") + hashed)
    )
    # HMAC_DRBG, SP 800-90A rev. 1: 10.1.2.3 with 10.1.2.2, and then the first block of 10.1.2.5.
    key = hmac(_ZEROS, _ONES + b"\x00" + material, "sha256")
    value = hmac(key, _ONES, "sha256")
    key = hmac(key, value + b"\x01" + material, "sha256")
    value = hmac(key, value, "sha256")
    word = int.from_bytes(hmac(key, value, "sha256")[:8], "big")
    if word >= _WORDS - _WORDS % DEALS:  # once in 2^30 deals: the module's own way from here
        draw = seeds.deal(seed, round_id, rules_digest, client_seed)
        return draw.index, draw.discards
    return word % DEALS, 0


def deals(indexes: Integers) -> Integers:
    """The cards of deals by their indexes, a row of six card numbers each, in the order dealt.

    >>> deals(np.array([0, 14_658_134_399])).tolist()
    [[0, 1, 2, 3, 4, 5], [51, 0, 1, 2, 3, 4]]
    """
    rounds, size = np.arange(len(indexes)), len(PACK)
    chosen = np.empty((CARDS_DEALT, len(indexes)), dtype=np.int64)
    for place in reversed(range(CARDS_DEALT)):
        indexes, pick = np.divmod(indexes, size - place)
        chosen[place] = place + pick
    packs = np.tile(np.arange(size), (len(indexes), 1))
    for place in range(CARDS_DEALT):
        card = packs[rounds, chosen[place]]
        packs[rounds, chosen[place]] = packs[:, place]
        packs[:, place] = card
    return packs[:, :CARDS_DEALT]
