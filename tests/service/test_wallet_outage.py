"""A wallet that is down: its own players wait and lose nothing, and other operators' players do not notice."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import requests

from casino_brag.wallet.seamless import ANSWER_SECONDS
from tests.operators_wallet import Casino, casino, insisted, wait_until
from tests.running import Player, RunningService, code_of

FUNDS_MINOR = 10_000
WORKERS = 2
THREADS = 8
ROUNDS = 6
LATER_SECONDS = 600

PHASES = 4
PHASE_SECONDS = 3.5
NOTICED = 3
"""How many times slower the others may become before it counts as noticing, on a machine that does other things."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with RunningService.start(tmp_path_factory.mktemp("outage"), workers=WORKERS) as running:
        yield running


@pytest.fixture(params=["two_debits", "reserve"])
def house(service: RunningService, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Casino]:
    with casino(tmp_path / "wallet", service, funding=request.param) as found:
        yield found


def die(house: Casino) -> Callable[[], None]:
    house.wallet.kill()
    return house.wallet.start


def refuse_service(house: Casino) -> Callable[[], None]:
    house.wallet.faults({"kind": "down"})
    return house.wallet.heal


@pytest.mark.parametrize("go_down", [die, refuse_service])
def test_rounds_wait_for_a_wallet_that_is_down_and_are_paid_once_when_it_is_back(
    service: RunningService, house: Casino, go_down: Callable[[Casino], Callable[[], None]]
) -> None:
    players = [house.player(FUNDS_MINOR) for _ in range(ROUNDS)]
    rounds = [player.open(100, 50).json() for player in players]
    elsewhere = service.operator().player()
    come_back = go_down(house)

    torn, nets = {}, {}
    for number, (player, opened) in enumerate(zip(players, rounds, strict=True)):
        round_id = opened["round_id"]
        shown = player.get("/v1/session").json()
        assert (shown["balance_minor"], shown["open_round"]["round_id"]) == (None, round_id)
        assert shown["open_round"]["player_cards"] == opened["player_cards"]
        again = house.operator.player(player=player.name, mode="real")
        assert again.get("/v1/session").json()["open_round"] == shown["open_round"]
        if number % 2 and opened["balance_minor"] == FUNDS_MINOR - 150:  # Play was not taken with the deal
            torn[round_id] = player
            assert code_of(player.decide(round_id, "play", key="end")) == "wallet_unavailable"
            assert player.get(f"/v1/rounds/{round_id}").json()["state"] in {"awaiting_decision", "deciding"}
            continue
        folded = again.decide(round_id, "fold").json()
        assert (folded["payout_state"], folded["balance_minor"]) == ("pending", None)
        nets[player.name] = folded["net_minor"]
        assert code_of(player.open(100)) in {"payout_pending", "wallet_unavailable"}
        assert player.get(f"/v1/rounds/{round_id}").json()["payout_state"] == "pending"
    assert elsewhere.played("play")["result"]
    assert house.unfinished() >= len(nets)

    come_back()
    for round_id, player in torn.items():
        settled = insisted(partial(player.decide, round_id, "play", key="end"))[-1]
        assert settled.status_code == 200, settled.text
        nets[player.name] = settled.json()["net_minor"]
    house.wait_until_finished()
    for player, opened in zip(players, rounds, strict=True):
        assert house.wallet.balance_minor(player.name) == FUNDS_MINOR + nets[player.name]
        assert player.get(f"/v1/rounds/{opened['round_id']}").json()["payout_state"] == "paid"
        assert [wager for wager, _, _ in house.moved(player)].count("payout") == 1
    assert insisted(partial(players[0].open, 100))[-1].status_code == 201
    house.must_agree()


def test_the_delay_between_attempts_doubles_up_to_about_a_minute(
    service: RunningService, tmp_path: Path
) -> None:
    with casino(tmp_path / "wallet", service) as house, service.connect() as conn:
        player = house.player(FUNDS_MINOR)
        house.wallet.faults({"operation": "credit", "kind": "down"})
        round_id = player.played("fold")["round_id"]
        for attempts in (0, 1, 2, 3, 4, 5, 6, 7, 100, 3_000):
            with conn.transaction(force_rollback=True):
                ((credit,),) = conn.execute(
                    "UPDATE wallet_transaction SET attempts = %s"
                    " WHERE round_id = %s AND purpose = 'settlement' RETURNING transaction_id",
                    [attempts, round_id],
                ).fetchall()
                conn.execute("SELECT wallet_postpone(%s, 'a trial')", [credit])
                ((delay,),) = conn.execute(
                    "SELECT extract(epoch FROM due_at - now())::float FROM wallet_transaction"
                    " WHERE transaction_id = %s",
                    [credit],
                ).fetchall()
            about = 2 ** min(attempts, 6)
            assert 0.75 * about <= delay <= 1.25 * about
        house.wallet.heal()
        house.wait_until_finished()


def put_off(house: Casino, seconds: float, *, but: int = 0) -> None:
    """As if everything unfinished had been tried in vain for an hour: it is due later, except for `but` of it."""
    with house.service.connect() as conn:
        conn.execute(
            "UPDATE wallet_transaction SET attempts = 60, last_problem = 'down', due_at = now() + make_interval(secs =>"
            " CASE WHEN u.number <= %(but)s THEN 0 ELSE %(seconds)s END) FROM ("
            "  SELECT transaction_id, row_number() OVER () AS number"
            "  FROM wallet_transaction JOIN operator USING (operator_id)"
            "  WHERE name = %(name)s AND ended_at IS NULL) AS u"
            " WHERE u.transaction_id = wallet_transaction.transaction_id AND ended_at IS NULL",
            {"name": house.operator.name, "seconds": seconds, "but": but},
        )


def test_after_an_hour_the_first_payout_that_gets_through_brings_all_others(
    service: RunningService, tmp_path: Path
) -> None:
    with casino(tmp_path / "wallet", service) as house:
        players = [house.player(FUNDS_MINOR) for _ in range(3 * ROUNDS)]
        house.wallet.faults({"operation": "credit", "kind": "down"})
        settled = [insisted(partial(folded, player))[-1].json() for player in players]
        assert house.unfinished() == len(players)
        put_off(house, LATER_SECONDS)
        house.wallet.heal()
        put_off(house, LATER_SECONDS, but=1)
        house.wait_until_finished()
        for player, end in zip(players, settled, strict=True):
            assert house.wallet.balance_minor(player.name) == FUNDS_MINOR + end["net_minor"]
            assert [wager for wager, _, _ in house.moved(player)].count("payout") == 1
        house.must_agree()


def folded(player: Player) -> requests.Response:
    """A round that is opened, if none is, and folded."""
    opened = player.open(100, key="open")
    return (
        opened if opened.status_code >= 400 else player.decide(opened.json()["round_id"], "fold", key="end")
    )


def test_a_wallet_that_is_slow_with_what_it_is_owed_delays_no_other(
    service: RunningService, tmp_path: Path
) -> None:
    with ExitStack() as held:
        slow, quick = (held.enter_context(casino(tmp_path / name, service)) for name in ("slow", "quick"))
        owed = [slow.player(FUNDS_MINOR) for _ in range(ROUNDS)]
        another = quick.player(FUNDS_MINOR)
        slow.wallet.faults({"operation": "credit", "kind": "down"})
        for player in owed:
            insisted(partial(folded, player))
        put_off(slow, LATER_SECONDS)
        slow.wallet.faults({"operation": "credit", "kind": "late", "seconds": 1.5})
        put_off(slow, 0)
        wait_until(lambda: sum(slow.wallet.struck()) > 0)
        quick.wallet.faults({"operation": "credit", "kind": "error_before", "times": 1})
        another.played("fold")
        quick.wait_until_finished()
        assert slow.unfinished() > 0, "the slow one is still being asked"
        slow.wallet.heal()
        slow.wait_until_finished()
        for each in (slow, quick):
            each.must_agree()


@dataclass
class Onlooker:
    """Somebody else's player, who plays on and takes the time of every request."""

    player: Player
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"healthy": [], "hanging": []})

    def play(self, phase: str, until: float) -> None:
        while time.monotonic() < until:
            opened = self._timed(phase, partial(self.player.open, 100))
            assert opened.status_code == 201, opened.text
            settled = self._timed(phase, partial(self.player.decide, opened.json()["round_id"], "fold"))
            assert settled.status_code == 200, settled.text

    def _timed(self, phase: str, send: Callable[[], requests.Response]) -> requests.Response:
        begun = time.monotonic()
        answer = send()
        self.seconds[phase].append(time.monotonic() - begun)
        return answer

    def slower(self, phase: str, than: str) -> float:
        """How many times as long requests took in one phase as in another: in the median, or the 99th percentile."""
        cuts, before = (statistics.quantiles(self.seconds[name], n=100) for name in (phase, than))
        return max(cuts[49] / before[49], cuts[98] / before[98])


def test_others_do_not_notice_that_a_wallet_hangs(service: RunningService, tmp_path: Path) -> None:
    with ExitStack() as held:
        hanging, healthy, other = (
            held.enter_context(casino(tmp_path / name, service)) for name in ("hanging", "healthy", "other")
        )
        hanging.wallet.faults({"kind": "silent"})
        onlookers = {
            "built-in wallet": Onlooker(service.operator().real_player(1_000_000)),
            "wallet of its own": Onlooker(other.player(1_000_000)),
        }
        crowds = {
            phase: [house.player(1_000_000) for _ in range(4)]
            for phase, house in (("healthy", healthy), ("hanging", hanging))
        }
        connections = []

        def insist_on(player: Player, until: float) -> None:
            """Somebody of the crowd, who takes no for no answer."""
            while time.monotonic() < until:
                opened = player.open(100)
                if opened.status_code == 201:
                    player.decide(opened.json()["round_id"], "fold")
                time.sleep(0.05)

        for number in range(PHASES):
            phase = ("healthy", "hanging")[number % 2]
            until = time.monotonic() + PHASE_SECONDS
            threads = [threading.Thread(target=insist_on, args=(player, until)) for player in crowds[phase]]
            threads += [
                threading.Thread(target=each.play, args=(phase, until)) for each in onlookers.values()
            ]
            for thread in threads:
                thread.start()
            with service.connect() as conn:
                while any(thread.is_alive() for thread in threads):
                    connections += conn.execute(
                        "SELECT count(*), count(*) FILTER (WHERE xact_start < now() - make_interval(secs => %s))"
                        " FROM pg_stat_activity WHERE application_name = 'casino-brag'",
                        [ANSWER_SECONDS / 2],
                    ).fetchall()
                    assert requests.get(service.base + "/healthz", timeout=10).status_code == 200
                    time.sleep(0.1)
        assert max(count for count, _ in connections) <= (WORKERS + 1) * THREADS
        assert {held_long for _, held_long in connections} == {0}, "no transaction waits for a wallet"

        for each in onlookers.values():
            assert each.slower("hanging", "healthy") < NOTICED, each.seconds
        for house in (healthy, other):
            house.wait_until_finished()
            house.must_agree()
