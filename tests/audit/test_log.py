"""The log in the database: what was written, whole, once, and not to be changed."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import rfc8785
from psycopg import errors as pg
from psycopg.rows import dict_row

from casino_brag.audit import Entry, EntryType
from casino_brag.audit.notes import SigningKey
from casino_brag.audit.sealer import seal
from casino_brag.catalogue.activations import activate, retire, unschedule
from casino_brag.catalogue.drafts import create_draft, reject_draft, save_draft
from casino_brag.catalogue.operators import (
    InterruptionPolicy,
    rotate_key,
    set_client_seeds,
    set_interruption,
)
from casino_brag.catalogue.paytables import Shelf, publish_directory
from casino_brag.catalogue.simulations import ROUNDS_MIN, cancel_simulation, queue_simulation
from casino_brag.catalogue.webhooks import LIFE, deliver, remove_endpoint, rotate_secret, set_endpoint
from casino_brag.cli.simulating import play_queue
from casino_brag.config import shipped
from casino_brag.db.clock import clock
from casino_brag.db.embedded import Role
from casino_brag.errors import ServiceError
from casino_brag.game.settlement import settle
from casino_brag.replay.progress import Plan, Progress
from casino_brag.replay.replaying import beside, record, replayed
from casino_brag.rng import State, generator
from casino_brag.rounds import integrity, settling, upkeep
from casino_brag.rounds.paying import attend
from casino_brag.rounds.proposed import void_proposed
from casino_brag.rounds.seals import renew_commitments
from casino_brag.staff.access import give_code, give_password, prove, sign_out, signed_in
from casino_brag.staff.credentials import change_password, renew_recovery_codes
from casino_brag.staff.invitations import WRONG_CODES_MAX, invited, join, offer_to, unlock
from casino_brag.staff.people import Role as StaffRole
from casino_brag.staff.people import Said, issue_token, presented, revoke, set_roles
from casino_brag.staff.proposals import Kind, decide, make_link, propose
from casino_brag.staff.provider import Account, link, unlink
from casino_brag.watch import clocks, large
from casino_brag.watch.alerts import Suspension
from casino_brag.watch.cases import CaseState, cases, change_case
from casino_brag.watch.checking import check
from casino_brag.watch.events import record_failure
from casino_brag.watch.large import LargeAmounts, Limit
from tests.books import broken_laws
from tests.catalogue import persons
from tests.catalogue.persons import GAME
from tests.colleagues import PASSWORD, colleague
from tests.colleagues import code_of as totp
from tests.inprocess import AppHouse, app_house_in, deal_next
from tests.model_wallet import ModelWallets, nothing, unanswered, wallet_in
from tests.running import Operator, Player, code_of
from tests.watch.played import add_up

APPEND_ONLY = {
    "audit_entry": "actor",
    "audit_entry_first": "actor",
    "audit_entry_other": "actor",
    "audit_leaf": "leaf_hash",
    "audit_node": "hash",
    "audit_checkpoint": "note",
    "audit_key": "verifier_key",
    "rtp_case_change": "note",
    "rtp_check": "day",
    "transfer": "amount_minor",
    "answer": "body",
    "paytable_version": "document",
    "paytable_par_sheet": "document",
    "paytable_text": "text",
    "paytable_retirement": "reason",
}
"""Tables, and a column of each."""

CHANGES = [
    "UPDATE {0} SET {1} = {1}",
    "UPDATE {0} SET {1} = {1} WHERE false",
    "DELETE FROM {0}",
    "TRUNCATE {0} CASCADE",
]

APPEND = "INSERT INTO audit_entry SELECT * FROM audit_entry_of(%s)"
"""How every function with an effect writes its entry."""

TRICKY = [
    "plain",
    "",
    "'single' and \"double\" quotes",
    "back\\slash \\u0041 \\n",
    "tab\tnew\nline\r",
    '{"a": [1, null]}',
    "Zoë Müller 玩家 игрок لاعب",
    "\U0001f0a1\U0001f409\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "e\u0301 \u00e9",
    "\u202egnp.exe",
    "".join(map(chr, range(1, 0x20))) + "\x7f\x80\x9f",
    "\u2028\u2029\ufeff\ufffd\uffff\U0010ffff",
    "%s %(a)s {0} $1 \x1a",
    "x" * 100_000,
    "'); DROP TABLE audit_entry; --",
]


class Witness:
    """A house in which everything that is recorded has happened."""

    def __init__(self, house: AppHouse, directory: Path) -> None:
        self.house = house
        with pytest.MonkeyPatch.context() as patched:
            self._keys_and_rules_and_numbers(directory, patched)
        self.operator: Operator = house.new_operator(origins=("https://play.example.com",))
        self.began = datetime.now(UTC)
        with house.connect() as conn:
            self.rotated = rotate_key(conn, house.sealer, self.operator.name, actor="system:tests")
            broken = directory / "paytables"
            shutil.copytree(shipped("paytables"), broken)
            (broken / "double-play-brag.toml").write_text("no paytable")
            publish_directory(conn, broken, actor="system:tests")
        self._large_amounts_and_faults()
        name = secrets.token_hex(6)
        assert self.operator.deposit(name, 10_000).status_code == 201
        assert self.operator.withdraw(name, 1_000).status_code == 201
        answer = self.operator.open_session(player=name, mode="real").json()
        self.player = Player(house.base, answer["token"])
        self._wallets_closures_and_webhooks()
        self.settled = self.player.decide(self.player.open(100, 50).json()["round_id"], "play").json()
        self.waiting = self.player.open(100).json()
        ended = f"/v1/operator/sessions/{answer['session_id']}"
        assert self.operator.send("DELETE", ended).status_code == 204
        self._staff()
        self._signing_in()
        self._paytables()
        self._log_keys()
        self._live_play()
        self._replays()
        self._simulations()

    def _wallets_closures_and_webhooks(self) -> None:
        """Whatever befalls money at an operator's wallet, voids, games that are closed, and who is told of it."""
        house, wallet = self.house, ModelWallets(funds_minor=350)
        with wallet_in(house, wallet) as operator, house.connect() as conn:
            set_interruption(conn, operator.name, 24, InterruptionPolicy.FOLD, actor="system:tests")
            set_endpoint(conn, house.sealer, operator.name, "http://127.0.0.1:1/", actor="system:tests")
            rotate_secret(conn, house.sealer, operator.name, actor="system:tests")
            # Nobody has listened for three days.
            conn.execute(
                "INSERT INTO webhook_message (message_id, operator_id, type, body, made_at)"
                " SELECT e.entry_id, o.operator_id, 'rtp.alert', '{}', now() - %s FROM operator AS o, audit_entry AS e"
                " WHERE o.name = %s AND e.type = 'operator.added' LIMIT 1",
                [LIFE, operator.name],
            )
            deliver(house.service.database.connection, house.sealer)
            player = operator.player(mode="real")
            assert code_of(player.open(5_000)) == "insufficient_funds"
            wallet.after = unanswered("debit")
            assert code_of(player.open(100)) == "wallet_unavailable"
            wallet.after = nothing
            attend(house.service.database.connection, house.service.house)
            voided = player.played("fold")["round_id"]
            said = {"reason": "A test.", "approver": "A tester"}
            named = {"Idempotency-Key": "k"}
            path = f"/v1/operator/rounds/{voided}/void"
            assert operator.send("POST", path, said, headers=named).status_code == 200
            attend(house.service.database.connection, house.service.house)
            for change in ("drain", "disable", "enable"):
                path = f"/v1/operator/games/three-card-brag/{change}"
                assert operator.send("POST", path, {"reason": "A test."}).status_code == 200
            remove_endpoint(conn, operator.name, actor="system:tests")

    def _staff(self) -> None:
        """Somebody comes, calls, is given other roles, and leaves; a token is tried that is nobody's."""
        said = Said(actor="system:tests")
        self.auditor = self.house.staff("auditor")
        assert self.auditor.get("/v1/rng/status").status_code == 200
        assert code_of(Player(self.house.base, "cbs_wrong").get("/v1/rng/status")) == "unauthenticated"
        with self.house.connect() as conn:
            assert set_roles(conn, self.auditor.name, [StaffRole.EDITOR], said)
            assert revoke(conn, issue_token(conn, self.auditor.name, "second", said).token_id, said)
            assert revoke(conn, self.auditor.name, said)

    def _paytables(self) -> None:
        """Two versions are drafted, saved and submitted; one is approved, put in force and taken back for good."""
        with self.house.connect() as conn:
            editor, approver, operations = (
                persons.person(conn, role)
                for role in (StaffRole.EDITOR, StaffRole.APPROVER, StaffRole.OPERATIONS)
            )
            refused = persons.submitted(conn, editor)
            save_draft(conn, editor, GAME, create_draft(conn, editor, GAME).number, "unfinished", revision=1)
            reject_draft(conn, approver, GAME, refused.number, reason="A test.")
            version = persons.approved(conn, editor, approver)
            activate(conn, operations, GAME, version, reason="A test.", at=clock(conn) + timedelta(days=1))
            unschedule(conn, operations, GAME, reason="A test.")
            activate(conn, operations, GAME, version, reason="A test.")
            activate(conn, operations, GAME, 1, reason="A test.")
            retire(conn, operations, GAME, version, reason="A test.")

    def _signing_in(self) -> None:
        """Somebody joins, mistypes, is locked out and let in; changes what can be changed; two decide together."""
        connect, sealer, said = (
            self.house.service.database.connection,
            self.house.sealer,
            Said(actor="system:tests"),
        )
        who = colleague(self.house, StaffRole.OPERATIONS)
        other = colleague(self.house, StaffRole.APPROVER)
        with self.house.connect() as conn:
            for address in ("::1", "::2", "::3"):
                with pytest.raises(ServiceError):
                    give_password(connect, who.name, "wrong", address)
            assert unlock(conn, who.name, said)
            secret = give_code(
                conn, sealer, give_password(connect, who.name, PASSWORD, "::4"), who.code(), "::4"
            )
            signed = signed_in(conn, secret)
            assert signed is not None
            prove(conn, sealer, signed, who.code(), "::4")
            change_password(connect, signed, PASSWORD, "another one of mine", "::4")
            renew_recovery_codes(conn, signed)
            link(conn, signed, Account("https://login.example.com", "7"), "::4")
            assert unlink(conn, signed)
            sign_out(conn, signed)
            for wrong_codes in (WRONG_CODES_MAX, 0):
                made = propose(conn, who.person, Kind.STAFF_RESET, who.name, {}, "A test.")
                join_code = decide(
                    conn, other.person, made, True, "", partial(void_proposed, self.house.service.house)
                )
                assert join_code is not None
                token = make_link(conn, who.person, made).token
                invitation = invited(conn, token)
                assert invitation is not None
                offer = offer_to(sealer, invitation)
                given = (connect, sealer, token, PASSWORD, offer.sealed, totp(offer.secret), "::4")
                for _ in range(wrong_codes):
                    with pytest.raises(ServiceError):
                        join(*given)
            join(*given, join_code=join_code)

    def _large_amounts_and_faults(self) -> None:
        """A round that wins much, a fault of a job, and a clock that is set and so differs from this machine's."""
        house, connect = self.house, self.house.service.database.connection
        with pytest.MonkeyPatch.context() as patched:
            deal_next(patched, "3c 3d 3h", "Ac Kd 9h")
            house.operator.real_player(1_000).played("play", ante_minor=100)
            with house.connect() as conn:
                conn.execute("SELECT audit_order(1000000)")
            while large.attend(connect, LargeAmounts({"GBP": Limit(200, 200)})):
                pass
            assert record_failure(connect, "tests", RuntimeError())
            assert clocks.attend(connect) == 0
            patched.setattr(clocks, "APART_MAX", timedelta(0))
            assert clocks.attend(connect) == 2

    def _replays(self) -> None:
        """What was played is replayed, of which cards that were put in place of a deal do not follow; then nothing."""
        url = self.house.server.url(Role.APP)
        with self.house.connect() as conn:
            for since in (self.began, clock(conn)):
                progress = Progress(Plan.of(url, since, None))
                for number, tally in replayed(url, progress.plan, progress.remaining(), workers=1):
                    progress.add(number, tally)
                record(conn, progress.report(beside(url, progress.plan)), actor="system:tests")

    def _simulations(self) -> None:
        """One is cancelled, and one is played."""
        caller = self.house.staff("editor")
        with self.house.connect() as conn:
            called = presented(conn, caller.token)
            assert called is not None
            cancelled, _ = (
                queue_simulation(conn, called.person, "three-card-brag", rounds=ROUNDS_MIN) for _ in range(2)
            )
            cancel_simulation(conn, called.person, cancelled.simulation_id)
        with self.house.connect(Role.APP) as conn:
            play_queue(conn)

    def _log_keys(self) -> None:
        """A key signs the log for the first time."""
        seal(self.house.service.database.connection, [SigningKey.generate("tests/log")])

    def _live_play(self) -> None:
        """A payout that no cards lead to, what follows from it, and a check."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(
                settling, "settle", lambda rules, *said: settle(replace(rules, ante_pays=Fraction(2)), *said)
            )
            deal_next(patched, "As Kd Jc", "Qs Jd 9h")
            self.operator.real_player(1_000).played("play")
        add_up(self.house, suspension=Suspension.NONE)
        with self.house.connect() as conn:
            case_id = cases(conn)[0].case_id
            change_case(conn, case_id, CaseState.CLOSED, "A test.", actor="system:tests")
            assert check(conn, Shelf(), clock(conn).date(), actor="system:tests")

    def _keys_and_rules_and_numbers(self, directory: Path, patched: pytest.MonkeyPatch) -> None:
        """Whatever befalls commitments, the random number module and the program's files."""
        house, operator = self.house, self.house.new_operator()
        with house.connect() as conn:
            assert set_client_seeds(conn, operator.name, False, actor="system:tests")
        first, second = (operator.player() for _ in range(2))
        with house.connect() as conn, house.restarted(k2=bytes(32), **house.config.seal_keys) as started:
            assert renew_commitments(conn, started) == 2
        assert first.get("/v1/session").status_code == second.get("/v1/session").status_code == 200
        with house.connect() as conn, house.restarted(k3=bytes(32)) as started:
            assert renew_commitments(conn, started, give_up_lost=True) == 2
        with house.connect() as conn, house.restarted() as started:
            renew_commitments(conn, started, give_up_lost=True)
        # A day later.
        with house.restarted() as started:
            third = house.player()
            patched.setattr(upkeep, "INTEGRITY_SECONDS", 0)
            patched.setattr(generator, "INTEGRITY_SECONDS", 0)
            assert third.played()["state"] == "settled"
            patched.undo()
            # A process that was forked, without the hook that Python calls.
            started.generator._instance.pid -= 1
            for _ in range(2):  # the next deal puts on record what the one before brought about
                assert third.played()["state"] == "settled"
            assert started.generator.state is State.READY
        with house.restarted():
            patched.setattr(integrity, "MANIFEST", directory / "no such file")
            assert code_of(third.open(100)) == "rng_unavailable"
            patched.undo()


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    directory = tmp_path_factory.mktemp("witness")
    with app_house_in(directory) as house:
        yield Witness(house, directory)


def entries(house: AppHouse) -> list[dict[str, Any]]:
    with house.connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute("SELECT * FROM audit_entry ORDER BY entry_id").fetchall()


def test_every_type_of_entry_is_written_by_something(witness: Witness) -> None:
    assert {row["type"] for row in entries(witness.house)} == set(EntryType)


def test_a_commitment_is_recorded_when_it_is_made_and_when_it_is_over(witness: Witness) -> None:
    told = [row for row in entries(witness.house) if str(row["round_id"]) == witness.settled["round_id"]]
    made, opened, settled = (row["payload"]["commitment"] for row in told)
    assert made == settled == {name: made[name] for name in ("number", "value", "previous")}
    assert opened == witness.settled["commitment"]
    assert {name: made[name] for name in ("number", "value")}.items() <= opened.items()
    assert told[-1]["payload"]["seed"] == witness.settled["proof"]["seed"]
    assert "seed" not in told[0]["payload"].keys() | told[1]["payload"].keys()
    assert {"rng_instance", "rng_request", "rng_reseeds"} <= told[0]["payload"].keys()


def test_a_commitment_that_was_replaced_is_revealed_unless_its_key_is_lost(witness: Witness) -> None:
    by_type = {row["type"]: row for row in entries(witness.house)}
    expired, lost = by_type[EntryType.COMMITMENT_EXPIRED], by_type[EntryType.COMMITMENT_LOST]
    assert len(bytes.fromhex(expired["payload"]["seed"])) == 48
    assert "seed" not in lost["payload"]
    assert "key" in expired["reason"]
    assert "key" in lost["reason"]


def test_every_entry_is_canonical_and_its_bytes_are_what_is_hashed(witness: Witness) -> None:
    for row in entries(witness.house):
        assert rfc8785.dumps(json.loads(row["bytes"])) == row["bytes"]
        assert hashlib.sha256(b"\0" + row["bytes"]).digest() == row["leaf_hash"]


def test_every_column_follows_from_the_bytes(witness: Witness) -> None:
    for row in entries(witness.house):
        told = json.loads(row["bytes"])
        assert str(row["entry_id"]) == told["entry_id"]
        assert row["occurred_at"] == datetime.fromisoformat(told["occurred_at"])
        for name in ("type", "actor", "authoriser", "reason", "before", "after", "payload"):
            assert row[name] == told[name], name
        for name in ("operator_id", "player_id", "session_id", "round_id"):
            assert (None if row[name] is None else str(row[name])) == told["subjects"].get(name)
        assert set(told) == {
            "entry_id",
            "type",
            "occurred_at",
            "actor",
            "authoriser",
            "subjects",
            "reason",
            "before",
            "after",
            "payload",
        }


def test_an_entry_says_who_did_it_and_when(witness: Witness) -> None:
    for row in entries(witness.house):
        assert row["actor"].split(":")[0] in ("system", "operator", "player", "staff")
        assert (
            witness.began - timedelta(minutes=1)
            < row["occurred_at"]
            < datetime.now(UTC) + timedelta(seconds=1)
        )
    actors = {row["type"]: row["actor"] for row in entries(witness.house)}
    assert actors[EntryType.WALLET_DEPOSIT] == f"operator:{witness.operator.name}"
    assert actors[EntryType.ROUND_SETTLED].startswith("player:")


def test_a_round_s_entries_tell_the_round(witness: Witness) -> None:
    told = [row for row in entries(witness.house) if str(row["round_id"]) == witness.settled["round_id"]]
    made, opened, settled = told
    assert made["type"] == EntryType.COMMITMENT_MADE
    assert (opened["type"], settled["type"]) == (EntryType.ROUND_OPENED, EntryType.ROUND_SETTLED)
    round_ = witness.settled
    assert opened["payload"]["player_cards"] == settled["payload"]["player_cards"] == round_["player_cards"]
    assert settled["payload"]["dealer_cards"] == round_["dealer_cards"]
    assert settled["payload"]["wagers"] == round_["wagers"]
    for name in ("decision", "result", "total_staked_minor", "total_payout_minor"):
        assert settled["payload"][name] == round_[name]
    assert (opened["payload"]["ante_minor"], opened["payload"]["pair_bonus_minor"]) == (100, 50)
    for row in told:
        assert row["payload"]["paytable_digest"] == round_["paytable"]["digest"]


def test_no_entry_holds_a_secret_or_a_card_that_is_hidden(witness: Witness) -> None:
    everything = b"\n".join(row["bytes"] for row in entries(witness.house))
    tokens = (witness.player.token, witness.auditor.token)
    for secret in (witness.operator.secret, witness.rotated.secret, *tokens):
        assert secret.encode() not in everything
    waiting = [row for row in entries(witness.house) if str(row["round_id"]) == witness.waiting["round_id"]]
    assert [row["type"] for row in waiting] == [EntryType.COMMITMENT_MADE, EntryType.ROUND_OPENED]
    for row in waiting:
        assert not {"deal_index", "dealer_cards", "seed"} & row["payload"].keys()


@pytest.mark.parametrize("reason", TRICKY, ids=range(len(TRICKY)))
def test_a_reason_is_kept_to_the_letter(app_house: AppHouse, reason: str) -> None:
    with app_house.connect() as conn:
        written = Entry(
            type=EntryType.GAME_DISABLED,
            occurred_at=clock(conn),
            actor="system:tests",
            reason=reason,
            payload={reason[:100]: [reason]},
        )
        conn.execute(APPEND, [written.text()])
        row = conn.execute(
            "SELECT reason, payload, bytes, occurred_at FROM audit_entry WHERE entry_id = %s",
            [written.entry_id],
        ).fetchone()
    assert row == (reason, {reason[:100]: [reason]}, written.text().encode(), written.occurred_at)


@pytest.fixture(params=["owner", "superuser", "superuser as a replica"])
def powerful(witness: Witness, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """Somebody whom no missing privilege stops."""
    role = Role.OWNER if request.param == "owner" else Role.SUPERUSER
    with witness.house.connect(role) as conn:
        if request.param.endswith("replica"):
            conn.execute("SET session_replication_role = replica")
        yield conn


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("table", APPEND_ONLY)
def test_nobody_changes_what_is_written_once(
    witness: Witness, powerful: psycopg.Connection[Any], table: str, change: str
) -> None:
    column = APPEND_ONLY[table]
    before = digest_of(powerful, table)
    with pytest.raises(pg.RestrictViolation, match="is refused"):
        powerful.execute(change.format(table, column))
    assert digest_of(powerful, table) == before
    with witness.house.connect(Role.APP) as application, pytest.raises(pg.InsufficientPrivilege):
        application.execute(change.format(table, column))


def digest_of(conn: psycopg.Connection[Any], table: str) -> Any:
    return conn.execute(
        f"SELECT count(*), md5(string_agg(t::text, '' ORDER BY t::text)) FROM {table} AS t"
    ).fetchone()


ACCEPTED = {
    "round_id": "gen_random_uuid()",
    "session_id": "gen_random_uuid()",
    "operator_id": "gen_random_uuid()",
    "player_id": "gen_random_uuid()",
    "account_id": "gen_random_uuid()",
    "mode": "'demo'",
    "currency": "'EUR'",
    "game": "'double-play-brag'",
    "paytable_version_id": "gen_random_uuid()",
    "rng_digest": "'other'",
    "opened_at": "opened_at + interval '1 second'",
    "ante_minor": "ante_minor + 5",
    "pair_bonus_minor": "5",
    "payout_max_minor": "payout_max_minor + 5",
    "player_cards": "ARRAY['As', 'Ah', 'Ad']",
    "sealed_deal": "'\\x00'",
    "client_seeds": "NOT client_seeds",
    "client_seed": "'another'",
}


def test_the_columns_that_are_accepted_at_the_deal_are_all_that_are_not_settled_later(
    witness: Witness,
) -> None:
    settled_later = {
        "state",
        "decision",
        "play_minor",
        "dealer_cards",
        "result",
        "settlement",
        "total_staked_minor",
        "total_payout_minor",
        "settled_at",
    }
    with witness.house.connect() as conn:
        row = conn.execute("SELECT * FROM round LIMIT 0")
        assert row.description is not None
        assert {column.name for column in row.description} == ACCEPTED.keys() | settled_later


@pytest.mark.parametrize("column", ACCEPTED)
def test_nobody_changes_what_was_accepted_at_the_deal(
    witness: Witness, powerful: psycopg.Connection[Any], column: str
) -> None:
    with pytest.raises(pg.RestrictViolation):
        powerful.execute(
            f"UPDATE round SET {column} = {ACCEPTED[column]} WHERE round_id = %s",
            [witness.waiting["round_id"]],
        )


COMMITTED = {
    "round_id": "gen_random_uuid()",
    "player_id": "gen_random_uuid()",
    "game": "'double-play-brag'",
    "mode": "'demo'",
    "number": "number + 1",
    "previous": "'\\x00'",
    "value": "'\\x00'",
    "paytable_version_id": "gen_random_uuid()",
    "rules_digest": "'other'",
    "rng_digest": "'other'",
    "sealed_seed": "'\\x00'",
    "made_at": "made_at + interval '1 second'",
    "epoch": "'other'",
}


def test_what_is_committed_to_is_all_that_is_not_revealed_later(witness: Witness) -> None:
    with witness.house.connect() as conn:
        row = conn.execute("SELECT * FROM commitment LIMIT 0")
        assert row.description is not None
        assert {column.name for column in row.description} == COMMITTED.keys() | {"seed", "ended_at"}


@pytest.mark.parametrize("column", COMMITTED)
def test_nobody_changes_what_was_committed_to(
    witness: Witness, powerful: psycopg.Connection[Any], column: str
) -> None:
    with pytest.raises(pg.RestrictViolation):
        powerful.execute(
            f"UPDATE commitment SET {column} = {COMMITTED[column]} WHERE round_id = %s",
            [witness.waiting["round_id"]],
        )


@pytest.mark.parametrize(
    "change", ["seed = NULL", "ended_at = NULL, seed = NULL", "seed = sha512('')", "seed = seed"]
)
def test_nobody_changes_what_was_revealed(
    witness: Witness, powerful: psycopg.Connection[Any], change: str
) -> None:
    with pytest.raises(pg.RestrictViolation):
        powerful.execute(f"UPDATE commitment SET {change} WHERE round_id = %s", [witness.settled["round_id"]])


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM commitment", "DELETE FROM commitment WHERE false", "TRUNCATE commitment CASCADE"],
)
def test_nobody_removes_a_commitment(powerful: psycopg.Connection[Any], statement: str) -> None:
    with pytest.raises(pg.RestrictViolation):
        powerful.execute(statement)


@pytest.mark.parametrize(
    "kind", ["round.settled", "commitment.made", "wallet.deposit", "operator.added", "myrng.failed"]
)
def test_events_of_modules_are_recorded_and_no_others(witness: Witness, kind: str) -> None:
    text = Entry(type=EntryType.RNG_FAILED, occurred_at=datetime.now(UTC), actor="system:tests").text()
    with witness.house.connect(Role.APP) as application, pytest.raises(pg.CheckViolation, match="no event"):
        application.execute("SELECT module_events_record(%s)", [[text, text.replace("rng.failed", kind)]])


@pytest.mark.parametrize(
    "change",
    [
        "total_payout_minor = 0",
        "state = 'voided'",
        "state = 'awaiting_decision'",
        "dealer_cards = ARRAY['As', 'Ah', 'Ad']",
        "settled_at = settled_at + interval '1 hour'",
        "result = 'win'",
        "settlement = '{}'",
        "ante_minor = ante_minor",
    ],
)
def test_nobody_changes_a_settled_round(
    witness: Witness, powerful: psycopg.Connection[Any], change: str
) -> None:
    with pytest.raises(pg.RestrictViolation):
        powerful.execute(f"UPDATE round SET {change} WHERE round_id = %s", [witness.settled["round_id"]])


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM round",
        "DELETE FROM round WHERE false",
        "TRUNCATE round CASCADE",
        "TRUNCATE player CASCADE",
        "TRUNCATE operator CASCADE",
        "TRUNCATE session CASCADE",
        "TRUNCATE ledger CASCADE",
    ],
)
def test_nobody_removes_a_round(powerful: psycopg.Connection[Any], statement: str) -> None:
    with pytest.raises(pg.RestrictViolation):
        powerful.execute(statement)


@pytest.mark.parametrize("table", ["player", "operator", "session", "account", "ledger"])
def test_whoever_played_cannot_be_removed(witness: Witness, table: str) -> None:
    with witness.house.connect() as owner, pytest.raises(pg.ForeignKeyViolation):
        owner.execute(f"DELETE FROM {table}")


def test_an_entry_with_another_hash_is_refused(witness: Witness, powerful: psycopg.Connection[Any]) -> None:
    text = Entry(type=EntryType.GAME_DISABLED, occurred_at=datetime.now(UTC), actor="system:tests").text()
    names = "entry_id, type, occurred_at, actor, bytes"
    for leaf_hash in (
        "sha256(bytes)",
        "sha256('\\x01'::bytea || bytes)",
        "'\\x00'::bytea",
        "sha256('\\x00'::bytea)",
    ):
        with pytest.raises(pg.CheckViolation) as refused:
            powerful.execute(
                f"INSERT INTO audit_entry ({names}, leaf_hash) SELECT {names}, {leaf_hash} FROM audit_entry_of(%s)",
                [text],
            )
        assert refused.value.diag.constraint_name == "audit_entry_leaf_hash_is_of_its_bytes"


@pytest.mark.parametrize("kind", ["opened", "Round.opened", "round.opened.again", "round.", ""])
def test_a_type_that_is_no_subject_and_action_is_refused(witness: Witness, kind: str) -> None:
    text = Entry(type=EntryType.GAME_DISABLED, occurred_at=datetime.now(UTC), actor="system:tests").text()
    with witness.house.connect() as owner, pytest.raises(pg.CheckViolation) as refused:
        owner.execute(APPEND, [text.replace("game.disabled", kind)])
    assert refused.value.diag.constraint_name == "audit_entry_type_is_subject_and_action"


@pytest.mark.parametrize("text", ["", "{}", "[]", "no JSON", '{"entry_id": "one"}', "null"])
def test_a_text_that_is_no_entry_is_refused(witness: Witness, text: str) -> None:
    with witness.house.connect() as owner, pytest.raises((pg.DataError, pg.IntegrityError)):
        owner.execute(APPEND, [text])


def test_the_books_are_whole_at_the_end(witness: Witness) -> None:
    with witness.house.connect() as conn:
        assert broken_laws(conn) == {}
