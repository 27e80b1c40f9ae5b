"""Webhooks: what an operator is told, once for each effect, signed, and until it has heard or time is up."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import errors as pg
from psycopg.rows import dict_row

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue import webhooks
from casino_brag.catalogue.webhooks import (
    AT_ONCE_PER_OPERATOR,
    DELAYS_SECONDS,
    LIFE,
    deliver,
    remove_endpoint,
    rotate_secret,
    set_endpoint,
    sign,
)
from casino_brag.cli.webhooks import webhook
from casino_brag.db.clock import clock, rfc3339
from casino_brag.db.embedded import Role
from casino_brag.errors import SetUpError
from casino_brag.sealing import Sealer
from tests.inprocess import AppHouse
from tests.running import Operator

ACTOR = "system:tests"
GAME = "three-card-brag"
Answers = Callable[[int], int]
"""The status to answer the n-th request with, counted from 1."""


@dataclass(frozen=True)
class Heard:
    """A request as an operator's server got it."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def told(self) -> dict[str, Any]:
        return dict(json.loads(self.body))

    def is_signed_with(self, secret: str) -> bool:
        """As a receiver checks it, by the text of the specification."""
        key = base64.b64decode(secret.split("_", 1)[1])
        signed = b".".join((self.id.encode(), self.headers["webhook-timestamp"].encode(), self.body))
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{expected}" in self.headers["webhook-signature"].split(" ")


@dataclass
class Receiver:
    """An operator's server."""

    url: str
    heard: list[Heard] = field(default_factory=list)
    answers: Answers = lambda _: 204


@contextmanager
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.heard.append(Heard({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(got.answers(len(got.heard)))
            self.send_header("Location", got.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        got = Receiver(f"http://127.0.0.1:{server.server_port}/hooks?site=1")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield got
        finally:
            server.shutdown()
            thread.join()


class Told:
    """Operators of a house who are told what happens, and the sending of it."""

    def __init__(self, house: AppHouse, owner: psycopg.Connection[Any]) -> None:
        self.house = house
        self.owner = owner

    def operator(self, url: str | None) -> tuple[Operator, str]:
        """A new operator that is told at this address, and its secret."""
        operator = self.house.new_operator()
        secret = (
            ""
            if url is None
            else set_endpoint(self.owner, self.house.sealer, operator.name, url, actor=ACTOR)
        )
        return operator, secret

    def deliver(self, **limited: int) -> int:
        return deliver(self.house.service.database.connection, self.house.sealer, **limited)

    def messages(self, operator: Operator | None = None) -> list[dict[str, Any]]:
        with self.owner.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(
                "SELECT m.* FROM webhook_message AS m JOIN operator USING (operator_id)"
                " WHERE name = coalesce(%s, name) ORDER BY m.made_at, m.message_id",
                [None if operator is None else operator.name],
            ).fetchall()

    def states(self, operator: Operator) -> list[str]:
        return [row["state"] for row in self.messages(operator)]

    def entries(self, operator: Operator, kind: EntryType) -> list[dict[str, Any]]:
        with self.owner.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(
                "SELECT e.* FROM audit_entry AS e JOIN operator USING (operator_id) WHERE name = %s AND type = %s",
                [operator.name, kind],
            ).fetchall()

    def later(self) -> None:
        """Everything that waits is due, and nobody rests."""
        self.owner.execute("UPDATE webhook_message SET due_at = now() WHERE state = 'pending'")
        self.owner.execute("UPDATE webhook_endpoint SET rests_until = now()")

    def made_before(self, operator: Operator, age: timedelta) -> UUID:
        """A message that was made so long ago."""
        row = self.owner.execute(
            "INSERT INTO webhook_message (message_id, operator_id, type, body, made_at)"
            " SELECT e.entry_id, o.operator_id, 'rtp.alert', '{}', now() - %s FROM operator AS o, audit_entry AS e"
            " WHERE o.name = %s AND NOT EXISTS"
            "  (SELECT FROM webhook_message AS m WHERE (m.message_id, m.operator_id) = (e.entry_id, o.operator_id))"
            " LIMIT 1 RETURNING message_id",
            [age, operator.name],
        ).fetchone()
        assert row is not None
        found: UUID = row[0]
        return found

    def undone(self) -> AbstractContextManager[psycopg.Transaction]:
        """For the length of the block, what the owner does is done; the log tells nothing that did not happen."""
        return self.owner.transaction(force_rollback=True)

    def write(self, kind: EntryType, **known: Any) -> None:
        """Records something, as the functions with an effect do."""
        entry = Entry(type=kind, occurred_at=clock(self.owner), actor=ACTOR, **known)
        self.owner.execute("INSERT INTO audit_entry SELECT * FROM audit_entry_of(%s)", [entry.text()])

    def id_of(self, operator: Operator) -> UUID:
        row = self.owner.execute(
            "SELECT operator_id FROM operator WHERE name = %s", [operator.name]
        ).fetchone()
        assert row is not None
        found: UUID = row[0]
        return found


@pytest.fixture
def told(app_house: AppHouse) -> Iterator[Told]:
    with app_house.connect() as owner:
        try:
            yield Told(app_house, owner)
        finally:
            owner.execute("DELETE FROM webhook_endpoint")
            owner.execute("DELETE FROM webhook_message")


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiver() as got:
        yield got


def test_the_signature_is_that_of_the_specifications_example() -> None:
    assert (
        sign(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1614265330,
            b'{"test": 2432232314}',
        )
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


# What is told


def test_a_settled_round_is_told_once_and_signed(told: Told, server: Receiver) -> None:
    operator, secret = told.operator(server.url)
    name = secrets.token_hex(6)
    assert operator.deposit(name, 10_000).status_code == 201
    settled = operator.player(player=name, mode="real").played("play", ante_minor=100, pair_bonus_minor=50)
    assert told.deliver() == 1
    assert told.deliver() == 0
    (heard,) = server.heard
    assert heard.is_signed_with(secret)
    assert not heard.is_signed_with("whsec_" + base64.b64encode(bytes(32)).decode())
    assert heard.headers["content-type"] == "application/json"
    kept = ("round_id", "game", "currency", "decision", "result", "total_staked_minor", "total_payout_minor")
    assert heard.told == {
        "type": "round.settled",
        "timestamp": settled["settled_at"],
        "data": {key: settled[key] for key in kept}
        | {
            "player": name,
            "mode": "real",
            "state": "settled",
            "net_minor": settled["net_minor"],
            "settled_at": settled["settled_at"],
        },
    }
    (message,) = told.messages(operator)
    assert (message["state"], message["attempts"], message["last_problem"]) == ("delivered", 1, None)


def test_a_secret_is_as_the_specification_has_it(told: Told) -> None:
    _, secret = told.operator("https://casino.example.com/hooks")
    prefix, _, text = secret.partition("_")
    assert prefix == "whsec"
    assert len(base64.b64decode(text, validate=True)) == 32


def test_a_message_bears_the_name_of_the_entry_it_tells_of(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)
    operator.player().played()
    (entry,) = told.entries(operator, EntryType.ROUND_SETTLED)
    assert told.deliver() == 1
    assert server.heard[0].id == str(entry["entry_id"])


def test_a_round_of_a_demonstration_says_so(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)
    operator.player().played()
    told.deliver()
    assert server.heard[0].told["data"]["mode"] == "demo"


def test_no_card_and_no_seed_is_ever_told(told: Told) -> None:
    operator, _ = told.operator("https://casino.example.com/hooks")
    rounds = [operator.player().played("play", pair_bonus_minor=50) for _ in range(5)]
    with told.undone():
        told.write(
            EntryType.ROUND_VOIDED,
            operator_id=told.id_of(operator),
            round_id=UUID(rounds[0]["round_id"]),
            reason="a fault",
            payload={"refund_minor": 0, "compensation_minor": 0, "dealer_cards": rounds[0]["dealer_cards"]},
        )
        bodies = " ".join(row["body"] for row in told.messages(operator))
        assert len(told.messages(operator)) == 6
        for settled in rounds:
            for hidden in (*settled["player_cards"], *settled["dealer_cards"], settled["proof"]["seed"]):
                assert f'"{hidden}"' not in bodies
        assert "card" not in bodies.replace(GAME, "")
        assert "seed" not in bodies


@pytest.mark.parametrize("decision", ["play", "fold"])
def test_a_voided_round_says_what_came_back_and_why(told: Told, decision: str) -> None:
    operator, _ = told.operator("https://casino.example.com/hooks")
    settled = operator.player(player="ann").played(decision, ante_minor=100)
    lost = max(0, -settled["net_minor"])
    with told.undone():
        told.write(
            EntryType.ROUND_VOIDED,
            operator_id=told.id_of(operator),
            round_id=UUID(settled["round_id"]),
            reason="a fault of the table",
            payload={"refund_minor": lost, "compensation_minor": 7},
        )
        last = next(row for row in told.messages(operator) if row["type"] == "round.voided")
        body = json.loads(last["body"])
        assert body["data"] == {
            "round_id": settled["round_id"],
            "game": GAME,
            "player": "ann",
            "mode": "demo",
            "currency": "GBP",
            "state": "voided",
            "decision": decision,
            "result": settled["result"],
            "total_staked_minor": settled["total_staked_minor"],
            "total_payout_minor": settled["total_payout_minor"],
            "refund_minor": lost,
            "compensation_minor": 7,
            "net_minor": max(0, settled["net_minor"]) + 7,
            "reason": "a fault of the table",
            "voided_at": body["timestamp"],
        }


def test_a_round_that_was_voided_before_a_decision_cost_nothing(told: Told) -> None:
    operator, _ = told.operator("https://casino.example.com/hooks")
    opened = operator.player().open(100, 50).json()
    with told.undone():
        told.write(
            EntryType.ROUND_VOIDED,
            operator_id=told.id_of(operator),
            round_id=UUID(opened["round_id"]),
            reason="interrupted",
            payload={"refund_minor": 150, "compensation_minor": 0},
        )
        (message,) = told.messages(operator)
        data = json.loads(message["body"])["data"]
        assert [data[name] for name in ("total_staked_minor", "total_payout_minor", "net_minor")] == [
            150,
            0,
            0,
        ]
        assert data["decision"] is data["result"] is None


@pytest.mark.parametrize(
    "kind", [EntryType.GAME_DISABLED, EntryType.GAME_DRAINING, EntryType.GAME_ENABLED], ids=str
)
def test_a_closure_for_all_is_told_to_all_and_one_for_an_operator_to_that_one(
    told: Told, kind: EntryType
) -> None:
    first, _ = told.operator("https://one.example.com/hooks")
    second, _ = told.operator("https://two.example.com/hooks")
    stranger, _ = told.operator(None)
    scope = {"game": GAME, "state": kind.split(".")[1]}
    with told.undone():
        told.write(kind, reason="maintenance", after=scope)
        told.write(kind, reason="as agreed", after=scope, operator_id=told.id_of(second))
        said = [[json.loads(row["body"])["data"] for row in told.messages(one)] for one in (first, second)]
        for_all, for_one = scope | {"reason": "maintenance"}, scope | {"reason": "as agreed"}
        assert said[0] == [for_all]
        assert sorted(said[1], key=lambda data: str(data["reason"])) == [for_one, for_all]
        assert told.messages(stranger) == []


def test_an_operator_is_told_nothing_of_another_ones_rounds(told: Told, server: Receiver) -> None:
    with receiver() as other:
        first, first_secret = told.operator(server.url)
        second, second_secret = told.operator(other.url)
        one, two = first.player().played()["round_id"], second.player().played()["round_id"]
        assert told.deliver() == 2
        assert [heard.told["data"]["round_id"] for heard in server.heard] == [one]
        assert [heard.told["data"]["round_id"] for heard in other.heard] == [two]
        assert server.heard[0].is_signed_with(first_secret)
        assert not other.heard[0].is_signed_with(first_secret)
        assert other.heard[0].is_signed_with(second_secret)


def test_nothing_is_kept_for_who_is_not_told(told: Told) -> None:
    told.operator("https://casino.example.com/hooks")
    operator, _ = told.operator(None)
    operator.player().played()
    assert told.messages() == []


def test_what_is_undone_is_not_told(told: Told) -> None:
    operator, _ = told.operator("https://casino.example.com/hooks")
    with told.undone():
        told.write(EntryType.GAME_DISABLED, reason="no", after={"game": GAME, "state": "disabled"})
        assert len(told.messages(operator)) == 1
    assert told.messages(operator) == []


def test_only_what_operators_are_promised_is_told(told: Told) -> None:
    operator, _ = told.operator("https://casino.example.com/hooks")
    with told.undone():
        for kind in set(EntryType) - {EntryType.ROUND_SETTLED, EntryType.ROUND_VOIDED}:
            told.write(kind, operator_id=told.id_of(operator), payload={})
        assert {row["type"] for row in told.messages(operator)} == {
            "game.disabled",
            "game.draining",
            "game.enabled",
        } | ({"rtp.alert"} & set(EntryType))


# Once, again, and no more


def test_a_message_is_sent_again_with_the_same_bytes_and_the_same_name(told: Told, server: Receiver) -> None:
    operator, secret = told.operator(server.url)
    server.answers = lambda number: 500 if number < 3 else 200
    operator.player().played()
    for _ in range(3):
        told.later()
        assert told.deliver() == 1
    told.later()
    assert told.deliver() == 0
    assert len({(heard.id, heard.body) for heard in server.heard}) == 1
    assert len(server.heard) == 3
    assert all(heard.is_signed_with(secret) for heard in server.heard)
    (message,) = told.messages(operator)
    assert (message["state"], message["attempts"]) == ("delivered", 3)
    assert message["last_problem"] == "the answer was 500"
    assert message["body"].encode() == server.heard[0].body


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_a_status_of_success_is_all_it_takes(told: Told, server: Receiver, status: int) -> None:
    operator, _ = told.operator(server.url)
    server.answers = lambda _: status
    operator.player().played()
    told.deliver()
    assert told.states(operator) == ["delivered"]


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 429, 500, 503])
def test_any_other_status_is_not_and_no_redirect_is_followed(
    told: Told, server: Receiver, status: int
) -> None:
    operator, _ = told.operator(server.url)
    server.answers = lambda _: status
    operator.player().played()
    told.deliver()
    assert told.states(operator) == ["pending"]
    assert len(server.heard) == 1
    assert told.messages(operator)[0]["last_problem"] == f"the answer was {status}"


def test_the_delay_grows_with_every_failed_attempt(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)
    server.answers = lambda _: 500
    operator.player().played()
    for seconds in (*DELAYS_SECONDS, DELAYS_SECONDS[-1]):
        told.later()
        before = clock(told.owner)
        assert told.deliver() == 1
        (message,) = told.messages(operator)
        assert before <= message["due_at"] - timedelta(seconds=seconds) <= clock(told.owner)
    assert timedelta(days=3) < LIFE < timedelta(days=4)


def test_a_message_waits_for_its_time(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)
    server.answers = lambda _: 500
    operator.player().played()
    assert [told.deliver() for _ in range(3)] == [1, 0, 0]


DELIVERER = """
import sys
from casino_brag.catalogue.webhooks import deliver
from casino_brag.db.pool import Database
from casino_brag.sealing import Sealer
deliver(Database(sys.argv[1]).connection, Sealer({"k1": bytes.fromhex(sys.argv[2])}))
"""


def test_who_is_killed_before_the_answer_is_recorded_leaves_the_message_to_be_sent_again(
    told: Told, server: Receiver
) -> None:
    operator, _ = told.operator(server.url)
    operator.player().played()
    asked = [told.house.server.url(Role.APP), told.house.config.seal_keys["k1"].hex()]
    with subprocess.Popen([sys.executable, "-c", DELIVERER, *asked]) as process:

        def kill(_: int) -> int:
            process.kill()
            process.wait()
            return 200

        server.answers = kill
        assert process.wait(30) == -signal.SIGKILL
    server.answers = lambda _: 200
    assert told.deliver() == 0, "its lease is not over"
    told.later()
    assert told.deliver() == 1
    assert len(server.heard) == 2
    assert len({(heard.id, heard.body) for heard in server.heard}) == 1
    (message,) = told.messages(operator)
    assert (message["state"], message["attempts"]) == ("delivered", 2)


def test_no_connection_is_held_while_an_endpoint_is_waited_for(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)
    operator.player().played()
    held = 0
    while_asked: list[int] = []

    @contextmanager
    def counted() -> Iterator[psycopg.Connection[Any]]:
        nonlocal held
        with told.house.service.database.connection() as conn:
            held += 1
            yield conn
            held -= 1

    def answer(_: int) -> int:
        while_asked.append(held)
        return 200

    server.answers = answer
    assert deliver(counted, told.house.sealer) == 1
    assert while_asked == [0]


def test_of_several_who_deliver_each_message_is_sent_by_one(told: Told, server: Receiver) -> None:
    operators = [told.operator(server.url)[0] for _ in range(4)]
    for operator in operators:
        player = operator.player()
        for _ in range(6):
            player.played()
    with ThreadPoolExecutor(3) as pool:
        while sum(pool.map(lambda _: told.deliver(limit=7), range(3))):
            pass
    ids = [heard.id for heard in server.heard]
    assert len(ids) == len(set(ids)) == 24
    assert {state for operator in operators for state in told.states(operator)} == {"delivered"}


def test_who_delivers_passes_over_what_another_is_taking(told: Told) -> None:
    operator, _ = told.operator("https://casino.example.com/hooks")
    operator.player().played()
    claim = "SELECT FROM webhook_claim(20, 5, 60)"
    with told.house.connect() as other, told.undone():
        assert len(told.owner.execute(claim).fetchall()) == 1
        other.execute("SET lock_timeout = '1s'")
        assert other.execute(claim).fetchall() == []


def test_a_few_of_each_operator_are_sent_at_once_the_oldest_first(told: Told, server: Receiver) -> None:
    first, _ = told.operator(server.url)
    second, _ = told.operator(server.url)
    player = first.player()
    rounds = [player.played()["round_id"] for _ in range(AT_ONCE_PER_OPERATOR + 2)]
    last = second.player().played()["round_id"]
    assert told.deliver(limit=2) == 2
    assert {heard.told["data"]["round_id"] for heard in server.heard} == {rounds[0], last}
    assert told.deliver() == AT_ONCE_PER_OPERATOR
    assert {heard.told["data"]["round_id"] for heard in server.heard} == {last, *rounds[:-1]}


def test_an_endpoint_that_does_not_answer_holds_up_nobody_else(
    told: Told, server: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "ANSWER_SECONDS", 1.5)
    let_go = threading.Event()
    with receiver() as other:
        slow, _ = told.operator(server.url)
        quick, _ = told.operator(other.url)

        def never(_: int) -> int:
            let_go.wait(10)
            return 200

        server.answers = never
        slow.player().played()
        quick.player().played()
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(told.deliver)
            while told.states(quick) != ["delivered"]:
                assert not sending.done()
            assert told.states(slow) == ["pending"]
            assert sending.result() == 2
        slow.player().played()
        quick.player().played()
        told.owner.execute("UPDATE webhook_message SET due_at = now() WHERE state = 'pending'")
        assert told.deliver() == 1, "who did not answer is left alone for a while"
        assert told.states(quick) == ["delivered", "delivered"]
        let_go.set()
        told.later()
        assert told.deliver() == 2
    assert told.states(slow) == ["delivered", "delivered"]
    assert "1.5 s" in told.messages(slow)[0]["last_problem"]


@pytest.mark.parametrize(("status", "rests"), [(429, True), (503, True), (500, False), (404, False)])
def test_an_endpoint_rests_when_it_is_overloaded(
    told: Told, server: Receiver, status: int, rests: bool
) -> None:
    operator, _ = told.operator(server.url)
    player = operator.player()
    server.answers = lambda _: status
    player.played()
    told.deliver()
    player.played()
    assert told.deliver() == (0 if rests else 1)


def test_nobody_listening_is_a_problem_like_another(told: Told) -> None:
    with receiver() as gone:
        pass
    operator, _ = told.operator(gone.url)
    operator.player().played()
    assert told.deliver() == 1
    (message,) = told.messages(operator)
    assert message["state"] == "pending"
    assert "connection" in message["last_problem"]


def test_a_secret_that_cannot_be_opened_is_a_problem_like_another(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)
    operator.player().played()
    stranger = Sealer({"k9": bytes(32)})
    assert deliver(told.house.service.database.connection, stranger) == 1
    assert server.heard == []
    assert "CASINO_BRAG_SEAL_KEYS" in told.messages(operator)[0]["last_problem"]


# The end of it


def test_a_message_is_given_up_when_its_time_is_over_and_with_it_older_ones(
    told: Told, server: Receiver
) -> None:
    operator, _ = told.operator(server.url)
    server.answers = lambda _: 500
    last = told.made_before(operator, LIFE)
    older = told.made_before(operator, LIFE + timedelta(hours=1))
    younger = told.made_before(operator, LIFE - timedelta(hours=1))
    told.owner.execute(
        "UPDATE webhook_message SET due_at = now() + interval '1 hour' WHERE message_id = %s", [older]
    )
    assert told.deliver() == 2
    states = {row["message_id"]: row["state"] for row in told.messages(operator)}
    assert states == {last: "given_up", older: "given_up", younger: "pending"}
    (entry,) = told.entries(operator, EntryType.WEBHOOK_GIVEN_UP)
    made_at = next(row["made_at"] for row in told.messages(operator) if row["message_id"] == last)
    assert entry["reason"] == "the answer was 500"
    assert entry["payload"] == {
        "url": server.url,
        "message_id": str(last),
        "attempts": 1,
        "made_until": rfc3339(made_at),
    }


def test_an_old_message_that_can_be_delivered_is(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)
    told.made_before(operator, LIFE * 2)
    told.deliver()
    assert told.states(operator) == ["delivered"]
    assert told.entries(operator, EntryType.WEBHOOK_GIVEN_UP) == []


def test_nothing_is_kept_longer_than_thirty_days_whatever_became_of_it(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)
    younger = told.made_before(operator, timedelta(days=29))
    told.made_before(operator, timedelta(days=31))
    delivered = told.made_before(operator, timedelta(days=31, hours=1))
    told.owner.execute(
        "UPDATE webhook_message SET state = 'delivered', ended_at = now() WHERE message_id = %s", [delivered]
    )
    told.deliver()
    assert [row["message_id"] for row in told.messages(operator)] == [younger]


def test_an_endpoint_that_says_it_is_gone_is_removed(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)
    server.answers = lambda _: 410
    player = operator.player()
    player.played()
    told.made_before(operator, timedelta(0))
    told.owner.execute("UPDATE webhook_message SET due_at = now() + interval '1 hour' WHERE body = '{}'")
    assert [told.deliver(), told.deliver()] == [1, 0]
    assert told.states(operator) == ["given_up", "given_up"]
    (entry,) = told.entries(operator, EntryType.WEBHOOK_REMOVED)
    assert (entry["reason"], entry["before"], entry["actor"]) == (
        "the answer was 410",
        {"url": server.url},
        "system:webhooks",
    )
    player.played()
    assert len(told.messages(operator)) == 2


def test_an_endpoint_that_was_moved_meanwhile_is_not_removed(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)

    def moved(_: int) -> int:
        with told.house.connect() as conn:
            set_endpoint(conn, told.house.sealer, operator.name, "https://new.example.com/", actor=ACTOR)
        return 410

    server.answers = moved
    operator.player().played()
    told.deliver()
    assert told.states(operator) == ["pending"]
    assert told.entries(operator, EntryType.WEBHOOK_REMOVED) == []


# Endpoints and secrets


def test_a_message_is_signed_with_both_live_secrets(told: Told, server: Receiver) -> None:
    operator, first = told.operator(server.url)
    player = operator.player()
    second, third = (
        rotate_secret(told.owner, told.house.sealer, operator.name, actor=ACTOR) for _ in range(2)
    )
    player.played()
    told.deliver()
    assert [server.heard[0].is_signed_with(secret) for secret in (first, second, third)] == [
        False,
        True,
        True,
    ]
    assert len(server.heard[0].headers["webhook-signature"].split(" ")) == 2
    assert len(told.entries(operator, EntryType.WEBHOOK_SECRET_ROTATED)) == 2
    fourth = set_endpoint(told.owner, told.house.sealer, operator.name, server.url, actor=ACTOR)
    player.played()
    told.deliver()
    signed = [server.heard[1].is_signed_with(secret) for secret in (first, second, third, fourth)]
    assert signed == [False, False, False, True]


def test_a_secret_is_kept_sealed_and_is_in_no_record(told: Told) -> None:
    operator, secret = told.operator("https://casino.example.com/hooks")
    row = told.owner.execute(
        "SELECT p.sealed_secret, (SELECT string_agg(convert_from(bytes, 'UTF8'), ' ') FROM audit_entry)"
        " FROM webhook_endpoint AS p JOIN operator USING (operator_id) WHERE name = %s",
        [operator.name],
    ).fetchone()
    assert row is not None
    assert secret.encode() not in row[0]
    assert secret not in row[1]


def test_an_endpoint_that_is_removed_is_told_nothing_more(told: Told, server: Receiver) -> None:
    operator, _ = told.operator(server.url)
    operator.player().played()
    remove_endpoint(told.owner, operator.name, actor=ACTOR)
    assert told.deliver() == 0
    assert told.states(operator) == ["given_up"]
    (entry,) = told.entries(operator, EntryType.WEBHOOK_REMOVED)
    assert entry["before"] == {"url": server.url}


def test_who_has_no_endpoint_has_none_to_change(told: Told) -> None:
    operator, _ = told.operator(None)
    with pytest.raises(SetUpError, match=f"operator webhook {operator.name} URL"):
        rotate_secret(told.owner, told.house.sealer, operator.name, actor=ACTOR)
    with pytest.raises(SetUpError, match=f"operator webhook {operator.name} URL"):
        remove_endpoint(told.owner, operator.name, actor=ACTOR)
    with pytest.raises(SetUpError, match="operator add nobody"):
        set_endpoint(told.owner, told.house.sealer, "nobody", "https://a.example.com", actor=ACTOR)


@pytest.mark.parametrize(
    "url",
    [
        "https://casino.example.com",
        "https://casino.example.com:8443/hooks?site=1",
        "https://192.0.2.1/",
        "http://localhost:8080/hooks",
        "http://127.0.0.1",
        "http://127.9.9.9/hooks",
        "http://[::1]:8080",
    ],
)
def test_an_encrypted_or_local_url_will_do(told: Told, url: str) -> None:
    operator, _ = told.operator(url)
    assert told.entries(operator, EntryType.WEBHOOK_SET)[0]["after"] == {"url": url}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "no URL of a server"),
        ("casino.example.com", "no URL of a server"),
        ("ftp://casino.example.com", "no URL of a server"),
        ("HTTPS://casino.example.com", "no URL of a server"),
        ("https://", "no URL of a server"),
        ("https:///hooks", "no URL of a server"),
        ("https://a b", "no URL of a server"),
        ("https://caf\u00e9.example.com", "no URL of a server"),
        ("https://a.example.com/\n", "no URL of a server"),
        ("https://" + "a" * 1_001, "no URL of a server"),
        ("https://a.example.com:port/", "is no URL:"),
        ("https://[::1", "is no URL:"),
        ("https://me:secret@a.example.com", "a user or a fragment"),
        ("https://a.example.com/#hooks", "a user or a fragment"),
        ("http://casino.example.com", "not encrypted"),
        ("http://localhost.example.com", "not encrypted"),
        ("http://127.0.0.1.example.com", "not encrypted"),
        ("http://192.168.0.1", "not encrypted"),
        ("http://127.0.0.1@evil.example.com", "a user or a fragment"),
    ],
)
def test_any_other_is_refused_and_says_what_to_write(told: Told, url: str, problem: str) -> None:
    operator = told.house.new_operator()
    with pytest.raises(SetUpError, match=problem) as refused:
        set_endpoint(told.owner, told.house.sealer, operator.name, url, actor=ACTOR)
    assert "https://casino.example.com/hooks" in str(refused.value)


# What the tables refuse


@pytest.mark.parametrize(
    ("change", "law"),
    [
        ("UPDATE webhook_message SET body = '{}'", "its rows are written once"),
        ("UPDATE webhook_message SET made_at = now()", "its rows are written once"),
        (
            "UPDATE webhook_message SET state = 'pending', ended_at = NULL WHERE state = 'delivered'",
            "written once",
        ),
        (
            "UPDATE webhook_message SET state = 'lost', ended_at = now() WHERE state = 'pending'",
            "webhook_message_state_is_known",
        ),
        ("UPDATE webhook_message SET ended_at = now() WHERE state = 'pending'", "ends_when_it_is_over"),
        (
            "UPDATE webhook_message SET last_problem = repeat('x', 501) WHERE state = 'pending'",
            "problem_is_short",
        ),
        ("INSERT INTO webhook_message SELECT * FROM webhook_message", "webhook_message_is_made_once"),
        ("UPDATE webhook_endpoint SET url = 'http://casino.example.com'", "is_encrypted_or_local"),
        ("UPDATE webhook_endpoint SET url = 'http://127.0.0.1.example.com'", "is_encrypted_or_local"),
    ],
)
def test_a_message_is_what_it_was_made_and_ends_once(
    told: Told, server: Receiver, change: str, law: str
) -> None:
    operator, _ = told.operator(server.url)
    player = operator.player()
    player.played()
    told.deliver()
    player.played()
    with pytest.raises(pg.IntegrityError, match=law):
        told.owner.execute(change)


def test_the_application_makes_and_changes_no_message_itself(told: Told) -> None:
    told.operator("https://casino.example.com/hooks")
    with told.house.service.database.connection() as conn:
        for statement in (
            "INSERT INTO webhook_message DEFAULT VALUES",
            "UPDATE webhook_message SET state = 'delivered'",
            "DELETE FROM webhook_message",
            "UPDATE webhook_endpoint SET url = 'https://evil.example.com'",
            "SELECT webhook_messages_make()",
        ):
            with pytest.raises(pg.InsufficientPrivilege):
                conn.execute(statement)


# The command


def test_the_command_sets_rotates_and_removes(
    told: Told, server: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, _ = told.operator(None)
    key = base64.b64encode(next(iter(told.house.config.seal_keys.values()))).decode()
    monkeypatch.setenv("DATABASE_URL", told.owner.info.dsn)
    monkeypatch.setenv("CASINO_BRAG_SEAL_KEYS", f"k1:{key}")

    def run(*arguments: str) -> str:
        return CliRunner().invoke(webhook, [operator.name, *arguments], catch_exceptions=False).output

    first = json.loads(run(server.url, "--json"))["secret"]
    assert "not shown again" in run("--rotate")
    operator.player().played()
    told.deliver()
    assert server.heard[0].is_signed_with(first)
    assert run("--remove") == f"{operator.name} is told nothing any more.\n"
    assert "one of URL, --rotate and --remove" in run()
    assert "one of URL, --rotate and --remove" in run(server.url, "--rotate")
