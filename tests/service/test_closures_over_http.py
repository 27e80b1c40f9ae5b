"""Closing games: what an operator can close for itself, over HTTP, and what stops then."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
import requests
from click.testing import CliRunner, Result

from casino_brag.catalogue.closures import ClosureState, Scope, close, open_again
from casino_brag.cli.games import games
from casino_brag.db.embedded import Role
from tests.inprocess import AppHouse
from tests.running import Operator, code_of

GAME, OTHER_GAME = "three-card-brag", "double-play-brag"


@pytest.fixture
def operator(app_house: AppHouse) -> Operator:
    """An operator of its own for each test, so that what is closed is closed for nobody else."""
    return app_house.new_operator()


def said(operator: Operator, what: str, reason: Any = "Maintenance.", game: str = GAME) -> requests.Response:
    return operator.send("POST", f"/v1/operator/games/{game}/{what}", {"reason": reason})


def states(operator: Operator) -> dict[str, tuple[str, str | None, int]]:
    items = operator.send("GET", "/v1/operator/games").json()["items"]
    return {item["game"]: (item["state"], item["reason"], item["open_rounds"]) for item in items}


def test_a_drained_game_deals_no_more_and_lets_open_rounds_end(operator: Operator) -> None:
    player = operator.player()
    waiting = player.open().json()["round_id"]
    answer = said(operator, "drain", "Tonight.")
    assert (answer.status_code, answer.json()) == (
        200,
        {"game": GAME, "state": "draining", "reason": "Tonight.", "open_rounds": 1, "changed": True},
    )
    assert code_of(operator.player().open()) == "game_unavailable"
    assert player.decide(waiting, "fold").status_code == 200
    assert states(operator)[GAME] == ("draining", "Tonight.", 0)


def test_a_disabled_game_stops_and_its_open_rounds_wait_until_it_is_enabled(operator: Operator) -> None:
    player = operator.player()
    waiting = player.open().json()["round_id"]
    assert said(operator, "disable").json()["state"] == "disabled"
    assert code_of(player.decide(waiting, "play")) == "game_unavailable"
    assert code_of(operator.player().open()) == "game_unavailable"
    assert player.get(f"/v1/rounds/{waiting}").json()["state"] == "awaiting_decision"
    opened = said(operator, "enable", "Mended.").json()
    assert opened == {"game": GAME, "state": "enabled", "reason": None, "open_rounds": 1, "changed": True}
    assert player.decide(waiting, "play").status_code == 200
    assert operator.player().open().status_code == 201


def test_what_an_operator_closes_is_closed_for_nobody_else(operator: Operator, app_house: AppHouse) -> None:
    assert said(operator, "disable").status_code == 200
    other = app_house.new_operator()
    assert states(other)[GAME][0] == "enabled"
    assert other.player().open().status_code == 201
    assert states(operator)[OTHER_GAME][0] == "enabled"
    assert operator.player(game=OTHER_GAME).open().status_code == 201


def test_saying_it_again_changes_nothing(operator: Operator) -> None:
    assert said(operator, "enable").json()["changed"] is False
    assert [said(operator, "drain").json()["changed"] for _ in range(2)] == [True, False]
    assert said(operator, "drain", "Another reason.").json()["changed"] is True


def test_an_operator_cannot_open_what_is_closed_for_all(operator: Operator, app_house: AppHouse) -> None:
    with app_house.connect(Role.APP) as conn:
        close(conn, Scope(game=OTHER_GAME), ClosureState.DISABLED, "For all.", actor="system:tests")
        try:
            answer = said(operator, "enable", game=OTHER_GAME).json()
        finally:
            open_again(conn, Scope(game=OTHER_GAME), "Done.", actor="system:tests")
    assert (answer["state"], answer["reason"], answer["changed"]) == ("disabled", "For all.", False)


@pytest.mark.parametrize("game", ["poker", "%00", "three-card-brag%20", "\u2660", "A" * 200])
def test_a_game_that_does_not_exist_is_not_found(operator: Operator, game: str) -> None:
    answer = operator.send("POST", f"/v1/operator/games/{quote(game, safe='%')}/drain", {"reason": "Why."})
    assert (answer.status_code, code_of(answer)) == (404, "not_found")


@pytest.mark.parametrize("reason", ["", " ", "a\nb", "x" * 501, 5, None, "a\x00b", "\ud800"])
def test_a_reason_is_a_line_of_text(operator: Operator, reason: Any) -> None:
    answer = said(operator, "disable", reason)
    assert (answer.status_code, code_of(answer)) == (422, "invalid")
    assert "reason" in answer.json()["errors"]


def test_who_closed_a_game_is_on_record(operator: Operator, app_house: AppHouse) -> None:
    said(operator, "disable", "Gr\u00fcnde \u2660")
    with app_house.connect() as conn:
        found = conn.execute(
            "SELECT type, reason, before ->> 'state', after ->> 'state' FROM audit_entry"
            " WHERE actor = %s AND type LIKE 'game.%%'",
            [f"operator:{operator.name}"],
        ).fetchall()
    assert found == [("game.disabled", "Gr\u00fcnde \u2660", "enabled", "disabled")]


def games_command(app_house: AppHouse, *arguments: str) -> Result:
    address = {"DATABASE_URL": app_house.server.url(Role.OWNER)}
    return CliRunner().invoke(games, arguments, env=address)


def test_the_command_closes_and_opens_for_one_operator(operator: Operator, app_house: AppHouse) -> None:
    def spoken(*arguments: str) -> str:
        result = games_command(app_house, *arguments, "--operator", operator.name)
        assert result.exit_code == 0, result.output
        return result.output

    player = operator.player()
    waiting = player.open().json()["round_id"]
    assert spoken("drain", GAME, "--reason", "Tonight.") == f"Done.\n{GAME} is draining; open rounds: 1\n"
    assert f"{GAME:<24}draining       1 open   Tonight." in spoken("list")
    assert player.decide(waiting, "fold").status_code == 200
    assert f"{GAME:<24}drained        0 open   Tonight." in spoken("list")
    assert f": {GAME}, for {operator.name}: Tonight." in spoken("list")
    assert spoken("drain", GAME, "--reason", "Tonight.").startswith("It was so before.")
    assert spoken("disable", GAME, "--version", "1", "--reason", "At once.").endswith(
        "is disabled; open rounds: 0\n"
    )
    assert code_of(operator.player().open()) == "game_unavailable"
    assert "is draining" in spoken("enable", GAME, "--version", "1", "--reason", "Not so grave.")
    assert "is enabled" in spoken("enable", GAME, "--reason", "Done.")
    assert operator.player().open().status_code == 201


def test_the_command_closes_everything(operator: Operator, app_house: AppHouse) -> None:
    result = games_command(app_house, "disable", "--operator", operator.name, "--reason", "All of it.")
    assert result.output.splitlines()[1:] == [
        f"{OTHER_GAME} is disabled; open rounds: 0",
        f"{GAME} is disabled; open rounds: 0",
    ]


@pytest.mark.parametrize("reason", [[], ["--reason", ""], ["--reason", "a\nb"], ["--reason", "x" * 501]])
def test_the_command_needs_a_reason(app_house: AppHouse, operator: Operator, reason: list[str]) -> None:
    result = games_command(app_house, "drain", "--operator", operator.name, *reason)
    assert result.exit_code == 2
    assert "reason" in result.output
