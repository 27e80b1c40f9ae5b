"""A player's rounds, page by page, and where a session stands."""

from __future__ import annotations

import secrets
import time
from uuid import UUID

import pytest

from tests.inprocess import AppHouse, deal_next
from tests.running import Operator, Player, RunningService, code_of


@pytest.fixture(scope="module")
def operator(service: RunningService) -> Operator:
    return service.operator()


@pytest.fixture(scope="module")
def veteran(operator: Operator) -> tuple[Player, list[str]]:
    """A player of seven rounds, and their identifiers, newest first."""
    player = operator.player()
    return player, [played(player) for _ in range(7)][::-1]


def played(player: Player, decision: str = "fold") -> str:
    round_id = str(player.open().json()["round_id"])
    assert player.decide(round_id, decision).status_code == 200
    return round_id


def page(player: Player, query: str) -> tuple[list[str], str | None]:
    answer = player.get(f"/v1/rounds{query}")
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"items", "next_cursor"}
    return [item["round_id"] for item in body["items"]], body["next_cursor"]


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8, 200])
def test_the_cursor_walks_through_all_rounds_newest_first(
    veteran: tuple[Player, list[str]], limit: int
) -> None:
    player, rounds = veteran
    walked: list[str] = []
    cursor, pages = None, 0
    while True:
        listed, cursor = page(player, f"?limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
        walked += listed
        pages += 1
        assert len(listed) == limit or cursor is None
        if cursor is None:
            break
    assert walked == rounds
    assert pages == -(-7 // limit)


def test_a_page_has_fifty_rounds_unless_it_is_said_otherwise(veteran: tuple[Player, list[str]]) -> None:
    player, rounds = veteran
    assert page(player, "") == page(player, "?limit=50") == (rounds, None)


def test_a_round_played_meanwhile_does_not_disturb_a_walk(operator: Operator) -> None:
    player = operator.player()
    rounds = [played(player) for _ in range(3)]
    first, cursor = page(player, "?limit=2")
    played(player)
    assert first + page(player, f"?limit=2&cursor={cursor}")[0] == rounds[::-1]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=-1", "limit"),
        ("limit=ten", "limit"),
        ("limit=1.5", "limit"),
        ("limit=", "limit"),
        ("limit=1e1", "limit"),
        ("limit=" + "9" * 300, "limit"),
        ("cursor=first", "cursor"),
        ("cursor=", "cursor"),
        ("cursor=%00", "cursor"),
        ("page=2", "page"),
    ],
)
def test_a_page_that_is_none_is_refused_by_name(
    veteran: tuple[Player, list[str]], query: str, field: str
) -> None:
    answer = veteran[0].get(f"/v1/rounds?{query}")
    assert code_of(answer) == "invalid"
    assert list(answer.json()["errors"]) == [field]


def test_a_cursor_of_somebody_else_shows_nothing_of_theirs(
    operator: Operator, veteran: tuple[Player, list[str]]
) -> None:
    stranger = operator.player()
    own = played(stranger)
    assert page(stranger, f"?cursor={veteran[1][0]}") == ([], None)
    assert page(stranger, f"?cursor={UUID(int=2**128 - 1)}") == ([], None), "nor does one of nobody's"
    assert page(stranger, "") == ([own], None)


def test_a_session_lists_rounds_of_its_own_mode_and_currency(operator: Operator) -> None:
    name = secrets.token_hex(6)
    for currency in ("GBP", "EUR"):
        assert operator.deposit(name, 10_000, currency).status_code == 201
    sessions = {
        (mode, currency): operator.player(player=name, mode=mode, currency=currency)
        for mode in ("demo", "real")
        for currency in ("GBP", "EUR")
    }
    rounds = {session: [played(player) for _ in range(2)][::-1] for session, player in sessions.items()}
    for session, player in sessions.items():
        assert page(player, "")[0] == rounds[session]
        items = player.get("/v1/rounds").json()["items"]
        assert {item["currency"] for item in items} == {session[1]}


def test_later_sessions_list_the_rounds_of_earlier_ones(operator: Operator) -> None:
    name = secrets.token_hex(6)
    earlier = played(operator.player(player=name))
    assert page(operator.player(player=name), "") == ([earlier], None)


def test_a_round_is_listed_as_it_is_read_alone(operator: Operator) -> None:
    player = operator.player()
    played(player, "play")
    player.open(100, 50)
    listed = player.get("/v1/rounds").json()["items"]
    assert [one["state"] for one in listed] == ["awaiting_decision", "settled"]
    assert listed == [player.get(f"/v1/rounds/{one['round_id']}").json() for one in listed]


def test_a_session_s_net_position_is_what_its_rounds_came_to(operator: Operator) -> None:
    name = secrets.token_hex(6)
    assert operator.deposit(name, 100_000).status_code == 201
    player = operator.player(player=name, mode="real")
    for decision in ("play", "fold", "play"):
        played(player, decision)
    nets = [one["net_minor"] for one in player.get("/v1/rounds").json()["items"]]
    waiting = player.open(100, 50).json()
    session = player.get("/v1/session").json()
    assert session["net_position_minor"] == sum(nets)
    assert session["balance_minor"] == 100_000 + sum(nets) - 150
    assert session["open_round"] == player.get(f"/v1/rounds/{waiting['round_id']}").json()
    later = operator.player(player=name, mode="real").get("/v1/session").json()
    assert (later["net_position_minor"], later["balance_minor"]) == (0, session["balance_minor"])
    assert later["open_round"]["round_id"] == waiting["round_id"]


def test_a_session_tells_how_long_it_has_lasted(operator: Operator) -> None:
    player = operator.player()
    assert player.get("/v1/session").json()["elapsed_seconds"] in (0, 1)
    time.sleep(1.1)
    assert 1 <= player.get("/v1/session").json()["elapsed_seconds"] < 30


def test_a_session_tells_who_plays_for_what(operator: Operator) -> None:
    player = operator.player(player="p-1", currency="KWD", language="de", game="double-play-brag")
    session = player.get("/v1/session").json()
    told = {name: session[name] for name in ("player", "mode", "currency", "exponent", "game", "language")}
    assert told == {
        "player": "p-1",
        "mode": "demo",
        "currency": "KWD",
        "exponent": 3,
        "game": "double-play-brag",
        "language": "de",
    }
    assert list(session["limits"]) == ["double-play-brag"]
    assert session["balance_minor"] == 1_000_000
    assert session["open_round"] is None


def test_demonstration_money_is_filled_up_only_when_it_has_run_low(
    app_house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = secrets.token_hex(6)
    player = app_house.player(player=name)
    assert player.balance_minor() == 100_000
    deal_next(monkeypatch, "3c 3d 3h", "Ac Kd Qh")
    played(player, "play")
    rich = player.balance_minor()
    assert rich > 100_000
    assert app_house.player(player=name).balance_minor() == rich
    deal_next(monkeypatch, "2c 4d 6h", "Ac Kd Qh")
    player.decide(player.open(rich - rich % 5 - 100_000 + 5).json()["round_id"], "fold")
    low = player.balance_minor()
    assert low < 100_000
    assert app_house.player(player=name).balance_minor() == 100_000
    waiting = player.open(100)
    assert app_house.player(player=name).balance_minor() == 100_000
    # Its cards do not follow from its seed: left open, it would be an obstacle to whoever comes next.
    assert player.decide(waiting.json()["round_id"], "fold").status_code == 200
    with app_house.connect() as conn:
        given = conn.execute(
            "SELECT t.amount_minor FROM transfer AS t JOIN account AS a ON a.account_id = t.to_account"
            " JOIN player AS p USING (player_id) WHERE p.reference = %s AND t.kind = 'demo_money' ORDER BY made_at",
            [name],
        ).fetchall()
    assert given == [(100_000,), (100_000 - low,), (100,)]


def test_real_money_is_never_filled_up(operator: Operator) -> None:
    assert operator.player(mode="real").balance_minor() == 0
