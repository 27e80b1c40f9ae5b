"""Closures: what they cover, which of several holds, and what is put on record of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from casino_brag.catalogue.closures import (
    Closure,
    ClosureState,
    Scope,
    close,
    closures,
    game_states,
    open_again,
    scope_named,
)
from casino_brag.catalogue.operators import add_operator
from casino_brag.db.embedded import Role
from casino_brag.errors import SetUpError
from tests.inprocess import AppHouse

GAME, OTHER_GAME = "three-card-brag", "double-play-brag"
ACTOR = "system:tests"
DRAINING, DISABLED = ClosureState.DRAINING, ClosureState.DISABLED


@pytest.fixture
def conn(app_house: AppHouse) -> Iterator[psycopg.Connection[Any]]:
    """As the application, and nothing of it lasts."""
    with app_house.connect(Role.APP) as conn, conn.transaction(force_rollback=True):
        yield conn


@pytest.fixture
def operator(app_house: AppHouse, conn: psycopg.Connection[Any]) -> str:
    return add_operator(conn, app_house.sealer, "op-" + secrets.token_hex(5), actor=ACTOR).operator


def operator_id(conn: psycopg.Connection[Any], name: str) -> UUID:
    found = scope_named(conn, game=None, version=None, operator=name).operator_id
    assert found is not None
    return found


def version_id(conn: psycopg.Connection[Any], game: str = GAME) -> UUID:
    found = scope_named(conn, game=game, version=1, operator=None).version_id
    assert found is not None
    return found


def state_for(conn: psycopg.Connection[Any], operator: str, game: str = GAME) -> tuple[str, str | None]:
    """How a game stands for an operator, and why; the database, which acts on it, finds the same."""
    own = operator_id(conn, operator)
    (found,) = (state for state in game_states(conn, own) if state.game == game)
    acted_on = conn.execute("SELECT closure_of(%s, %s, %s)", [own, game, version_id(conn, game)]).fetchone()
    assert acted_on == (None if found.state == "enabled" else found.state,)
    return found.state, found.reason


def entries(conn: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    """What this transaction has put on record of games, oldest first."""
    rows = conn.execute(
        "SELECT type, actor, authoriser, operator_id, reason, before, after FROM audit_entry"
        " WHERE type LIKE 'game.%' AND occurred_at = now() ORDER BY entry_id"
    ).fetchall()
    names = ("type", "actor", "authoriser", "operator_id", "reason", "before", "after")
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("game", "version", "for_one"),
    [
        (None, None, False),
        (GAME, None, False),
        (GAME, 1, False),
        (None, None, True),
        (GAME, None, True),
        (GAME, 1, True),
    ],
)
def test_a_scope_covers_what_it_names_and_nothing_else(
    conn: psycopg.Connection[Any],
    app_house: AppHouse,
    operator: str,
    game: str | None,
    version: int | None,
    for_one: bool,
) -> None:
    other = add_operator(conn, app_house.sealer, "op-" + secrets.token_hex(5), actor=ACTOR).operator
    scope = scope_named(conn, game=game, version=version, operator=operator if for_one else None)
    assert close(conn, scope, DRAINING, "Maintenance.", actor=ACTOR)
    closed, open_still = ("draining", "Maintenance."), ("enabled", None)
    assert state_for(conn, operator) == closed
    assert state_for(conn, other) == (open_still if for_one else closed)
    assert state_for(conn, operator, OTHER_GAME) == (open_still if game else closed)
    assert open_again(conn, scope, "Done.", actor=ACTOR)
    assert state_for(conn, operator) == open_still


def test_of_several_closures_the_strictest_holds(conn: psycopg.Connection[Any], operator: str) -> None:
    close(conn, Scope(operator_id(conn, operator), GAME), DRAINING, "Ours.", actor=ACTOR)
    close(conn, Scope(), DISABLED, "Everybody's.", actor=ACTOR)
    assert state_for(conn, operator) == ("disabled", "Everybody's.")
    assert open_again(conn, Scope(), "Repaired.", actor=ACTOR)
    assert state_for(conn, operator) == ("draining", "Ours.")


def test_only_the_closure_of_exactly_the_same_scope_is_taken_back(
    conn: psycopg.Connection[Any], operator: str
) -> None:
    close(conn, Scope(), DISABLED, "Everything.", actor=ACTOR)
    assert not open_again(conn, Scope(game=GAME), "One of them.", actor=ACTOR)
    assert state_for(conn, operator) == ("disabled", "Everything.")


def test_each_change_is_on_record_with_what_was_before_and_nothing_else_is(
    conn: psycopg.Connection[Any], operator: str
) -> None:
    scope = Scope(operator_id(conn, operator), GAME, version_id(conn))
    named = {"game": GAME, "version": 1}
    assert close(conn, scope, DRAINING, "A fault is looked into.", actor=ACTOR, authoriser="person:chief")
    assert not close(conn, scope, DRAINING, "A fault is looked into.", actor=ACTOR)
    assert close(conn, scope, DISABLED, "It is grave.", actor=ACTOR)
    assert open_again(conn, scope, "It is mended.", actor=ACTOR)
    assert not open_again(conn, scope, "It is mended.", actor=ACTOR)
    common = {"actor": ACTOR, "operator_id": scope.operator_id}
    assert entries(conn) == [
        common
        | {
            "type": "game.draining",
            "authoriser": "person:chief",
            "reason": "A fault is looked into.",
            "before": named | {"state": "enabled"},
            "after": named | {"state": "draining"},
        },
        common
        | {
            "type": "game.disabled",
            "authoriser": None,
            "reason": "It is grave.",
            "before": named | {"state": "draining"},
            "after": named | {"state": "disabled"},
        },
        common
        | {
            "type": "game.enabled",
            "authoriser": None,
            "reason": "It is mended.",
            "before": named | {"state": "disabled"},
            "after": named | {"state": "enabled"},
        },
    ]


def test_an_operator_is_told_of_its_own_closures_and_everybodys(
    conn: psycopg.Connection[Any], app_house: AppHouse, operator: str
) -> None:
    other = add_operator(conn, app_house.sealer, "op-" + secrets.token_hex(5), actor=ACTOR).operator
    close(conn, Scope(game=OTHER_GAME), DRAINING, "Everybody's.", actor=ACTOR)
    close(conn, Scope(operator_id(conn, operator)), DISABLED, "Its own.", actor=ACTOR)
    close(conn, Scope(operator_id(conn, other), GAME, version_id(conn)), DISABLED, "Another's.", actor=ACTOR)

    def told(found: list[Closure]) -> list[tuple[Any, ...]]:
        return [(one.operator, one.game, one.version, one.state, one.reason) for one in found]

    shared, own = (
        (None, OTHER_GAME, None, "draining", "Everybody's."),
        (operator, None, None, "disabled", "Its own."),
    )
    assert told(closures(conn, operator_id(conn, operator))) == [shared, own]
    theirs = (other, GAME, 1, "disabled", "Another's.")
    everything = told(closures(conn))
    assert {shared, own, theirs} <= set(everything)
    assert everything[0] == shared  # the widest first


def test_a_games_state_is_that_of_what_closes_it(conn: psycopg.Connection[Any], operator: str) -> None:
    def states(whose: UUID | None) -> dict[str, tuple[str, str | None]]:
        return {found.game: (found.state, found.reason) for found in game_states(conn, whose)}

    own = operator_id(conn, operator)
    assert states(own) == {GAME: ("enabled", None), OTHER_GAME: ("enabled", None)}
    close(conn, Scope(own, GAME), DRAINING, "Quiet hours.", actor=ACTOR)
    assert states(own) == {GAME: ("draining", "Quiet hours."), OTHER_GAME: ("enabled", None)}
    assert states(None) == {GAME: ("enabled", None), OTHER_GAME: ("enabled", None)}


def test_a_game_whose_file_will_not_do_is_disabled_whatever_drains_it(
    app_house: AppHouse,
) -> None:
    with app_house.connect() as conn, conn.transaction(force_rollback=True):
        conn.execute(
            "UPDATE game SET state = 'disabled', reason = 'Its file is gone.' WHERE game = %s", [GAME]
        )
        close(conn, Scope(), DRAINING, "Tonight.", actor=ACTOR)
        found = {state.game: (state.state, state.reason) for state in game_states(conn)}
        assert found[GAME] == ("disabled", "Its file is gone.")
        assert found[OTHER_GAME] == ("draining", "Tonight.")


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"operator": "nobody"}, "operator add nobody"),
        ({"game": "poker"}, "games list"),
        ({"game": GAME, "version": 99}, "no version 99"),
        ({"version": 1}, "name the game as well"),
    ],
)
def test_what_does_not_exist_cannot_be_closed(
    conn: psycopg.Connection[Any], named: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SetUpError, match=sentence):
        scope_named(conn, **{"game": None, "version": None, "operator": None} | named)
