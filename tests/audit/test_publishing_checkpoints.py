"""Checkpoints as files: whole, once, never anew, and an alarm where one is not what the database says."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog
from structlog.testing import capture_logs

from casino_brag.audit import Entry, EntryType, publishing, sealer
from casino_brag.audit.notes import Checkpoint, SigningKey, opened, sign
from casino_brag.audit.publishing import Publication, PublishedDiffers
from casino_brag.audit.records import StoredCheckpoint, newest_checkpoint
from casino_brag.audit.sealer import Sealing, seal
from casino_brag.db.embedded import Role
from tests.inprocess import AppHouse, app_house_in

KEY, NEXT = SigningKey("tests/log", bytes(range(32))), SigningKey("tests/log", bytes(32))
APPEND = "INSERT INTO audit_entry SELECT * FROM audit_entry_of(%s)"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("published")) as made:
        yield made


@pytest.fixture(autouse=True)
def logs_that_can_be_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loggers that nobody has used yet: used ones keep to the settings of then."""
    for module in (publishing, sealer):
        monkeypatch.setattr(module, "log", structlog.get_logger("tests"))


@pytest.fixture
def conn(house: AppHouse) -> Iterator[psycopg.Connection[Any]]:
    with house.connect() as owner:
        yield owner


@pytest.fixture
def sealed(house: AppHouse, conn: psycopg.Connection[Any]) -> Callable[[], StoredCheckpoint]:
    """Seals a new entry; the checkpoint that this makes."""

    def made() -> StoredCheckpoint:
        one = Entry(type=EntryType.SESSION_OPENED, occurred_at=datetime.now(UTC), actor="system:tests")
        conn.execute(APPEND, [one.text()])
        seal(house.service.database.connection, [KEY])
        newest = newest_checkpoint(conn)
        assert newest is not None
        return newest

    return made


def files_in(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def published(directory: Path) -> list[int]:
    return [int(path.stem) for path in files_in(directory) if path.suffix == ".checkpoint"]


def test_a_checkpoint_and_its_keys_are_files(
    tmp_path: Path, conn: psycopg.Connection[Any], sealed: Callable[[], StoredCheckpoint]
) -> None:
    checkpoint = sealed()
    directory = tmp_path / "there" / "checkpoints"
    assert Publication(directory, 60).publish(conn, [NEXT.verifier, KEY.verifier]) == 3
    day = checkpoint.made_at.astimezone(UTC).strftime("%Y/%m/%d")
    file = directory / day / f"{checkpoint.tree_size:020}.checkpoint"
    keys = [directory / "keys" / f"{key.verifier.key_hash.hex()}.vkey" for key in (KEY, NEXT)]
    assert files_in(directory) == sorted([file, *keys])
    assert file.read_bytes() == checkpoint.note.encode()
    assert [path.read_text() for path in keys] == [f"{key.verifier.text()}\n" for key in (KEY, NEXT)]
    assert opened(file.read_text(), [KEY.verifier])[0].root == checkpoint.root_hash
    assert re.fullmatch(r"\d{4}/\d\d/\d\d/\d{20}\.checkpoint", str(file.relative_to(directory)))


def test_the_next_checkpoint_is_published_when_it_is_due(
    tmp_path: Path, conn: psycopg.Connection[Any], sealed: Callable[[], StoredCheckpoint]
) -> None:
    first = sealed().tree_size
    seldom, always = Publication(tmp_path, 3600), Publication(tmp_path, 0)
    assert seldom.publish(conn, [KEY.verifier]) == 2
    second = sealed().tree_size
    assert seldom.publish(conn, [KEY.verifier]) == 0
    assert published(tmp_path) == [first]
    third = sealed().tree_size
    assert second < third
    assert always.publish(conn, [KEY.verifier]) == 1
    assert always.publish(conn, [KEY.verifier]) == 0
    assert published(tmp_path) == [first, third]


def test_there_may_be_nothing_to_publish(
    tmp_path: Path, conn: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "newest_checkpoint", lambda _: None)
    assert Publication(tmp_path / "there", 0).publish(conn, []) == 0
    assert not (tmp_path / "there").exists()


def test_two_may_publish_at_once(
    tmp_path: Path,
    conn: psycopg.Connection[Any],
    sealed: Callable[[], StoredCheckpoint],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sealed()
    publication = Publication(tmp_path, 60)
    link = os.link

    def beaten(aside: Path, path: Path) -> None:
        """Somebody else is faster by an instant."""
        path.write_bytes(aside.read_bytes())
        link(aside, path)

    monkeypatch.setattr(os, "link", beaten)
    assert publication.publish(conn, [KEY.verifier]) == 0
    assert len(files_in(tmp_path)) == 2


def test_a_file_with_other_bytes_is_an_alarm_and_stays_as_it_is(
    tmp_path: Path, conn: psycopg.Connection[Any], sealed: Callable[[], StoredCheckpoint]
) -> None:
    sealed()
    publication = Publication(tmp_path, 0)
    publication.publish(conn, [KEY.verifier])
    key_file, file = sorted(files_in(tmp_path), key=lambda path: path.suffix, reverse=True)
    for path in (file, key_file):
        before = path.read_bytes()
        path.write_bytes(before + b"\n")
        with capture_logs() as logged, pytest.raises(PublishedDiffers, match=re.escape(str(path))):
            publication.publish(conn, [KEY.verifier])
        assert [(line["event"], line["log_level"]) for line in logged] == [("published_differs", "error")]
        assert path.read_bytes() == before + b"\n"
        path.write_bytes(before)
    assert publication.publish(conn, [KEY.verifier]) == 0


def test_a_database_that_knows_less_than_was_published_is_an_alarm(
    tmp_path: Path, conn: psycopg.Connection[Any], sealed: Callable[[], StoredCheckpoint]
) -> None:
    checkpoint = sealed()
    publication = Publication(tmp_path, 0)
    publication.publish(conn, [KEY.verifier])
    (file,) = tmp_path.rglob("*.checkpoint")
    # As after a backup was restored that is older than the newest file.
    later = file.with_name(f"{checkpoint.tree_size + 5:020}.checkpoint")
    later.write_text(sign(Checkpoint(KEY.name, checkpoint.tree_size + 5, bytes(32)), [KEY]))
    file.unlink()
    with pytest.raises(PublishedDiffers, match="is no checkpoint of this database"):
        publication.publish(conn, [KEY.verifier])
    assert published(tmp_path) == [checkpoint.tree_size + 5]


@pytest.mark.parametrize("name", [f"{9:020}", "9" * 20])
def test_a_copy_under_another_name_is_an_alarm_that_says_what_it_is(
    tmp_path: Path, conn: psycopg.Connection[Any], sealed: Callable[[], StoredCheckpoint], name: str
) -> None:
    checkpoint = sealed()
    publication = Publication(tmp_path, 0)
    publication.publish(conn, [KEY.verifier])
    (file,) = tmp_path.rglob("*.checkpoint")
    copy = tmp_path / "9998" / "12" / "31" / f"{name}.checkpoint"
    copy.parent.mkdir(parents=True)
    shutil.copy(file, copy)
    said = f"{copy} is a copy of the checkpoint of {checkpoint.tree_size} leaves, which belongs in {file}."
    with pytest.raises(PublishedDiffers, match=re.escape(said)):
        publication.publish(conn, [KEY.verifier])
    copy.unlink()
    assert publication.publish(conn, [KEY.verifier]) == 0


@pytest.mark.parametrize(
    "junk",
    [
        *("9999/", "9999/99/", "9999/12/31/", "9999", "\u0669\u0669\u0669\u0669/12/31/x", "99999/12/31/x"),
        *(f"9999/12/31/{name}" for name in ("Copy of {0}", "{0}~", ".{0}", "z.checkpoint", "9{0}", "{0}/x")),
        "9999/12/31/" + "\u0669" * 20 + ".checkpoint",
    ],
)
def test_what_others_put_there_is_passed_over(
    tmp_path: Path, conn: psycopg.Connection[Any], sealed: Callable[[], StoredCheckpoint], junk: str
) -> None:
    first = sealed().tree_size
    seldom, always = Publication(tmp_path, 3600), Publication(tmp_path, 0)
    seldom.publish(conn, [])
    (file,) = tmp_path.rglob("*.checkpoint")
    stray = tmp_path / junk.format(file.name)
    stray.parent.mkdir(parents=True, exist_ok=True)
    if junk.endswith("/"):
        stray.mkdir()
    else:
        shutil.copy(file, stray)
    second = sealed().tree_size
    assert seldom.publish(conn, []) == 0
    assert always.publish(conn, []) == 1
    assert [int(path.stem) for path in sorted(file.parent.iterdir())] == [first, second]


def test_a_checkpoint_that_was_made_in_the_future_does_not_keep_the_next_waiting(
    tmp_path: Path,
    conn: psycopg.Connection[Any],
    sealed: Callable[[], StoredCheckpoint],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = sealed()
    seldom = Publication(tmp_path, 3600)
    assert seldom.publish(conn, []) == 1
    second = sealed()
    assert seldom.publish(conn, []) == 0
    monkeypatch.setattr(publishing, "clock", lambda _: first.made_at - timedelta(seconds=1))
    assert seldom.publish(conn, []) == 1
    assert published(tmp_path) == [first.tree_size, second.tree_size]


@pytest.mark.parametrize("step", ["link", "fsync", "fdopen"])
def test_what_was_ended_in_the_middle_is_published_by_the_next_pass(
    tmp_path: Path,
    conn: psycopg.Connection[Any],
    sealed: Callable[[], StoredCheckpoint],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    checkpoint = sealed()
    publication = Publication(tmp_path, 3600)

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(ZeroDivisionError):
        publication.publish(conn, [])
    monkeypatch.undo()
    assert published(tmp_path) == []
    # What a process leaves that is killed before it has made the file whole.
    day = tmp_path / checkpoint.made_at.astimezone(UTC).strftime("%Y/%m/%d")
    day.mkdir(parents=True, exist_ok=True)
    (day / f".{checkpoint.tree_size:020}.checkpoint.1.1").write_text("half a no")
    assert publication.publish(conn, []) == 1
    assert (day / f"{checkpoint.tree_size:020}.checkpoint").read_text() == checkpoint.note


@contextmanager
def in_the_way_of(directory: Path) -> Iterator[None]:
    """A file where the directory has to be, as unwritable as it gets for root too."""
    directory.write_text("")
    yield
    directory.unlink()


def test_a_disk_that_refuses_is_logged_and_keeps_nothing_from_being_sealed(
    tmp_path: Path, house: AppHouse, conn: psycopg.Connection[Any], sealed: Callable[[], StoredCheckpoint]
) -> None:
    before = sealed().tree_size
    directory = tmp_path / "checkpoints"
    sealing = Sealing((KEY,), Publication(directory, 0))
    with in_the_way_of(directory), capture_logs() as logged:
        one = Entry(type=EntryType.SESSION_OPENED, occurred_at=datetime.now(UTC), actor="system:tests")
        conn.execute(APPEND, [one.text()])
        assert sealing.attend(house.service.database.connection) == 1
    assert [(line["event"], line["log_level"]) for line in logged] == [("checkpoint_not_published", "error")]
    newest = newest_checkpoint(conn)
    assert newest is not None
    assert newest.tree_size == before + 1
    assert sealing.attend(house.service.database.connection) == 0
    assert published(directory) == [before + 1]


def test_what_is_broken_is_logged_by_its_name(
    tmp_path: Path, house: AppHouse, sealed: Callable[[], StoredCheckpoint]
) -> None:
    sealed()
    with house.connect(Role.OWNER) as owner:
        one = Entry(type=EntryType.SESSION_OPENED, occurred_at=datetime.now(UTC), actor="system:tests")
        owner.execute(APPEND, [one.text()])
    others = Sealing((SigningKey("others/log", bytes(32)),), Publication(tmp_path, 0))
    with capture_logs() as logged, pytest.raises(Exception, match="others/log"):
        others.attend(house.service.database.connection)
    assert [(line["event"], line["problem"]) for line in logged] == [
        ("log_broken", "The log is tests/log, and the keys are those of others/log.")
    ]
    assert files_in(tmp_path) == []
