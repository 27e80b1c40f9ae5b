"""What is told of the module's health, and of a kernel that is not ready."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from casino_brag.laboratory.health import UNSEEDED, examine, kernel_facts
from casino_brag.rng import MODULE_DIGEST, Generator, State
from casino_brag.rng.entropy import START_UP_BYTES
from casino_brag.rng.known_answers import CASES
from casino_brag.rng.module import module_files


def test_a_sound_module_is_ready_and_says_what_was_tested() -> None:
    found = examine(Generator())
    assert (found.ready, found.state, found.failure) == (True, State.READY, None)
    assert found.tested == {
        "files": len(module_files()),
        "known_answers": CASES,
        "entropy_bytes": START_UP_BYTES,
    }
    document = json.loads(json.dumps(found.document()))
    assert document["module_digest"] == MODULE_DIGEST
    assert [event["kind"] for event in document["events"]] == ["self_tested", "instantiated"]


def test_a_failed_module_says_why() -> None:
    generator = Generator()
    generator.fail("a fault was found")
    found = examine(generator)
    assert (found.ready, found.state, found.failure) == (False, State.ERROR, "a fault was found")
    assert found.tested == {}


def test_a_kernel_that_is_not_seeded_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def getrandom(size: int, flags: int = 0) -> bytes:
        assert flags & os.GRND_NONBLOCK, "it would wait for ever"
        raise BlockingIOError

    monkeypatch.setattr(os, "getrandom", getrandom)
    found = examine(Generator())
    assert (found.ready, found.failure) == (False, UNSEEDED)
    assert found.kernel["seeded"] == "no"


def test_a_kernel_without_the_call_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def getrandom(size: int, flags: int = 0) -> bytes:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "getrandom", getrandom)
    assert kernel_facts()["seeded"] == "not known: Function not implemented"
    assert not examine(Generator()).ready


@pytest.mark.parametrize(
    ("source", "failure"),
    [
        (lambda size: b"\x07" * size, "equal bytes in a row"),
        (lambda size: bytes(range(size)), "began with the same 16 bytes"),
        (lambda size: b"\x07", "gave 1 random bytes of"),
    ],
    ids=["stuck", "repeating", "short"],
)
def test_a_failed_source_of_entropy_is_noticed_at_the_start(
    monkeypatch: pytest.MonkeyPatch, source: Callable[[int], bytes], failure: str
) -> None:
    monkeypatch.setattr(os, "getrandom", lambda size, flags=0: source(size))
    found = examine(Generator())
    assert (found.ready, found.state) == (False, State.ERROR)
    assert failure in str(found.failure)


def test_a_byte_that_comes_too_often_is_noticed_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = os.getrandom

    def biased(size: int, flags: int = 0) -> bytes:
        """Every eighth byte is a seven: never two in a row, and no draw like another."""
        drawn = bytearray(genuine(size, flags))
        drawn[::8] = b"\x07" * len(drawn[::8])
        return bytes(drawn)

    monkeypatch.setattr(os, "getrandom", biased)
    found = examine(Generator())
    assert not found.ready
    assert "one byte 26 times in a window of 512" in str(found.failure)
