"""An answer is repeated however the world has changed since it was first given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.paytables import publish
from casino_brag.config import shipped
from casino_brag.db.clock import clock
from tests.running import Operator, Player, RunningService, code_of


@pytest.fixture(scope="module")
def changing_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose games these tests close and change."""
    with RunningService.start(tmp_path_factory.mktemp("changing"), workers=2) as running:
        yield running


def close_game(conn: psycopg.Connection[Any]) -> None:
    entry = Entry(
        type=EntryType.GAME_DISABLED,
        occurred_at=clock(conn),
        actor="system:test",
        reason="a test",
        after={"game": "three-card-brag", "state": "disabled"},
    )
    conn.execute("SELECT game_disable('three-card-brag', 'a test', %s)", [entry.text()])


def test_an_answer_outlives_its_session_its_paytable_and_its_game(
    changing_service: RunningService, tmp_path: Path
) -> None:
    operator = changing_service.operator()
    session = operator.open_session(player="p").json()
    player = Player(changing_service.base, session["token"])
    settled_open = player.open(100, 50, key="first")
    settled = player.decide(settled_open.json()["round_id"], "play", key="decision")
    waiting = player.open(200, key="second")
    fallen_behind = operator.player(player="q")

    def assert_all_are_repeated() -> None:
        for first, again in (
            (settled_open, player.open(100, 50, key="first")),
            (settled, player.decide(settled_open.json()["round_id"], "play", key="decision")),
            (waiting, player.open(200, key="second")),
        ):
            assert (again.status_code, again.content) == (first.status_code, first.content)
            assert again.headers["Idempotency-Replayed"] == "true"

    changed = tmp_path / "three-card-brag.toml"
    text = (shipped("paytables") / "three-card-brag.toml").read_text()
    changed.write_text(text.replace("{ pair = 1, flush = 4,", "{ pair = 1, flush = 3,"))
    with changing_service.connect() as conn:
        assert publish(conn, changed, actor="system:test").version == 2
        assert_all_are_repeated()
        assert fallen_behind.open(100).json()["paytable"]["version"] == 2

        close_game(conn)
        assert_all_are_repeated()
        assert code_of(operator.player().open(100)) == "game_unavailable"

    assert operator.send("DELETE", f"/v1/operator/sessions/{session['session_id']}").status_code == 204
    assert_all_are_repeated()
    assert code_of(player.open(100)) == "session_expired"
    assert code_of(player.open(100, key="first")) == "idempotency_key_reused"

    # What was decided before everything changed is still decided by the rules it was dealt under.
    last = player.decide(waiting.json()["round_id"], "play")
    assert last.status_code == 200
    assert last.json()["paytable"] == waiting.json()["paytable"]
    assert changing_service.broken_laws() == {}


def test_an_answer_outlives_the_expiry_of_its_session(service: RunningService, operator: Operator) -> None:
    session = operator.open_session().json()
    player = Player(service.base, session["token"])
    first = player.open(100, key="k")
    with service.connect() as conn:
        conn.execute(
            "UPDATE session SET opened_at = opened_at - interval '1 day', expires_at = now() WHERE session_id = %s",
            [session["session_id"]],
        )
    assert code_of(player.open(100)) == "session_expired"
    assert code_of(player.get("/v1/session")) == "session_expired"
    again = player.open(100, key="k")
    assert (again.status_code, again.content) == (201, first.content)
    assert player.get(f"/v1/rounds/{first.json()['round_id']}").json()["state"] == "awaiting_decision"
    assert player.decide(first.json()["round_id"], "fold").status_code == 200
