"""All checks in their order, run against one wallet, and the balance put back after each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Final

from casino_brag.conformance import cancelling, load, money, refusing, repeating, security
from casino_brag.conformance.bench import Bench, Failed, NotTried, Send, Subject, must_be_done
from casino_brag.conformance.report import Finding, Outcome, Report
from casino_brag.wallet.seamless import Verdict

Check = Callable[[Bench], None]
"""A check raises `Failed` or `NotTried`, or returns.

Its function's name is the check's name, with hyphens; the docstring says first what a wallet does, then why it matters.
"""

GROUPS: Final[tuple[tuple[str, tuple[Check, ...]], ...]] = (
    ("Money", money.CHECKS),
    ("Repeating", repeating.CHECKS),
    ("Cancelling", cancelling.CHECKS),
    ("Refusing", refusing.CHECKS),
    ("Signatures", security.CHECKS),
    ("Load", load.CHECKS),
)

FUNDS_MIN_MINOR: Final = 1_000
"""What the player has to hold for the checks to be possible, in minor units of the first currency."""


class CouldNotRun(Exception):
    """The wallet cannot be checked at all; the text says why, and what to do."""


def name(check: Check) -> str:
    """The name that a check has in reports and on the command line.

    >>> name(money.debit_takes_exactly)
    'debit-takes-exactly'
    """
    return check.__name__.replace("_", "-")


NAMES: Final = tuple(name(check) for _, checks in GROUPS for check in checks)


def run(subject: Subject, send: Send, only: Collection[str] = NAMES) -> Report:
    """Runs the checks named in `only`; raises `CouldNotRun` before the first one."""
    wallet = Bench(subject, send)
    found_minor = _found(wallet)
    findings = tuple(_findings(wallet, found_minor, only))
    left_minor = None
    with suppress(Failed):
        left_minor = wallet.balance()
    return Report(subject, findings, max(wallet.seconds), len(wallet.seconds), found_minor, left_minor)


def _found(wallet: Bench) -> int:
    """What the player holds, once it is clear that checks can be run."""
    who = f"player {wallet.subject.player} in {wallet.currency}"
    try:
        reply = wallet.ask_balance()
    except Failed as silent:
        raise CouldNotRun(
            f"The wallet does not answer: {silent.seen.rstrip('.')}. Look at its address."
        ) from silent
    if reply.http_status == 401:
        raise CouldNotRun(
            "The wallet answered HTTP 401: look at the operator's name, the key id and the secret."
        )
    if reply.verdict is not Verdict.DONE:
        raise CouldNotRun(f"The wallet does not tell the balance of {who}. It answered {reply}")
    held = must_be_done(reply)
    if held < FUNDS_MIN_MINOR:
        raise CouldNotRun(
            f"The {who} holds {held} minor units: give it {FUNDS_MIN_MINOR} or more, or name another player."
        )
    return held


def _findings(wallet: Bench, found_minor: int, only: Collection[str]) -> Iterator[Finding]:
    for group, checks in GROUPS:
        for check in checks:
            if name(check) in only:
                yield _finding(wallet, group, check)
                with suppress(Failed):  # what cannot be put back is told at the end, as the balance left
                    _put_back(wallet, found_minor)


def _finding(wallet: Bench, group: str, check: Check) -> Finding:
    outcome, detail = Outcome.HELD, {}
    try:
        check(wallet)
    except Failed as failed:
        outcome, detail = Outcome.FAILED, {"expected": failed.expected, "seen": failed.seen}
    except NotTried as reason:
        outcome, detail = Outcome.NOT_TRIED, {"because": str(reason)}
    says, _, why = inspect.cleandoc(check.__doc__ or "").partition("\n\n")
    return Finding(group, name(check), " ".join(says.split()), " ".join(why.split()), outcome, detail)


def _put_back(wallet: Bench, found_minor: int) -> None:
    """Credits what a check has cost, in a round that has a debit, or debits what it has won."""
    missing = found_minor - wallet.balance()
    if missing < 0:
        wallet.debit(wallet.stake(-missing))
    elif missing > 0:
        stake = wallet.stake(1)
        taken = 1 if wallet.debit(stake).verdict is Verdict.DONE else 0
        wallet.credit(wallet.payout(stake, missing + taken))
