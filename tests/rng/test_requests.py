"""Every request stands alone: entropy of its own, input of its own, a number of its own, and no trace of it left."""

from __future__ import annotations

import hmac
import inspect
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import Reference
from words import Kernel, repeatable, stream

from casino_brag.rng import Generator, draw_seed, generator, known_answers
from casino_brag.rng.generator import length_prefixed
from casino_brag.rng.hmac_drbg import HmacDrbg

Patch = pytest.MonkeyPatch

ROUND = UUID("01234567-89ab-4def-8123-456789abcdef")


def drbg_of(asked: Generator) -> HmacDrbg:
    assert asked._instance.drbg is not None
    return asked._instance.drbg


def stolen(asked: Generator) -> tuple[bytes, bytes]:
    """The key and the value that lie in memory."""
    return bytes(drbg_of(asked)._key), bytes(drbg_of(asked)._v)


@pytest.fixture
def additional_inputs(monkeypatch: Patch) -> Iterator[list[bytes]]:
    """The additional input of each request from here on."""
    seen: list[bytes] = []
    answer = HmacDrbg.generate

    def watched(drbg: HmacDrbg, size: int, additional_input: bytes = b"") -> bytes:
        seen.append(additional_input)
        return answer(drbg, size, additional_input)

    with monkeypatch.context() as patch:
        patch.setattr(HmacDrbg, "generate", watched)
        yield seen


def started() -> Generator:
    asked = Generator()
    asked.start()
    return asked


# Entropy and input


def test_each_request_draws_fresh_entropy(monkeypatch: Patch) -> None:
    """1,024 bytes to test, 48 to begin with, 16 for a name; then 32 to reseed and 16 of additional input each time."""
    kernel = Kernel(monkeypatch)
    asked = Generator()
    for _ in range(5):
        asked.generate(48, "a test")
    assert kernel.asked == [32] * 32 + [48, 16] + [48] * 5
    assert len(set(kernel.given)) == len(kernel.given)


def test_what_is_answered_is_the_standards_generator_over_just_these_inputs(monkeypatch: Patch) -> None:
    """Worked out a second time from what the kernel gave: nothing is left out, and nothing else goes in."""
    kernel = Kernel(monkeypatch)
    asked = Generator()
    drawn = [asked.generate(100, "a purpose", bytes([number])) for number in range(3)]
    seed, name, *fresh = kernel.given[32:]

    def strung(*parts: bytes) -> bytes:
        return b"".join(len(part).to_bytes(4, "big") + part for part in parts)

    process = str(asked._instance.pid).encode()
    personal = strung(b"casino-brag random number module 1", name.hex().encode(), process)
    reference = Reference(seed[:32], seed[32:], personal)
    for number, given_bytes in enumerate(fresh):
        reference.reseed(given_bytes[:32])
        count = (number + 1).to_bytes(8, "big")
        about = strung(b"a purpose", name.hex().encode(), count, bytes([number]), given_bytes[32:])
        assert drawn[number].output == reference.generate(100, about)


def test_no_two_requests_have_the_same_additional_input(additional_inputs: list[bytes]) -> None:
    asked = [started(), started()]
    additional_inputs.clear()
    for one in asked:
        for _ in range(50):
            one.generate(16, "a test", b"subject")
    assert len(set(additional_inputs)) == len(additional_inputs) == 100


def test_the_additional_input_tells_what_it_is_for_and_which_request_it_is(
    additional_inputs: list[bytes], monkeypatch: Patch
) -> None:
    kernel = Kernel(monkeypatch)
    asked = started()
    additional_inputs.clear()
    drawn = draw_seed(asked, ROUND)
    fields = (
        b"round seed",
        drawn.instance.encode(),
        (1).to_bytes(8, "big"),
        ROUND.bytes,
        kernel.given[-1][32:],
    )
    assert additional_inputs == [b"".join(map(length_prefixed, fields))]


def answer_to(purpose: str, subject: bytes) -> bytes:
    """The first answer of an instance whose kernel gives what it always gives, and whose tests are left out."""
    with pytest.MonkeyPatch.context() as patch:
        Kernel(patch, repeatable(b"the same"))
        patch.setattr(generator, "check_manifest", lambda: 0)
        patch.setattr(known_answers, "run", lambda: 0)
        return Generator().generate(16, purpose, subject).output


abouts = st.tuples(st.text("ab", max_size=3), st.binary(max_size=3))


@given(first=abouts, second=abouts)
def test_another_purpose_or_subject_is_another_answer_even_from_the_same_bytes(
    first: tuple[str, bytes], second: tuple[str, bytes]
) -> None:
    assert (answer_to(*first) == answer_to(*second)) == (first == second)


# Numbers


def test_requests_are_numbered_without_gaps_and_each_was_reseeded_for() -> None:
    asked = Generator()
    drawn = [asked.generate(16, "a test") for _ in range(20)]
    assert [(answer.request, answer.reseeds) for answer in drawn] == [(n, n) for n in range(1, 21)]
    assert {answer.instance for answer in drawn} == {asked._instance.name}


def test_every_instance_has_a_name_and_a_count_of_its_own() -> None:
    drawn = [Generator().generate(16, "a test") for _ in range(20)]
    assert len({answer.instance for answer in drawn}) == 20
    assert {(len(answer.instance), answer.request) for answer in drawn} == {(32, 1)}
    assert all(int(answer.instance, 16) >= 0 for answer in drawn)


def test_a_round_has_a_seed_of_forty_eight_bytes_of_its_own() -> None:
    asked = Generator()
    drawn = [draw_seed(asked, ROUND) for _ in range(20)]
    assert {len(answer.output) for answer in drawn} == {48}
    assert len({answer.output for answer in drawn}) == 20


def test_whoever_asks_can_choose_nothing() -> None:
    """No seed, no word, no card, no source: only how much, what for, and about whom."""

    def parameters(of: Callable[..., object]) -> list[str]:
        return list(inspect.signature(of).parameters)

    assert parameters(Generator) == parameters(Generator().start) == parameters(Generator().check) == []
    assert parameters(Generator().generate) == ["size", "purpose", "subject"]
    assert parameters(Generator().fail) == ["reason"]
    assert parameters(draw_seed) == ["generator", "round_id"]
    public = {name for name in vars(Generator) if not name.startswith("_")}
    assert public == {
        "check",
        "events_waiting",
        "fail",
        "failure",
        "generate",
        "start",
        "state",
        "take_events",
    }


# Thieves


def confirms(asked: Generator, output: bytes) -> bool:
    """Whether the state stolen now tells that this was the output before: V is HMAC(K, last block of it)."""
    key, value = stolen(asked)
    return hmac.digest(key, output[-32:], "sha256") == value


def without(*left_out: str) -> Callable[[Patch], None]:
    """The generator with its reseeding, or its additional input, left out."""

    def patched(patch: Patch) -> None:
        answer = HmacDrbg.generate
        if "additional input" in left_out:
            patch.setattr(HmacDrbg, "generate", lambda drbg, size, additional=b"": answer(drbg, size))
        if "reseeding" in left_out:
            patch.setattr(HmacDrbg, "reseed", lambda drbg, *fresh: setattr(drbg, "requests", 0))

    return patched


@pytest.mark.parametrize("left_out", [("additional input",), ("additional input", "reseeding")], ids=" ".join)
def test_without_additional_input_a_stolen_state_confirms_what_was_answered_before(
    left_out: tuple[str, ...], monkeypatch: Patch
) -> None:
    """The mutant.  With 52 cards there is little to try out before one is confirmed."""
    asked = started()
    without(*left_out)(monkeypatch)
    for size in (32, 64):
        assert confirms(asked, asked.generate(size, "a test").output)


@pytest.mark.parametrize(
    "left_out", [(), ("reseeding",)], ids=lambda left_out: " ".join(left_out) or "nothing"
)
def test_with_additional_input_a_stolen_state_confirms_nothing(
    left_out: tuple[str, ...], monkeypatch: Patch
) -> None:
    asked = started()
    without(*left_out)(monkeypatch)
    for size in (32, 64):
        assert not confirms(asked, asked.generate(size, "a test").output)


def test_a_stolen_state_does_not_foretell_the_next_answer(monkeypatch: Patch) -> None:
    """Prediction resistance: the thief knows key, value and all that is said of a request, but not the fresh bytes."""

    def foretold(asked: Generator) -> bool:
        thief = Reference(b"", b"")
        thief.key, thief.v = stolen(asked)
        about = (b"a test", asked._instance.name.encode(), (2).to_bytes(8, "big"), b"")
        told = {thief.generate(32)}
        for fresh in (b"", bytes(16), bytes(32)):
            thief.key, thief.v = stolen(asked)
            told.add(thief.generate(32, b"".join(map(length_prefixed, (*about, fresh)))))
        return asked.generate(32, "a test").output in told

    asked = started()
    asked.generate(32, "a test")
    assert not foretold(asked)
    asked = started()
    without("reseeding", "additional input")(monkeypatch)
    asked.generate(32, "a test")
    assert foretold(asked)


def test_a_state_restored_from_a_snapshot_does_not_answer_the_same_again() -> None:
    """As when a virtual machine is put back to where it was.  The core alone would repeat itself, and does here."""
    asked = started()
    drbg = drbg_of(asked)
    snapshot = stolen(asked)
    answers, core_answers = set(), set()
    for _ in range(20):
        drbg._key[:], drbg._v[:] = snapshot
        asked._instance.requests = asked._instance.reseeds = 0
        answers.add(asked.generate(32, "a test").output)
        drbg._key[:], drbg._v[:] = snapshot
        core_answers.add(drbg.generate(32))
    assert len(answers) == 20
    assert len(core_answers) == 1


# Clocks


def test_neither_time_nor_date_has_a_part_in_what_comes_out(monkeypatch: Patch) -> None:
    """So that nothing waits for its day: with the same bytes from the kernel, any hour gives the same answers."""

    def answers(kernel_seed: bytes, hour: float) -> tuple[bytes, ...]:
        with monkeypatch.context() as patch:
            Kernel(patch, repeatable(kernel_seed))
            patch.setattr(generator, "time", SimpleNamespace(monotonic=lambda: hour))
            patch.setattr(time, "time", lambda: hour)
            asked = Generator()
            return tuple(asked.generate(48, "a test").output for _ in range(3))

    assert len({answers(b"one", hour) for hour in (0.0, 1e6, 1.7e9, 2.0**33)}) == 1
    assert answers(b"one", 0.0) != answers(b"another", 0.0)


def test_a_generator_seeded_by_the_clock_is_found_by_trying_the_seconds(monkeypatch: Patch) -> None:
    """As PlanetPoker's was in 1999.  What this one answers is not among the answers of two hours' seconds."""
    now = 1_700_000_000

    def clocked(second: int) -> bytes:
        return HmacDrbg(second.to_bytes(32, "big"), b"").generate(32)

    tried = {clocked(second): second for second in range(now - 3600, now + 3600)}
    assert tried[clocked(now - 1234)] == now - 1234
    monkeypatch.setattr(generator, "time", SimpleNamespace(monotonic=lambda: float(now)))
    outputs = [Generator().generate(32, "a test").output for _ in range(5)]
    assert len(set(outputs)) == 5
    assert not tried.keys() & set(outputs)


def test_a_kernel_that_runs_dry_in_the_middle_is_told_from_one_that_does_not(monkeypatch: Patch) -> None:
    """Exactly as many bytes as are due are enough, and one fewer is not."""
    due = 1024 + 48 + 16 + 48
    enough = HmacDrbg(bytes(32), b"dry").generate(due)
    Kernel(monkeypatch, stream(enough))
    assert len(Generator().generate(48, "a test").output) == 48
    Kernel(monkeypatch, stream(enough[:-1]))
    with pytest.raises(generator.RngUnavailable, match="gave 47 random bytes of 48"):
        Generator().generate(48, "a test")
