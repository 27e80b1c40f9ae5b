"""Requests that meet while a wallet is being asked: one round, one debit, one winner."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import pytest
import requests

from casino_brag.wallet.seamless import ANSWER_SECONDS
from tests.operators_wallet import Casino, casinos, insisted, wait_until
from tests.running import Player, RunningService, code_of, together

PARALLEL = 50
DUELS = 12
WORKERS = 3
FUNDS_MINOR = 100_000


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with RunningService.start(tmp_path_factory.mktemp("races"), workers=WORKERS) as running:
        yield running


@pytest.fixture(scope="module")
def both(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Casino]]:
    fundings = ["two_debits", "reserve"]
    with casinos(tmp_path_factory.mktemp("wallet"), service, fundings) as houses:
        yield dict(zip(fundings, houses, strict=True))


@pytest.fixture(params=["two_debits", "reserve"])
def house(request: pytest.FixtureRequest, both: dict[str, Casino]) -> Iterator[Casino]:
    found = both[request.param]
    yield found
    found.wallet.heal()
    found.wait_until_finished()
    found.must_agree()


def debited(house: Casino, player: Player) -> list[int]:
    """What the wallet took from a player and did not give back, in order."""
    return [amount for wager, state, amount in house.moved(player) if wager != "payout" and state == "done"]


def test_parallel_opens_with_one_key_are_one_debit(house: Casino) -> None:
    player = house.player(FUNDS_MINOR)
    tries = together(
        [partial(insisted, partial(player.again().open, 100, key="one")) for _ in range(PARALLEL)]
    )
    last = [answers[-1] for answers in tries]
    assert {answer.status_code for answer in last} == {201}
    assert len({answer.content for answer in last}) == 1
    assert {code_of(answer) for answers in tries for answer in answers[:-1]} <= {"request_in_progress"}
    assert sum("Idempotency-Replayed" not in answer.headers for answer in last) == 1
    assert debited(house, player) in ([100], [200])
    assert (
        player.balance_minor() == last[0].json()["balance_minor"] == FUNDS_MINOR - sum(debited(house, player))
    )
    assert len(player.get("/v1/rounds").json()["items"]) == 1


def test_parallel_opens_with_different_keys_are_one_round(house: Casino) -> None:
    player = house.player(FUNDS_MINOR)
    tries = together([partial(insisted, partial(player.again().open, 100)) for _ in range(PARALLEL)])
    last = [answers[-1] for answers in tries]
    assert Counter(answer.status_code for answer in last) == {201: 1, 409: PARALLEL - 1}
    assert {code_of(answer) for answer in last if answer.status_code == 409} == {"round_open"}
    assert debited(house, player) in ([100], [200])
    assert len(player.get("/v1/rounds").json()["items"]) == 1


def test_of_play_and_fold_at_the_same_instant_one_wins(house: Casino) -> None:
    left = house.player(FUNDS_MINOR)
    right, expected = left.again(), FUNDS_MINOR
    for _ in range(DUELS):
        round_id = left.open(100, 50).json()["round_id"]
        tries = together(
            [
                partial(insisted, partial(player.decide, round_id, decision))
                for player, decision in ((left, "play"), (right, "fold"))
            ]
        )
        won, lost = sorted((answers[-1] for answers in tries), key=lambda answer: answer.status_code)
        assert (won.status_code, code_of(lost)) == (200, "already_decided")
        assert won.json()["decision"] == ("play" if won is tries[0][-1] else "fold")
        expected += won.json()["net_minor"]
        assert left.balance_minor() == expected == won.json()["balance_minor"]


def test_of_a_decision_and_a_void_at_the_same_instant_each_is_done_once_or_refused(house: Casino) -> None:
    expected, player = FUNDS_MINOR, house.player(FUNDS_MINOR)
    for number in range(DUELS):
        round_id = player.open(100).json()["round_id"]
        void = partial(house.void, round_id, key=f"void {number}")
        decide = partial(player.decide, round_id, ("play", "fold")[number % 2])
        decided, voided = (
            answers[-1] for answers in together([partial(insisted, decide), partial(insisted, void)])
        )
        assert voided.status_code == 200, voided.text
        with house.service.connect() as conn:
            (won_minor,) = conn.execute(
                "SELECT greatest(0, total_payout_minor - total_staked_minor) FROM round"
                " WHERE round_id = %s AND (decision IS NOT NULL) = %s",
                [round_id, decided.status_code == 200],
            ).fetchall()[0]
        assert decided.status_code == 200 or code_of(decided) == "round_voided"
        expected += won_minor  # what was lost is returned, and what was won is kept
        house.wait_until_finished()
        assert player.balance_minor() == expected
        assert player.get(f"/v1/rounds/{round_id}").json()["state"] == "voided"


def test_a_client_that_left_gets_the_answer_when_it_comes_back(house: Casino) -> None:
    player = house.player(FUNDS_MINOR)
    house.wallet.faults({"operation": "*", "kind": "late", "seconds": 1, "player": player.name})
    player.send_only("/v1/rounds", {"ante_minor": 100}, "open").close()
    wait_until(lambda: house.moved(player) != [])
    opened = insisted(partial(player.open, 100, key="open"))
    assert [code_of(answer) for answer in opened[:-1]] == ["request_in_progress"] * (len(opened) - 1) != []
    assert (opened[-1].status_code, opened[-1].headers["Idempotency-Replayed"]) == (201, "true")

    path = f"/v1/rounds/{opened[-1].json()['round_id']}/decision"
    before = len(house.moved(player))
    player.send_only(path, {"decision": "play"}, "decide").close()
    wait_until(lambda: len(house.moved(player)) > before)
    settled = insisted(partial(player.post, path, {"decision": "play"}, key="decide"))[-1]
    assert settled.status_code == 200
    house.wait_until_finished()
    house.wallet.heal()
    assert player.balance_minor() == FUNDS_MINOR + settled.json()["net_minor"]
    assert sum(debited(house, player)) == 200


def test_one_reference_and_one_key_at_operators_with_and_without_a_wallet_are_two_players(
    service: RunningService, house: Casino
) -> None:
    name = secrets.token_hex(6)
    player = house.player(1_000, player=name)
    plain = service.operator()
    assert plain.deposit(name, 5_000).status_code == 201
    namesake = plain.player(player=name, mode="real")
    opened = [session.open(100, key="open") for session in (player, namesake)]
    assert [answer.status_code for answer in opened] == [201, 201]
    rounds = [answer.json()["round_id"] for answer in opened]
    assert rounds[0] != rounds[1]
    for session, round_id in ((player, rounds[1]), (namesake, rounds[0])):
        assert code_of(session.decide(round_id, "play", key="decide")) == "round_not_found"
    settled = [
        session.decide(round_id, "play", key="decide").json()
        for session, round_id in zip((player, namesake), rounds, strict=True)
    ]
    assert player.balance_minor() == 1_000 + settled[0]["net_minor"] == house.wallet.balance_minor(name)
    assert namesake.balance_minor() == 5_000 + settled[1]["net_minor"]


def test_an_open_that_hangs_at_the_wallet_holds_up_nobody_else(
    service: RunningService, house: Casino
) -> None:
    patient, other = house.player(), house.player()
    house.wallet.faults({"operation": "debit", "kind": "silent", "player": patient.name, "times": 1})
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(patient.open, 100, key="k")
        wait_until(lambda: house.wallet.struck() == [1])
        assert code_of(patient.again().open(100)) == "request_in_progress", "the same player waits"
        for _ in range(3):
            other.played("play")
        assert not hanging.done()
        with service.connect() as conn:
            open_transactions = conn.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'casino-brag'"
                " AND xact_start < now() - make_interval(secs => %s)",
                [ANSWER_SECONDS / 2],
            ).fetchone()
        assert open_transactions == (0,), "none is open while the wallet is asked"
    assert code_of(hanging.result()) == "wallet_unavailable"
    assert insisted(partial(patient.open, 100, key="k"))[-1].status_code == 201


def test_more_that_hang_than_a_wallet_may_have_calls_are_refused_at_once(
    service: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with casinos(tmp_path_factory.mktemp("hanging"), service, ["two_debits"]) as (house,):
        players = [house.player(FUNDS_MINOR) for _ in range(8 * WORKERS)]
        house.wallet.faults({"operation": "debit", "kind": "silent"})
        plain = service.operator().player()
        with ThreadPoolExecutor(len(players)) as pool:
            calls = [pool.submit(player.again().open, 100) for player in players]
            wait_until(lambda: sum(call.done() for call in calls) >= len(players) - 4 * WORKERS)
            assert sum(house.wallet.struck()) <= 4 * WORKERS
            assert not all(call.done() for call in calls), "some of them hang"
            for _ in range(5):
                plain.played("play")
            assert not all(call.done() for call in calls), "and still do, while others play"
            wait(calls)
        answers: list[requests.Response] = [call.result() for call in calls]
        assert {code_of(answer) for answer in answers} == {"wallet_unavailable"}
        house.wallet.heal()
        house.wait_until_finished()
        assert {state for state, _ in house.recorded().values()} == {"cancelled"}
        for player in players:
            assert house.wallet.balance_minor(player.name) == FUNDS_MINOR
        assert insisted(partial(players[0].open, 100))[-1].status_code == 201
        house.must_agree()


def test_several_wallets_that_hang_at_once_leave_threads_for_the_others(
    service: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with casinos(tmp_path_factory.mktemp("several"), service, ["two_debits"] * 3) as houses:
        players = [house.player(FUNDS_MINOR) for house in houses for _ in range(6 * WORKERS)]
        houses[0].wallet.faults({"operation": "debit", "kind": "silent"})
        plain = service.operator().player()
        with ThreadPoolExecutor(len(players)) as pool:
            calls = [pool.submit(player.open, 100) for player in players]
            rounds = []
            while not all(call.done() for call in calls):
                begun = time.monotonic()
                plain.again().played("play")
                rounds.append(time.monotonic() - begun)
        assert max(rounds) < ANSWER_SECONDS / 2, "nobody waited for the wallets of others"
        assert {code_of(call.result()) for call in calls} == {"wallet_unavailable"}
        houses[0].wallet.heal()
        for house in houses:
            house.wait_until_finished()
        houses[0].must_agree()
