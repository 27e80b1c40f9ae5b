"""Receipts of rounds that were played: their player can check them, and nobody can pass off others."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
import rfc8785
from psycopg.rows import dict_row

from casino_brag.catalogue.paytables import publish
from casino_brag.config import shipped
from casino_brag.db.embedded import Role
from casino_brag.game.cards import PACK, Card
from casino_brag.rng import rank, seeds
from casino_brag.rounds.round import seal_context, sealed_form
from tests.inprocess import AppHouse, app_house_in
from tests.receipts import Receipt, problems_of
from tests.running import Player, code_of

GAME = "three-card-brag"
ROUNDS_MAX = 100


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("receipts")) as house:
        yield house


@pytest.fixture
def superuser(house: AppHouse) -> Iterator[psycopg.Connection[Any]]:
    """Somebody whom no guard of the records stops."""
    with house.connect(Role.SUPERUSER) as conn:
        conn.execute("ALTER TABLE commitment DROP CONSTRAINT IF EXISTS commitment_reveals_what_was_committed")
        for table in ("round", "commitment", "audit_entry"):
            conn.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield conn


# What a player can check


@pytest.mark.parametrize("client_seed", [None, "player's-own~text\"\\"])
@pytest.mark.parametrize("result", ["win", "lose", "fold"])
def test_the_receipt_of_a_round_holds(house: AppHouse, result: str, client_seed: str | None) -> None:
    player = house.player()
    named = {} if client_seed is None else {"client_seed": client_seed}
    for _ in range(ROUNDS_MAX):
        shown = player.next_commitment()
        settled = player.played("fold" if result == "fold" else "play", **named)
        if settled["result"] == result:
            break
    assert settled["result"] == result
    receipt = player.proof(settled["round_id"]).json()
    assert problems_of(receipt, commitment=shown["value"]) == []
    entry = json.loads(receipt["audit"]["entry"])["payload"]
    for name in ("player_cards", "dealer_cards", "client_seed"):
        assert receipt[name] == settled[name] == entry[name]
    for name in ("decision", "result", "wagers", "total_staked_minor", "total_payout_minor"):
        assert settled[name] == entry[name]


def test_the_receipt_of_an_expired_commitment_holds(house: AppHouse, tmp_path: Path) -> None:
    player = house.player()
    shown = player.next_commitment()
    file = tmp_path / f"{GAME}.toml"
    file.write_text((shipped("paytables") / file.name).read_text().replace("prial = 40", "prial = 30"))
    with house.connect() as owner:
        assert publish(owner, file, actor="system:tests").changed
        player.played()
        publish(owner, shipped("paytables") / file.name, actor="system:tests")
    receipt = player.proof(shown["round_id"]).json()
    assert receipt["state"] == "expired"
    assert problems_of(receipt, commitment=shown["value"]) == []


@pytest.mark.parametrize("decided", [False, True], ids=["open", "settled"])
def test_the_receipt_of_a_voided_round_holds(house: AppHouse, decided: bool) -> None:
    player = house.operator.player(player="regretted")
    shown = player.next_commitment()
    opened = player.open(100, 50, client_seed="mine").json()
    if decided:
        player.decide(opened["round_id"], "fold")
    path, said = (
        f"/v1/operator/rounds/{opened['round_id']}/void",
        {"reason": "A test.", "approver": "A tester"},
    )
    voided = house.operator.send("POST", path, said, headers={"Idempotency-Key": opened["round_id"]}).json()
    receipt = player.proof(opened["round_id"]).json()
    assert receipt["state"] == ("settled" if decided else "voided")
    assert (receipt["player_cards"], receipt["client_seed"]) == (opened["player_cards"], "mine")
    assert (receipt["seed"], receipt["deal_index"]) == (
        voided["proof"]["seed"],
        voided["proof"]["deal_index"],
    )
    assert problems_of(receipt, commitment=shown["value"]) == []


def test_the_receipts_of_a_series_are_a_chain_and_each_is_of_its_own_commitment(house: AppHouse) -> None:
    player = house.player()
    shown, receipts = [], []
    for decision in ("play", "fold", "play", "fold", "play"):
        shown.append(player.next_commitment()["value"])
        receipts.append(player.proof(player.played(decision)["round_id"]).json())
    assert problems_of(*receipts) == []
    assert problems_of(*reversed(receipts)) == []
    (missing,) = problems_of(*receipts[:2], *receipts[3:])
    assert "number 3 is missing" in missing
    for number, receipt in enumerate(receipts):
        assert problems_of(receipt, commitment=shown[number]) == []
        (wrong,) = problems_of(receipt, commitment=shown[number - 1])
        assert "not the one that was noted" in wrong


# Records that were altered after the round


def other_cards(cards: list[str]) -> list[str]:
    return [cards[1], cards[0], cards[2]]


def other_hex(text: str) -> str:
    return text[:-1] + ("0" if text[-1] != "0" else "1")


ALTERED: dict[str, Callable[[Any], Any]] = {
    "player_cards": other_cards,
    "dealer_cards": other_cards,
    "seed": other_hex,
    "client_seed": lambda text: text + "x",
    "client_seeds": lambda _: "off",
    "deal_index": lambda index: index ^ 1,
    "discards": lambda discards: discards + 1,
    "paytable_digest": other_hex,
    "commitment": lambda said: said | {"value": other_hex(said["value"])},
}


def true_receipt(player: Player) -> Receipt:
    """That of a round just played."""
    receipt = player.proof(player.played("play", client_seed="mine")["round_id"]).json()
    assert problems_of(receipt) == []
    return dict(receipt)


@pytest.mark.parametrize("member", ALTERED)
@pytest.mark.parametrize("thoroughly", [False, True])
def test_an_audit_entry_that_was_altered_gives_no_receipt_that_holds(
    house: AppHouse, superuser: psycopg.Connection[Any], member: str, thoroughly: bool
) -> None:
    """Neither where its columns alone were altered, nor where its text and hash were made to agree with them."""
    player = house.player()
    true = true_receipt(player)
    entry = json.loads(true["audit"]["entry"])
    entry["payload"][member] = ALTERED[member](entry["payload"][member])
    text = rfc8785.dumps(entry) if thoroughly else true["audit"]["entry"].encode()
    superuser.execute(
        "UPDATE audit_entry SET payload = %s, bytes = %s, leaf_hash = sha256('\\x00'::bytea || %s)"
        " WHERE round_id = %s AND type = 'round.settled'",
        [json.dumps(entry["payload"]), text, text, true["round_id"]],
    )
    receipt = player.proof(true["round_id"]).json()
    assert receipt != true
    assert problems_of(receipt) != []


@pytest.mark.parametrize(
    "change",
    [
        "round SET player_cards = player_cards[2:3] || player_cards[1]",
        "round SET dealer_cards = dealer_cards[2:3] || dealer_cards[1]",
        "round SET client_seed = NULL",
        "round SET client_seed = NULL, client_seeds = false",
        "commitment SET seed = sha256(seed) || substr(seed, 1, 16)",
        "commitment SET value = sha256(value)",
        "commitment SET number = number + 10, previous = value",
    ],
)
def test_a_row_that_was_altered_after_its_round_does_not_alter_the_receipt(
    house: AppHouse, superuser: psycopg.Connection[Any], change: str
) -> None:
    player = house.player()
    true = true_receipt(player)
    shown = player.get(f"/v1/rounds/{true['round_id']}").json()
    superuser.execute(f"UPDATE {change} WHERE round_id = %s", [true["round_id"]])
    assert player.get(f"/v1/rounds/{true['round_id']}").json() != shown or "client_seeds" in change
    assert player.proof(true["round_id"]).json() == true


# Records that were altered before the decision


@dataclass(frozen=True)
class Insider:
    """Somebody with the database and the seal's key, while a round is open; `row` is what is kept of it."""

    house: AppHouse
    superuser: psycopg.Connection[Any]
    round_id: str

    def change(self, table: str, **columns: Any) -> None:
        for name, value in columns.items():
            self.superuser.execute(
                f"UPDATE {table} SET {name} = %s WHERE round_id = %s",
                [value, self.round_id],
            )

    def row(self) -> dict[str, Any]:
        with self.superuser.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute(
                "SELECT r.*, c.number, c.previous, c.value, c.rules_digest FROM round AS r JOIN commitment AS c"
                " USING (round_id) WHERE round_id = %s",
                [self.round_id],
            ).fetchone()
        assert found is not None
        return found

    def sealed_deal(self, index: int) -> bytes:
        context = seal_context(UUID(self.round_id), self.row()["paytable_version_id"])
        return self.house.sealer.seal(sealed_form(index), context=context)

    def sealed_seed(self, seed: bytes) -> bytes:
        return self.house.sealer.seal(seed, context=f"seed of round {self.round_id}")

    def other_dealers_cards(self) -> bytes:
        """A deal with the same cards for the player, and others for the dealer."""
        player = [Card.parse(text).index for text in self.row()["player_cards"]]
        return self.sealed_deal(rank((*player, *[n for n in range(52) if n not in player][:3])))


BEFORE: dict[str, Callable[[Insider], object]] = {
    "player's cards": lambda i: i.change("round", player_cards=other_cards(i.row()["player_cards"])),
    "dealer's cards": lambda i: i.change("round", sealed_deal=i.other_dealers_cards()),
    "client seed": lambda i: i.change("round", client_seed="yours"),
    "no client seed": lambda i: i.change("round", client_seed=None),
    "seed": lambda i: i.change("commitment", sealed_seed=i.sealed_seed(secrets.token_bytes(48))),
    "rules": lambda i: i.superuser.execute(
        "UPDATE round SET paytable_version_id = v.version_id FROM paytable_version AS v"
        " WHERE v.game <> round.game AND round_id = %s",
        [i.round_id],
    ),
}


@pytest.mark.parametrize("what", BEFORE)
def test_a_round_that_was_altered_while_it_was_open_is_not_settled_and_has_no_receipt(
    house: AppHouse, superuser: psycopg.Connection[Any], what: str
) -> None:
    player = house.player()
    round_id = player.open(100, client_seed="mine").json()["round_id"]
    BEFORE[what](Insider(house, superuser, round_id))
    before = player.balance_minor()
    for decision in ("play", "fold"):
        assert code_of(player.decide(round_id, decision)) == "internal_error"
    assert player.balance_minor() == before
    assert code_of(player.proof(round_id)) == "proof_unavailable"


@pytest.mark.parametrize("column", ["value", "number", "previous"])
def test_a_commitment_that_was_altered_gives_no_receipt_that_holds(
    house: AppHouse, superuser: psycopg.Connection[Any], column: str
) -> None:
    player = house.player()
    shown = player.played()["next_commitment"]
    round_id = player.open(100).json()["round_id"]
    other = {"value": secrets.token_bytes(32), "number": 7, "previous": secrets.token_bytes(32)}[column]
    Insider(house, superuser, round_id).change("commitment", **{column: other})
    player.decide(round_id, "fold")
    receipt = player.proof(round_id).json()
    assert problems_of(receipt) != []
    assert problems_of(receipt, commitment=shown["value"]) != []


def test_the_records_themselves_refuse_a_seed_that_was_not_committed_to(house: AppHouse) -> None:
    player = house.player()
    round_id = player.open(100).json()["round_id"]
    with house.connect(Role.SUPERUSER) as conn:
        conn.execute("ALTER TABLE commitment DISABLE TRIGGER USER, DROP CONSTRAINT IF EXISTS reveals")
        conn.execute(
            "ALTER TABLE commitment ADD CONSTRAINT reveals CHECK"
            " (seed IS NULL OR value = commitment_value_of(round_id, rules_digest, number, previous, seed)) NOT VALID"
        )
        conn.execute("UPDATE commitment SET value = sha256(value) WHERE round_id = %s", [round_id])
        before = player.balance_minor()
        refused = player.decide(round_id, "fold")
        conn.execute("ALTER TABLE commitment DROP CONSTRAINT reveals")
    assert code_of(refused) == "internal_error"
    assert player.balance_minor() == before
    assert code_of(player.proof(round_id)) == "proof_unavailable"


def test_only_the_commitment_that_was_noted_tells_a_round_that_was_exchanged_whole(
    house: AppHouse, superuser: psycopg.Connection[Any]
) -> None:
    """Whoever has database and key can deal anew before the decision, if the player keeps no note."""
    player = house.player()
    shown = player.next_commitment()
    round_id = player.open(100, client_seed="mine").json()["round_id"]
    insider = Insider(house, superuser, round_id)
    row, seed = insider.row(), secrets.token_bytes(48)
    draw = seeds.deal(seed, UUID(round_id), row["rules_digest"], "mine")
    value = seeds.commitment_value(UUID(round_id), row["rules_digest"], row["number"], row["previous"], seed)
    insider.change("commitment", value=value, sealed_seed=insider.sealed_seed(seed))
    insider.change(
        "round",
        player_cards=[str(PACK[number]) for number in draw.cards[:3]],
        sealed_deal=insider.sealed_deal(draw.index),
    )
    assert player.decide(round_id, "play").status_code == 200
    receipt = player.proof(round_id).json()
    assert problems_of(receipt) == []
    (problem,) = problems_of(receipt, commitment=shown["value"])
    assert "not the one that was noted" in problem
