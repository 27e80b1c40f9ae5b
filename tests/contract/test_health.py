"""Liveness needs no database; readiness says what keeps rounds from being dealt."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests

from casino_brag.config import Config, shipped
from casino_brag.db.embedded import Role
from casino_brag.db.migrations import Migration, read_migrations
from casino_brag.rounds import readiness
from casino_brag.sealing import Sealer
from casino_brag.web.app import create_app
from casino_brag.web.service import EXTENSION
from tests.inprocess import AppHouse
from tests.running import CALL_SECONDS, RunningService

NO_BYTES = (
    "No random numbers can be had: the operating system gave no random bytes."
    " The process has to be started again, once it is mended."
)


def readiness_of(house: AppHouse) -> tuple[int, dict[str, Any]]:
    answer = requests.get(house.base + "/readyz", timeout=CALL_SECONDS)
    assert answer.headers["Content-Type"] == "application/json"
    return answer.status_code, answer.json()


def obstacle(house: AppHouse) -> str:
    """The only obstacle there is."""
    status, body = readiness_of(house)
    assert (status, body["status"]) == (503, "unavailable")
    (only,) = body["obstacles"]
    return str(only)


def test_a_started_service_lives_and_is_ready(service: RunningService) -> None:
    for path in ("/healthz", "/readyz"):
        answer = requests.get(service.base + path, timeout=CALL_SECONDS)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_without_a_database_it_lives_and_is_not_ready(tmp_path: Path) -> None:
    app = create_app(Config(f"postgresql://nobody@/nothing?host={tmp_path}", {"k1": bytes(32)}))
    try:
        client = app.test_client()
        assert client.get("/healthz").get_json() == {"status": "ok"}
        ready = client.get("/readyz")
        assert ready.status_code == 503
        (only,) = ready.get_json()["obstacles"]
        assert str(tmp_path) not in only
        games = client.get("/v1/games")
        assert (games.status_code, games.get_json()["retryable"]) == (503, True)
        assert int(games.headers["Retry-After"]) > 0
    finally:
        app.extensions[EXTENSION].database.close()


def test_no_open_game_is_an_obstacle(app_house: AppHouse) -> None:
    with app_house.connect() as owner:
        owner.execute("UPDATE game SET state = 'disabled', reason = 'for this test'")
        try:
            assert obstacle(app_house) == "No game is enabled."
        finally:
            owner.execute("UPDATE game SET state = 'enabled', reason = NULL")
    assert readiness_of(app_house) == (200, {"status": "ok"})


@pytest.mark.parametrize("privilege", ["INSERT", "UPDATE", "DELETE", "TRUNCATE"])
def test_an_application_that_could_write_past_the_functions_is_not_ready(
    app_house: AppHouse, privilege: str
) -> None:
    with app_house.connect() as owner:
        owner.execute(f"GRANT {privilege} ON transfer TO casino_brag_app")
        try:
            assert "may change records" in obstacle(app_house)
        finally:
            owner.execute(f"REVOKE {privilege} ON transfer FROM casino_brag_app")
    assert readiness_of(app_house)[0] == 200


@pytest.mark.parametrize("privilege", ["UPDATE (balance_minor)", "INSERT (balance_minor)"])
def test_a_privilege_on_a_single_column_is_one_too_many(app_house: AppHouse, privilege: str) -> None:
    with app_house.connect() as owner:
        owner.execute(f"GRANT {privilege} ON account TO casino_brag_app")
        try:
            assert "may change records" in obstacle(app_house)
        finally:
            owner.execute(f"REVOKE {privilege} ON account FROM casino_brag_app")


def test_a_schema_that_is_not_the_programs_is_an_obstacle(
    app_house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = read_migrations(shipped("migrations"))
    later = Migration(len(known) + 1, "later", "", "0" * 64)
    monkeypatch.setattr(readiness, "shipped_migrations", lambda: (*known, later))
    assert later.file_name in obstacle(app_house)
    monkeypatch.setattr(readiness, "shipped_migrations", lambda: known[:-1])
    assert known[-1].file_name in obstacle(app_house)


def test_keys_that_do_not_open_the_newest_open_round_are_an_obstacle(
    app_house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a service could not settle it, and would seal new ones under keys that others do not have."""
    player = app_house.player()
    round_id = player.open(100).json()["round_id"]
    house = app_house.service.house
    monkeypatch.setitem(
        app_house.app.extensions,
        EXTENSION,
        replace(app_house.service, house=replace(house, sealer=Sealer({"k2": bytes(32)}))),
    )
    assert (
        obstacle(app_house)
        == "The seal's keys do not open the deals of open rounds, or the seeds of those to come."
    )
    monkeypatch.undo()
    assert player.decide(round_id, "fold").status_code == 200


def test_a_kernel_that_gives_no_random_bytes_is_an_obstacle(
    app_house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(size: int, flags: int = 0) -> bytes:
        raise OSError(38, "Function not implemented")

    with app_house.restarted():
        assert readiness_of(app_house) == (200, {"status": "ok"})
        with monkeypatch.context() as broken:
            broken.setattr(os, "getrandom", refuse)
            told = obstacle(app_house)
        assert told == NO_BYTES
        assert obstacle(app_house) == told, "the error stays, though the kernel gives bytes again"
    assert readiness_of(app_house)[0] == 200


def test_every_obstacle_is_named(app_house: AppHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getrandom", lambda size, flags=0: b"short")
    grant, revoke = (
        f"{verb} INSERT ON round {to} casino_brag_app" for verb, to in (("GRANT", "TO"), ("REVOKE", "FROM"))
    )
    with app_house.restarted(), changed(app_house, grant, revoke):
        assert len(readiness_of(app_house)[1]["obstacles"]) == 2


@contextmanager
def changed(house: AppHouse, there: str, back: str) -> Iterator[None]:
    with house.connect(Role.OWNER) as owner:
        owner.execute(there)
        try:
            yield
        finally:
            owner.execute(back)
