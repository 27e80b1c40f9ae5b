"""The collectors draw on the call path of live rounds, never the same twice, and not at all where the module fails."""

from __future__ import annotations

import os
from itertools import islice
from uuid import UUID

import pytest

from casino_brag.game.cards import Card
from casino_brag.laboratory import collectors
from casino_brag.laboratory.collectors import PURPOSE, deals, line, raw
from casino_brag.rng import Draw, Drawn, Generator, RngUnavailable, seeds, unrank
from casino_brag.rng.deal import rank


def test_raw_output_is_what_the_generator_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator()
    given: list[bytes] = []
    asked: list[tuple[int, str]] = []
    live = Generator.generate

    def watched(self: Generator, size: int, purpose: str, subject: bytes = b"") -> Drawn:
        drawn = live(self, size, purpose, subject)
        asked.append((size, purpose))
        given.append(drawn.output)
        return drawn

    monkeypatch.setattr(Generator, "generate", watched)
    collected = list(raw(generator, 3 * 65_536 + 7))
    assert collected == given
    assert asked == [(65_536, PURPOSE)] * 3 + [(7, PURPOSE)]


def test_raw_output_never_repeats() -> None:
    output = b"".join(raw(Generator(), 1 << 20)) + b"".join(raw(Generator(), 1 << 20))
    blocks = {output[at : at + 16] for at in range(0, len(output), 16)}
    assert len(blocks) == len(output) // 16


def test_collecting_keeps_nothing() -> None:
    """The first of ten million million bytes, and of as many deals, are there at once."""
    generator = Generator()
    assert len(next(raw(generator, 10**13))) == 65_536
    assert len(next(deals(generator, 10**13)).cards) == 6


def test_deals_are_made_as_live_rounds_are(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[UUID, bytes]] = []
    committed: list[tuple[UUID, str, int, bytes | None, bytes, bytes]] = []

    def draw_seed(generator: Generator, round_id: UUID) -> Drawn:
        seed = seeds.draw_seed(generator, round_id)
        drawn.append((round_id, seed.output))
        return seed

    def commitment_value(
        round_id: UUID, rules: str, number: int, previous: bytes | None, seed: bytes
    ) -> bytes:
        value = seeds.commitment_value(round_id, rules, number, previous, seed)
        committed.append((round_id, rules, number, previous, seed, value))
        return value

    monkeypatch.setattr(collectors, "draw_seed", draw_seed)
    monkeypatch.setattr(collectors, "commitment_value", commitment_value)
    collected = list(deals(Generator(), 20))
    rules = collectors.paytable().digest
    assert collected == [seeds.deal(seed, round_id, rules, None) for round_id, seed in drawn]
    assert [(round_id, seed) for round_id, _, _, _, seed, _ in committed] == drawn
    assert len({round_id for round_id, _ in drawn}) == len({seed for _, seed in drawn}) == 20
    assert [number for _, _, number, _, _, _ in committed] == list(range(1, 21))
    values = [value for *_, value in committed]
    assert [previous for _, _, _, previous, _, _ in committed] == [None, *values[:-1]]


def test_every_request_takes_fresh_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator()
    generator.start()
    taken: list[int] = []
    genuine = os.getrandom

    def watched(size: int, flags: int = 0) -> bytes:
        taken.append(size)
        return genuine(size, flags)

    monkeypatch.setattr(os, "getrandom", watched)
    assert len(list(raw(generator, 5 * 65_536))) == 5
    assert taken == [48] * 5, "32 bytes to reseed, 16 for the additional input"
    assert len(list(deals(generator, 3))) == 3
    assert taken == [48] * 8


def test_children_of_one_process_collect_differently() -> None:
    generator = Generator()
    output = [next(raw(generator, 32))]
    for _ in range(4):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writer, next(raw(generator, 32)))
            finally:
                os._exit(0)
        os.close(writer)
        output.append(os.read(reader, 64))
        os.close(reader)
        assert os.waitpid(child, 0)[1] == 0
    output.append(next(raw(generator, 32)))
    assert {len(each) for each in output} == {32}
    assert len(set(output)) == 6


def test_nothing_is_collected_where_the_module_has_failed() -> None:
    generator = Generator()
    assert len(list(islice(deals(generator, 2), 2))) == 2
    generator.fail("a fault was found")
    with pytest.raises(RngUnavailable, match="a fault was found"):
        next(raw(generator, 1))
    with pytest.raises(RngUnavailable, match="a fault was found"):
        next(deals(generator, 1))


def test_a_line_has_the_cards_in_the_order_dealt() -> None:
    draw = Draw(12_345_678_901, 0)
    texts = line(draw, with_index=False).split()
    assert [Card.parse(text).index for text in texts] == list(unrank(draw.index))
    assert line(draw, with_index=True) == f"{rank(draw.cards)} {' '.join(texts)}\n"
