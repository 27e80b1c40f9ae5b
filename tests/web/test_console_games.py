"""The console's games: how they stand, and closing and opening them with a reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from casino_brag.staff.people import Role
from tests.colleagues import Colleague, colleague
from tests.inprocess import AppHouse, app_house_in
from tests.running import code_of
from tests.web.pages import Page, faults

GAME, OTHER_GAME = "three-card-brag", "double-play-brag"
CHANGE = "/games/change"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("console-games")) as started:
        yield started


@pytest.fixture(scope="module")
def operations(house: AppHouse) -> Colleague:
    return colleague(house, Role.OPERATIONS).signed_in()


@pytest.fixture(autouse=True)
def all_is_open_again(house: AppHouse) -> Iterator[None]:
    yield
    with house.connect() as conn:
        conn.execute("TRUNCATE closure")


def changed(operations: Colleague, action: str, **named: str) -> None:
    typed = {"game": "", "version": "", "operator": "", "reason": "A test.", **named}
    answer = operations.post(CHANGE, action=action, **typed)
    assert answer.status_code == 303, answer.text


@pytest.mark.parametrize("role", Role)
def test_games_are_for_auditors_and_operations_and_changes_for_operations(
    house: AppHouse, role: Role
) -> None:
    who = colleague(house, role).signed_in()
    assert (who.get("/games").status_code == 200) == (role in (Role.AUDITOR, Role.OPERATIONS))
    assert (who.get(CHANGE).status_code == 200) == (role is Role.OPERATIONS)
    assert ("/console/games/change" in who.get("/games").text) == (role is Role.OPERATIONS)


def test_every_game_is_shown_with_its_limits_and_what_bounds_it(operations: Colleague) -> None:
    page = operations.get("/games").text
    assert faults(page) == []
    for told in (
        GAME,
        OTHER_GAME,
        "in steps of",
        "New Jersey",
        "83 %",
        "Nothing is closed",
        "drained by itself",
    ):
        assert told in page, told


def test_a_drained_game_takes_no_rounds_and_is_shown_so_until_it_is_enabled(
    house: AppHouse, operations: Colleague
) -> None:
    player = house.operator.real_player(100_000)
    waiting = player.open().json()["round_id"]
    changed(operations, "drain", game=GAME, reason="A <b>fault</b> in the lobby.")
    page = operations.get("/games").text
    assert faults(page) == []
    assert "badge-draining" in page
    assert "A &lt;b&gt;fault&lt;/b&gt; in the lobby." in page
    player.decide(waiting, "fold")
    assert "badge-drained" in operations.get("/games").text
    assert code_of(player.open()) == "game_unavailable"
    changed(operations, "enable", game=GAME)
    assert "Nothing is closed" in operations.get("/games").text
    assert player.open().status_code == 201


def test_one_operators_rounds_of_one_version_are_disabled_alone(
    house: AppHouse, operations: Colleague
) -> None:
    closed = house.new_operator()
    changed(operations, "disable", game=GAME, version="1", operator=closed.name)
    page = operations.get("/games").text
    assert closed.name in page
    assert f"{GAME}, version 1" in page
    assert code_of(closed.real_player(100_000).open()) == "game_unavailable"
    assert house.operator.real_player(100_000).open().status_code == 201


def test_who_closed_it_and_why_is_on_record(house: AppHouse, operations: Colleague) -> None:
    changed(operations, "disable", reason="Everything stops.")
    with house.connect() as conn:
        row = conn.execute(
            "SELECT actor, reason FROM audit_entry WHERE type = 'game.disabled' ORDER BY occurred_at DESC LIMIT 1"
        ).fetchone()
    assert row == (f"staff:{operations.name}", "Everything stops.")


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"action": "explode"}, "action"),
        ({"action": ""}, "action"),
        ({"game": "no-such-game"}, "game"),
        ({"version": "77"}, "version"),
        ({"version": "one"}, "version"),
        ({"version": "1", "game": ""}, "version"),
        ({"operator": "nobody"}, "operator"),
        ({"operator": "a\x00b"}, "operator"),
        ({"reason": ""}, "reason"),
        ({"reason": "two\nlines"}, "reason"),
        ({"reason": "x" * 501}, "reason"),
    ],
)
def test_what_is_wrong_is_told_at_its_field_and_what_was_typed_is_kept(
    operations: Colleague, typed: dict[str, str], field: str
) -> None:
    meant = {"action": "drain", "game": GAME, "version": "1", "operator": "", "reason": "Because."} | typed
    answer = operations.post(CHANGE, **meant)
    assert answer.status_code == 422
    page = Page(answer.text)
    assert page.faults == []
    assert f"error-{field}" in page.ids
    assert [name for name in page.ids if name.startswith("error-")] == [f"error-{field}"]
    assert page.fields["version"] == meant["version"]
    assert "Nothing is closed" in operations.get("/games").text


@pytest.mark.parametrize("action", ["drain", "enable"])
def test_what_is_so_already_is_said_to_be(operations: Colleague, action: str) -> None:
    if action == "drain":
        changed(operations, action, game=GAME)
    answer = operations.post(CHANGE, action=action, game=GAME, version="", operator="", reason="A test.")
    assert answer.status_code == 409
    assert Page(answer.text).fields["reason"] == "A test."


def test_without_a_recent_code_it_asks_for_one(house: AppHouse) -> None:
    stale = colleague(house, Role.OPERATIONS).signed_in()
    with house.connect() as conn:
        conn.execute(
            "UPDATE staff_session SET proved_at = now() - interval '1 hour' WHERE staff_id = %s",
            [stale.staff_id],
        )
    typed = {"action": "drain", "game": GAME, "version": "", "operator": "", "reason": "Why not."}
    refused = stale.post(CHANGE, **typed)
    assert refused.status_code == 422
    assert 'id="error-code"' in refused.text
    assert stale.post(CHANGE, **typed, code=stale.code()).status_code == 303


def test_a_link_fills_the_form(operations: Colleague) -> None:
    page = operations.get(f"{CHANGE}?action=disable&game={OTHER_GAME}").text
    assert '<option value="disable" selected>' in page
    assert f'<option value="{OTHER_GAME}" selected>' in page
    assert faults(page) == []
