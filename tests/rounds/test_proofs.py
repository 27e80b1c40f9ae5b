"""Commitments that cannot be dealt from any more: replaced rules, keys and databases, and rounds from before them."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from psycopg.conninfo import make_conninfo

from casino_brag.audit.notes import SigningKey, opened
from casino_brag.audit.sealer import seal
from casino_brag.audit.tree import includes, leaf_hash
from casino_brag.catalogue.paytables import publish
from casino_brag.cli import commands
from casino_brag.config import shipped
from casino_brag.db.binaries import find_binaries
from casino_brag.db.embedded import Role
from casino_brag.rounds.seals import renew_commitments
from casino_brag.sealing import SealBroken
from casino_brag.web.app import create_app
from casino_brag.web.service import EXTENSION
from tests.books import broken_laws
from tests.inprocess import AppHouse, app_house_in
from tests.receipts import problems_of
from tests.running import Player, code_of

GAME = "three-card-brag"
ORIGINAL = (shipped("paytables") / f"{GAME}.toml").read_text()
NEW_KEY = {"k2": secrets.token_bytes(32)}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("proofs")) as house:
        yield house


@contextmanager
def other_rules(house: AppHouse, directory: Path, text: str) -> Iterator[None]:
    """For the length of the block the game has this paytable, or is closed where it will not do."""
    file = directory / f"{GAME}.toml"
    file.write_text(text)
    with house.connect() as owner:
        assert publish(owner, file, actor="system:tests").changed
        try:
            yield
        finally:
            publish(owner, shipped("paytables") / f"{GAME}.toml", actor="system:tests")


@pytest.fixture(scope="module")
def marred(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    """A house from which commitments are taken away."""
    with app_house_in(tmp_path_factory.mktemp("marred")) as house:
        yield house


def laws_hold(house: AppHouse) -> bool:
    with house.connect() as conn:
        return broken_laws(conn) == {}


def numbers(house: AppHouse) -> list[Any]:
    """What there is of commitments, to see whether there is more."""
    with house.connect() as conn:
        return conn.execute("SELECT round_id, ended_at FROM commitment ORDER BY round_id").fetchall()


def is_expired(player: Player, shown: dict[str, Any]) -> bool:
    """Whether a commitment that was shown is revealed, proven and was never dealt from."""
    receipt = player.proof(shown["round_id"]).json()
    assert problems_of(receipt, commitment=shown["value"]) == []
    assert code_of(player.get(f"/v1/rounds/{shown['round_id']}")) == "round_not_found"
    return bool(receipt["state"] == "expired" and receipt["commitment"]["number"] == shown["number"])


# The log


def test_a_receipt_shows_its_place_in_the_log_once_that_is_sealed(house: AppHouse, tmp_path: Path) -> None:
    key = SigningKey.generate("log.example")
    player = house.player()
    round_id = player.played()["round_id"]
    before = player.proof(round_id).json()
    assert before["inclusion"] is None
    while seal(house.connect, [key], at_most=100):
        pass
    receipt = player.proof(round_id).json()
    assert receipt == before | {"inclusion": receipt["inclusion"]}
    assert problems_of(before) == problems_of(receipt) == []
    inclusion = receipt["inclusion"]
    checkpoint, _ = opened(inclusion["checkpoint"], [key.verifier])
    assert inclusion["tree_size"] == checkpoint.size
    assert inclusion["verifier_keys"] == [key.verifier.text()]
    leaf = leaf_hash(receipt["audit"]["entry"].encode())
    proof = [base64.b64decode(beside) for beside in inclusion["proof"]]
    assert includes(leaf, inclusion["leaf_index"], checkpoint.size, proof, checkpoint.root)
    # It is the first checkpoint that has it, and so it stays.
    player.played()
    while seal(house.connect, [key], at_most=100):
        pass
    assert player.proof(round_id).json() == receipt
    # The script that checks the log takes it too, with the signature.
    (tmp_path / "proof.json").write_text(json.dumps(receipt))
    script = Path(__file__).parents[2] / "verification" / "verify_log.py"
    command = [sys.executable, "-I", str(script), "proof", str(tmp_path / "proof.json")]
    done = subprocess.run(
        [*command, "--key", key.verifier.text()], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "round.settled" in done.stdout


# Rules


@pytest.mark.parametrize("by", ["a session", "a deal that names it", "a deal"])
def test_a_commitment_to_rules_that_were_replaced_is_revealed_and_another_made(
    house: AppHouse, tmp_path: Path, by: str
) -> None:
    name = secrets.token_hex(6)
    player = house.player(player=name)
    shown = player.next_commitment()
    old_digest = player.get(f"/v1/games/{GAME}").json()["paytable"]["digest"]
    with other_rules(house, tmp_path, ORIGINAL.replace("prial = 40", "prial = 30")):
        before = numbers(house)
        assert player.next_commitment() is None
        assert player.get("/v1/session").json()["next_commitments"] == {}
        assert code_of(player.proof(shown["round_id"])) == "proof_unavailable"
        assert numbers(house) == before, "looking makes none"
        if by == "a session":
            assert house.player(player=name).next_commitment()["number"] == 2
        if by == "a deal":
            settled = player.played()
        else:
            balance_minor = player.balance_minor()
            assert code_of(player.open(100, commitment=shown["value"])) == "commitment_stale"
            assert player.balance_minor() == balance_minor
            present = player.next_commitment()
            settled = player.played(commitment=present["value"])
            assert settled["commitment"] == present
        assert settled["commitment"]["number"] == 2
        expired, receipt = (player.proof(which["round_id"]).json() for which in (shown, settled))
        assert expired["rules_digest"] == old_digest
        assert (
            receipt["rules_digest"]
            == player.get(f"/v1/games/{GAME}").json()["paytable"]["digest"]
            != old_digest
        )
        assert is_expired(player, shown)
        assert problems_of(expired, receipt) == []
    assert laws_hold(house)


def test_a_game_that_was_closed_goes_on_with_the_commitment_that_waits(
    house: AppHouse, tmp_path: Path
) -> None:
    player = house.player()
    shown = player.next_commitment()
    with other_rules(house, tmp_path, ""):
        assert player.get("/v1/session").json()["next_commitments"] == {}
        assert code_of(player.open(100, commitment=shown["value"])) == "game_unavailable"
    assert player.next_commitment() == shown
    assert player.played(commitment=shown["value"])["commitment"] == shown


@pytest.mark.parametrize("by", ["a session", "a deal"])
def test_a_round_that_was_settled_while_its_game_was_closed_is_followed_later(
    house: AppHouse, tmp_path: Path, by: str
) -> None:
    name = secrets.token_hex(6)
    player = house.player(player=name)
    round_id = player.open(100).json()["round_id"]
    with other_rules(house, tmp_path, ""):
        settled = player.decide(round_id, "fold").json()
        assert settled["next_commitment"] is None
        assert settled["proof"] is not None
    assert player.next_commitment() is None
    if by == "a session":
        assert house.player(player=name).next_commitment()["number"] == 2
    assert player.played()["commitment"]["number"] == 2
    assert laws_hold(house)


def test_a_paytable_that_was_altered_hides_no_session_and_holds_up_no_round_of_other_rules(
    marred: AppHouse, tmp_path: Path
) -> None:
    player, other = marred.player(), marred.operator.player_of_any_game()
    round_id = player.open(100).json()["round_id"]
    with (
        other_rules(marred, tmp_path, ORIGINAL.replace("prial = 40", "prial = 35")),
        marred.connect(Role.SUPERUSER) as superuser,
        marred.restarted(),
    ):
        superuser.execute(
            "ALTER TABLE paytable_version DISABLE TRIGGER USER,"
            " DROP CONSTRAINT paytable_version_digest_is_of_its_document"
        )
        alter = """
            UPDATE paytable_version SET document = replace(document, %s, %s)
            FROM game WHERE version_id = active_version_id AND game.game = %s"""
        superuser.execute(alter, ['"prial":35', '"prial":34', GAME])
        session = other.get("/v1/session")
        opened = marred.operator.open_session()
        settled = player.decide(round_id, "fold")
        superuser.execute(alter, ['"prial":34', '"prial":35', GAME])
    assert (session.status_code, list(session.json().get("next_commitments", []))) == (
        200,
        ["double-play-brag"],
    )
    assert opened.status_code == 201
    assert (settled.status_code, settled.json().get("next_commitment")) == (200, None)


# Keys


def test_a_commitment_under_an_older_key_is_dealt_from_as_long_as_the_key_is_listed(house: AppHouse) -> None:
    player, playing = house.player(), house.player()
    shown, in_play = player.next_commitment(), playing.open(100).json()
    with house.restarted(**NEW_KEY, **house.config.seal_keys):
        assert player.next_commitment() == shown
        assert player.played(commitment=shown["value"])["commitment"] == shown
        # A round that is open is finished under the key that it began with.
        settled = playing.decide(in_play["round_id"], "fold").json()
        assert problems_of(playing.proof(settled["round_id"]).json()) == []
        assert settled["next_commitment"] == playing.next_commitment()
    with house.connect() as conn:
        following = conn.execute(
            "SELECT sealed_seed FROM commitment WHERE round_id = %s", [settled["next_commitment"]["round_id"]]
        ).fetchone()
    assert following is not None
    assert bytes(following[0]).startswith(b"k2\0"), "what is sealed anew is sealed under the first key"
    with house.restarted(**NEW_KEY, **house.config.seal_keys):
        assert playing.played()["commitment"] == settled["next_commitment"]
    with house.connect() as conn, house.restarted(**house.config.seal_keys, **NEW_KEY) as started:
        renew_commitments(conn, started)  # for the tests that follow, which do not have the new key
    assert laws_hold(house)


def test_nothing_is_given_up_that_can_be_revealed_and_what_cannot_only_by_command(house: AppHouse) -> None:
    player = house.player()
    before = player.played()
    shown = before["next_commitment"]
    with house.restarted(**NEW_KEY) as started:
        refused = player.open(100)
        assert code_of(refused) == "internal_error"
        assert "operator has to be told" in refused.json()["detail"]
        assert player.balance_minor() == before["balance_minor"]
        with house.connect() as conn:
            with pytest.raises(SealBroken):
                renew_commitments(conn, started)
            assert player.next_commitment() == shown, "nothing was replaced"
            renew_commitments(conn, started, give_up_lost=True)
        settled = player.played()
        assert settled["commitment"]["number"] == shown["number"] + 1
        assert code_of(player.proof(shown["round_id"])) == "proof_unavailable"
        receipts = [player.proof(round_["round_id"]).json() for round_ in (before, settled)]
    assert receipts[1]["commitment"]["previous"] == shown["value"]
    (problem,) = problems_of(*receipts)
    assert "number 2 is missing" in problem, "the player sees that one was withheld"
    with house.connect() as conn:
        entries = conn.execute(
            "SELECT type, payload ? 'seed', payload -> 'commitment' ->> 'value' FROM audit_entry"
            " WHERE round_id = %s ORDER BY occurred_at, type",
            [shown["round_id"]],
        ).fetchall()
        assert entries == [
            ("commitment.made", False, shown["value"]),
            ("commitment.lost", False, shown["value"]),
        ]
        with house.restarted() as old:
            renew_commitments(conn, old, give_up_lost=True)  # for the tests that follow
    assert laws_hold(house)


def seals(house: AppHouse, keys: dict[str, bytes], *arguments: str) -> str:
    """What `casino-brag seals` prints with these keys."""
    given = ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in keys.items())
    known = {"DATABASE_URL": house.server.url(Role.OWNER), "CASINO_BRAG_SEAL_KEYS": given}
    done = CliRunner(env=known).invoke(commands, ["seals", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_commands_list_what_is_sealed_and_replace_what_waits_under_an_older_key(house: AppHouse) -> None:
    keys = {**NEW_KEY, **house.config.seal_keys}

    def listed() -> Counter[tuple[str, str]]:
        rows = json.loads(seals(house, keys, "status", "--json"))
        return Counter({(row["sealed"], row["key_id"]): row["count"] for row in rows})

    seals(house, keys, "renew")  # what waits from other tests
    before = listed()
    waiting, playing = [house.player() for _ in range(3)], house.player()
    shown = [player.next_commitment() for player in waiting]
    in_play = playing.open(100).json()
    begun = Counter({("commitments", "k1"): 4, ("open rounds", "k1"): 1})
    assert listed() - before == begun
    assert seals(house, keys, "renew") == "Replaced commitments: 3\n"
    assert seals(house, keys, "renew") == "Replaced commitments: 0\n", (
        "each is replaced once, and none that is in play"
    )
    moved = Counter({("commitments", "k1"): 1, ("commitments", "k2"): 3, ("open rounds", "k1"): 1})
    assert listed() - before == moved
    assert seals(house, keys, "status").count("\n") == len(listed())
    with house.restarted(**keys):
        for player, commitment in zip(waiting, shown, strict=True):
            assert is_expired(player, commitment)
            following = player.next_commitment()
            assert following["number"] == 2
            assert player.played(commitment=following["value"])["commitment"] == following
        assert playing.decide(in_play["round_id"], "play").status_code == 200
    assert listed() - before == Counter({("commitments", "k2"): 4}), "nothing of theirs needs the older key"
    assert laws_hold(house)


# Databases


@contextmanager
def restored(house: AppHouse, dump: Path) -> Iterator[tuple[FlaskClient, str]]:
    """The application on a database of its own that a dump was restored into, and its owner's address."""
    bindir = find_binaries().bindir
    name = "restored_" + secrets.token_hex(4)
    with house.connect(Role.SUPERUSER) as superuser:
        superuser.execute(f"CREATE DATABASE {name} OWNER casino_brag_owner")
    app_url, owner_url = (
        make_conninfo(house.server.url(role), dbname=name) for role in (Role.APP, Role.OWNER)
    )
    command = [str(bindir / "pg_restore"), "--exit-on-error", f"--dbname={owner_url}", str(dump)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    app = create_app(replace(house.config, database_url=app_url))
    try:
        yield app.test_client(), owner_url
    finally:
        app.extensions[EXTENSION].database.close()


def asked(client: FlaskClient, player: Player, path: str, body: Any = None) -> Any:
    """What a player's GET, or POST of a body, is answered."""
    headers = player.headers(secrets.token_hex(8))
    return client.open(path, method="GET" if body is None else "POST", json=body, headers=headers).json


def test_no_seed_that_was_revealed_is_dealt_from_again_in_an_older_backup(
    house: AppHouse, tmp_path: Path
) -> None:
    """A player who played on after the backup knows a seed that it has as waiting; the epoch keeps it from use."""
    player = house.player()
    player.played()
    shown = player.next_commitment()
    dump = tmp_path / "casino.dump"
    command = [str(find_binaries().bindir / "pg_dump"), "--format=custom", f"--file={dump}"]
    subprocess.run([*command, house.server.url(Role.OWNER)], check=True, capture_output=True, timeout=60)
    known = player.played("play", client_seed="mine")
    assert known["commitment"] == shown

    bet = {"ante_minor": 100, "client_seed": "mine"}
    with restored(house, dump) as (client, owner_url):
        assert asked(client, player, "/v1/session")["next_commitment"] is None
        assert asked(client, player, f"/v1/rounds/{shown['round_id']}")["code"] == "round_not_found"
        refused = asked(client, player, "/v1/rounds", bet | {"commitment": shown["value"]})
        assert refused["code"] == "commitment_stale"
        opened = asked(client, player, "/v1/rounds", bet)
        assert opened["commitment"]["number"] == shown["number"] + 1
        settled = asked(client, player, f"/v1/rounds/{opened['round_id']}/decision", {"decision": "play"})
        assert settled["proof"]["deal_index"] != known["proof"]["deal_index"]
        expired = asked(client, player, f"/v1/rounds/{shown['round_id']}/proof")
        assert (expired["state"], expired["seed"]) == ("expired", known["proof"]["seed"])
        assert problems_of(expired, commitment=shown["value"]) == []
        with psycopg.connect(owner_url) as conn:
            assert broken_laws(conn) == {}

    # Without the epoch the deal that is known would be dealt again: this is what it is for.
    with restored(house, dump) as (client, owner_url):
        with psycopg.connect(owner_url) as conn:
            conn.execute("ALTER TABLE commitment DISABLE TRIGGER USER")
            conn.execute("UPDATE commitment SET epoch = database_epoch() WHERE ended_at IS NULL")
        opened = asked(client, player, "/v1/rounds", bet)
        settled = asked(client, player, f"/v1/rounds/{opened['round_id']}/decision", {"decision": "play"})
        assert settled["proof"] == known["proof"]


# Rounds from before there were commitments


def round_of_old(house: AppHouse, player: Player) -> str:
    """An open round with no more than it would have if it had been opened before the migration."""
    round_id = str(player.open(100, 50).json()["round_id"])
    with house.connect(Role.SUPERUSER) as superuser:
        superuser.execute("ALTER TABLE commitment DISABLE TRIGGER USER")
        superuser.execute(
            "ALTER TABLE round DISABLE TRIGGER USER, DROP CONSTRAINT IF EXISTS round_commitment_fkey"
        )
        superuser.execute("DELETE FROM commitment WHERE round_id = %s", [round_id])
        superuser.execute("UPDATE round SET client_seeds = NULL WHERE round_id = %s", [round_id])
    return round_id


@pytest.mark.parametrize("session_meanwhile", [False, True])
def test_a_round_from_before_there_were_commitments_is_settled_without_a_proof(
    marred: AppHouse, session_meanwhile: bool
) -> None:
    name = secrets.token_hex(6)
    player = marred.player(player=name)
    round_id = round_of_old(marred, player)
    assert player.get("/v1/session").json()["open_round"]["commitment"] is None
    if session_meanwhile:
        marred.player(player=name)
    assert code_of(player.open(100)) == "round_open"
    assert code_of(player.proof(round_id)) == "proof_unavailable"
    settled = player.decide(round_id, "play").json()
    assert (settled["state"], settled["commitment"], settled["proof"]) == ("settled", None, None)
    assert settled["next_commitment"]["number"] == 1
    read = player.get(f"/v1/rounds/{round_id}").json()
    assert (read["commitment"], read["proof"], read["client_seed"]) == (None, None, None)
    assert player.get("/v1/rounds").json()["items"] == [read]
    assert code_of(player.proof(round_id)) == "proof_unavailable"
    following = player.played(commitment=settled["next_commitment"]["value"])
    assert problems_of(player.proof(following["round_id"]).json()) == []
    with marred.connect() as conn:
        assert all("commit" in law for law in broken_laws(conn)), "the money is as it should be"
