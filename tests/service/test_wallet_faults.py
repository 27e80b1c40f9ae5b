"""A wallet that answers late, wrongly or never: nothing is taken twice, paid twice or left behind, and play goes on.

Most of each scene is waiting.  So all are played at the same time, each by an operator of its own on one wallet, and
then looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import pytest
import requests

from casino_brag.wallet.seamless import ANSWER_SECONDS
from tests.operators_wallet import Casino, casinos, insisted, wait_until
from tests.running import Player, RunningService, code_of

FUNDS_MINOR = 10_000
TOO_LATE_SECONDS = ANSWER_SECONDS + 1.5

UNKNOWN = ("late", "error_after", "silent", "silent_after", "garbage", "drop", "late_original")
"""Ways to leave it open whether a call took effect."""

PLAY_REFUSED = "player_blocked"


@dataclass(frozen=True)
class Scene:
    """What goes wrong: which call of which wager, how; and how its cancel does, where that goes wrong too."""

    funding: str
    wager: str
    kind: str
    cancel: str | None = None

    def __str__(self) -> str:
        return "-".join(
            filter(None, (self.funding, self.wager, self.kind, self.cancel and f"cancel_{self.cancel}"))
        )

    def rules(self, player: str) -> list[dict[str, Any]]:
        """The faults, which strike once."""
        once = {"player": player, "times": 1, "seconds": TOO_LATE_SECONDS}
        operation = "credit" if self.wager == "payout" else "debit"
        found = [once | {"operation": operation, "wager": self.wager, "kind": self.kind}]
        if self.kind == "refuse":
            found[0]["reason"] = PLAY_REFUSED
        if self.cancel:
            found.append(once | {"operation": "cancel", "wager": self.wager, "kind": self.cancel})
        return found


def scenes() -> Iterator[Scene]:
    """Every wager of both fundings, struck in every way."""
    for funding, wagers in (
        ("two_debits", ("ante", "pair_bonus", "play", "payout")),
        ("reserve", ("ante", "payout")),
    ):
        for wager in wagers:
            for kind in UNKNOWN:
                yield Scene(funding, wager, kind)
        for wager in ("ante", "play") if "play" in wagers else ("ante",):
            for cancel in ("late", "error_after", "error_before", "drop"):
                yield Scene(funding, wager, "error_after", cancel)
    yield Scene("two_debits", "play", "refuse")


SCENES = list(scenes())


@dataclass
class Tale:
    """A scene as it was played: all answers to the opening and to the decision, then a whole round more."""

    casino: Casino
    player: Player
    opening: list[requests.Response]
    decision: list[requests.Response]
    replays: tuple[requests.Response, requests.Response]
    read: dict[str, Any]
    next_round: dict[str, Any]

    @property
    def struck(self) -> Mapping[str, requests.Response]:
        """The first answer to the request that was struck, by the wager that was."""
        opening, decision = self.opening[0], self.decision[0]
        settling = self.decision[len(self.before_settling)]
        return {"ante": opening, "pair_bonus": opening, "play": decision, "payout": settling}

    @property
    def before_settling(self) -> list[requests.Response]:
        """The answers to decisions whose Play was never sent, as there were too many calls at once: nothing moved."""
        return [answer for answer in self.decision[:-1] if answer.status_code == 503]


def told(casino: Casino, player: Player) -> Tale:
    """Plays two rounds as a patient client does: each request is sent again until its answer is definite."""
    opening = insisted(partial(player.open, 100, 50, key="open"))
    assert opening[-1].status_code == 201, opening[-1].text
    round_id = opening[-1].json()["round_id"]
    decide = partial(player.decide, round_id, "play", key="decide")
    decision = insisted(decide)
    if decision[-1].status_code != 200:
        decision += insisted(decide)
    assert decision[-1].status_code == 200, decision[-1].text
    next_round = insisted(partial(player.open, 100, key="next"))[-1].json()
    settled = insisted(partial(player.decide, next_round["round_id"], "fold", key="end"))[-1].json()
    casino.wait_until_finished()
    replays = player.open(100, 50, key="open"), decide()
    return Tale(
        casino, player, opening, decision, replays, player.get(f"/v1/rounds/{round_id}").json(), settled
    )


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    threads = {"CASINO_BRAG_POOL_SIZE": "16"}
    with RunningService.start(tmp_path_factory.mktemp("faults"), workers=3, environment=threads) as running:
        yield running


@pytest.fixture(scope="module")
def tales(
    service: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[Scene, Callable[[], Tale]]]:
    directory = tmp_path_factory.mktemp("wallet")
    with casinos(directory, service, [scene.funding for scene in SCENES]) as houses:
        players = [house.player(FUNDS_MINOR) for house in houses]
        wallet = houses[0].wallet
        wallet.faults(
            *chain(*(scene.rules(player.name) for scene, player in zip(SCENES, players, strict=True)))
        )
        with ThreadPoolExecutor(len(SCENES)) as pool:
            played = [pool.submit(told, *cast) for cast in zip(houses, players, strict=True)]
        assert set(wallet.struck()) == {1}, "every fault came about"
        yield {scene: tale.result for scene, tale in zip(SCENES, played, strict=True)}


@pytest.fixture(params=SCENES, ids=str)
def scene(request: pytest.FixtureRequest) -> Scene:
    found: Scene = request.param
    return found


@pytest.fixture
def tale(scene: Scene, tales: Mapping[Scene, Callable[[], Tale]]) -> Tale:
    return tales[scene]()


def test_the_struck_request_is_told_what_is_known(scene: Scene, tale: Tale) -> None:
    answer = tale.struck[scene.wager]
    if scene.kind == "refuse":
        told_first = next(code_of(each) for each in tale.decision if each.status_code != 503)
        assert told_first == PLAY_REFUSED
        assert {code_of(before) for before in tale.before_settling} <= {"wallet_unavailable"}
        return
    if scene.wager != "payout":
        assert code_of(answer) == "wallet_unavailable"
        return
    assert {code_of(before) for before in tale.before_settling} <= (
        {"wallet_unavailable"} if scene.funding == "two_debits" else set()
    )
    assert answer.status_code == 200, "the round is settled, whatever becomes of the payout"
    assert (answer.json()["payout_state"], answer.json()["balance_minor"]) == ("pending", None)
    assert tale.read["payout_state"] == "paid"


def test_the_same_key_gets_one_answer_for_ever(tale: Tale) -> None:
    for given, replay in zip((tale.opening[-1], tale.decision[-1]), tale.replays, strict=True):
        assert (replay.status_code, replay.content) == (given.status_code, given.content)
        assert replay.headers["Idempotency-Replayed"] == "true"
    assert tale.read["round_id"] == tale.opening[-1].json()["round_id"]
    assert tale.read["player_cards"] == tale.opening[-1].json()["player_cards"]


def test_the_player_has_what_the_rounds_say_to_the_unit(scene: Scene, tale: Tale) -> None:
    held = FUNDS_MINOR + tale.read["net_minor"] + tale.next_round["net_minor"]
    assert tale.casino.wallet.balance_minor(tale.player.name) == held == tale.player.balance_minor()
    done = [(wager, amount) for wager, state, amount in tale.casino.moved(tale.player) if state == "done"]
    debits = [("ante", 100), ("pair_bonus", 50), ("play", 100), ("ante", 100)]
    if scene.funding == "reserve":
        debits = [("ante", 250), ("ante", 200)]
    assert [line for line in done if line[0] != "payout"] == debits
    assert [wager for wager, _ in done].count("payout") == 2


def test_both_books_agree_on_all_of_it(tales: Mapping[Scene, Callable[[], Tale]]) -> None:
    houses = [tale().casino for tale in tales.values()]
    houses[0].must_agree()
    assert {state for state, _ in houses[0].recorded().values()} == {"done", "cancelled", "refused"}
    assert {state for state, _ in houses[0].statement().values()} == {"done", "cancelled", "refused"}


def test_a_void_is_refunded_once_by_a_wallet_that_answers_wrongly(
    service: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kinds = ("error_after", "drop", "garbage", "down")
    with casinos(tmp_path_factory.mktemp("void"), service, ["two_debits", "reserve"] * 2) as houses:
        players = [house.player(FUNDS_MINOR) for house in houses]
        rounds = [player.open(100, 50).json()["round_id"] for player in players]
        houses[0].wallet.faults(
            *(
                {"operation": "credit", "kind": kind, "times": 2, "player": player.name}
                for kind, player in zip(kinds, players, strict=True)
            )
        )
        for house, round_id in zip(houses, rounds, strict=True):
            voided = house.void(round_id)
            assert (voided.status_code, voided.json()["state"]) == (200, "voided")
        for house, player in zip(houses, players, strict=True):
            wait_until(lambda house=house: house.unfinished() == 0)  # type: ignore[misc]
            assert player.balance_minor() == FUNDS_MINOR
            assert insisted(partial(player.open, 100))[-1].status_code == 201
        assert set(houses[0].wallet.struck()) == {2}
        houses[0].must_agree()
