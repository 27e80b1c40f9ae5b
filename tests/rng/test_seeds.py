"""Seeds, commitments and the deals that follow from them: each depends on all of what it says, and on nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from hashlib import sha256
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import Reference
from words import Words

from casino_brag.rng import DEALS, PROTOCOL, Draw, OutOfRange, commitment_value, seeds
from casino_brag.rng.bounded import DISCARDS_MAX, WORDS
from casino_brag.rng.generator import length_prefixed
from casino_brag.rng.hmac_drbg import HmacDrbg

SEED = bytes(range(48))
ROUND = UUID("01234567-89ab-4def-8123-456789abcdef")
RULES = sha256(b"a paytable").hexdigest()
PREVIOUS = sha256(b"the commitment before").digest()

COMMITMENT = "506981c43826514699d1bf6adb5f0db6c303d159d409b2ed3f554c2415aa924d"
INDEX = 7_520_796_499

seed_bytes = st.binary(min_size=48, max_size=48)
digests = st.binary(min_size=32, max_size=32)
client_seeds = st.none() | st.text(
    st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=128
)


def lp(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def flipped(text: bytes) -> Iterator[bytes]:
    """The text with one bit changed, for each of its bits."""
    for bit in range(8 * len(text)):
        yield (int.from_bytes(text, "big") ^ 1 << bit).to_bytes(len(text), "big")


@given(
    seed=seed_bytes,
    round_id=st.uuids(),
    rules=digests,
    number=st.integers(1, 2**64 - 1),
    previous=st.none() | digests,
)
def test_a_commitment_is_the_hash_that_the_protocol_says(
    seed: bytes, round_id: UUID, rules: bytes, number: int, previous: bytes | None
) -> None:
    committed = lp(
        b"casino-brag commitment 1", round_id.bytes, rules, number.to_bytes(8, "big"), previous or b"", seed
    )
    expected = sha256(committed).digest()
    for _ in range(2):
        assert commitment_value(round_id, rules.hex(), number, previous, seed) == expected


@given(seed=seed_bytes, round_id=st.uuids(), rules=digests, client_seed=client_seeds)
def test_a_deal_is_the_one_that_the_protocol_says(
    seed: bytes, round_id: UUID, rules: bytes, client_seed: str | None
) -> None:
    client = b"" if client_seed is None else sha256(client_seed.encode()).digest()
    child = Reference(seed[:32], seed[32:], lp(b"casino-brag deal 1", round_id.bytes, rules, client))
    discards = 0
    while (word := int.from_bytes(child.generate(8), "big")) >= WORDS - WORDS % DEALS:
        discards += 1
    for _ in range(2):
        assert seeds.deal(seed, round_id, rules.hex(), client_seed) == Draw(word % DEALS, discards)


def test_the_protocol_has_a_name_that_changes_when_a_byte_of_it_does() -> None:
    """Whoever has to change one of these figures changes the protocol, and has to give it another name."""
    assert PROTOCOL == "casino-brag-deal-1"
    assert commitment_value(ROUND, RULES, 7, PREVIOUS, SEED).hex() == COMMITMENT
    assert seeds.deal(SEED, ROUND, RULES, "mine") == Draw(INDEX, 0)


def test_every_bit_of_what_is_committed_to_changes_the_commitment() -> None:
    values = [commitment_value(ROUND, RULES, 7, PREVIOUS, SEED)]
    values += [commitment_value(ROUND, RULES, 7, PREVIOUS, seed) for seed in flipped(SEED)]
    values += [
        commitment_value(UUID(bytes=round_id), RULES, 7, PREVIOUS, SEED) for round_id in flipped(ROUND.bytes)
    ]
    values += [
        commitment_value(ROUND, rules.hex(), 7, PREVIOUS, SEED) for rules in flipped(bytes.fromhex(RULES))
    ]
    values += [commitment_value(ROUND, RULES, 7 ^ 1 << bit, PREVIOUS, SEED) for bit in range(64)]
    values += [commitment_value(ROUND, RULES, 7, previous, SEED) for previous in flipped(PREVIOUS)]
    values += [commitment_value(ROUND, RULES, 7, previous, SEED) for previous in (None, bytes(32))]
    assert len(set(values)) == len(values) == 1 + 384 + 128 + 256 + 64 + 256 + 2


def test_every_bit_of_what_is_dealt_from_changes_the_deal() -> None:
    draws = [seeds.deal(SEED, ROUND, RULES, "mine")]
    draws += [seeds.deal(seed, ROUND, RULES, "mine") for seed in flipped(SEED)]
    draws += [seeds.deal(SEED, UUID(bytes=round_id), RULES, "mine") for round_id in flipped(ROUND.bytes)]
    draws += [seeds.deal(SEED, ROUND, rules.hex(), "mine") for rules in flipped(bytes.fromhex(RULES))]
    draws += [seeds.deal(SEED, ROUND, RULES, text.decode("latin-1")) for text in flipped(b"mine")]
    draws += [seeds.deal(SEED, ROUND, RULES, text) for text in (None, "", "min", "mine ", "MINE")]
    assert len({draw.index for draw in draws}) == len(draws) == 1 + 384 + 128 + 256 + 32 + 5


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_of_a_player_is_the_same_as_none(text: str) -> None:
    assert seeds.deal(SEED, ROUND, RULES, text) != seeds.deal(SEED, ROUND, RULES, None)


def test_a_player_has_a_say_after_the_operator_is_bound_and_the_place_in_the_series_has_none() -> None:
    """The commitment takes no text of the player's: it is out before.  The deal takes no number and no previous one."""
    committed = list(inspect.signature(commitment_value).parameters)
    assert committed == ["round_id", "rules_digest", "number", "previous", "seed"]
    assert list(inspect.signature(seeds.deal).parameters) == [
        "seed",
        "round_id",
        "rules_digest",
        "client_seed",
    ]


Foretold = Callable[[bytes, UUID], int]

GUESSES: dict[str, Foretold] = {
    "first bytes": lambda value, round_id: int.from_bytes(value[:8], "big") % DEALS,
    "last bytes": lambda value, round_id: int.from_bytes(value[-8:], "big") % DEALS,
    "whole value": lambda value, round_id: int.from_bytes(value, "big") % DEALS,
    "hashed again": lambda value, round_id: int.from_bytes(sha256(value).digest()[:8], "big") % DEALS,
    "taken for the seed": lambda value, round_id: seeds.deal(value + value[:16], round_id, RULES, None).index,
}
"""Ways to work out an index from the commitment's value, which everybody sees before the round."""


@pytest.mark.parametrize("name", GUESSES)
def test_a_published_commitment_foretells_no_deal(name: str) -> None:
    """A public casino's outcomes followed from the hash that it published, and twenty of twenty could be told."""
    guess = GUESSES[name]
    told = 0
    for number in range(1, 21):
        seed, round_id = sha256(bytes([number])).digest() + bytes(16), UUID(int=number)
        value = commitment_value(round_id, RULES, number, None, seed)
        told += guess(value, round_id) == seeds.deal(seed, round_id, RULES, None).index
    assert told == 0


@pytest.mark.parametrize("discarded", [1, 2, DISCARDS_MAX - 1])
def test_a_deal_counts_the_words_it_throws_away(discarded: int, monkeypatch: pytest.MonkeyPatch) -> None:
    words = Words(*[WORDS - 1] * discarded, DEALS + 3)
    monkeypatch.setattr(HmacDrbg, "generate", lambda drbg, *asked: words.generate(*asked))
    assert seeds.deal(SEED, ROUND, RULES, None) == Draw(3, discarded)


def test_a_seed_that_gives_no_word_in_range_deals_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Words(*[WORDS - 1] * (DISCARDS_MAX + 1))
    monkeypatch.setattr(HmacDrbg, "generate", lambda drbg, *asked: words.generate(*asked))
    with pytest.raises(OutOfRange):
        seeds.deal(SEED, ROUND, RULES, None)
    assert words.taken == DISCARDS_MAX


def test_the_generator_of_a_deal_is_wiped_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wiped = []
    wipe = HmacDrbg.wipe

    def watched(drbg: HmacDrbg) -> None:
        wipe(drbg)
        wiped.append(drbg)

    monkeypatch.setattr(HmacDrbg, "wipe", watched)
    seeds.deal(SEED, ROUND, RULES, None)
    assert [(bytes(drbg._key), bytes(drbg._v)) for drbg in wiped] == [(bytes(32), bytes(32))]


@pytest.mark.parametrize("size", [0, 32, 47, 49])
def test_a_seed_of_another_size_is_a_mistake_of_the_program(size: int) -> None:
    with pytest.raises(AssertionError):
        seeds.deal(bytes(size), ROUND, RULES, None)
    with pytest.raises(AssertionError):
        commitment_value(ROUND, RULES, 1, None, bytes(size))


parts = st.lists(st.binary(max_size=6), max_size=4)


@given(first=parts, second=parts)
def test_texts_strung_together_can_be_told_apart(first: list[bytes], second: list[bytes]) -> None:
    """So that no player's text, purpose or subject passes for the end of one field and the beginning of the next."""
    alike = b"".join(map(length_prefixed, first)) == b"".join(map(length_prefixed, second))
    assert alike == (first == second)
