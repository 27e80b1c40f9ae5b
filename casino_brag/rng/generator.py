"""The module's generator: an HMAC_DRBG with its entropy, its states, its guards, and an account of what it did.

    uninstantiated -> self-test -> ready <-> reseeding        any failure -> error

Only *ready* serves.  An error is latched: the state is wiped and nothing but a new process leaves it.  There is no
second source to fall back to, and no argument by which anybody could choose what comes out.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from casino_brag.rng import known_answers
from casino_brag.rng.entropy import Entropy, EntropyFailure
from casino_brag.rng.hmac_drbg import REQUESTS_MAX, HmacDrbg, ReseedRequired
from casino_brag.rng.module import MODULE_DIGEST, IntegrityFailure, check_manifest, module_digest

ENTROPY_BYTES: Final = 32
NONCE_BYTES: Final = 16
RESEED_SECONDS_MAX: Final = 300
INTEGRITY_SECONDS: Final = 24 * 60 * 60
EVENTS_KEPT: Final = 256

_PERSONALIZATION: Final = b"casino-brag random number module 1"


class RngUnavailable(Exception):
    """No random number can be had.  Nothing may be dealt."""


class State(StrEnum):
    """Where the module is."""

    UNINSTANTIATED = "uninstantiated"
    """Nothing was asked of it yet."""
    SELF_TEST = "self_test"
    """Manifest, known answers and entropy source are being tested."""
    READY = "ready"
    """It serves."""
    RESEEDING = "reseeding"
    """It takes in fresh entropy, as it does before every request."""
    ERROR = "error"
    """Something failed; for as long as the process lives, it serves no more."""


class EventKind(StrEnum):
    """What the module reports of itself."""

    SELF_TESTED = "self_tested"
    """The tests before first use passed."""
    INSTANTIATED = "instantiated"
    """An instance began its life on fresh entropy."""
    FORKED = "forked"
    """A child process threw its parent's instance away."""
    INTEGRITY_CHECKED = "integrity_checked"
    """The module's files were compared with its manifest and with what was loaded, as they are once a day."""
    FAILED = "failed"
    """The module went into its error state."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the module.  `detail` holds no secret."""

    kind: EventKind
    detail: Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The answer to one request, and which one it was.

    `instance`: which instance answered (32 hex digits).  `reseeds`: how often it had been reseeded, this request
    included.  `request`: how many requests it had answered, this one included.
    """

    output: bytes = field(repr=False)
    instance: str
    reseeds: int
    request: int


class _Instance:
    """One instantiation in one process, with the lock that its threads take turns by."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.state = State.UNINSTANTIATED
        self.failure: str | None = None
        self.name = ""
        self.entropy = Entropy()
        self.drbg: HmacDrbg | None = None
        self.reseeds = 0
        self.requests = 0
        self.reseeded_at = 0.0
        self.checked_at = 0.0


class Generator:
    """What all random numbers of a process come from.  Threads may share it; a forked child makes its own of it."""

    def __init__(self) -> None:
        self._instance = _Instance()
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        os.register_at_fork(after_in_child=self._throw_away_inherited)

    @property
    def state(self) -> State:
        """Where this process's instance is."""
        return self._own().state

    @property
    def failure(self) -> str | None:
        """What failed, in the error state."""
        return self._own().failure

    @property
    def events_waiting(self) -> bool:
        """Whether there is something to take."""
        return bool(self._events)

    def take_events(self) -> list[Event]:
        """What happened since events were last taken, oldest first; of very many, the newest `EVENTS_KEPT`."""
        taken = []
        while self._events:
            taken.append(self._events.popleft())
        return taken

    def start(self) -> None:
        """Tests and instantiates, unless that was done.  Raises `RngUnavailable`."""
        own = self._own()
        with own.lock:
            self._must_be_ready(own)

    def check(self) -> None:
        """Whether it could serve now, its source of entropy included.  Raises `RngUnavailable`, and latches, if not."""
        own = self._own()
        with own.lock:
            self._must_be_ready(own)
            try:
                own.entropy.draw(NONCE_BYTES)
            except EntropyFailure as failed:
                raise self._fail(own, str(failed)) from failed

    def fail(self, reason: str) -> None:
        """Latches the error state for a reason found outside of the module; the first reason stays."""
        own = self._own()
        with own.lock:
            self._fail(own, reason)

    def generate(self, size: int, purpose: str, subject: bytes = b"") -> Drawn:
        """So many bytes, at most 65,536, for a purpose and a subject that tell this request from all others.

        The instance is reseeded first: whoever learns its state learns nothing of earlier or later output.
        Raises `RngUnavailable`.
        """
        own = self._own()
        with own.lock:
            drbg = self._must_be_ready(own)
            try:
                own.state = State.RESEEDING
                fresh = own.entropy.draw(ENTROPY_BYTES + NONCE_BYTES)
                drbg.requests = REQUESTS_MAX  # until it is reseeded, it answers nothing
                drbg.reseed(fresh[:ENTROPY_BYTES])
                own.reseeds += 1
                own.reseeded_at = time.monotonic()
                own.requests += 1
                own.state = State.READY
                output = self._output(own, drbg, size, purpose, subject, fresh[ENTROPY_BYTES:])
            except (EntropyFailure, ReseedRequired) as failed:
                raise self._fail(own, str(failed)) from failed
            return Drawn(output, own.name, own.reseeds, own.requests)

    def _output(
        self, own: _Instance, drbg: HmacDrbg, size: int, purpose: str, subject: bytes, fresh: bytes
    ) -> bytes:
        # The reseeding above cannot be skipped; were it to be, by a change or a fault, this would notice.
        if drbg.requests or time.monotonic() - own.reseeded_at > RESEED_SECONDS_MAX:
            raise ReseedRequired("the generator was asked before it was reseeded")
        about = (purpose.encode(), own.name.encode(), own.requests.to_bytes(8, "big"), subject, fresh)
        return drbg.generate(size, b"".join(map(length_prefixed, about)))

    def _must_be_ready(self, own: _Instance) -> HmacDrbg:
        if own.state is State.UNINSTANTIATED:
            self._self_test_and_instantiate(own)
        if own.state in (State.SELF_TEST, State.RESEEDING):
            raise self._fail(own, "an earlier request broke off in its middle")
        if own.state is not State.READY or own.drbg is None:
            raise RngUnavailable(own.failure or "the random number module is not ready")
        if time.monotonic() - own.checked_at > INTEGRITY_SECONDS:
            self._check_integrity(own, EventKind.INTEGRITY_CHECKED)
        return own.drbg

    def _self_test_and_instantiate(self, own: _Instance) -> None:
        own.state = State.SELF_TEST
        self._check_integrity(own, EventKind.SELF_TESTED)
        try:
            own.entropy.start_up()
            seed = own.entropy.draw(ENTROPY_BYTES + NONCE_BYTES)
            own.name = own.entropy.draw(16).hex()
        except EntropyFailure as failed:
            raise self._fail(own, str(failed)) from failed
        personalization = b"".join(
            map(length_prefixed, (_PERSONALIZATION, own.name.encode(), str(own.pid).encode()))
        )
        own.drbg = HmacDrbg(seed[:ENTROPY_BYTES], seed[ENTROPY_BYTES:], personalization)
        own.reseeded_at = time.monotonic()
        own.state = State.READY
        self._report(EventKind.INSTANTIATED, own)

    def _check_integrity(self, own: _Instance, kind: EventKind) -> None:
        try:
            files = check_manifest()
            if module_digest() != MODULE_DIGEST:
                raise IntegrityFailure("the module's files changed after they were loaded")
            answers = known_answers.run()
        except (IntegrityFailure, known_answers.KnownAnswerMismatch, OSError) as failed:
            raise self._fail(own, str(failed)) from failed
        own.checked_at = time.monotonic()
        self._report(kind, own, files=files, known_answers=answers)

    def _fail(self, own: _Instance, reason: str) -> RngUnavailable:
        if own.state is not State.ERROR:
            own.state, own.failure = State.ERROR, reason
            if own.drbg is not None:
                own.drbg.wipe()
                own.drbg = None
            self._report(EventKind.FAILED, own, reason=reason)
        return RngUnavailable(own.failure)

    def _report(self, kind: EventKind, own: _Instance, **detail: str | int) -> None:
        about: dict[str, str | int] = {"module": MODULE_DIGEST, "process": own.pid, "instance": own.name}
        self._events.append(Event(kind, about | detail))

    def _own(self) -> _Instance:
        """This process's instance.  The hook below misses a fork that Python did not make; this does not."""
        if self._instance.pid != os.getpid():
            self._throw_away_inherited()
        return self._instance

    def _throw_away_inherited(self) -> None:
        # The inherited lock may be held by a thread that does not exist here, so nothing of it is touched.
        inherited, own = self._instance, _Instance()
        if inherited.state is State.ERROR:
            own.state, own.failure = State.ERROR, inherited.failure
        self._instance = own
        self._events.clear()
        if inherited.state is not State.UNINSTANTIATED:
            self._report(EventKind.FORKED, own, parent=inherited.pid, inherited=inherited.name)


def length_prefixed(text: bytes) -> bytes:
    """A text after its length, so that texts strung together can be told apart.

    >>> length_prefixed(b"abc")
    b'\\x00\\x00\\x00\\x03abc'
    """
    return len(text).to_bytes(4, "big") + text
