"""Processes killed while a wallet is being asked: whatever the wallet did is found out, and put right or gone on with.

What was being worked on is left alone until its lease is over.  So everything is killed in turn, each with calls of
its own at the wallet, and the lease is waited for once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests

from casino_brag.db.embedded import EmbeddedServer
from casino_brag.wallet.seamless import ANSWER_SECONDS
from casino_brag.wallet.transactions import LEASE_SECONDS
from tests.operators_wallet import Casino, casinos, insisted, wait_until
from tests.running import Player, RunningService

FUNDS_MINOR = 10_000
HELD_SECONDS = ANSWER_SECONDS - 1
"""How long the wallet keeps an answer back that it has: time to kill somebody, and not too long for an answer."""


@dataclass
class Cut:
    """A request that is at the wallet when a process is killed, and the request that began its round."""

    name: str
    casino: Casino
    player: Player
    decision: str
    rules: list[dict[str, Any]]
    round_id: str | None = None

    def open(self) -> requests.Response:
        return self.player.again().open(100, 50, key="open")

    def decide(self) -> requests.Response:
        assert self.round_id is not None
        return self.player.again().decide(self.round_id, self.decision, key="decide")

    def opens_first(self) -> None:
        """Where it is the decision that is cut, there has to be a round."""
        opened = insisted(self.open)[-1]
        assert opened.status_code == 201, opened.text
        self.round_id = opened.json()["round_id"]

    def send(self) -> None:
        """Sends what will be cut; what is answered, if anything, is asked for again later."""
        with suppress(requests.RequestException):
            (self.open if self.round_id is None else self.decide)()

    def finish(self) -> int:
        """Sends it again until it is answered, and plays to the end and a round more: the net of both."""
        opened = insisted(self.open, 2 * LEASE_SECONDS)[-1]
        assert opened.status_code == 201, opened.text
        assert self.round_id in (None, opened.json()["round_id"])
        self.round_id = opened.json()["round_id"]
        settled = insisted(self.decide, 2 * LEASE_SECONDS)[-1]
        assert settled.status_code == 200, settled.text
        assert self.decide().content == settled.content
        net_minor = settled.json()["net_minor"]
        following = insisted(partial(self.player.again().open, 100, key="next"), 2 * LEASE_SECONDS)[-1].json()
        ended = insisted(partial(self.player.again().decide, following["round_id"], "fold"))[-1].json()
        return int(net_minor + ended["net_minor"])


def _rule(player: Player, operation: str, wager: str, kind: str) -> dict[str, Any]:
    return {
        "player": player.name,
        "operation": operation,
        "wager": wager,
        "kind": kind,
        "times": 1,
        "seconds": HELD_SECONDS,
    }


def cut_in_requests(name: str, houses: dict[str, Casino]) -> list[Cut]:
    """A request at each step: the wallet has taken the Ante, or the Play, or paid, and nobody knows it yet."""
    found = []
    for house in houses.values():
        for operation, wager, decision in (
            ("debit", "ante", "play"),
            ("debit", "play", "play"),
            ("credit", "payout", "fold"),
        ):
            if wager == "play" and house is houses["reserve"]:
                continue
            player = house.player(FUNDS_MINOR)
            cut = Cut(f"{name} {wager}", house, player, decision, [_rule(player, operation, wager, "late")])
            if wager != "ante":
                cut.opens_first()
            found.append(cut)
    return found


def cut_in_jobs(name: str, houses: dict[str, Casino]) -> list[Cut]:
    """A cancel and a payout that the job worker asks for, as the first attempt came to nothing."""
    found = []
    for house in houses.values():
        player = house.player(FUNDS_MINOR)
        rules = [_rule(player, "debit", "ante", "error_after")]
        rules += [_rule(player, "cancel", "ante", kind) for kind in ("error_before", "late")]
        found.append(Cut(f"{name} cancel", house, player, "play", rules))
        player = house.player(FUNDS_MINOR)
        rules = [_rule(player, "credit", "payout", kind) for kind in ("error_before", "late")]
        found.append(Cut(f"{name} payout", house, player, "fold", rules))
        found[-1].opens_first()
    return found


def kill_workers(service: RunningService, _: ExitStack) -> None:
    for pid in service.worker_pids():
        os.kill(pid, signal.SIGKILL)


def kill_job_worker(service: RunningService, _: ExitStack) -> None:
    (killed,) = service.job_worker_pids()
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: service.job_worker_pids() not in ([], [killed]))


def kill_database(service: RunningService, held: ExitStack) -> None:
    note = service.data_dir / "postgres" / "postmaster.pid"
    pid = int(note.read_text().partition("\n")[0])
    assert Path(f"/proc/{pid}/comm").read_text() == "postgres\n"
    os.kill(pid, signal.SIGKILL)
    held.enter_context(EmbeddedServer.attach(service.data_dir))
    service.wait_until_it_answers()


def kill_service(service: RunningService, _: ExitStack) -> None:
    process, service.process = service.process, None
    assert process is not None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=10)
    service.launch()


KILLS: tuple[
    tuple[str, Callable[[str, dict[str, Casino]], list[Cut]], Callable[[RunningService, ExitStack], None]],
    ...,
]
KILLS = (
    ("workers", cut_in_requests, kill_workers),
    ("job worker", cut_in_jobs, kill_job_worker),
    ("database", cut_in_requests, kill_database),
    ("service", cut_in_requests, kill_service),
)


@pytest.fixture
def houses(own_service: RunningService, tmp_path: Path) -> Iterator[dict[str, Casino]]:
    fundings = ["two_debits", "reserve"]
    with casinos(tmp_path / "wallet", own_service, fundings) as found:
        yield dict(zip(fundings, found, strict=True))


def test_whoever_is_killed_while_the_wallet_is_asked_nothing_is_lost_and_nothing_stays_stuck(
    own_service: RunningService, houses: dict[str, Casino]
) -> None:
    wallet, cuts = houses["reserve"].wallet, []
    with ExitStack() as held:
        for name, prepare, kill in KILLS:
            prepared = prepare(name, houses)
            wallet.faults(*(rule for cut in prepared for rule in cut.rules))
            senders = [Thread(target=cut.send) for cut in prepared]
            for sender in senders:
                sender.start()
            wait_until(lambda: set(wallet.struck()) == {1})
            kill(own_service, held)
            for sender in senders:
                sender.join()
            cuts += prepared

        with own_service.connect() as conn:
            left = conn.execute(
                "SELECT DISTINCT purpose, wager FROM wallet_transaction WHERE ended_at IS NULL"
            ).fetchall()
        assert {("stake", "ante"), ("settlement", "payout")} <= set(left), "somebody was in the middle of it"
        assert own_service.broken_laws() == {}

        nets = dict[str, int]()
        finishing = [
            Thread(target=lambda cut=cut: nets.update({cut.player.name: cut.finish()})) for cut in cuts
        ]
        for thread in finishing:
            thread.start()
        for thread in finishing:
            thread.join()
        for house in houses.values():
            house.wait_until_finished()
        assert {cut.name: wallet.balance_minor(cut.player.name) for cut in cuts} == {
            cut.name: FUNDS_MINOR + nets[cut.player.name] for cut in cuts
        }
        houses["reserve"].must_agree()
