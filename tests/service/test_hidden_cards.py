"""Before the decision nothing that leaves, is logged or is stored shows the dealer's hand."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import pytest
import requests

from casino_brag.db.embedded import Role
from casino_brag.game.cards import PACK
from tests.running import Player, RunningService, code_of

PLAYERS = 60
GAMES = ("three-card-brag", "double-play-brag")
ANY_CARD = re.compile(r"(?<![0-9A-Za-z_-])[2-9TJQKA][shdc](?![0-9A-Za-z_-])")


@dataclass
class Table:
    """A player with one round, and everything that was said about it before its decision."""

    player: Player
    said: list[str] = field(default_factory=list)
    opened: dict[str, Any] = field(default_factory=dict)
    settled: dict[str, Any] = field(default_factory=dict)

    def hear(self, answer: requests.Response) -> requests.Response:
        """Keeps every byte of an answer: the status line, the headers, the body."""
        head = [f"{answer.status_code} {answer.reason}", *map(": ".join, answer.headers.items())]
        self.said.append("\n".join([*head, "", answer.content.decode("latin-1")]))
        return answer

    def listen(self) -> None:
        """Asks for all that a player can ask about its round."""
        for path in (f"/v1/rounds/{self.opened['round_id']}", "/v1/rounds", "/v1/session"):
            assert self.hear(self.player.get(path)).status_code == 200
        assert code_of(self.hear(self.player.open(100))) == "round_open"
        wrong = self.player.post(f"/v1/rounds/{self.opened['round_id']}/decision", {"decision": "peek"})
        assert code_of(self.hear(wrong)) == "invalid"


@dataclass
class Scene:
    """The service, its players, what it had stored and logged before any decision, and what it must keep secret."""

    service: RunningService
    tables: list[Table]
    stored_before: list[str]
    logged_before: list[str]
    tokens: list[str]


def in_clear(value: object) -> str:
    """A column's value as anyone could read it: bytes as hex, and whatever looks like words in them."""
    if isinstance(value, bytes | bytearray | memoryview):
        # Two characters of a card come about by chance in what is sealed; eight in a row are no chance.
        words = re.findall(rb"[\x20-\x7e]{8,}", bytes(value))
        return " ".join([bytes(value).hex(), *map(bytes.decode, words)])
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)


def rows_in_clear(service: RunningService) -> list[str]:
    """Every row of every table, and the statements last sent."""
    with service.connect(Role.SUPERUSER) as conn:
        tables = conn.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert len(tables) >= 10
        sources = [name for (name,) in tables] + ["pg_stat_activity"]
        return [
            " ".join(map(in_clear, row))
            for source in sources
            for row in conn.execute(f"SELECT * FROM {source}".encode())
        ]


def log_lines(service: RunningService) -> list[str]:
    """What the service and the database logged.

    The greeting is left out: it shows the demonstration operator's secret and a token to the person who started
    the service, on that person's own terminal, because there is no other way to come by them.  It is told from
    the log by its form, and `test_only_the_greeting_is_no_log_line` sees to it that nothing else hides there.
    """
    lines = [line for line in service.log().splitlines() if line.startswith("{")]
    return lines + (service.data_dir / "postgres.log").read_text(errors="replace").splitlines()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Rounds that were watched while they waited, and then decided, half of them by a fold."""
    with RunningService.start(tmp_path_factory.mktemp("hidden"), workers=2) as service:
        operator = service.operator()
        players = [operator.player(game=GAMES[number % 2]) for number in range(PLAYERS)]
        tables = [Table(player) for player in players]
        for table in tables:
            table.opened = table.hear(table.player.open(100, 50)).json()
        for table in tables:
            table.listen()
        stored, logged = rows_in_clear(service), log_lines(service)
        for number, table in enumerate(tables):
            decision = "play" if number % 4 < 2 else "fold"
            table.settled = table.player.decide(table.opened["round_id"], decision).json()
        secret = [player.token for player in players] + [operator.secret, *greeted(service)]
        yield Scene(service, tables, stored, logged, secret)


def greeted(service: RunningService) -> list[str]:
    """The secret and the token of the greeting."""
    found = re.findall(r"\bsk_[A-Za-z0-9_-]{43}|(?<=TOKEN=)[A-Za-z0-9_-]{43}", service.log())
    assert len(found) == 2
    return found


def shows(texts: list[str], settled: dict[str, Any], deal_index: int) -> list[str]:
    """The forms of the dealer's hand, or of the deal, that stand in texts about the round."""
    cards: list[str] = settled["dealer_cards"]
    numbers = [str(list(map(str, PACK)).index(card)) for card in cards]
    forms = [*cards, str(deal_index)]
    forms += [between.join(order) for order in permutations(numbers) for between in (",", ", ", " ")]
    found = [
        form
        for form in forms
        if any(re.search(rf"(?<![0-9A-Za-z_-]){form}(?![0-9A-Za-z_-])", text) for text in texts)
    ]
    packed = [f"{deal_index:08x}", deal_index.to_bytes(8, "little").hex()]
    packed += [
        form for order in permutations(cards) for form in ("".join(order), "".join(order).encode().hex())
    ]
    return found + [form for form in packed if any(form in text for text in texts)]


def deal_indexes(service: RunningService) -> dict[str, int]:
    with service.connect() as conn:
        rows = conn.execute(
            "SELECT round_id::text, (payload ->> 'deal_index')::bigint FROM audit_entry WHERE type = 'round.settled'"
        )
        return dict(rows.fetchall())


def test_no_answer_shows_the_dealers_cards_before_the_decision(scene: Scene) -> None:
    indexes = deal_indexes(scene.service)
    assert len(scene.tables) == len(indexes) == PLAYERS
    for table in scene.tables:
        assert len(table.said) == 6
        assert shows(table.said, table.settled, indexes[table.opened["round_id"]]) == []


def test_no_row_shows_the_dealers_cards_before_the_decision(scene: Scene) -> None:
    indexes = deal_indexes(scene.service)
    stored_after = rows_in_clear(scene.service)
    for table in scene.tables:
        round_id = table.opened["round_id"]
        before = [row for row in scene.stored_before if round_id in row]
        assert len(before) >= 5, "its own row, two transfers, an answer and an audit entry"
        assert shows(before, table.settled, indexes[round_id]) == []
        # The search finds what there is to find: afterwards the hand and the deal's index stand there.
        after = [row for row in stored_after if round_id in row]
        assert {*table.settled["dealer_cards"], str(indexes[round_id])} <= {
            *shows(after, table.settled, indexes[round_id])
        }


def test_no_log_line_has_a_card_before_or_after_the_decision(scene: Scene) -> None:
    logged = log_lines(scene.service)
    assert len(logged) > len(scene.logged_before) > PLAYERS
    assert [line for line in logged if ANY_CARD.search(line)] == []
    for round_id, index in deal_indexes(scene.service).items():
        assert not any(str(index) in line or round_id in line for line in logged)


def test_only_the_greeting_is_no_log_line(scene: Scene) -> None:
    other = [line for line in scene.service.log().splitlines() if line and not line.startswith("{")]
    assert other[0] == "casino-brag is ready."
    assert other[-1] == "Ctrl-C stops everything."
    assert len(other) == 17
    assert [line for line in other if ANY_CARD.search(line)] == []


def test_no_token_secret_or_seal_key_is_logged_or_stored(scene: Scene) -> None:
    keys = (scene.service.data_dir / "seal.keys").read_text().strip()
    encoded = [part.partition(":")[2] for part in keys.split(",")]
    texts = rows_in_clear(scene.service) + log_lines(scene.service)
    for secret in (*scene.tokens, *encoded):
        assert len(secret) >= 43
        assert not any(secret in text or secret.encode().hex() in text for text in texts)
    assert (scene.service.data_dir / "seal.keys").stat().st_mode & 0o077 == 0


def test_the_dealers_cards_are_shown_after_the_decision_and_after_a_fold_too(scene: Scene) -> None:
    assert {table.settled["result"] for table in scene.tables} >= {"fold", "win", "lose"}
    for table in scene.tables:
        read = table.player.get(f"/v1/rounds/{table.opened['round_id']}").json()
        assert read["dealer_cards"] == table.settled["dealer_cards"]
        assert len({*read["dealer_cards"], *table.opened["player_cards"]}) == 6


def test_a_sealed_deal_opens_nowhere_else(scene: Scene) -> None:
    """Whoever can write to the database cannot have a round settled by another round's deal."""
    operator = scene.service.operator()
    players = [operator.player(player=secrets.token_hex(4)) for _ in range(2)]
    rounds = [player.open(100).json()["round_id"] for player in players]
    with scene.service.connect(Role.SUPERUSER) as conn, conn.transaction():
        conn.execute("ALTER TABLE round DISABLE TRIGGER ALL")
        conn.execute(
            "UPDATE round SET sealed_deal = (SELECT sealed_deal FROM round WHERE round_id = %s) WHERE round_id = %s",
            rounds,
        )
        conn.execute("ALTER TABLE round ENABLE TRIGGER ALL")
    answer = players[1].decide(rounds[1], "play")
    assert (answer.status_code, code_of(answer)) == (500, "internal_error")
    assert players[1].balance_minor() == 100_000 - 100
    assert players[0].decide(rounds[0], "play").status_code == 200
