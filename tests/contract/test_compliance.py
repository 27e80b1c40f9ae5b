"""What staff reads and verifies over HTTP, who of staff may, and what anybody may know of the audit log."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from requests.adapters import HTTPAdapter

from casino_brag.audit import Entry, EntryType, part
from casino_brag.audit.notes import SigningKey
from casino_brag.audit.sealer import seal
from casino_brag.db.clock import clock
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.errors import Code
from casino_brag.rounds import integrity
from casino_brag.staff.people import Role, Said, hash_of, issue_token, revoke, set_roles
from casino_brag.watch.accumulating import accumulate
from casino_brag.watch.alerts import Suspension
from casino_brag.watch.status import status
from tests.inprocess import AppHouse, app_house_in
from tests.running import CALL_SECONDS, Player, code_of, together

ENTRIES, INCLUSION, VERIFY = (f"/v1/audit/{name}" for name in ("entries", "proof/inclusion", "verify"))
CHECKPOINTS, LATEST, KEYS, CONSISTENCY = (
    f"/v1/audit/{name}" for name in ("checkpoints", "checkpoints/latest", "keys", "proof/consistency")
)
RNG, RTP, INTEGRITY = "/v1/rng/status", "/v1/rtp", "/v1/integrity/verify"
SAID = Said(actor="system:tests")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    """A house of its own: its log is signed, and wrong tokens come to it."""
    with app_house_in(tmp_path_factory.mktemp("compliance")) as house:
        yield house


@pytest.fixture(scope="module")
def key() -> SigningKey:
    return SigningKey.generate("log.example.com/compliance")


@pytest.fixture(scope="module")
def auditor(house: AppHouse) -> Player:
    return house.staff("auditor")


def sealed(house: AppHouse, key: SigningKey) -> None:
    """Has everything that is committed by now signed."""
    while seal(house.service.database.connection, [key]):
        pass
    with house.connect() as conn:
        waiting = conn.execute(
            "SELECT FROM audit_entry LEFT JOIN audit_leaf USING (entry_id) WHERE leaf_index IS NULL"
        )
        assert waiting.fetchall() == []


def ask(caller: Player, path: str, *, method: str = "get", **query: Any) -> requests.Response:
    """A call as its document has it: with a body if it takes one."""
    return caller.http.request(
        method,
        caller.base + path,
        params=query,
        json={} if path == VERIFY else None,
        headers={"Authorization": f"Bearer {caller.token}"},
        timeout=CALL_SECONDS,
    )


def read(caller: Player, path: str, **query: Any) -> Any:
    answer = ask(caller, path, **query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def public(house: AppHouse, path: str, **query: Any) -> requests.Response:
    return requests.get(house.base + path, params=query, timeout=CALL_SECONDS)


def nothing(house: AppHouse, prefix: str = "note") -> str:
    """Writes an entry that tells of nothing; its id."""
    with house.connect() as conn:
        entry = Entry(type=EntryType.GAME_DISABLED, occurred_at=clock(conn), actor=f"system:{prefix}")
        conn.execute("INSERT INTO audit_entry SELECT * FROM audit_entry_of(%s)", [entry.text()])
    return str(entry.entry_id)


class TestWhoMayCall:
    def test_one_of_several_roles_is_enough(self, house: AppHouse) -> None:
        assert ask(house.staff("editor", "auditor"), RNG).status_code == 200

    def test_a_change_of_roles_counts_at_once(self, house: AppHouse) -> None:
        caller = house.staff("auditor")
        assert ask(caller, RNG).status_code == 200
        with house.connect() as conn:
            set_roles(conn, caller.name, [Role.EDITOR], SAID)
        assert code_of(ask(caller, RNG)) == "forbidden"

    @pytest.mark.parametrize("what", ["revoked", "expired", "retired", "a player's", "nobody's", "odd"])
    def test_a_token_that_is_not_good_is_refused_and_on_record(self, house: AppHouse, what: str) -> None:
        caller = house.staff("auditor")
        with house.connect() as conn:
            if what == "revoked":
                issued = issue_token(conn, caller.name, "x", SAID)
                revoke(conn, issued.token_id, SAID)
                caller.token = issued.token
            elif what == "expired":
                caller.token = "cbs_" + secrets.token_hex(16)
                conn.execute(
                    "INSERT INTO staff_token (token_id, staff_id, token_hash, label, issued_at, expires_at)"
                    " SELECT %s, staff_id, %s, 'x', now() - interval '2 days', now() FROM staff WHERE name = %s",
                    ["t_" + secrets.token_hex(6), hash_of(caller.token), caller.name],
                )
            elif what == "retired":
                revoke(conn, caller.name, SAID)
            else:
                caller.token = {
                    "a player's": house.player().token,
                    "nobody's": "cbs_" + "A" * 43,
                    "odd": "cbs_'; DROP TABLE staff;--\u00e9".encode().decode("latin-1"),
                }[what]
        with from_elsewhere(caller) as source:
            assert code_of(ask(caller, RNG)) == "unauthenticated"
        (entry,) = refusals(house, source)
        known = what in ("revoked", "expired", "retired")
        assert entry["reason"] == (what if known else "unknown")
        assert entry["payload"]["name"] == (caller.name if known else None)
        assert (entry["payload"]["method"], entry["payload"]["path"]) == ("GET", RNG)
        assert "query" not in entry["payload"]
        assert caller.token not in json.dumps(entry)


_HOSTS = count(2)


@contextmanager
def from_elsewhere(caller: Player) -> Iterator[str]:
    """For the length of the block a caller calls from an address of its own, which this is."""
    number = next(_HOSTS)
    source = f"127.9.{number // 250}.{number % 250 + 1}"

    class Elsewhere(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
            super().init_poolmanager(*args, source_address=(source, 0), **kwargs)

    before, caller.http = caller.http, requests.Session()
    caller.http.mount("http://", Elsewhere())
    try:
        yield source
    finally:
        caller.http.close()
        caller.http = before


def refusals(house: AppHouse, source: str) -> list[dict[str, Any]]:
    with house.connect() as conn:
        rows = conn.execute(
            "SELECT convert_from(bytes, 'UTF8') FROM audit_entry"
            " WHERE type = 'staff.refused' AND payload ->> 'address' = %s ORDER BY entry_id",
            [source],
        ).fetchall()
    return [json.loads(text) for (text,) in rows]


class TestShuttingOut:
    def test_three_wrong_tokens_shut_an_address_out_for_a_minute_and_a_good_one_is_let_through(
        self, house: AppHouse
    ) -> None:
        good, wrong = house.staff("auditor"), Player(house.base, "cbs_wrong")
        with from_elsewhere(wrong) as source:
            good.http, before = wrong.http, good.http
            assert ask(good, RNG).status_code == 200
            assert [code_of(ask(wrong, RNG)) for _ in range(3)] == ["unauthenticated"] * 3
            answer = ask(wrong, RNG)
            assert code_of(answer) == "rate_limited"
            assert 0 < int(answer.headers["Retry-After"]) <= 60
            assert ask(good, RNG).status_code == 200
            good.http = before
        with from_elsewhere(wrong):
            assert code_of(ask(wrong, RNG)) == "unauthenticated", "another address is not shut out"
        assert len(refusals(house, source)) == 3

    def test_of_a_wrong_token_s_call_little_is_kept(self, house: AppHouse) -> None:
        wrong = Player(house.base, "cbs_wrong")
        with from_elsewhere(wrong) as source:
            assert code_of(ask(wrong, "/v1/reports/\x00" + "a" * 1000, type="x" * 2000)) == "invalid"
            assert code_of(ask(wrong, "/v1/reports/%00" + "a" * 1000)) == "unauthenticated"
        (entry,) = refusals(house, source)
        path = "/v1/reports/%00" + "a" * 185
        assert entry["payload"] == {
            "name": None,
            "token_id": None,
            "method": "GET",
            "path": path,
            "address": source,
        }

    def test_a_request_without_a_token_is_no_wrong_token(self, house: AppHouse) -> None:
        caller = house.staff("auditor")
        with from_elsewhere(caller) as source:
            for _ in range(5):
                answer = caller.http.get(house.base + RNG, timeout=CALL_SECONDS)
                assert code_of(answer) == "unauthenticated"
            assert ask(caller, RNG).status_code == 200
        assert refusals(house, source) == []

    def test_the_public_face_of_the_log_is_shut_to_nobody(self, house: AppHouse) -> None:
        wrong = Player(house.base, "cbs_wrong")
        with from_elsewhere(wrong):
            for _ in range(4):
                ask(wrong, RNG)
            assert ask(wrong, KEYS).status_code == 200
            assert ask(wrong, "/v1/games").status_code == 200

    def test_of_many_wrong_tokens_at_once_three_are_on_record(self, house: AppHouse) -> None:
        wrong = Player(house.base, "cbs_wrong")
        with from_elsewhere(wrong) as source:
            codes = [code_of(answer) for answer in together([lambda: ask(wrong, RNG)] * 12)]
        assert set(codes) <= {"unauthenticated", "rate_limited"}
        assert len(refusals(house, source)) == 3


class TestEveryCallIsOnRecord:
    def test_with_who_made_it_and_what_was_asked(self, house: AppHouse) -> None:
        caller = house.staff("auditor")
        assert ask(caller, ENTRIES, actor="staff:x y", limit=1).status_code == 200
        (told,) = read(caller, ENTRIES, type="staff.called", actor=f"staff:{caller.name}", limit=200)[
            "items"
        ][1:]
        assert told["payload"] | {"token_id": None} == {
            "token_id": None,
            "method": "GET",
            "path": ENTRIES,
            "query": "actor=staff:x+y&limit=1"
            if ":" in told["payload"]["query"]
            else "actor=staff%3Ax+y&limit=1",
            "address": "127.0.0.1",
            "body": None,
            "granted": True,
        }
        assert caller.token not in json.dumps(told)

    def test_also_when_it_was_refused(self, house: AppHouse, auditor: Player) -> None:
        caller = house.staff("editor")
        assert code_of(ask(caller, INTEGRITY, method="post")) == "forbidden"
        (told,) = read(auditor, ENTRIES, actor=f"staff:{caller.name}")["items"]
        assert (told["payload"]["granted"], told["payload"]["method"]) == (False, "POST")

    def test_and_nothing_is_answered_that_cannot_be_put_on_record(
        self, house: AppHouse, auditor: Player
    ) -> None:
        with house.connect() as owner:
            owner.execute("REVOKE EXECUTE ON FUNCTION staff_called(text) FROM casino_brag_app")
            try:
                answer = ask(auditor, ENTRIES)
            finally:
                owner.execute("GRANT EXECUTE ON FUNCTION staff_called(text) TO casino_brag_app")
        assert (answer.status_code, code_of(answer)) == (500, "internal_error")

    @pytest.mark.parametrize("query", ["?x=%00", "?%ff=%fe", "?a=\u00e9", "?" + "q" * 3000])
    def test_whatever_the_query_is_made_of(self, house: AppHouse, query: str) -> None:
        caller = house.staff("operations")
        headers = {"Authorization": f"Bearer {caller.token}"}
        answer = requests.post(house.base + INTEGRITY + query, headers=headers, timeout=CALL_SECONDS)
        assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def played(house: AppHouse) -> dict[str, Any]:
    """A round, and the ids that its entries have."""
    settled = house.player().played("play")
    with house.connect() as conn:
        row = conn.execute(
            "SELECT operator_id::text, player_id::text, session_id::text FROM round WHERE round_id = %s",
            [settled["round_id"]],
        ).fetchone()
    assert row is not None
    names = ("operator_id", "player_id", "session_id")
    return {"round_id": settled["round_id"], **dict(zip(names, row, strict=True))}


class TestEntries:
    def test_an_entry_is_shown_whole(self, house: AppHouse, auditor: Player, played: dict[str, Any]) -> None:
        settled, opened, made = read(auditor, ENTRIES, round_id=played["round_id"])["items"]
        assert [entry["type"] for entry in (made, opened, settled)] == [
            *("commitment.made", "round.opened", "round.settled")
        ]
        written = base64.b64decode(settled["bytes_b64"])
        said = json.loads(written)
        for name in (
            "entry_id",
            "type",
            "occurred_at",
            "actor",
            "authoriser",
            "reason",
            "before",
            "after",
            "payload",
        ):
            assert settled[name] == said[name]
        assert {name: settled[name] for name in played} == said["subjects"]
        with house.connect() as conn:
            row = conn.execute(
                "SELECT bytes FROM audit_entry WHERE entry_id = %s", [settled["entry_id"]]
            ).fetchone()
        assert row == (written,)

    def test_its_place_in_the_tree_is_shown_once_it_has_one(
        self, house: AppHouse, auditor: Player, key: SigningKey
    ) -> None:
        sealed(house, key)
        written = nothing(house)
        (entry,) = (one for one in read(auditor, ENTRIES, limit=10)["items"] if one["entry_id"] == written)
        assert entry["leaf_index"] is None
        sealed(house, key)
        (entry,) = (one for one in read(auditor, ENTRIES, limit=10)["items"] if one["entry_id"] == written)
        with house.connect() as conn:
            row = conn.execute("SELECT leaf_index FROM audit_leaf WHERE entry_id = %s", [written]).fetchone()
        assert row == (entry["leaf_index"],)

    @pytest.mark.parametrize("subject", ["round_id", "player_id", "operator_id", "session_id"])
    def test_entries_are_found_by_what_they_are_about(
        self, house: AppHouse, auditor: Player, played: dict[str, Any], subject: str
    ) -> None:
        found = read(auditor, ENTRIES, limit=200, **{subject: played[subject]})["items"]
        assert played["round_id"] in {entry["round_id"] for entry in found}
        assert {entry[subject] for entry in found} == {played[subject]}
        with house.connect() as conn:
            row = conn.execute(
                f"SELECT count(*) FROM audit_entry WHERE {subject} = %s", [played[subject]]
            ).fetchone()
        assert row == (len(found),)
        assert read(auditor, ENTRIES, **{subject: str(uuid4())}) == {"items": [], "next_cursor": None}

    def test_and_by_what_happened_when_and_who_did_it(self, house: AppHouse, auditor: Player) -> None:
        who = secrets.token_hex(4)
        first, second, third = (nothing(house, who) for _ in range(3))
        mine = {"actor": f"system:{who}", "type": "game.disabled"}
        found = read(auditor, ENTRIES, **mine)["items"]
        assert [entry["entry_id"] for entry in found] == [third, second, first]
        between = read(
            auditor, ENTRIES, **mine, **{"from": found[1]["occurred_at"], "to": found[0]["occurred_at"]}
        )
        assert [entry["entry_id"] for entry in between["items"]] == [second]
        assert read(auditor, ENTRIES, actor=mine["actor"], type="game.enabled")["items"] == []

    def test_the_newest_come_first_and_fifty_of_them(self, house: AppHouse, auditor: Player) -> None:
        for _ in range(60):
            nothing(house)
        page = read(auditor, ENTRIES)
        assert len(page["items"]) == 50
        assert page["next_cursor"] == page["items"][-1]["entry_id"]
        times = [entry["occurred_at"] for entry in page["items"]]
        assert times == sorted(times, reverse=True)

    def test_pages_miss_and_repeat_nothing_while_entries_are_written(
        self, house: AppHouse, auditor: Player
    ) -> None:
        who = secrets.token_hex(4)
        before = [nothing(house, who) for _ in range(40)]
        over = threading.Event()

        def write() -> None:
            while not over.is_set():
                nothing(house, who)

        writers = [threading.Thread(target=write) for _ in range(3)]
        for writer in writers:
            writer.start()
        try:
            seen: list[str] = []
            query: dict[str, Any] = {"actor": f"system:{who}", "limit": 7}
            while True:
                page = read(auditor, ENTRIES, **query)
                seen += [entry["entry_id"] for entry in page["items"]]
                if page["next_cursor"] is None:
                    break
                query["cursor"] = page["next_cursor"]
        finally:
            over.set()
            for writer in writers:
                writer.join()
        assert len(seen) == len(set(seen))
        assert [entry_id for entry_id in seen if entry_id in before] == before[::-1]

    def test_a_table_has_them_all_with_columns_for_everything(self, house: AppHouse, auditor: Player) -> None:
        who = secrets.token_hex(4)
        written = [nothing(house, who) for _ in range(5)]
        answer = ask(auditor, ENTRIES, actor=f"system:{who}", format="csv")
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
        assert 'filename="audit-entries.csv"' in answer.headers["Content-Disposition"]
        rows = list(csv.DictReader(StringIO(answer.text, newline="")))
        assert [row["entry_id"] for row in rows] == written[::-1]
        assert set(rows[0]) == set(read(auditor, ENTRIES, limit=1)["items"][0])
        said = json.loads(base64.b64decode(rows[0]["bytes_b64"]))
        assert (said["entry_id"], said["actor"]) == (written[-1], f"system:{who}")
        rest = ask(auditor, ENTRIES, actor=f"system:{who}", format="csv", cursor=written[3], limit=2)
        assert [row["entry_id"] for row in csv.DictReader(StringIO(rest.text, newline=""))] == written[1:3][
            ::-1
        ]

    def test_in_a_table_what_was_said_is_json(self, auditor: Player) -> None:
        answer = ask(auditor, ENTRIES, type="staff.called", format="csv", limit=1)
        (row,) = csv.DictReader(StringIO(answer.text, newline=""))
        assert json.loads(row["payload"])["path"] == ENTRIES

    @pytest.mark.parametrize(
        ("query", "wrong"),
        [
            ({"limit": 0}, "limit"),
            ({"limit": 201}, "limit"),
            ({"cursor": "x"}, "cursor"),
            ({"type": "round.lost"}, "type"),
            ({"round_id": "one"}, "round_id"),
            ({"from": "yesterday"}, "from"),
            ({"actor": "\x00"}, "actor"),
            ({"actor": ""}, "actor"),
            ({"format": "xml"}, "format"),
            ({"reason": "x"}, "reason"),
        ],
    )
    def test_a_query_that_will_not_do_is_refused(
        self, auditor: Player, query: dict[str, Any], wrong: str
    ) -> None:
        answer = ask(auditor, ENTRIES, **query)
        assert (answer.status_code, code_of(answer)) == (422, "invalid")
        assert wrong in answer.json()["errors"]

    @pytest.mark.parametrize("actor", ["'; DROP TABLE staff; --", "%s", "%(actor)s", "\\", "a'b", "$1", "é"])
    def test_what_is_asked_for_is_no_statement(self, auditor: Player, actor: str) -> None:
        assert read(auditor, ENTRIES, actor=actor)["items"] == []

    def test_no_hidden_card_is_told(self, house: AppHouse, auditor: Player) -> None:
        waiting = house.player().open().json()
        told = read(auditor, ENTRIES, round_id=waiting["round_id"])["items"]
        assert {entry["type"] for entry in told} == {"commitment.made", "round.opened"}
        for entry in told:
            assert not {"dealer_cards", "deal_index", "seed"} & entry["payload"].keys()


# A second reading of RFC 9162 (sections 2.1.3.2 and 2.1.4.2) and of C2SP's signed notes, with hashlib alone.


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def root_of(entry: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The root that an inclusion proof leads to."""
    at, last, found = index, size - 1, hashlib.sha256(b"\x00" + entry).digest()
    for sibling in path:
        assert last > 0
        if at % 2 or at == last:
            found = node(sibling, found)
            while at % 2 == 0 and at:
                at, last = at // 2, last // 2
        else:
            found = node(found, sibling)
        at, last = at // 2, last // 2
    assert last == 0
    return found


def roots_of(old: int, new: int, old_root: bytes, path: list[bytes]) -> tuple[bytes, bytes]:
    """The roots that a consistency proof leads to."""
    if old & (old - 1) == 0:
        path = [old_root, *path]
    at, last = old - 1, new - 1
    while at % 2:
        at, last = at // 2, last // 2
    older = newer = path[0]
    for sibling in path[1:]:
        assert last > 0
        if at % 2 or at == last:
            older, newer = node(sibling, older), node(sibling, newer)
            while at % 2 == 0 and at:
                at, last = at // 2, last // 2
        else:
            newer = node(newer, sibling)
        at, last = at // 2, last // 2
    assert last == 0
    return older, newer


def signed_root(note: str, verifier_key: str) -> tuple[int, bytes]:
    """What a note says of the tree, whose signature by this key holds."""
    name, key_hash, encoded = verifier_key.split("+", 2)
    raw = base64.b64decode(encoded)
    assert raw[:1] == b"\x01"
    assert hashlib.sha256(name.encode() + b"\n" + raw).hexdigest()[:8] == key_hash
    text, signatures = note.split("\n\n")
    (line,) = (line for line in signatures.splitlines() if line.startswith(f"\u2014 {name} "))
    signature = base64.b64decode(line.rsplit(" ", 1)[1])
    assert signature[:4].hex() == key_hash
    Ed25519PublicKey.from_public_bytes(raw[1:]).verify(signature[4:], (text + "\n").encode())
    origin, size, root = text.split("\n")
    assert origin == name
    return int(size), base64.b64decode(root)


def hashes(texts: list[str]) -> list[bytes]:
    return [base64.b64decode(text) for text in texts]


@pytest.fixture(scope="module")
def grown(house: AppHouse, key: SigningKey) -> list[int]:
    """The sizes of some checkpoints, smallest first; there will be more."""
    for number in (1, 2, 3, 5, 8, 1, 1, 4):
        for _ in range(number):
            nothing(house)
        sealed(house, key)
    with house.connect() as conn:
        rows = conn.execute("SELECT tree_size FROM audit_checkpoint ORDER BY tree_size").fetchall()
    return [size for (size,) in rows]


@pytest.mark.usefixtures("grown")
class TestCheckpoints:
    def test_anybody_may_read_them_newest_first_and_page_by_page(
        self, house: AppHouse, grown: list[int]
    ) -> None:
        seen: list[dict[str, Any]] = []
        query: dict[str, Any] = {"limit": 3}
        while True:
            page = public(house, CHECKPOINTS, **query).json()
            seen += page["items"]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
            assert isinstance(page["next_cursor"], str)
        sizes = [one["tree_size"] for one in seen]
        assert sizes == sorted(set(sizes), reverse=True)
        assert set(sizes) >= set(grown)
        assert [one["made_at"] for one in seen] == sorted((one["made_at"] for one in seen), reverse=True)

    def test_each_is_signed_by_a_key_that_anybody_may_read(self, house: AppHouse, key: SigningKey) -> None:
        (listed,) = public(house, KEYS).json()["items"]
        assert listed == {"verifier_key": key.verifier.text()}
        for one in public(house, CHECKPOINTS).json()["items"]:
            size, root = signed_root(one["note"], listed["verifier_key"])
            assert (size, root) == (one["tree_size"], base64.b64decode(one["root_hash"]))

    def test_the_newest_is_there_as_it_was_signed(self, house: AppHouse) -> None:
        answer = public(house, LATEST)
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.content.decode() == public(house, CHECKPOINTS, limit=1).json()["items"][0]["note"]

    def test_of_any_two_the_newer_is_proven_to_begin_with_the_older(
        self, house: AppHouse, key: SigningKey, grown: list[int]
    ) -> None:
        for old in grown:
            for new in (size for size in grown if size >= old):
                found = public(house, CONSISTENCY, old=old, new=new).json()
                sizes, roots = zip(
                    *(signed_root(found[name], key.verifier.text()) for name in ("old", "new")), strict=True
                )
                assert sizes == (old, new)
                if old == new:
                    assert (found["proof"], roots[0]) == ([], roots[1])
                else:
                    assert roots_of(old, new, roots[0], hashes(found["proof"])) == roots

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ({"old": 10**9, "new": 10**9}, Code.NOT_FOUND),
            ({"old": 2**63 - 1, "new": 2**63 - 1}, Code.NOT_FOUND),
            ({"old": 2**63, "new": 2**63}, Code.INVALID),
            ({"old": 3, "new": 2}, Code.INVALID),
            ({"old": 0, "new": 1}, Code.INVALID),
            ({"old": -1, "new": 1}, Code.INVALID),
            ({"new": 1}, Code.INVALID),
            ({"old": "x", "new": 1}, Code.INVALID),
        ],
    )
    def test_between_what_is_no_checkpoint_nothing_is_proven(
        self, house: AppHouse, query: dict[str, Any], expected: Code
    ) -> None:
        assert code_of(public(house, CONSISTENCY, **query)) == expected

    def test_every_entry_of_a_round_is_proven_to_be_in_a_signed_tree(
        self, house: AppHouse, auditor: Player, key: SigningKey
    ) -> None:
        round_id = house.player().played("play")["round_id"]
        assert code_of(ask(auditor, INCLUSION, round_id=round_id)) == "proof_unavailable"
        sealed(house, key)
        found = read(auditor, INCLUSION, round_id=round_id)
        size, root = signed_root(found["checkpoint"], found["verifier_key"])
        assert (size, found["verifier_key"]) == (found["tree_size"], key.verifier.text())
        told = [json.loads(base64.b64decode(one["bytes_b64"])) for one in found["entries"]]
        assert [one["type"] for one in told] == ["commitment.made", "round.opened", "round.settled"]
        assert {one["subjects"]["round_id"] for one in told} == {round_id}
        for one in found["entries"]:
            path, entry = hashes(one["inclusion_proof"]), base64.b64decode(one["bytes_b64"])
            assert root_of(entry, one["leaf_index"], size, path) == root
            assert root_of(entry + b" ", one["leaf_index"], size, path) != root

    def test_an_entry_is_proven_in_any_tree_that_has_it_and_in_no_other(
        self, house: AppHouse, auditor: Player, key: SigningKey, grown: list[int]
    ) -> None:
        first = read(auditor, ENTRIES, limit=200, actor="system:note")["items"][-1]
        for tree in grown:
            answer = ask(auditor, INCLUSION, entry_id=first["entry_id"], size=tree)
            if tree <= first["leaf_index"]:
                assert code_of(answer) == "proof_unavailable"
                continue
            (one,) = answer.json()["entries"]
            size, root = signed_root(answer.json()["checkpoint"], key.verifier.text())
            entry = base64.b64decode(one["bytes_b64"])
            assert size == tree
            assert root_of(entry, one["leaf_index"], size, hashes(one["inclusion_proof"])) == root

    def test_what_is_not_there_is_not_proven(
        self, house: AppHouse, auditor: Player, grown: list[int]
    ) -> None:
        known = read(auditor, ENTRIES, actor="system:note", limit=1)["items"][0]["entry_id"]
        assert code_of(ask(auditor, INCLUSION, entry_id=str(uuid4()))) == "not_found"
        assert code_of(ask(auditor, INCLUSION, round_id=str(uuid4()))) == "not_found"
        assert code_of(ask(auditor, INCLUSION, entry_id=known, size=10**12)) == "not_found"
        assert code_of(ask(auditor, INCLUSION)) == "invalid"


def test_before_the_first_checkpoint_there_is_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    with app_house_in(tmp_path_factory.mktemp("unsealed")) as house:
        assert public(house, CHECKPOINTS).json() == {"items": [], "next_cursor": None}
        assert public(house, KEYS).json() == {"items": [], "next_cursor": None}
        assert code_of(public(house, LATEST)) == "not_found"


@pytest.mark.usefixtures("grown")
class TestVerifying:
    def verified(self, auditor: Player, **body: int) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {auditor.token}"}
        answer = auditor.http.post(auditor.base + VERIFY, json=body, headers=headers, timeout=CALL_SECONDS)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def test_a_log_that_was_not_altered_holds(
        self, house: AppHouse, auditor: Player, key: SigningKey
    ) -> None:
        found = self.verified(auditor)
        assert (found["holds"], found["wrong"], found["findings"]) == (True, 0, [])
        assert (found["first_leaf"], found["last_leaf"]) == (0, found["tree_size"] - 1)
        assert found["next_leaf"] is None
        assert signed_root(found["checkpoint"], key.verifier.text())[0] == found["tree_size"]

    @pytest.mark.parametrize(("first", "last"), [(0, 0), (7, 7), (3, 12), (8, 15)])
    def test_so_does_any_part_of_it(self, auditor: Player, first: int, last: int) -> None:
        found = self.verified(auditor, first_leaf=first, last_leaf=last)
        assert found["holds"] is True
        assert (found["first_leaf"], found["last_leaf"], found["next_leaf"]) == (first, last, None)

    def test_a_long_log_is_verified_part_by_part(
        self, auditor: Player, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(part, "LEAVES_MAX", 10)
        monkeypatch.setattr(part, "PIECE", 4)
        seen: list[int] = []
        first: int | None = 0
        while first is not None:
            found = self.verified(auditor, first_leaf=first, last_leaf=33)
            assert found["holds"] is True
            seen += range(found["first_leaf"], found["last_leaf"] + 1)
            first = found["next_leaf"]
        assert seen == list(range(34))

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({"first_leaf": 10**9}, "not_found"),
            ({"first_leaf": 2**53 - 1}, "not_found"),
            ({"first_leaf": 2**53}, "invalid"),
            ({"first_leaf": -1}, "invalid"),
            ({"first_leaf": "0"}, "invalid"),
            ({"first_leaf": True}, "invalid"),
            ({"first_leaf": 5, "last_leaf": 4}, "invalid"),
            ({"leaf": 5}, "invalid"),
            ([], "invalid"),
        ],
    )
    def test_what_is_not_there_is_not_verified(self, auditor: Player, body: Any, expected: str) -> None:
        headers = {"Authorization": f"Bearer {auditor.token}"}
        answer = auditor.http.post(auditor.base + VERIFY, json=body, headers=headers, timeout=CALL_SECONDS)
        assert code_of(answer) == expected

    def test_one_part_at_a_time_is_verified(self, house: AppHouse, auditor: Player) -> None:
        with house.connect() as other, other.transaction():
            other.execute("SELECT pg_advisory_xact_lock(hashtext('casino_brag audit part'))")
            answer = ask(auditor, VERIFY, method="post")
            assert (answer.status_code, code_of(answer)) == (503, "busy")
            assert int(answer.headers["Retry-After"]) == part.AGAIN_SECONDS
        assert self.verified(auditor)["holds"] is True

    def test_of_many_at_once_each_is_verified_or_told_to_wait(self, auditor: Player) -> None:
        answers = together([lambda: ask(auditor, VERIFY, method="post")] * 6)
        found = [answer.status_code for answer in answers]
        assert set(found) <= {200, 503}
        assert 200 in found
        assert self.verified(auditor)["holds"] is True

    def test_what_was_asked_for_is_on_record(self, house: AppHouse) -> None:
        caller = house.staff("auditor")
        self.verified(caller, first_leaf=1, last_leaf=2)
        told = read(caller, ENTRIES, actor=f"staff:{caller.name}")["items"][1]
        assert told["payload"]["body"] == {"first_leaf": 1, "last_leaf": 2}


def test_an_altered_entry_is_named(tmp_path: Path, key: SigningKey) -> None:
    with app_house_in(tmp_path) as house:
        altered = nothing(house)
        sealed(house, key)
        with house.connect(DatabaseRole.SUPERUSER) as conn:
            conn.execute("ALTER TABLE audit_entry DISABLE TRIGGER ALL")
            conn.execute("ALTER TABLE audit_entry_first DISABLE TRIGGER ALL")
            conn.execute("UPDATE audit_entry SET actor = 'system:nobody' WHERE entry_id = %s", [altered])
        found = ask(house.staff("auditor"), VERIFY, method="post").json()
    assert (found["holds"], found["wrong"]) == (False, 1)
    (finding,) = found["findings"]
    assert (finding["wrong"], finding["entry_id"]) == ("columns_altered", altered)
    assert "actor" in finding["detail"]


class TestReturnToPlayer:
    def test_it_is_what_the_watch_knows_with_nothing_left_out(
        self, house: AppHouse, auditor: Player, key: SigningKey
    ) -> None:
        player = house.operator.real_player(100_000)
        for number in range(6):
            player.played("play" if number % 2 else "fold", ante_minor=100, pair_bonus_minor=50)
        sealed(house, key)
        with house.service.database.connection() as conn:
            while accumulate(conn, house.service.house.shelf, Suspension.DRAIN):
                pass
            known = status(conn)
        found = read(auditor, RTP)
        behind = {name: found[name] for name in ("behind_leaves", "behind_since")}
        assert found | {"as_of": None} == known | {"as_of": None} | behind
        (played,) = (one for one in found["versions"] if one["game"] == "three-card-brag")
        (figure,) = (one for one in played["figures"] if (one["by"], one["wager"]) == ("version", "main"))
        assert (figure["rounds"], figure["currency"]) == (6, "GBP")

    def test_of_a_game_and_of_days(self, auditor: Player) -> None:
        found = read(auditor, RTP, game="double-play-brag", **{"from": "2020-01-01", "to": "2020-01-02"})
        assert (found["since"], found["until"]) == ("2020-01-01", "2020-01-02")
        assert {one["game"] for one in found["versions"]} == {"double-play-brag"}
        assert {one["actual_rtp"]["value"] for of in found["versions"] for one in of["figures"]} == {
            "no data"
        }

    @pytest.mark.parametrize(
        ("query", "wrong"),
        [
            ({"from": "today"}, "from"),
            ({"to": "2020-02-30"}, "to"),
            ({"game": "a b"}, "game"),
            ({"x": 1}, "x"),
        ],
    )
    def test_a_query_that_will_not_do_is_refused(
        self, auditor: Player, query: dict[str, Any], wrong: str
    ) -> None:
        answer = ask(auditor, RTP, **query)
        assert code_of(answer) == "invalid"
        assert wrong in answer.json()["errors"]


class TestRandomNumbersAndTheProgram:
    def test_the_module_and_what_it_reported_are_told(self, house: AppHouse, auditor: Player) -> None:
        house.player().played()
        found = read(auditor, RNG)
        assert (found["state"], found["failure"], found["failures"]) == ("ready", None, [])
        assert found["events"]["self_tested"]["count"] >= 1
        assert found["events"]["instantiated"]["last_at"] is not None
        assert found["events"]["failed"] == {"count": 0, "last_at": None}
        with house.connect() as conn:
            row = conn.execute("SELECT DISTINCT rng_digest FROM round").fetchone()
        assert row == (found["module_digest"],)

    def test_the_program_is_compared_and_the_result_on_record(self, house: AppHouse, auditor: Player) -> None:
        caller = house.staff("operations")
        found = ask(caller, INTEGRITY, method="post").json()
        assert (found["agrees"], found["problems"]) == (True, [])
        assert found["paytables"] >= 2
        entry = read(auditor, ENTRIES, type="integrity.checked", limit=1)["items"][0]
        assert (entry["actor"], entry["occurred_at"]) == (f"staff:{caller.name}", found["checked_at"])
        assert entry["payload"]["manifest_digest"] == found["manifest_digest"]

    def test_a_program_that_was_altered_deals_no_more(
        self, house: AppHouse, auditor: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with house.restarted():
            player = house.player()
            assert player.played()["state"] == "settled"
            monkeypatch.setattr(integrity, "MANIFEST", tmp_path / "no such file")
            found = ask(auditor, INTEGRITY, method="post").json()
            assert found["agrees"] is False
            assert found["problems"]
            monkeypatch.undo()
            assert code_of(player.open()) == "rng_unavailable"
            assert read(auditor, RNG)["state"] == "error"
            # What has failed is not mended by looking again.
            assert ask(auditor, INTEGRITY, method="post").json()["agrees"] is False
        assert read(auditor, ENTRIES, type="integrity.failed")["items"][0]["actor"] == f"staff:{auditor.name}"
