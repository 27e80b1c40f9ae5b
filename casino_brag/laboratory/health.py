"""Whether the module is fit to deal on this machine: its own tests, and what the kernel says of its generator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from casino_brag.rng.entropy import START_UP_BYTES
from casino_brag.rng.generator import Event, EventKind, Generator, RngUnavailable, State
from casino_brag.rng.module import MODULE_DIGEST
from casino_brag.rounds.integrity import check_files

KERNEL_FACTS: Final = Path("/proc/sys/kernel/random")

UNSEEDED: Final = "the kernel's generator is not seeded yet"


@dataclass(frozen=True, slots=True)
class Health:
    """What was found.  ``failure`` says why the module does not serve, where it does not.

    ``tested`` holds what the tests before first use looked at; ``kernel`` what the kernel says.
    """

    state: State
    failure: str | None
    tested: Mapping[str, int]
    kernel: Mapping[str, str | int]
    events: tuple[Event, ...]

    @property
    def ready(self) -> bool:
        """Whether the module deals."""
        return self.state is State.READY

    def document(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "ready": self.ready,
            "state": self.state.value,
            "failure": self.failure,
            "module_digest": MODULE_DIGEST,
            "tested": dict(self.tested),
            "kernel": dict(self.kernel),
            "events": [{"kind": event.kind.value, **event.detail} for event in self.events],
        }


def examine(generator: Generator) -> Health:
    """Starts the generator, which tests itself, compares the package's files, and tells what came of it.

    The generator's events are taken.
    """
    kernel = kernel_facts()
    if kernel["seeded"] != "yes":  # asking for more would wait for it, perhaps for ever
        return Health(generator.state, UNSEEDED, {}, kernel, ())
    with suppress(RngUnavailable):  # the state and the failure tell it
        generator.start()
    if altered := check_files().problems:
        generator.fail(" ".join(altered))  # as a process that serves players does
    events = tuple(generator.take_events())
    tested: dict[str, int] = {}
    for event in events:
        if event.kind is EventKind.SELF_TESTED:
            tested = {name: int(event.detail[name]) for name in ("files", "known_answers")}
        if event.kind is EventKind.INSTANTIATED:
            tested["entropy_bytes"] = START_UP_BYTES
    return Health(generator.state, generator.failure, tested, kernel, events)


def kernel_facts() -> dict[str, str | int]:
    """The kernel's release, whether its generator is seeded, and its own account of its entropy."""
    try:
        seeded = "yes" if os.getrandom(1, os.GRND_NONBLOCK) else "no"
    except BlockingIOError:
        seeded = "no"
    except OSError as failure:
        seeded = f"not known: {failure.strerror}"
    facts: dict[str, str | int] = {"release": os.uname().release, "seeded": seeded}
    for name in ("entropy_avail", "poolsize"):
        with suppress(OSError, ValueError):  # a container may not show them, and nothing depends on them
            facts[name] = int((KERNEL_FACTS / name).read_text(encoding="ascii"))
    return facts
