"""The service inside the test process: for tests that look over its shoulder or put something in its place.

It is the real application on a real database, called over HTTP; only gunicorn is not there.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from flask import Flask
from werkzeug.serving import make_server

from casino_brag.catalogue.operators import add_operator
from casino_brag.catalogue.paytables import publish_directory
from casino_brag.config import Config, shipped
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.game.cards import Card
from casino_brag.rng import Draw, rank, seeds
from casino_brag.rounds.house import House
from casino_brag.sealing import Sealer
from casino_brag.web.app import create_app
from casino_brag.web.service import EXTENSION, Service
from tests.postgres import forget, furnished_programs
from tests.running import Operator, Player, new_staff


@dataclass
class AppHouse:
    """An embedded server with the schema and both games on it, and the application that serves it."""

    server: EmbeddedServer
    config: Config
    app: Flask
    base: str
    _operator: Operator | None = field(default=None, repr=False)

    @property
    def sealer(self) -> Sealer:
        return Sealer(self.config.seal_keys)

    @property
    def service(self) -> Service:
        found = self.app.extensions[EXTENSION]
        assert isinstance(found, Service)
        return found

    @contextmanager
    def connect(self, role: Role = Role.OWNER) -> Iterator[psycopg.Connection[Any]]:
        """A connection to the database, outside the application."""
        with psycopg.connect(self.server.url(role), autocommit=True) as conn:
            yield conn

    @contextmanager
    def restarted(self, **seal_keys: bytes) -> Iterator[House]:
        """For the length of the block, the application as a process has it that was just started.

        What breaks the random numbers of this one is forgotten with it.  Its keys are others if any are given.
        """
        before = self.service
        house = House.with_keys(seal_keys or self.config.seal_keys)
        self.app.extensions[EXTENSION] = replace(before, house=house)
        try:
            yield house
        finally:
            self.app.extensions[EXTENSION] = before

    def new_operator(self, **known: Any) -> Operator:
        with self.connect() as conn:
            name = "op-" + secrets.token_hex(4)
            made = add_operator(conn, self.sealer, name, actor="system:tests", **known)
        return Operator(self.base, made.operator, made.key_id, made.secret)

    def staff(self, *roles: str) -> Player:
        """A new person of staff with these roles, who calls with a token as a player does."""
        with self.connect() as conn:
            return new_staff(conn, self.base, *roles)

    @property
    def operator(self) -> Operator:
        """One operator for tests that need no other."""
        if self._operator is None:
            self._operator = self.new_operator()
        return self._operator

    def player(self, **wanted: Any) -> Player:
        return self.operator.player(**wanted)


@contextmanager
def app_house_in(directory: Path) -> Iterator[AppHouse]:
    """A house of its own below a directory; everything it started has ended when the block is left."""
    data_dir = directory / "data"
    try:
        with EmbeddedServer.attach(data_dir, bindir=furnished_programs()) as server, _served(server) as house:
            yield house
    finally:
        forget(data_dir)


@contextmanager
def _served(server: EmbeddedServer) -> Iterator[AppHouse]:
    with psycopg.connect(server.url(Role.OWNER), autocommit=True) as conn:
        publish_directory(conn, shipped("paytables"), actor="system:tests")
    config = Config(
        server.url(Role.APP), {"k1": secrets.token_bytes(32)}, rate_per_second=0, sealing_lag_seconds=0
    )
    app = create_app(config)
    http = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    house = AppHouse(server, config, app, f"http://127.0.0.1:{http.server_port}")
    try:
        yield house
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
        house.service.database.close()


@pytest.fixture(scope="session")
def app_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    """One house for all tests that leave it as they found it."""
    with app_house_in(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture
def conn(app_house: AppHouse) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the shared house's database, as the application has it."""
    with app_house.connect(Role.APP) as conn:
        yield conn


def openapi_document() -> dict[str, Any]:
    """The API's own document, which needs no database."""
    app = create_app(Config(database_url="postgresql://", seal_keys={"k1": bytes(32)}))
    document = app.test_client().get("/openapi.json").get_json()
    assert isinstance(document, dict)
    return document


def deal_next(monkeypatch: pytest.MonkeyPatch, player: str, dealer: str) -> None:
    """Makes this process deal these cards, such as ``"As Kd 2c"``, until the test ends."""
    cards = tuple(Card.parse(text).index for text in f"{player} {dealer}".split())
    monkeypatch.setattr(seeds, "deal", lambda *_: Draw(rank(cards), 0))
