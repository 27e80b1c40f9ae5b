"""The independent check of the log: of exports, whole and in part, and of proofs; and of all that is done to them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from casino_brag.audit.exporting import Exported, export_log
from casino_brag.audit.proving import consistency, inclusion, leaves_of
from casino_brag.audit.records import checkpoint_of, newest_checkpoint
from casino_brag.errors import SetUpError
from tests.sealed_log import DAYS, Log, copy_of, entry_at, sealed_log, write
from tests.tampering import TAMPERINGS, VICTIM

SCRIPT = Path(__file__).parents[2] / "verification" / "verify_log.py"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with sealed_log(tmp_path_factory.mktemp("log")) as log:
        yield log


@pytest.fixture(scope="module")
def whole(log: Log, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("export") / "whole"
    exported(log, directory)
    return directory


def exported(log: Log, directory: Path, **wanted: Any) -> Exported:
    with log.connect() as conn:
        return export_log(conn, directory, **wanted)


def published(log: Log) -> list[str]:
    """Some of the published checkpoints, the newest among them."""
    return [f"--checkpoint={path}" for path in sorted(log.published.rglob("*.checkpoint"))[::-4]]


def run(*arguments: object, python: tuple[str, ...] = ("-I", "-S")) -> subprocess.CompletedProcess[str]:
    """The script by itself: Python without what is installed."""
    command = [sys.executable, *python, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def key(log: Log) -> str:
    return f"--key={log.key.verifier.text()}"


def test_an_export_of_the_whole_log_holds(log: Log, whole: Path) -> None:
    done = run("log", whole, key(log), *published(log))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith("Everything holds.\n")
    assert "not compared" not in done.stdout
    manifest = json.loads((whole / "manifest.json").read_text())
    assert {*manifest["files"]} == {path.name for path in whole.iterdir()} - {"manifest.json"}
    assert manifest["end"] == manifest["tree_size"] > 1_000


def test_an_export_holds_by_its_own_keys_too_and_that_is_said(whole: Path) -> None:
    done = run("log", whole)
    assert done.returncode == 0
    assert "No --key is given" in done.stdout


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_of_a_day_holds_and_has_every_entry_of_that_day(
    log: Log, tmp_path: Path, form: str
) -> None:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS - 1)
    told: list[tuple[int, int]] = []
    since, until = midnight - timedelta(seconds=1), midnight + timedelta(hours=23)
    stretch = exported(
        log,
        tmp_path / "day",
        since=since,
        until=until,
        form=form,
        progress=lambda done, of: told.append((done, of)),
    )
    count = stretch.end - stretch.first
    assert 0 < stretch.first < stretch.end < stretch.tree_size or stretch.end == stretch.tree_size
    assert told[-1] == (count, count)
    with log.connect() as conn:
        row = conn.execute(
            "SELECT count(*) FROM audit_entry WHERE occurred_at >= %s AND occurred_at < %s", [since, until]
        ).fetchone()
    assert row is not None
    assert row[0] == count
    done = run("log", tmp_path / "day", key(log), *published(log), python=("-I",))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert f"there are {count} leaves" in done.stdout


@pytest.mark.parametrize("name", [name for name, (_, named) in TAMPERINGS.items() if named.exported])
def test_whatever_is_done_to_the_log_is_named_from_an_export(log: Log, tmp_path: Path, name: str) -> None:
    spoil, _ = TAMPERINGS[name]
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            spoil(copy, conn)
        exported(copy, tmp_path / "export")
    done = run("log", tmp_path / "export", key(log), *published(log))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "DOES NOT HOLD" in done.stdout
    assert done.stdout.endswith("SOMETHING DOES NOT HOLD.\n")


def test_nothing_is_exported_that_is_under_no_checkpoint(log: Log, tmp_path: Path) -> None:
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            conn.execute("TRUNCATE audit_checkpoint")
        with pytest.raises(SetUpError, match="nothing to export"):
            exported(copy, tmp_path / "export")


# What is done to an export


def spoilt(whole: Path, tmp_path: Path, name: str, change: Any) -> Path:
    """A copy of an export in which a file is changed, and the manifest made to agree."""
    copy = tmp_path / "spoilt"
    shutil.copytree(whole, copy)
    (copy / name).write_text(change((copy / name).read_text()))
    return copy


def each_row(text: str, change: Any) -> str:
    head, *rows = text.splitlines(keepends=True)
    return head + "".join(change(rows))


SPOILT = {
    "an entry removed": (
        "entries.csv",
        lambda t: each_row(t, lambda rows: [*rows[:VICTIM], *rows[VICTIM + 1 :]]),
    ),
    "the last removed": ("entries.csv", lambda t: each_row(t, lambda rows: rows[:-1])),
    "two exchanged": ("entries.csv", lambda t: each_row(t, lambda rows: [rows[1], rows[0], *rows[2:]])),
    "one there twice": ("entries.csv", lambda t: each_row(t, lambda rows: [rows[0], *rows])),
    "a column": ("entries.csv", lambda t: t.replace("operator:house", "operator:mouse", 1)),
    "a note": ("checkpoint.txt", lambda t: t.replace("log.example", "log.exemple", 1)),
    "a signature": ("checkpoint.txt", lambda t: t[:-6] + ("A" if t[-6] != "A" else "B") + t[-5:]),
    "another's notes": ("checkpoints.jsonl", lambda t: t.replace("log.example", "log.other")),
    "no notes": ("checkpoints.jsonl", lambda t: "{}\n"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_is_done_to_an_export_is_named(log: Log, whole: Path, tmp_path: Path, what: str) -> None:
    done = run("log", spoilt(whole, tmp_path, *SPOILT[what]), key(log))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "is not the file that the manifest was made of" in done.stdout
    assert done.stdout.count("DOES NOT HOLD") > 2, done.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("manifest.json", "{"),
        ("manifest.json", "[]"),
        ("tree.json", "{}"),
        ("tree.json", '{"first": 0, "end": 5, "tree_size": 9, "left": [], "right": []}'),
        ("entries.csv", "a,b\n"),
        ("entries.csv", ""),
    ],
)
def test_what_is_no_export_is_refused(log: Log, whole: Path, tmp_path: Path, name: str, text: str) -> None:
    done = run("log", spoilt(whole, tmp_path, name, lambda _: text), key(log))
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert name in done.stderr + done.stdout


OTHER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"


def test_a_key_of_somebody_else_is_no_key_of_the_log(log: Log, whole: Path, tmp_path: Path) -> None:
    nameless = spoilt(whole, tmp_path, "keys.txt", lambda _: OTHER)
    done = run("log", nameless, "--key", OTHER)
    assert done.returncode == 1
    assert "no key that is given has signed it" in done.stdout
    assert run("log", whole, "--key", OTHER[:-1]).returncode == 2


def test_a_key_that_signed_and_was_not_given_is_named_once(log: Log, whole: Path) -> None:
    done = run("log", whole, "--key", OTHER)
    name = "+".join(log.key.verifier.text().split("+", 2)[:2])
    assert done.stdout.count("which was not given") == 1
    assert f"are signed by {name} of keys.txt" in done.stdout


def test_what_was_let_go_is_missing_until_the_auditor_says_that_it_was(log: Log, tmp_path: Path) -> None:
    ago = datetime.now(UTC) - timedelta(days=6 * 365)
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            for leaf_index in (*range(20), VICTIM):
                conn.execute(
                    "UPDATE audit_leaf SET entry_id = %s WHERE leaf_index = %s",
                    [entry_at(ago).entry_id, leaf_index],
                )
            exported(copy, tmp_path / "two", until=datetime.now(UTC))
            conn.execute(
                "UPDATE audit_leaf AS l SET entry_id = e.entry_id FROM audit_entry AS e"
                " WHERE e.leaf_hash = l.leaf_hash AND l.leaf_index = %s",
                [VICTIM],
            )
        exported(copy, tmp_path / "one", until=datetime.now(UTC))
    before = f"--let-go-before={ago + timedelta(days=2):%Y-%m-%d}"
    done = run("log", tmp_path / "one", key(log))
    assert done.returncode == 1
    assert "--let-go-before DATE" in done.stdout
    done = run("log", tmp_path / "one", key(log), *published(log), before)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("Everything holds. 20 entries that were let go before")
    assert run("log", tmp_path / "one", key(log), f"--let-go-before={ago:%Y}-01-01").returncode == 1
    done = run("log", tmp_path / "two", key(log), before)
    assert done.returncode == 1, "what is before it is young"
    assert f"leaf {VICTIM}, entry" in done.stdout


def told(copy: Path, **facts: Any) -> None:
    """Changes what a manifest tells."""
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | facts))


def test_only_files_that_the_manifest_lists_are_an_export(log: Log, whole: Path, tmp_path: Path) -> None:
    for name in ("entries.parquet", "notes.txt"):
        shutil.copytree(whole, tmp_path / name)
        shutil.copy(whole / "entries.csv", tmp_path / name / name)
        done = run("log", tmp_path / name, key(log))
        assert done.returncode == 2
        assert f"none of the export: {name}" in done.stderr


def test_the_stretch_that_the_manifest_tells_is_that_of_the_entries(log: Log, tmp_path: Path) -> None:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS - 1)
    since, until = midnight - timedelta(seconds=1), midnight + timedelta(hours=23)
    stretch = exported(log, tmp_path / "day", since=since, until=until)
    for facts in ({"first": 0}, {"end": stretch.end + 1}, {"tree_size": 7}, {"from": None}):
        shutil.copytree(tmp_path / "day", tmp_path / f"{facts}")
        told(tmp_path / f"{facts}", **facts)
        done = run("log", tmp_path / f"{facts}", key(log))
        assert done.returncode == 1, facts
        assert "the manifest" in done.stdout
    for period in ({"since": since}, {"until": until}):
        exported(log, tmp_path / f"{period.keys()}", **period)
        done = run("log", tmp_path / f"{period.keys()}", key(log))
        assert done.returncode == 0, done.stdout


def put(name: str, text: str) -> Any:
    return lambda copy: (copy / name).write_text(text)


def fifo(name: str) -> Any:
    return lambda copy: ((copy / name).unlink(), os.mkfifo(copy / name))


HOSTILE = {
    "a NUL in a name": lambda copy: told(copy, files={"a\0b": {}}),
    "half a character in a name": lambda copy: told(copy, files={"\ud800": {}}),
    "half a character in the format": lambda copy: told(copy, format="\ud800"),
    "a number without end": put("tree.json", f'{{"first": {"9" * 5_000}}}'),
    "infinity": put("tree.json", '{"first": 0, "end": 1, "tree_size": 1e999, "left": [], "right": []}'),
    "nested without end": put("tree.json", "[" * 200_000),
    "notes nested without end": put("checkpoints.jsonl", "[" * 200_000),
    "a note of half a character": put("checkpoints.jsonl", '"\\ud800\\n1\\n\\n\\n"\n'),
    "a note that is a number without end": put("checkpoints.jsonl", "9" * 5_000),
    "a manifest that is a pipe": fifo("manifest.json"),
    "entries that are a pipe": fifo("entries.csv"),
    "entries that are a device": lambda copy: (
        (copy / "entries.csv").unlink(),
        (copy / "entries.csv").symlink_to("/dev/zero"),
    ),
    "no text": lambda copy: (copy / "keys.txt").write_bytes(b"\xff"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_an_export_that_was_made_to_do_harm_is_refused(
    log: Log, whole: Path, tmp_path: Path, what: str
) -> None:
    shutil.copytree(whole, tmp_path / "copy")
    HOSTILE[what](tmp_path / "copy")
    done = run("log", tmp_path / "copy", key(log))
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "Everything holds" not in done.stdout
    if done.returncode == 2:
        assert done.stderr.startswith("verify_log.py: ")


def test_a_parquet_file_that_is_none_is_refused(log: Log, tmp_path: Path) -> None:
    exported(log, tmp_path / "export", form="parquet")
    (tmp_path / "export" / "entries.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    done = run("log", tmp_path / "export", key(log), python=("-I",))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "entries.parquet is not of its form" in done.stderr


def test_what_an_export_says_moves_and_hides_nothing_on_a_terminal(
    log: Log, whole: Path, tmp_path: Path
) -> None:
    hiding = spoilt(whole, tmp_path, "entries.csv", lambda t: t.replace("\n5,", "\n5\x1b[2J\u202e,", 1))
    done = run("log", hiding, key(log))
    assert done.returncode == 1
    assert r"the row in its place is of leaf 5\x1b[2J\u202e" in done.stdout
    assert "\x1b" not in done.stdout


NO_CHECKPOINTS = {
    "an empty file": "",
    "a page that says that there is none": "<h1>Not Found</h1>\n",
    "the beginning of one": "log.example\n1\n",
}


@pytest.mark.parametrize("what", NO_CHECKPOINTS)
def test_a_kept_file_that_is_no_checkpoint_says_nothing_of_the_log(
    log: Log, whole: Path, tmp_path: Path, what: str
) -> None:
    (tmp_path / "kept.txt").write_text(NO_CHECKPOINTS[what])
    with log.connect() as conn:
        newest = newest_checkpoint(conn)
        assert newest is not None
        grown = saved(tmp_path, consistency(conn, newest, newest))
    for checked in (("log", whole), ("consistency", grown)):
        done = run(*checked, key(log), f"--checkpoint={tmp_path / 'kept.txt'}")
        assert done.returncode == 2
        assert done.stdout == "NOT VERIFIED: this tells nothing of the log.\n"
        assert f"{tmp_path / 'kept.txt'}: this is no checkpoint" in done.stderr


def test_a_kept_checkpoint_that_was_forged_is_a_finding(log: Log, whole: Path, tmp_path: Path) -> None:
    note = (whole / "checkpoint.txt").read_text()
    lines = note.split("\n")
    lines[1] = str(int(lines[1]) - 1)
    (tmp_path / "kept.txt").write_text("\n".join(lines))
    done = run("log", whole, key(log), f"--checkpoint={tmp_path / 'kept.txt'}")
    assert done.returncode == 1
    assert "kept.txt: the signature of" in done.stdout
    assert done.stdout.endswith("SOMETHING DOES NOT HOLD.\n")


# Proofs


def proof_of(log: Log, leaf_index: int) -> dict[str, Any]:
    with log.connect() as conn:
        newest = newest_checkpoint(conn)
        assert newest is not None
        row = conn.execute("SELECT entry_id FROM audit_leaf WHERE leaf_index = %s", [leaf_index]).fetchone()
        assert row is not None
        return inclusion(conn, leaves_of(conn, entry_id=row[0]), newest)


def saved(tmp_path: Path, document: Any) -> Path:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("leaf_index", [0, 255, 256, VICTIM, 1_000])
def test_a_proof_that_an_entry_is_in_the_log_holds_and_none_of_another(
    log: Log, tmp_path: Path, leaf_index: int
) -> None:
    proof = proof_of(log, leaf_index)
    done = run("proof", saved(tmp_path, proof), key(log))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"leaf {leaf_index} is wallet.deposit" in done.stdout or leaf_index == 0
    (entry,) = proof["entries"]
    for member, value in (
        ("leaf_index", leaf_index + 1),
        ("inclusion_proof", entry["inclusion_proof"][1:]),
        ("inclusion_proof", [*entry["inclusion_proof"], entry["inclusion_proof"][0]]),
        ("bytes_b64", proof_of(log, leaf_index + 1)["entries"][0]["bytes_b64"]),
    ):
        other = proof | {"entries": [entry | {member: value}]}
        done = run("proof", saved(tmp_path, other), key(log))
        assert done.returncode == 1, done.stdout
    for other in ({}, [], proof | {"entries": 7}, proof | {"checkpoint": None}):
        done = run("proof", saved(tmp_path, other), key(log))
        assert done.returncode in (1, 2)
        assert "Traceback" not in done.stderr


def test_a_proof_says_of_which_round_it_is(log: Log, tmp_path: Path) -> None:
    round_id = UUID(int=7)
    with copy_of(log) as copy:
        with copy.connect() as conn:
            write(conn, entry_at(datetime.now(UTC), round_id=round_id))
        copy.seal()
        with copy.connect() as conn:
            newest = newest_checkpoint(conn)
            assert newest is not None
            proof = inclusion(conn, leaves_of(conn, round_id=round_id), newest)
    done = run("proof", saved(tmp_path, proof), key(log))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"round_id {round_id}" in done.stdout


@pytest.mark.parametrize("text", ["9" * 5_000, "[" * 200_000, '"\\ud800"', '{"entries": 1e999}'])
def test_a_proof_that_was_made_to_do_harm_is_refused(log: Log, tmp_path: Path, text: str) -> None:
    (tmp_path / "proof.json").write_text(text)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "proof.json", tmp_path / "pipe"):
        for what in ("proof", "consistency"):
            done = run(what, path, key(log))
            assert done.returncode == 2
            assert "Traceback" not in done.stderr


def test_a_proof_that_the_log_has_only_grown_holds_and_none_other(log: Log, tmp_path: Path) -> None:
    with log.connect() as conn:
        sizes = [size for (size,) in conn.execute("SELECT tree_size FROM audit_checkpoint ORDER BY 1")]
        old, middle, new = (checkpoint_of(conn, sizes[at]) for at in (0, len(sizes) // 2, -1))
        assert old is not None
        assert middle is not None
        assert new is not None
        proofs = [consistency(conn, old, new), consistency(conn, middle, new), consistency(conn, new, new)]
    for proof in proofs:
        done = run("consistency", saved(tmp_path, proof), key(log))
        assert done.returncode == 0, done.stdout + done.stderr
    for other in (
        proofs[1] | {"old": proofs[0]["old"]},
        proofs[1] | {"old": proofs[1]["new"], "new": proofs[1]["old"]},
        proofs[1] | {"proof": proofs[1]["proof"][1:]},
        proofs[2] | {"proof": proofs[1]["proof"][:1]},
    ):
        done = run("consistency", saved(tmp_path, other), key(log))
        assert done.returncode == 1, done.stdout
    assert run("consistency", saved(tmp_path, proofs[0])).returncode == 2, "no key comes with it"
