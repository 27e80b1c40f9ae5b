"""Faults on demand: which calls go wrong, in which way, how often."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum, StrEnum, auto
from typing import Any, Final

from casino_brag.errors import Code, ServiceError
from casino_brag.game.rules import MINOR_MAX
from casino_brag.sandbox.messages import PLAYER, Check, Reason, number, text

SECONDS_MAX: Final = 120
"""The longest wait; a signature made before it still holds after it."""

RULES_MAX: Final = 100


class Kind(StrEnum):
    """The ways in which a call can go wrong."""

    REFUSE = "refuse"
    """It is refused, for the rule's reason."""
    LATE = "late"
    """It is done, and answered after the rule's seconds."""
    ERROR_AFTER = "error_after"
    """It is done, and HTTP 500 is answered."""
    ERROR_BEFORE = "error_before"
    """Nothing is done, and HTTP 500 is answered."""
    SILENT = "silent"
    """Nothing is done or answered; the connection is closed after the rule's seconds."""
    SILENT_AFTER = "silent_after"
    """It is done and not answered; the connection is closed after the rule's seconds."""
    GARBAGE = "garbage"
    """It is done, and the answer makes no sense: each time in another way."""
    DROP = "drop"
    """It is done, and the connection is closed at once."""
    DROP_BEFORE = "drop_before"
    """Nothing is done, and the connection is closed at once."""
    LATE_ORIGINAL = "late_original"
    """It is done only after the rule's seconds, when the caller has given up and perhaps cancelled it."""
    DOWN = "down"
    """Nothing is done, and HTTP 503 is answered."""


class Step(Enum):
    """What a wallet does with a call, one after the other."""

    WAIT = auto()
    """Nothing, for the rule's seconds."""
    DO = auto()
    """The call, in one transaction."""
    REFUSE = auto()
    """Refuse it, in one transaction."""
    ANSWER = auto()
    """Answer with the outcome."""
    GARBAGE = auto()
    """Answer nonsense."""
    FAIL = auto()
    """Answer HTTP 500."""
    UNAVAILABLE = auto()
    """Answer HTTP 503."""
    HANG_UP = auto()
    """Close the connection."""


COURSES: Final[Mapping[Kind, tuple[Step, ...]]] = {
    Kind.REFUSE: (Step.REFUSE, Step.ANSWER),
    Kind.LATE: (Step.DO, Step.WAIT, Step.ANSWER),
    Kind.ERROR_AFTER: (Step.DO, Step.FAIL),
    Kind.ERROR_BEFORE: (Step.FAIL,),
    Kind.SILENT: (Step.WAIT, Step.HANG_UP),
    Kind.SILENT_AFTER: (Step.DO, Step.WAIT, Step.HANG_UP),
    Kind.GARBAGE: (Step.DO, Step.GARBAGE),
    Kind.DROP: (Step.DO, Step.HANG_UP),
    Kind.DROP_BEFORE: (Step.HANG_UP,),
    Kind.LATE_ORIGINAL: (Step.WAIT, Step.DO, Step.ANSWER),
    Kind.DOWN: (Step.UNAVAILABLE,),
}

GARBAGE: Final = (
    b"",
    b"<html><body>It works!</body></html>",
    b'{"status": "done", "balance_min',
    b"[]",
    b'{"status": "done"}',
    b'{"status": "perhaps", "balance_minor": 1}',
    b'{"status": "done", "balance_minor": -1}',
    b'{"status": "done", "balance_minor": 1.5}',
    b'{"status": "done", "balance_minor": "100"}',
    b'{"status": "done", "balance_minor": 9007199254740992}',
    b'{"status": "done", "balance_minor": NaN}',
    b'{"status": "refused", "balance_minor": 1}',
    b'{"status": "done", "balance_minor": 1, "note": "\xff\xfe"}',
    b'{"status": "done", "balance_minor": 1, "note": "' + b"x" * 65536 + b'"}',
)
"""Bodies of HTTP 200 that are no answers."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which calls go wrong, and how.

    `operation` is debit, credit, cancel, balance or ``*`` for all four; `player` and `wager` narrow it further.
    `times` is how often the rule strikes before it is used up, None without end; `probability` how likely it
    strikes a call that it fits.  `seconds` is for the kinds that wait, `reason` for refusals.
    """

    kind: Kind
    operation: str = "*"
    times: int | None = None
    probability: float = 1
    player: str | None = None
    wager: str | None = None
    seconds: float = 30
    reason: str = Reason.PLAYER_BLOCKED

    def fits(self, operation: str, player: str, wager: str | None) -> bool:
        """Whether a call is of those that the rule is about."""
        return (
            self.operation in ("*", operation)
            and self.player in (None, player)
            and self.wager in (None, wager)
        )

    @property
    def course(self) -> tuple[Step, ...]:
        """What is done with a call that the rule strikes."""
        return COURSES[self.kind]


@dataclass(frozen=True, slots=True)
class Strike:
    """A rule that strikes, for the `number`-th time, counted from 0."""

    rule: Rule
    number: int


def _fraction(most: int, sentence: str) -> Check:
    return lambda value: type(value) in (int, float) and 0 <= value <= most, sentence


_CHECKS: Final[Mapping[str, Check]] = {
    "kind": text("|".join(Kind), f"Give one of {', '.join(Kind)}."),
    "operation": text(r"debit|credit|cancel|balance|\*", "Give debit, credit, cancel, balance or *."),
    "times": number(1, MINOR_MAX, "Give a whole number from 1, or null for no end."),
    "probability": _fraction(1, "Give a number from 0 to 1."),
    "player": PLAYER,
    "wager": text("ante|pair_bonus|play|payout", "Give ante, pair_bonus, play or payout."),
    "seconds": _fraction(SECONDS_MAX, f"Give a number from 0 to {SECONDS_MAX}."),
    "reason": text("[a-z_]{1,64}", "Give a reason in small letters, such as player_blocked."),
}


def read_rules(document: Any) -> tuple[list[Rule], int | None]:
    """The rules and the seed of ``{"rules": [{"kind": ...}, ...], "seed": 1}``; null stands for a rule's default.

    Raises `ServiceError`: invalid.  A rule is refused as a whole when it has a member that no rule has.
    """
    if not isinstance(document, dict) or not document.keys() <= {"rules", "seed"}:
        raise ServiceError(Code.INVALID, 'Give {"rules": [...]}, and with it "seed" if wanted.')
    rules, seed = document.get("rules"), document.get("seed")
    if not isinstance(rules, list) or len(rules) > RULES_MAX:
        raise ServiceError(Code.INVALID, f"Give a list of up to {RULES_MAX} rules.")
    if not (seed is None or type(seed) is int):
        raise ServiceError(Code.INVALID, "A seed is a whole number.")
    return [_rule(found) for found in rules], seed


def _rule(found: Any) -> Rule:
    if not isinstance(found, dict) or "kind" not in found:
        raise ServiceError(Code.INVALID, 'A rule is an object with a "kind".')
    given = {name: value for name, value in found.items() if value is not None or name == "kind"}
    wrong = {name[:64]: ["No rule has this."] for name in given.keys() - _CHECKS.keys()}
    for name, (right, sentence) in _CHECKS.items():
        if name in given and not right(given[name]):
            wrong[name] = [sentence]
    if wrong:
        raise ServiceError(Code.INVALID, "A rule cannot be followed.", errors=wrong)
    return Rule(**given | {"kind": Kind(given["kind"])})


class Faults:
    """The rules in force, for all threads, with the count of how often each has struck."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self.replace([], None)

    def replace(self, rules: list[Rule], seed: int | None) -> None:
        """Puts these rules in the place of all others; with a seed, equal calls meet equal chances."""
        with self._turn:
            self._rules = rules
            self._struck = [0] * len(rules)
            self._chance = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def strike(self, operation: str, player: str, wager: str | None) -> Strike | None:
        """The first rule that strikes a call, if any does; that use of it is counted."""
        with self._turn:
            for index, rule in enumerate(self._rules):
                struck = self._struck[index]
                if rule.times is not None and struck >= rule.times:
                    continue
                if rule.fits(operation, player, wager) and self._chance.random() < rule.probability:
                    self._struck[index] += 1
                    return Strike(rule, struck)
        return None

    def document(self) -> dict[str, Any]:
        """The rules in force, each with the count of how often it has struck."""
        with self._turn:
            pairs = zip(self._rules, self._struck, strict=True)
            return {"rules": [asdict(rule) | {"struck": struck} for rule, struck in pairs]}
