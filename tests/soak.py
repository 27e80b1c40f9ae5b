"""Plays for a while on a service at which everything goes wrong, and then compares every book with every other.

`python -m tests.soak --seconds 600 --seed 1` prints a report, and ends with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import requests

from casino_brag.db.embedded import EmbeddedServer
from casino_brag.sandbox.faults import Kind
from tests.operators_wallet import Casino, casino
from tests.running import Operator, Player, RunningService, code_of, together

WORKERS: Final = 3
PLAYERS: Final = 12
GIVE_UP_SECONDS: Final = 240
"""The longest that a player waits for a definite answer, and everybody at the end for what is unfinished."""
FUNDS_MINOR: Final = (50_000, 500_000, 5_000_000)
CHAOS_SECONDS: Final = (0.5, 4.0)
"""Between one thing that goes wrong and the next."""
PAGE: Final = 100

DEBIT_REFUSALS: Final = ("insufficient_funds", "limit_reached", "player_blocked", "bad_weather")
REFUSED: Final = {"insufficient_funds", "limit_reached", "player_blocked", "wallet_refused"}
OVERTAKEN: Final = {"already_decided", "round_voided"}
UNCLEAR: Final = {
    "busy",
    "database_unavailable",
    "wallet_unavailable",
    "request_in_progress",
    "payout_pending",
    "rate_limited",
}
SEEN_ONCE: Final = {"balance_minor", "next_commitment", "payout_state"}
"""What an answer says of its own moment."""
OF_THE_STATE: Final = {"state", "wagers", "decisions", "proof"}

Document = dict[str, Any]
T = TypeVar("T")


class Difference(Exception):
    """Something is not as it has to be."""


@dataclass
class Findings:
    """What all threads count and find."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    blocked_seconds: float = 0.0
    blocked_by: str = ""
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str, times: int = 1) -> None:
        with self._turn:
            self.counts[what] += times

    def differs(self, what: str) -> None:
        with self._turn:
            self.differences.append(what)

    def waited(self, seconds: float, what: str) -> None:
        with self._turn:
            if seconds > self.blocked_seconds:
                self.blocked_seconds, self.blocked_by = seconds, what


@dataclass
class Asked:
    """A request by its key: how often it was sent, what it was answered, and at last."""

    path: str
    body: Document
    key: str
    codes: Counter[str] = field(default_factory=Counter)
    given: set[tuple[int, str]] = field(default_factory=set)
    """Answers with 2xx, of which there may be one."""
    refused: str | None = None


@dataclass
class House:
    """An operator, with its wallet if it has one of its own."""

    name: str
    operator: Operator
    casino: Casino | None

    def fund(self, player: str, amount_minor: int) -> None:
        if self.casino is None:
            assert self.operator.deposit(player, amount_minor).status_code == 201
        else:
            self.casino.wallet.fund(player, "GBP", amount_minor)

    def balance_minor(self, player: str) -> int:
        """What the player has, by whoever holds the money."""
        if self.casino is not None:
            return self.casino.wallet.balance_minor(player)
        answer = self.operator.send("GET", f"/v1/operator/players/{player}/balance?currency=GBP")
        return int(answer.json()["balance_minor"])


class Gambler:
    """A player in a thread of its own, who sends what was not answered again, and believes every answer."""

    def __init__(self, house: House, number: int, seed: int, findings: Findings) -> None:
        self.house = house
        self.name = f"{house.name}-{number}"
        self.funded_minor = FUNDS_MINOR[number // 3 % len(FUNDS_MINOR)]
        self.asked: list[Asked] = []
        self.answers: dict[str, list[tuple[str, Document]]] = {}
        """By round: what was said of it with 2xx, and in answer to what."""
        self.stop = threading.Event()
        self._careful = False
        self._random = random.Random(f"{seed}/{house.name}/{number}")
        self._findings = findings
        house.fund(self.name, self.funded_minor)
        self.player = self._resumed()
        self.thread = threading.Thread(target=self._play, name=self.name)

    def _resumed(self) -> Player:
        """A new session, however often it takes."""

        def opened() -> Player | None:
            answer = self.house.operator.open_session(player=self.name, mode="real")
            return (
                Player(self.house.operator.base, answer.json()["token"])
                if answer.status_code == 201
                else None
            )

        return self._until(opened, "a session")

    def _until(self, attempt: Callable[[], T | None], what: str) -> T:
        began = time.monotonic()
        while True:
            with suppress(requests.RequestException):
                if (got := attempt()) is not None:
                    self._findings.waited(time.monotonic() - began, f"{self.name}: {what}")
                    return got
            if time.monotonic() - began > GIVE_UP_SECONDS:
                raise Difference(f"{self.name}: {what} was not to be had in {GIVE_UP_SECONDS} s")
            time.sleep(0.1 + 0.4 * self._random.random())

    def _play(self) -> None:
        try:
            while not self.stop.is_set():
                self._round()
                time.sleep(self._random.random() * 0.4)
        except Exception as wrong:  # a thread's failure is one of the differences
            self._findings.differs(f"{self.name}: {wrong!r}")

    def _round(self) -> None:
        chance = self._random
        ante = 300_000 if chance.random() < 0.02 else 5 * chance.randint(1, 1 if self._careful else 200)
        body: Document = {"ante_minor": ante, "game": "three-card-brag"}
        if chance.random() < 0.5 and not self._careful:
            body["pair_bonus_minor"] = 5 * chance.randint(1, 100)
        opened = self._sent("/v1/rounds", body)
        self._careful = opened is None
        if opened is None:
            return
        round_id = str(opened["round_id"])
        if chance.random() < 0.08:
            self._resume(opened)
        course = chance.random()
        if course < 0.05:
            self._void(round_id)
        elif course < 0.10:
            together([lambda: self._void(round_id), lambda: self._decide(round_id)])
        elif course < 0.14:
            both = [self._ask(round_id, decision) for decision in ("play", "fold")]
            together([lambda ask=ask: self._answered(ask) for ask in both])  # type: ignore[misc]
            if not any(ask.given for ask in both):
                self._sent(f"/v1/rounds/{round_id}/decision", {"decision": "fold"})
        else:
            self._decide(round_id)
            if chance.random() < 0.04:
                self._void(round_id)

    def _resume(self, opened: Document) -> None:
        """Finds the same round on another session."""
        self.player = self._resumed()
        found = self._until(lambda: self._got("/v1/session"), "the open round")["open_round"]
        if found is None or found["player_cards"] != opened["player_cards"]:
            self._findings.differs(f"{self.name}: resumed {found} for {opened}")
        self._findings.count("resumed on a new session")

    def _decide(self, round_id: str) -> None:
        path = f"/v1/rounds/{round_id}/decision"
        if self._sent(path, {"decision": self._random.choice(["play", "fold"])}) is None:
            self._sent(path, {"decision": "fold"})

    def _void(self, round_id: str) -> None:
        policy = self._random.choice(["refund", "better"])
        body = {"reason": "soak", "approver": "somebody else", "policy": policy}
        self._sent(f"/v1/operator/rounds/{round_id}/void", body)

    def _ask(self, round_id: str, decision: str) -> Asked:
        return Asked(f"/v1/rounds/{round_id}/decision", {"decision": decision}, secrets.token_hex(12))

    def _sent(self, path: str, body: Document) -> Document | None:
        """The answer to a new request; None when it was refused."""
        return self._answered(Asked(path, body, secrets.token_hex(12)))

    def _answered(self, asked: Asked) -> Document | None:
        self.asked.append(asked)
        answer = self._until(lambda: self._attempt(asked), asked.path)
        if asked.refused is not None:
            self._findings.count(f"refused: {asked.refused}")
            return None
        document = dict(answer.json())
        self.answers.setdefault(document["round_id"], []).append((asked.path.split("/")[-1], document))
        return document

    def _attempt(self, asked: Asked) -> requests.Response | None:
        """Sends a request, sometimes several times at once; a definite answer, if there was one."""
        copies = 1 if self._random.random() > 0.06 else self._random.randint(2, 4)
        player = self.player

        def send() -> requests.Response | None:
            sender = player if copies == 1 else Player(player.base, player.token)
            with suppress(requests.RequestException):
                return self._send(asked, sender)
            return None

        answers = [send()] if copies == 1 else together([send] * copies)
        if copies > 1:
            self._findings.count("requests sent several times at once")
        definite = [answer for answer in answers if self._is_definite(asked, answer)]
        if len(asked.given) > 1:
            raise Difference(
                f"{asked.path} by {asked.key} was answered in {len(asked.given)} ways: {asked.given}"
            )
        if asked.given:
            if asked.refused == "already_decided":
                raise Difference(f"{asked.path} by {asked.key}: {asked.refused}, and answered {asked.given}")
            asked.refused = None  # the wallet refused one of them, and took the next
            return next(answer for answer in definite if answer is not None and answer.status_code < 300)
        return definite[0] if len(definite) == copies else None

    def _send(self, asked: Asked, player: Player) -> requests.Response:
        if asked.path.startswith("/v1/operator"):
            headers = {"Idempotency-Key": asked.key}
            return self.house.operator.send("POST", asked.path, asked.body, headers=headers)
        return player.post(asked.path, asked.body, key=asked.key)

    def _is_definite(self, asked: Asked, answer: requests.Response | None) -> bool:
        if answer is None:
            asked.codes["no answer"] += 1
            return False
        if answer.status_code in (200, 201):
            asked.given.add((answer.status_code, answer.text))
            return True
        code = code_of(answer)
        asked.codes[code] += 1
        if code in UNCLEAR:
            return False
        if code not in (REFUSED | OVERTAKEN if asked.path.endswith("/decision") else REFUSED):
            raise Difference(
                f"{self.name}: {asked.path} {asked.body} was answered {answer.text} after {asked.codes}"
            )
        asked.refused = code
        return True

    def _got(self, path: str) -> Document | None:
        answer = self.player.get(path)
        return dict(answer.json()) if answer.status_code == 200 else None

    def finish(self) -> None:
        """Decides what is still open."""
        self.player = self._resumed()
        waiting = self._until(lambda: self._got("/v1/session"), "the session")["open_round"]
        if waiting is not None:
            self._findings.differs(f"{self.name} left {waiting['round_id']} open")
            self._sent(f"/v1/rounds/{waiting['round_id']}/decision", {"decision": "fold"})

    def rounds(self) -> dict[str, Document]:
        """All the player's rounds, as the service shows them now."""
        found: dict[str, Document] = {}
        path = f"/v1/rounds?limit={PAGE}"
        while path:
            page = self._until(lambda path=path: self._got(path), "the rounds")  # type: ignore[misc]
            found |= {shown["round_id"]: shown for shown in page["items"]}
            path = page["next_cursor"] and f"/v1/rounds?limit={PAGE}&cursor={page['next_cursor']}"
        return found

    def check(self) -> None:
        """The player's own record against what the service and the wallet say now."""
        shown = self.rounds()
        for round_id in shown.keys() ^ self.answers.keys():
            self._findings.differs(f"{self.name}: {round_id} is known to one side only")
        for round_id, said in self.answers.items():
            for to_what, document in said:
                if (wrong := disagreement(document, shown.get(round_id, {}))) is not None:
                    self._findings.differs(f"{self.name}: {round_id}, {to_what}: {wrong}")
        owed = self.funded_minor + sum(net_minor(document) for document in shown.values())
        if (held := self.house.balance_minor(self.name)) != owed:
            self._findings.differs(f"{self.name} has {held}, and should have {owed}")
        for asked in self.asked[-25:] + self._random.sample(self.asked, min(len(self.asked), 25)):
            if asked.given:
                again = self._send(asked, self.player)
                if {(again.status_code, again.text)} != asked.given:
                    self._findings.differs(f"{asked.path} by {asked.key}: {again.text} after {asked.given}")


def net_minor(shown: Document) -> int:
    """What a round that is over has changed the player's money by, from all that is shown of it."""
    if shown["state"] == "settled":
        return int(shown["net_minor"])
    assert shown["state"] == "voided", shown
    settled = [wager for wager in shown["wagers"] if "payout_minor" in wager]
    if not settled:
        return int(shown["compensation_minor"])
    lost = sum(wager["payout_minor"] - wager["stake_minor"] for wager in settled)
    return int(lost + shown["refund_minor"] + shown["compensation_minor"])


def disagreement(said: Document, shown: Document) -> str | None:
    """Where an answer and the round as it is now do not tell the same story; None where they do."""
    left_out = set(SEEN_ONCE)
    if said["state"] != shown.get("state"):
        left_out |= OF_THE_STATE
        if shown.get("state") == "voided":
            left_out |= said.keys() - shown.keys()
    wrong = {
        name: (value, shown.get(name))
        for name, value in said.items()
        if name not in left_out and shown.get(name) != value
    }
    if said["state"] == "settled" and said["wagers"] != shown.get("wagers"):
        wrong["wagers"] = (said["wagers"], shown.get("wagers"))
    return str(wrong) if wrong else None


class Chaos:
    """Something goes wrong every few seconds, until it is told to heal."""

    def __init__(
        self, service: RunningService, casinos: list[Casino], seed: int, findings: Findings, held: ExitStack
    ) -> None:
        self._service, self._casinos, self._findings, self._held = service, casinos, findings, held
        self._random = random.Random(f"{seed}/chaos")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chaos")
        self._thread.start()

    def heal(self) -> None:
        """Ends what goes wrong; whatever was stopped runs when this returns."""
        self._stop.set()
        self._thread.join()
        for each in self._casinos:
            self._strikes(each)
            each.wallet.heal()

    def _run(self) -> None:
        deeds: list[tuple[int, Callable[[], None]]] = [
            (10, self._set_faults),
            (5, self._heal_wallet),
            (3, self._kill_worker),
            (3, self._kill_job_worker),
            (1, self._kill_service),
            (2, self._kill_wallet),
            (1, self._kill_database),
            (2, self._freeze_worker),
            (1, self._freeze_database),
        ]
        try:
            while not self._stop.wait(self._random.uniform(*CHAOS_SECONDS)):
                (deed,) = self._random.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])
                deed()
        except Exception as wrong:  # a thread's failure is one of the differences
            self._findings.differs(f"chaos: {wrong!r}")

    def _set_faults(self) -> None:
        each = self._random.choice(self._casinos)
        self._strikes(each)
        each.wallet.faults(
            *(self._rule() for _ in range(self._random.randint(1, 3))), seed=self._random.randrange(2**31)
        )

    def _rule(self) -> Document:
        kind = self._random.choice(list(Kind))
        rule: Document = {
            "kind": kind.value,
            "operation": self._random.choice(["debit", "debit", "credit", "cancel", "*"]),
            "probability": self._random.choice([0.05, 0.2, 0.5, 1]),
            "seconds": self._random.choice([0.2, 1, 3, 6, 8]),
        }
        if kind is Kind.REFUSE:
            rule["reason"] = self._random.choice(DEBIT_REFUSALS)
        return rule

    def _heal_wallet(self) -> None:
        each = self._random.choice(self._casinos)
        self._strikes(each)
        each.wallet.heal()

    def _strikes(self, each: Casino) -> None:
        rules = requests.get(each.wallet.url + "/faults", timeout=15).json()["rules"]
        for rule in rules:
            if rule["struck"]:
                self._findings.count(f"fault: {rule['kind']}", rule["struck"])

    def _kill(self, what: str, pids: Iterable[int]) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self._findings.count(f"killed: {what}")

    def _one_of(self, pids: Callable[[], list[int]]) -> list[int]:
        found: list[int] = []
        with suppress(FileNotFoundError):  # it ended while it was looked at
            found = sorted(pids())
        return [self._random.choice(found)] if found else []

    def _kill_worker(self) -> None:
        self._kill("worker", self._one_of(self._service.worker_pids))

    def _kill_job_worker(self) -> None:
        self._kill("job worker", self._one_of(self._service.job_worker_pids))

    def _kill_service(self) -> None:
        process, self._service.process = self._service.process, None
        assert process is not None
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=10)
        self._findings.count("killed: service")
        time.sleep(self._random.random())
        self._service.launch()

    def _kill_wallet(self) -> None:
        each = self._random.choice(self._casinos)
        self._strikes(each)
        each.wallet.kill()
        self._findings.count("killed: wallet")
        time.sleep(4 * self._random.random())
        each.wallet.start()

    def _postmaster(self) -> int:
        note = self._service.data_dir / "postgres" / "postmaster.pid"
        return int(note.read_text().partition("\n")[0])

    def _kill_database(self) -> None:
        self._kill("database", [self._postmaster()])
        time.sleep(self._random.random())
        self._held.enter_context(EmbeddedServer.attach(self._service.data_dir))

    def _freeze_worker(self) -> None:
        pids = self._one_of(self._service.worker_pids)
        self._freeze("worker", pids)

    def _freeze_database(self) -> None:
        main = self._postmaster()
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        self._freeze("database", [main, *map(int, children)])

    def _freeze(self, what: str, pids: list[int]) -> None:
        self._findings.count(f"stopped for a while: {what}", bool(pids))
        try:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            time.sleep(self._random.uniform(0.5, 2.5))
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


@dataclass
class Report:
    """What was played, what went wrong on purpose, and what should not have."""

    seconds: float
    seed: int
    healed_seconds: float
    findings: Findings
    totals: dict[str, int]

    @property
    def differences(self) -> list[str]:
        return self.findings.differences

    def __str__(self) -> str:
        lines = [f"{self.seconds:.0f} s, seed {self.seed}"]
        lines += [f"  {what:<44} {count:>9,}" for what, count in self.totals.items()]
        lines += [f"  {what:<44} {count:>9,}" for what, count in sorted(self.findings.counts.items())]
        lines.append(
            f"  longest wait for a definite answer, s        {self.findings.blocked_seconds:>9.1f}  "
            f"({self.findings.blocked_by})"
        )
        lines.append(f"  from healing to nothing unfinished, s        {self.healed_seconds:>9.1f}")
        lines.append(f"  differences                                  {len(self.differences):>9}")
        return "\n".join(lines + [f"    {what}" for what in self.differences])


TOTALS: Final = """
    SELECT 'rounds', count(*) FROM round
    UNION ALL SELECT 'rounds ' || state, count(*) FROM round GROUP BY state
    UNION ALL SELECT 'decisions: ' || decision, count(*) FROM round WHERE decision IS NOT NULL GROUP BY decision
    UNION ALL SELECT 'voids: ' || CASE WHEN decision IS NULL THEN 'before' ELSE 'after' END || ' the decision', count(*)
        FROM round WHERE state = 'voided' GROUP BY (decision IS NULL)
    UNION ALL SELECT 'wallet: ' || CASE purpose WHEN 'stake' THEN 'debit ' ELSE 'credit ' END || state, count(*)
        FROM wallet_transaction GROUP BY 1
    UNION ALL SELECT 'wallet: debits of unknown outcome', count(*) FROM audit_entry WHERE type = 'wallet.debit_unknown'
    UNION ALL SELECT 'wallet: credits that took several attempts', count(*)
        FROM wallet_transaction WHERE purpose <> 'stake' AND attempts > 1
    UNION ALL SELECT 'answers kept', count(*) FROM answer
    UNION ALL SELECT 'audit entries', count(*) FROM audit_entry
    ORDER BY 1"""


def soak(directory: Path, *, seconds: float, seed: int) -> Report:
    """Plays for so long, heals, waits until all is finished, and compares; what it finds is in the report."""
    findings = Findings()
    with ExitStack() as held, _houses(directory) as (service, houses):
        casinos = [house.casino for house in houses if house.casino is not None]
        gamblers = [
            Gambler(houses[number % len(houses)], number, seed, findings) for number in range(PLAYERS)
        ]
        for gambler in gamblers:
            gambler.thread.start()
        chaos = Chaos(service, casinos, seed, findings, held)
        time.sleep(seconds)
        chaos.heal()
        began = time.monotonic()
        for gambler in gamblers:
            gambler.stop.set()
        for gambler in gamblers:
            gambler.thread.join()
        service.wait_until_it_answers()
        for gambler in gamblers:
            _checked(findings, gambler.name, gambler.finish)
        while any(each.unfinished() for each in casinos) and time.monotonic() - began < GIVE_UP_SECONDS:
            time.sleep(0.2)
        healed = time.monotonic() - began
        for name, check in _checks(service, casinos, gamblers):
            _checked(findings, name, check)
        with service.connect() as conn:
            totals = dict(conn.execute(TOTALS).fetchall())
        (directory / "service.log").write_text(service.log())
        return Report(seconds, seed, healed, findings, totals)


@contextmanager
def _houses(directory: Path) -> Iterator[tuple[RunningService, list[House]]]:
    with ExitStack() as held:
        service = held.enter_context(RunningService.start(directory, workers=WORKERS))
        houses = [House("builtin", service.operator(), None)]
        for funding in ("two_debits", "reserve"):
            made = held.enter_context(casino(directory / funding, service, funding=funding))
            houses.append(House(funding, made.operator, made))
        yield service, houses


def _checked(findings: Findings, name: str, check: Callable[[], None]) -> None:
    try:
        check()
    except (AssertionError, Difference, requests.RequestException) as wrong:
        findings.differs(f"{name}: {wrong}")


def _checks(
    service: RunningService, casinos: list[Casino], gamblers: list[Gambler]
) -> Iterator[tuple[str, Callable[[], None]]]:
    for each in casinos:
        yield each.operator.name, lambda each=each: _must_be_finished(each)  # type: ignore[misc]
        yield each.operator.name, each.must_agree
    yield "the service", lambda: _must_stand_still(service)
    yield "the answers kept", lambda: _must_be_what_was_answered(service, gamblers)
    for gambler in gamblers:
        yield gambler.name, gambler.check


def _must_be_finished(each: Casino) -> None:
    if (left := each.unfinished()) > 0:
        raise Difference(f"{left} transactions are unfinished after {GIVE_UP_SECONDS} s")


def _must_stand_still(service: RunningService) -> None:
    if broken := service.broken_laws():
        raise Difference(f"laws are broken: {broken}")
    with service.connect() as conn:
        waiting = conn.execute(
            "SELECT round_id::text FROM round WHERE state = 'awaiting_decision'"
        ).fetchall()
    if waiting:
        raise Difference(f"rounds are stuck: {waiting}")


def _must_be_what_was_answered(service: RunningService, gamblers: list[Gambler]) -> None:
    with service.connect() as conn:
        rows = conn.execute(
            "SELECT idempotency_key, status, body FROM answer WHERE operation IN ('open', 'decide', 'void')"
        ).fetchall()
    kept = {key: {(status, body)} for key, status, body in rows}
    # The same decision by another key is answered with the first answer to it.
    said = {given for answers in kept.values() for given in answers}
    for gambler in gamblers:
        for asked in gambler.asked:
            if not asked.given <= said or kept.get(asked.key, asked.given) != asked.given:
                raise Difference(
                    f"{asked.path} by {asked.key}: {kept.get(asked.key)} is kept, {asked.given} was said"
                )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep", type=Path, help="a new directory for the logs and the data, which are kept there"
    )
    options = parser.parse_args()
    with ExitStack() as held:
        directory = options.keep or Path(held.enter_context(tempfile.TemporaryDirectory()))
        directory.mkdir(exist_ok=True)
        report = soak(directory, seconds=options.seconds, seed=options.seed)
    sys.stdout.write(f"{report}\n")
    return bool(report.differences)


if __name__ == "__main__":
    sys.exit(main())
