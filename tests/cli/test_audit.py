"""`casino-brag audit`: what it prints, and how it exits."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from casino_brag.audit.notes import opened
from casino_brag.audit.tree import includes, is_consistent, leaf_hash
from casino_brag.cli.audit import audit
from casino_brag.db.embedded import Role
from casino_brag.errors import SetUpError
from tests.sealed_log import Log, copy_of, entry_at, sealed_log, write
from tests.tampering import TAMPERINGS, VICTIM


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with sealed_log(tmp_path_factory.mktemp("log")) as log:
        yield log


def run(log: Log, *arguments: object) -> Result:
    known = {"DATABASE_URL": log.url(Role.OWNER), "CASINO_BRAG_CHECKPOINTS_DIR": str(log.published)}
    return CliRunner(env=known).invoke(audit, [*map(str, arguments)])


def shown(log: Log, *arguments: object) -> Any:
    done = run(log, *arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_verify_says_what_was_looked_at_and_that_it_holds(log: Log) -> None:
    done = run(log, "verify")
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith("The log holds.\n")
    assert f"signed by    {log.key.verifier.text()}" in done.stdout
    found = shown(log, "verify")
    assert found["holds"]
    assert found["published"] == len(list(log.published.rglob("*.checkpoint")))
    assert shown(log, "verify", "--key", log.key.verifier.text())["keys"] == [log.key.verifier.text()]


def test_verify_names_what_is_wrong_and_exits_with_1(log: Log) -> None:
    spoil, _ = TAMPERINGS["column actor"]
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            spoil(copy, conn)
        done, as_json = run(copy, "verify"), run(copy, "verify", "--json")
        entry_id = copy.leaf(VICTIM)
    assert done.exit_code == as_json.exit_code == 1
    assert (
        f"WRONG columns_altered: leaf {VICTIM}, entry {entry_id}: actor is not what its bytes say\n"
        in done.stdout
    )
    assert done.stdout.endswith("THE LOG DOES NOT HOLD\n")
    (finding,) = json.loads(as_json.stdout)["findings"]
    assert finding["wrong"] == "columns_altered"
    assert (finding["leaf_index"], finding["entry_id"]) == (VICTIM, entry_id)


def test_verify_takes_a_single_checkpoint_and_says_when_none_is_compared(log: Log, tmp_path: Path) -> None:
    one = min(log.published.rglob("*.checkpoint"))
    assert shown(log, "verify", "--checkpoints", one)["published"] == 1
    assert "an older backup would hold as well" in run(log, "verify", "--checkpoints", tmp_path).stdout
    (tmp_path / "no note").write_text("nothing")
    done = run(log, "verify", "--checkpoints", tmp_path / "no note")
    assert isinstance(done.exception, SetUpError)
    assert "is no checkpoint" in str(done.exception)


def test_prove_shows_a_round_s_entries_under_the_newest_checkpoint(log: Log) -> None:
    round_id = uuid4()
    with copy_of(log) as copy:
        with copy.connect() as conn:
            for number in range(3):
                write(conn, entry_at(datetime.now(UTC), number, round_id=round_id))
        waiting = run(copy, "prove", round_id, "--json")
        assert "not all entries of this round are sealed yet" in str(waiting.exception).lower()
        copy.seal()
        proof = shown(copy, "prove", round_id)
        assert run(copy, "prove", round_id).stdout.count("wallet.deposit") == 3
        assert "no entry of a round" in str(run(copy, "prove", uuid4()).exception)
    checkpoint, (signer,) = opened(proof["checkpoint"], [copy.key.verifier])
    assert proof["verifier_key"] == signer.text()
    assert proof["tree_size"] == checkpoint.size
    assert len(proof["entries"]) == 3
    for entry in proof["entries"]:
        leaf = leaf_hash(b64decode(entry["bytes_b64"]))
        path = [b64decode(beside) for beside in entry["inclusion_proof"]]
        assert includes(leaf, entry["leaf_index"], checkpoint.size, path, checkpoint.root)


def test_consistency_relates_two_checkpoints_in_either_order(log: Log) -> None:
    with log.connect() as conn:
        sizes = [size for (size,) in conn.execute("SELECT tree_size FROM audit_checkpoint ORDER BY 1")]
    proof = shown(log, "consistency", sizes[1], sizes[-1])
    assert proof == shown(log, "consistency", sizes[-1], sizes[1])
    old, new = (opened(proof[name], [log.key.verifier])[0] for name in ("old", "new"))
    assert is_consistent(old.size, new.size, old.root, new.root, [*map(b64decode, proof["proof"])])
    assert "There is no checkpoint of 7" in str(run(log, "consistency", 7_777, sizes[1]).exception)


def test_export_writes_files_that_are_refused_where_something_is(log: Log, tmp_path: Path) -> None:
    done = run(log, "export", "--to", tmp_path / "log", "--format", "parquet")
    assert done.exit_code == 0, done.output
    assert "entries, leaves 0 to" in done.stdout
    assert (tmp_path / "log" / "entries.parquet").exists()
    again = run(log, "export", "--to", tmp_path / "log")
    assert "There is something in" in str(again.exception)
    empty = run(log, "export", "--to", tmp_path / "other", "--from", "2020-01-01", "--to-date", "2020-01-02")
    assert "There is nothing to export" in str(empty.exception)


def test_keys_are_listed_as_verifiers_are_given_them(log: Log) -> None:
    assert run(log, "keys").stdout == f"{log.key.verifier.text()}\n"
