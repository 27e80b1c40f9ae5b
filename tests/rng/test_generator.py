"""The generator's states: what it does before it serves, when it stops, and that it then stays stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from words import REAL, Kernel

from casino_brag.rng import EventKind, Generator, RngUnavailable, State, generator, known_answers
from casino_brag.rng.entropy import Entropy
from casino_brag.rng.generator import EVENTS_KEPT, INTEGRITY_SECONDS, RESEED_SECONDS_MAX
from casino_brag.rng.hmac_drbg import OUTPUT_BYTES_MAX, REQUESTS_MAX, HmacDrbg
from casino_brag.rng.module import MODULE_DIGEST, IntegrityFailure

KATS = known_answers.CASES

Patch = pytest.MonkeyPatch


class Clock:
    """Stands in the place of the module's only clock."""

    def __init__(self, patch: Patch) -> None:
        self.now = 1_000.0
        self.after_each = 0.0
        patch.setattr(generator, "time", SimpleNamespace(monotonic=self.monotonic))

    def monotonic(self) -> float:
        self.now += self.after_each
        return self.now


def raising(failure: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise failure

    return fail


def drbg_of(asked: Generator) -> HmacDrbg:
    assert asked._instance.drbg is not None
    return asked._instance.drbg


def kinds(asked: Generator) -> list[EventKind]:
    return [event.kind for event in asked.take_events()]


def assert_refuses(asked: Generator, said: str) -> None:
    """It is in its error state, says why, and neither answers nor asks the kernel for anything."""
    with pytest.MonkeyPatch.context() as patch:
        kernel = Kernel(patch)
        for ask in (asked.start, asked.check, lambda: asked.generate(16, "a test")):
            with pytest.raises(RngUnavailable, match=said):
                ask()
        assert kernel.asked == []
    assert asked.state is State.ERROR
    assert said in str(asked.failure)
    assert asked._instance.drbg is None


# What goes right


def test_nothing_is_drawn_before_the_first_request(monkeypatch: Patch) -> None:
    kernel = Kernel(monkeypatch)
    asked = Generator()
    assert (asked.state, asked.failure, asked.events_waiting) == (State.UNINSTANTIATED, None, False)
    assert (kernel.asked, asked.take_events()) == ([], [])


@pytest.mark.parametrize("first", ["start", "check", "generate"])
def test_it_tests_itself_before_it_serves_whatever_it_is_asked_first(first: str) -> None:
    asked = Generator()
    if first == "generate":
        assert len(asked.generate(48, "a test").output) == 48
    else:
        getattr(asked, first)()
    assert asked.state is State.READY
    assert kinds(asked) == [EventKind.SELF_TESTED, EventKind.INSTANTIATED]


def test_the_tests_are_not_run_again_by_starting_again(monkeypatch: Patch) -> None:
    asked = Generator()
    asked.start()
    kernel = Kernel(monkeypatch)
    asked.take_events()
    asked.start()
    assert (kernel.asked, asked.take_events()) == ([], [])


def test_it_goes_from_state_to_state_in_the_order_described(monkeypatch: Patch) -> None:
    states = []

    class Watched(generator._Instance):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "state":
                states.append(value)
            super().__setattr__(name, value)

    monkeypatch.setattr(generator, "_Instance", Watched)
    asked = Generator()
    asked.generate(16, "a test")
    asked.generate(16, "a test")
    asked.fail("enough")
    asked.fail("more than enough")
    assert states == [
        State.UNINSTANTIATED,
        State.SELF_TEST,
        State.READY,
        State.RESEEDING,
        State.READY,
        State.RESEEDING,
        State.READY,
        State.ERROR,
    ]


def test_only_when_ready_does_it_answer(monkeypatch: Patch) -> None:
    asked = Generator()
    asked.start()
    seen = []
    answer = HmacDrbg.generate

    def watched(drbg: HmacDrbg, size: int, additional_input: bytes = b"") -> bytes:
        seen.append(asked.state)
        return answer(drbg, size, additional_input)

    monkeypatch.setattr(HmacDrbg, "generate", watched)
    for _ in range(3):
        asked.generate(16, "a test")
    assert seen == [State.READY] * 3


def test_it_can_be_asked_whether_it_could_serve(monkeypatch: Patch) -> None:
    asked = Generator()
    asked.start()
    kernel = Kernel(monkeypatch)
    for _ in range(3):
        asked.check()
    assert kernel.asked == [16] * 3
    assert asked.generate(16, "a test").request == 1


@pytest.mark.parametrize("size", [1, 16, 48, OUTPUT_BYTES_MAX])
def test_as_much_is_answered_as_was_asked_for(size: int) -> None:
    assert len(Generator().generate(size, "a test").output) == size


def test_too_much_asked_for_is_refused_and_the_next_is_served() -> None:
    asked = Generator()
    with pytest.raises(AssertionError):
        asked.generate(OUTPUT_BYTES_MAX + 1, "a test")
    assert asked.state is State.READY
    assert len(asked.generate(16, "a test").output) == 16


# What goes wrong before it serves


def in_answer(number: int, wrong: Callable[[int], bytes]) -> Callable[[Patch], object]:
    """The kernel does wrong in its answer of this number, and never else."""

    def cause(patch: Patch) -> object:
        kernel = Kernel(patch)
        kernel.answer = lambda size: wrong(size) if len(kernel.asked) == number else REAL(size)
        return kernel

    return cause


@dataclass(frozen=True)
class Failure:
    """Something that fails, and what the module says of it."""

    cause: Callable[[Patch], object]
    said: str


BEFORE: dict[str, Failure] = {
    "kernel refuses at once": Failure(in_answer(1, raising(OSError(38, "none"))), "gave no random bytes"),
    "kernel refuses when tested": Failure(
        in_answer(32, raising(OSError(38, "none"))), "gave no random bytes"
    ),
    "kernel refuses the seed": Failure(in_answer(33, raising(OSError(38, "none"))), "gave no random bytes"),
    "kernel refuses the name": Failure(in_answer(34, raising(OSError(38, "none"))), "gave no random bytes"),
    "kernel stuck when tested": Failure(in_answer(7, bytes), "7 equal bytes in a row"),
    "kernel short of the seed": Failure(in_answer(33, lambda size: REAL(16)), "gave 16 random bytes of 48"),
    "a file not as listed": Failure(
        lambda patch: patch.setattr(generator, "check_manifest", raising(IntegrityFailure("not as in it"))),
        "not as in it",
    ),
    "a file changed after it was loaded": Failure(
        lambda patch: patch.setattr(generator, "module_digest", lambda: "00" * 32),
        "changed after they were loaded",
    ),
    "a file that cannot be read": Failure(
        lambda patch: patch.setattr(generator, "module_digest", raising(PermissionError("no right"))),
        "no right",
    ),
    "known answers cut off": Failure(
        lambda patch: patch.setattr(known_answers, "CASES", KATS + 1), f"does not hold {KATS + 1} whole cases"
    ),
    "an update left out": Failure(
        lambda patch: patch.setattr(HmacDrbg, "_update", lambda drbg, provided: None), "not the known one"
    ),
    "a bit of an answer flipped": Failure(
        lambda patch: patch.setattr(HmacDrbg, "generate", flipping(HmacDrbg.generate)), "not the known one"
    ),
    "reseeding left out": Failure(
        lambda patch: patch.setattr(HmacDrbg, "reseed", lambda drbg, *fresh: None), "not the known one"
    ),
}


def flipping(answer: Callable[[HmacDrbg, int, bytes], bytes]) -> Callable[..., bytes]:
    def flipped(drbg: HmacDrbg, size: int, additional_input: bytes = b"") -> bytes:
        first, *rest = answer(drbg, size, additional_input)
        return bytes([first ^ 1, *rest])

    return flipped


@pytest.mark.parametrize("name", BEFORE)
def test_what_fails_before_it_serves_stops_it_for_good(name: str) -> None:
    failure = BEFORE[name]
    asked = Generator()
    with pytest.MonkeyPatch.context() as patch:
        failure.cause(patch)
        with pytest.raises(RngUnavailable, match=failure.said):
            asked.generate(16, "a test")
    assert_refuses(asked, failure.said)
    assert kinds(asked)[-1] is EventKind.FAILED
    assert kinds(asked) == []


def test_a_self_test_that_broke_off_is_a_failure_and_not_begun_again(monkeypatch: Patch) -> None:
    asked = Generator()
    with monkeypatch.context() as patch:
        patch.setattr(Entropy, "start_up", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            asked.start()
    with pytest.raises(RngUnavailable, match="broke off"):
        asked.start()
    assert_refuses(asked, "broke off")


# What goes wrong while it serves


def without_reseeding(patch: Patch) -> None:
    patch.setattr(HmacDrbg, "reseed", lambda drbg, *fresh: None)


def a_day_on(cause: Callable[[Patch], object]) -> Callable[[Patch], object]:
    def later(patch: Patch) -> object:
        Clock(patch).now += 10 * INTEGRITY_SECONDS
        return cause(patch)

    return later


def time_passes_after_reseeding(patch: Patch) -> None:
    clock = Clock(patch)
    clock.now = 0.0
    clock.after_each = RESEED_SECONDS_MAX + 1.0


WHILE: dict[str, Failure] = {
    "kernel refuses": Failure(in_answer(1, raising(OSError(38, "none"))), "gave no random bytes"),
    "kernel gives nothing": Failure(in_answer(1, lambda size: b""), "gave 0 random bytes of 48"),
    "kernel gives too much": Failure(in_answer(1, lambda size: REAL(size + 1)), "gave 49 random bytes of 48"),
    "kernel stuck": Failure(in_answer(1, bytes), "7 equal bytes in a row"),
    "reseeding left out": Failure(without_reseeding, "before it was reseeded"),
    "reseeding overdue": Failure(time_passes_after_reseeding, "before it was reseeded"),
    "too many requests on one seed": Failure(
        lambda patch: patch.setattr(
            HmacDrbg, "reseed", lambda drbg, *fresh: setattr(drbg, "requests", REQUESTS_MAX)
        ),
        "before it was reseeded",
    ),
    "a day on, a file not as listed": Failure(a_day_on(BEFORE["a file not as listed"].cause), "not as in it"),
    "a day on, a file changed": Failure(
        a_day_on(BEFORE["a file changed after it was loaded"].cause),
        "changed after they were loaded",
    ),
    "a day on, another answer": Failure(
        a_day_on(BEFORE["a bit of an answer flipped"].cause),
        "not the known one",
    ),
}


@pytest.fixture
def serving() -> Generator:
    """One that has served, and whose events were taken."""
    asked = Generator()
    asked.generate(16, "a test")
    asked.take_events()
    return asked


@pytest.mark.parametrize("name", WHILE)
def test_what_fails_while_it_serves_stops_it_for_good(name: str, serving: Generator) -> None:
    """Even though the cause is gone right after: nothing comes out, then or later, and the state is overwritten."""
    failure = WHILE[name]
    drbg = drbg_of(serving)
    key, value = drbg._key, drbg._v
    assert bytes(32) not in (bytes(key), bytes(value))
    with pytest.MonkeyPatch.context() as patch:
        failure.cause(patch)
        with pytest.raises(RngUnavailable, match=failure.said):
            serving.generate(16, "a test")
    assert (bytes(key), bytes(value)) == (bytes(32), bytes(32))
    assert_refuses(serving, failure.said)
    (event,) = serving.take_events()
    assert event.kind is EventKind.FAILED
    assert failure.said in str(event.detail["reason"])


@pytest.mark.parametrize("name", ["kernel refuses", "kernel stuck", "a day on, a file not as listed"])
def test_what_fails_when_it_is_only_asked_whether_it_could_serve_stops_it_too(
    name: str, serving: Generator
) -> None:
    failure = WHILE[name]
    with pytest.MonkeyPatch.context() as patch:
        failure.cause(patch)
        with pytest.raises(RngUnavailable, match="|".join([failure.said, "gave"])):
            serving.check()
    assert_refuses(serving, str(serving.failure))
    assert kinds(serving) == [EventKind.FAILED]


@pytest.mark.parametrize("at", [(Entropy, "draw"), (HmacDrbg, "reseed")], ids=lambda at: at[1])
@pytest.mark.parametrize("broken_by", [KeyboardInterrupt(), MemoryError(), SystemExit(1)], ids=repr)
def test_a_request_that_broke_off_while_reseeding_is_a_failure_to_the_next(
    at: tuple[type, str], broken_by: BaseException, serving: Generator
) -> None:
    """Nobody knows what it left behind: with a timeout's exception in its middle, a worker is replaced anyway."""
    key, value = drbg_of(serving)._key, drbg_of(serving)._v
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*at, raising(broken_by))
        with pytest.raises(type(broken_by)):
            serving.generate(16, "a test")
    assert serving.state is State.RESEEDING
    with pytest.raises(RngUnavailable, match="broke off in its middle"):
        serving.generate(16, "a test")
    assert (bytes(key), bytes(value)) == (bytes(32), bytes(32))
    assert_refuses(serving, "broke off in its middle")
    assert kinds(serving) == [EventKind.FAILED]


def test_a_request_that_broke_off_after_reseeding_left_a_whole_state(serving: Generator) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HmacDrbg, "generate", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            serving.generate(16, "a test")
    assert serving.state is State.READY
    assert serving.generate(16, "a test").request == 3


def test_a_failure_of_reseeding_that_is_ignored_gives_nothing_even_the_first_time(monkeypatch: Patch) -> None:
    """The first request after instantiating too: it waits for its own entropy, however long ago that was."""
    asked = Generator()
    asked.start()
    without_reseeding(monkeypatch)
    with pytest.raises(RngUnavailable, match="before it was reseeded"):
        asked.generate(16, "a test")
    assert asked.state is State.ERROR


@pytest.mark.parametrize("started", [False, True])
def test_entropy_that_fails_and_says_nothing_gives_nothing(started: bool, monkeypatch: Patch) -> None:
    """A mutant that swallows the kernel's failure: its caller notices that there is nothing."""
    asked = Generator()
    if started:
        asked.start()
    with monkeypatch.context() as patch:
        patch.setattr(Entropy, "draw", lambda entropy, size: b"")
        for _ in range(2):
            with pytest.raises((RngUnavailable, AssertionError)):
                asked.generate(16, "a test")
    assert_refuses(asked, str(asked.failure))


@pytest.mark.parametrize("started", [False, True])
def test_a_failure_found_outside_of_the_module_stops_it_too(started: bool) -> None:
    asked = Generator()
    if started:
        asked.start()
    asked.fail("the paytable was altered")
    asked.fail("another reason")
    assert_refuses(asked, "the paytable was altered")
    failed = [event for event in asked.take_events() if event.kind is EventKind.FAILED]
    assert [event.detail["reason"] for event in failed] == ["the paytable was altered"]


def test_one_generator_in_error_is_no_reason_for_another(serving: Generator) -> None:
    """The module makes no second one; a process has one, and recovery is a new process."""
    Generator().fail("of its own")
    assert len(serving.generate(16, "a test").output) == 16


# What it reports


def test_once_a_day_its_files_and_answers_are_compared_again(serving: Generator, monkeypatch: Patch) -> None:
    clock = Clock(monkeypatch)
    clock.now = (
        serving._instance.checked_at + INTEGRITY_SECONDS - 0.5
    )  # what a float of seconds tells from a day
    serving.generate(16, "a test")
    assert serving.take_events() == []
    clock.now += 1
    serving.generate(16, "a test")
    serving.generate(16, "a test")
    (event,) = serving.take_events()
    assert event.kind is EventKind.INTEGRITY_CHECKED
    assert event.detail["known_answers"] == KATS
    assert isinstance(event.detail["files"], int)
    clock.now += INTEGRITY_SECONDS + 1
    serving.check()
    assert kinds(serving) == [EventKind.INTEGRITY_CHECKED]
    assert INTEGRITY_SECONDS == 86_400


def test_events_say_which_module_process_and_instance_and_are_given_once() -> None:
    asked = Generator()
    drawn = asked.generate(16, "a test")
    waiting = asked.events_waiting
    tested, instantiated = asked.take_events()
    assert (waiting, asked.events_waiting, asked.take_events()) == (True, False, [])
    assert tested.detail["module"] == instantiated.detail["module"] == MODULE_DIGEST
    assert tested.detail["process"] == instantiated.detail["process"] == asked._instance.pid
    assert instantiated.detail["instance"] == drawn.instance


def test_of_very_many_events_the_newest_are_kept(serving: Generator, monkeypatch: Patch) -> None:
    clock = Clock(monkeypatch)
    for _ in range(EVENTS_KEPT + 10):
        clock.now += INTEGRITY_SECONDS + 1
        serving.start()
    serving.fail("the last")
    events = serving.take_events()
    assert len(events) == EVENTS_KEPT == 256
    assert events[-1].kind is EventKind.FAILED
    assert {event.kind for event in events[:-1]} == {EventKind.INTEGRITY_CHECKED}


def test_no_event_and_no_text_of_an_answer_holds_a_secret(monkeypatch: Patch) -> None:
    kernel = Kernel(monkeypatch)
    asked = Generator()
    drawn = [asked.generate(48, "a test", b"subject") for _ in range(3)]
    secrets = [*(answer.output for answer in drawn), bytes(drbg_of(asked)._key), bytes(drbg_of(asked)._v)]
    secrets += [given for given in kernel.given if given.hex() != drawn[0].instance]
    Clock(monkeypatch).now = asked._instance.checked_at + INTEGRITY_SECONDS + 1
    asked.check()
    asked.fail("enough")
    events = asked.take_events()
    told = repr(events) + repr(drawn) + repr(asked) + repr(asked._instance)
    assert [event.kind for event in events] == [
        EventKind.SELF_TESTED,
        EventKind.INSTANTIATED,
        EventKind.INTEGRITY_CHECKED,
        EventKind.FAILED,
    ]
    assert all(type(value) in (str, int) for event in events for value in event.detail.values())
    whose, checked = {"module", "process", "instance"}, {"files", "known_answers"}
    assert [set(event.detail) - whose for event in events] == [checked, set(), checked, {"reason"}]
    assert len(secrets) == 3 + 2 + 32 + 1 + 3
    for secret in secrets:
        for at in range(0, len(secret) - 7, 8):
            assert secret[at : at + 8].hex() not in told
            assert repr(secret[at : at + 8])[2:-1] not in told
