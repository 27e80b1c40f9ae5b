"""What a deal and a decision cost the database: statements, counted on the wire."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from casino_brag.catalogue.operators import signing_operator
from casino_brag.catalogue.sessions import Mode, NewSession, open_session
from casino_brag.db.pool import Database
from casino_brag.web.app import create_app
from casino_brag.web.service import EXTENSION
from tests.inprocess import AppHouse

WARM = 4
"""Rounds after which every statement is prepared and the paytable is in memory."""


@dataclass
class Wire:
    """An application with one database connection, and the wire between the two."""

    database: Database
    client: FlaskClient
    log: Path

    def messages(self, call: Callable[[], TestResponse]) -> tuple[TestResponse, list[str]]:
        """The answer to a call, and what kinds of messages it made the application send to the database."""
        with self.log.open("wb") as file:
            with self.database.connection() as conn:
                conn.pgconn.trace(file.fileno())
            try:
                answer = call()
            finally:
                with self.database.connection() as conn:
                    conn.pgconn.untrace()
        sent = re.findall(r"^(?:\S+ \S+\t)?F\t\d+\t(\w+)", self.log.read_text(errors="replace"), re.MULTILINE)
        return answer, sent

    def statements(self, call: Callable[[], TestResponse]) -> tuple[TestResponse, int]:
        """The answer to a call, and how many times the application waited for the database."""
        answer, sent = self.messages(call)
        assert set(sent) <= {"Parse", "Bind", "Describe", "Execute", "Sync", "Query"}
        return answer, sum(kind in ("Sync", "Query") for kind in sent)


@pytest.fixture(scope="module")
def wire(app_house: AppHouse, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    app = create_app(replace(app_house.config, pool_size=1))
    database: Database = app.extensions[EXTENSION].database
    try:
        yield Wire(database, app.test_client(), tmp_path_factory.mktemp("wire") / "trace")
    finally:
        database.close()


@dataclass
class Caller:
    """A player of this application, without a connection of its own to it."""

    client: FlaskClient
    token: str

    def post(self, path: str, body: dict[str, Any], key: str) -> TestResponse:
        headers = {"Authorization": f"Bearer {self.token}", "Idempotency-Key": key}
        return self.client.post(path, json=body, headers=headers)

    def open(self, key: str) -> TestResponse:
        return self.post("/v1/rounds", {"ante_minor": 100, "pair_bonus_minor": 50}, key)

    def decide(self, round_id: str, key: str, decision: str = "play") -> TestResponse:
        return self.post(f"/v1/rounds/{round_id}/decision", {"decision": decision}, key)


@pytest.fixture
def caller(wire: Wire, app_house: AppHouse) -> Caller:
    player = Caller(wire.client, app_house.player().token)
    for number in range(WARM):
        opened = player.open(f"warm {number}").get_json()
        assert player.decide(opened["round_id"], f"warm too {number}").status_code == 200
    return player


def test_a_deal_takes_two_statements_and_its_replay_one(wire: Wire, caller: Caller) -> None:
    opened, count = wire.statements(lambda: caller.open("deal"))
    assert (opened.status_code, count) == (201, 2)
    replayed, count = wire.statements(lambda: caller.open("deal"))
    assert (replayed.headers["Idempotency-Replayed"], replayed.data, count) == ("true", opened.data, 1)


def test_a_deal_for_which_nothing_was_committed_to_takes_two_statements_more(
    wire: Wire, app_house: AppHouse, caller: Caller
) -> None:
    """One to commit, and one to read again: as it is after a key or rules were replaced."""
    with app_house.connect() as conn:
        operator = signing_operator(conn, app_house.operator.name, app_house.operator.key_id)
        assert operator is not None
        wanted = NewSession(player="uncommitted", currency="GBP", mode=Mode.DEMO, game="three-card-brag")
        newcomer = replace(caller, token=open_session(conn, operator, wanted).token)
    opened, count = wire.statements(lambda: newcomer.open("deal"))
    assert (opened.status_code, count) == (201, 4)
    settled, count = wire.statements(lambda: newcomer.decide(opened.get_json()["round_id"], "decide"))
    assert (settled.status_code, count) == (200, 2)
    again, count = wire.statements(lambda: newcomer.open("another"))
    assert (again.status_code, count) == (201, 2)


def test_a_text_and_a_commitment_of_the_players_cost_nothing_more(wire: Wire, caller: Caller) -> None:
    settled = caller.decide(caller.open("deal").get_json()["round_id"], "decide").get_json()
    named = {
        "ante_minor": 100,
        "client_seed": "mine",
        "commitment": settled["next_commitment"]["value"],
    }
    opened, count = wire.statements(lambda: caller.post("/v1/rounds", named, "another"))
    assert (opened.status_code, count) == (201, 2)


@pytest.mark.parametrize("decision", ["play", "fold"])
def test_a_decision_takes_two_statements_and_its_replay_one(
    wire: Wire, caller: Caller, decision: str
) -> None:
    round_id = caller.open("deal").get_json()["round_id"]
    settled, count = wire.statements(lambda: caller.decide(round_id, "decide", decision))
    assert (settled.status_code, count) == (200, 2)
    replayed, count = wire.statements(lambda: caller.decide(round_id, "decide", decision))
    assert (replayed.headers["Idempotency-Replayed"], replayed.data, count) == ("true", settled.data, 1)


def test_the_same_decision_under_another_key_is_found_by_the_second_statement(
    wire: Wire, caller: Caller
) -> None:
    round_id = caller.open("deal").get_json()["round_id"]
    settled = caller.decide(round_id, "decide")
    again, count = wire.statements(lambda: caller.decide(round_id, "again"))
    assert (again.headers["Idempotency-Replayed"], again.data, count) == ("true", settled.data, 2)


def test_what_is_no_request_costs_nothing_and_who_is_nobody_one_statement(wire: Wire, caller: Caller) -> None:
    invalid, count = wire.statements(lambda: caller.post("/v1/rounds", {"ante_minor": -1}, "key"))
    assert (invalid.status_code, count) == (422, 0)
    nobody = Caller(wire.client, "A" * 43)
    refused, count = wire.statements(lambda: nobody.open("key"))
    assert (refused.status_code, count) == (401, 1)


def test_a_stake_outside_the_limits_never_reaches_the_books(wire: Wire, caller: Caller) -> None:
    refused, count = wire.statements(lambda: caller.post("/v1/rounds", {"ante_minor": 3}, "key"))
    assert (refused.status_code, count) == (422, 1)
