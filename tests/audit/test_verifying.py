"""The log verified: whatever is done to it in secret is named, and nothing is named that is as it should be."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from casino_brag.audit.findings import NAMED_MAX, Wrong
from casino_brag.audit.kept import kept_checkpoints
from casino_brag.audit.notes import SigningKey
from casino_brag.audit.publishing import Publication
from casino_brag.audit.sealer import seal
from casino_brag.audit.verifying import verify_log
from casino_brag.db.embedded import Role
from tests.inprocess import AppHouse
from tests.sealed_log import Log, copy_of, entry_at, sealed_log, write
from tests.tampering import BY_THE_ROOT, TAMPERINGS, VICTIM, Connection, older_backup


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with sealed_log(tmp_path_factory.mktemp("log")) as log:
        yield log


def test_a_log_that_was_written_and_sealed_by_many_at_a_time_holds(log: Log) -> None:
    found = log.verified()
    assert found.findings == []
    assert found.holds
    assert found.entries == found.leaves == found.tree_size > 1_000
    assert found.checkpoints > 12
    assert found.published > 6
    assert log.verified(workers=2, kept=False).holds


@pytest.mark.parametrize("name", TAMPERINGS)
def test_whatever_is_done_to_the_log_is_named(log: Log, name: str) -> None:
    spoil, named = TAMPERINGS[name]
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            spoil(copy, conn)
        found = copy.verified()
    assert not found.holds
    assert found.wrong >= len(found.findings) >= 1
    assert len(found.findings) <= NAMED_MAX
    # Which leaf it was cannot be known from roots: it is one between two checkpoints, and one of so many under a node.
    if named == BY_THE_ROOT:
        told = {one.wrong: one for one in reversed(found.findings)}
        of, to = map(int, re.findall("leaves ([0-9]+) to ([0-9]+)", told[Wrong.ROOT_DIFFERS].detail)[0])
        assert of <= VICTIM <= to
        assert told[Wrong.NODE_ALTERED].leaf_index == VICTIM >> 8 << 8
        return
    of_its_kind = [one for one in found.findings if one.wrong == named.wrong]
    assert of_its_kind, found.findings
    first = of_its_kind[0] if not named.first else found.findings[0]
    assert first.wrong == named.wrong, found.findings
    assert named.words in first.detail
    if named.leaf_index is not None:
        assert first.leaf_index == named.leaf_index


# What is as it should be


def test_entries_that_wait_for_the_sealer_are_counted_and_are_no_finding(log: Log) -> None:
    with copy_of(log) as copy:
        with copy.connect() as conn:
            for number in range(3):
                write(conn, entry_at(datetime.now(UTC), number))
        found = copy.verified()
    assert found.holds
    assert (found.waiting, found.entries - found.leaves) == (3, 3)


def test_a_backlog_that_is_sealed_days_later_is_no_finding(log: Log) -> None:
    with copy_of(log) as copy:
        with copy.connect() as conn:
            for number in range(50):
                write(conn, entry_at(datetime.now(UTC) - timedelta(hours=20 - number / 10), number))
        copy.seal(at_most=10)
        with copy.connect() as conn:
            write(conn, entry_at(datetime.now(UTC)))
        copy.seal()
        assert copy.verified().findings == []


def test_records_that_were_brought_into_another_database_cluster_hold_and_are_sealed_on(log: Log) -> None:
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            conn.execute("UPDATE audit_sealing SET system = 1, sealed = '900000000:900000000:'")
            write(conn, entry_at(datetime.now(UTC)))
        assert copy.verified().findings == []
        copy.seal()
        found = copy.verified()
    assert found.findings == []
    assert found.waiting == 0


def test_a_month_that_was_archived_after_five_years_is_told_and_is_no_finding(
    log: Log, tmp_path: Path
) -> None:
    def let_go(conn: Connection, years: int, leaves: int) -> None:
        """Makes leaves and their checkpoints as old, and lets their entries go."""
        conn.execute(
            "UPDATE audit_leaf SET entry_id = (substr(entry_id_at(now() - %s * interval '1 year')::text, 1, 24)"
            " || lpad(leaf_index::text, 12, '0'))::uuid WHERE leaf_index < %s",
            [years, leaves],
        )
        conn.execute(
            "DELETE FROM audit_entry AS e WHERE NOT EXISTS (SELECT FROM audit_leaf WHERE entry_id = e.entry_id)"
        )
        conn.execute("UPDATE audit_checkpoint SET made_at = made_at - %s * interval '1 year'", [years])

    def published(years: int, *old: Path) -> Path:
        """What was published, of which some as long ago."""
        directory = tmp_path / f"{years} years, {len(old)}"
        day = datetime.now(UTC) - timedelta(days=years * 366)
        for path in log.published.rglob("*.checkpoint"):
            of = f"{day:%Y/%m/%d}" if path in old else path.parent.relative_to(log.published)
            (directory / of).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, directory / of)
        return directory

    paths = sorted(log.published.rglob("*.checkpoint"), key=lambda path: path.name)
    old = [path for path in paths if int(path.stem) < 100]
    covering, later = paths[len(old) : len(old) + 2]
    for years, places, archived in (
        (6, published(6, *old, covering), True),
        (4, published(4, *old, covering), False),
        (6, published(6), False),
        (6, published(6, later), False),  # what was published earlier is of a later day
    ):
        with copy_of(log) as copy:
            with copy.spoiling() as conn:
                let_go(conn, years, 100)
            kept = kept_checkpoints([places])
            found = verify_log(copy.url(Role.OWNER), kept=kept, keys=[log.key.verifier])
        assert (found.archived, found.wrong) == ((100, 0) if archived else (0, 100)), (years, places)


def test_of_very_much_the_first_is_named_and_all_is_counted(log: Log) -> None:
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            conn.execute("UPDATE audit_entry SET actor = 'nobody'")
        found = copy.verified()
    assert found.wrong == found.entries
    assert [one.leaf_index for one in found.findings] == [*range(NAMED_MAX)]


def test_without_checkpoints_kept_elsewhere_an_older_backup_is_not_seen(log: Log) -> None:
    """That it is seen with them is a tampering above: this is what they are for."""
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            older_backup(copy, conn)
        assert copy.verified(kept=False).holds


def test_a_key_that_rotated_goes_on_being_known_and_another_is_not(log: Log) -> None:
    with copy_of(log) as copy:
        newer = SigningKey.generate("log.example")
        with copy.connect() as conn:
            write(conn, entry_at(datetime.now(UTC)))
        seal(copy.connect, [newer, copy.key])
        assert copy.verified().findings == []
        copy.seal(newer)
        assert copy.verified(kept=False).findings == [], "the database names the key"
        found = copy.verified()
    assert {one.wrong for one in found.findings} == {Wrong.CHECKPOINT_FORGED}
    assert "no known key" in found.findings[0].detail


@pytest.mark.parametrize(
    "note", ["", "no note", "a\n2\nb\n", "log.example\n5\n" + "A" * 43 + "=\n\n— log.example AAAA\n"]
)
def test_a_file_that_is_no_checkpoint_is_named(log: Log, tmp_path: Path, note: str) -> None:
    place = tmp_path / "2026" / "11" / "30"
    place.mkdir(parents=True)
    file = place / f"{5:020}.checkpoint"
    file.write_text(note)
    found = verify_log(log.url(Role.OWNER), kept=kept_checkpoints([tmp_path]), keys=[log.key.verifier])
    (finding,) = found.findings
    assert finding.wrong is Wrong.CHECKPOINT_FORGED
    assert str(file) in finding.detail


def test_a_hundred_thousand_entries_hold(log: Log) -> None:
    """No false alarm, by several processes that share what they see."""
    count = 100_000
    with copy_of(log) as copy:
        with copy.connect() as conn:
            conn.execute(
                """
                INSERT INTO audit_entry SELECT e.* FROM generate_series(1, %s) AS n CROSS JOIN LATERAL audit_entry_of(
                    format('{"actor":"operator:house","after":null,"authoriser":null,"before":null,"entry_id":"%%s"'
                        ',"occurred_at":"%%s","payload":{"amount_minor":%%s,"of":["é",null,true]},"reason":%%s'
                        ',"subjects":{"player_id":"%%s"},"type":"wallet.deposit"}',
                        substr(entry_id_at(now())::text, 1, 14) || '7000-8000-' || lpad(to_hex(n), 12, '0'),
                        to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                        n, CASE WHEN n %% 7 = 0 THEN '"seven"' ELSE 'null' END, md5((n %% 1000)::text)::uuid)) AS e
                """,
                [count],
            )
            conn.execute("ANALYZE audit_entry, audit_leaf")
        copy.seal(at_most=20_000)
        told: list[tuple[int, int]] = []
        found = verify_log(copy.url(Role.OWNER), workers=2, progress=lambda done, of: told.append((done, of)))
    assert found.findings == []
    assert found.entries == found.leaves > count
    assert told[-1] == (found.entries, found.leaves)
    assert len(told) > count // 20_000


def test_nothing_is_found_while_play_goes_on(app_house: AppHouse, tmp_path: Path) -> None:
    key = SigningKey.generate("log.example")
    publication = Publication(tmp_path, 0)
    over = threading.Event()

    def sealed() -> None:
        while not over.wait(0.02):
            seal(app_house.connect, [key], at_most=50)
            with app_house.connect() as conn:
                publication.publish(conn, [key.verifier])

    def played() -> None:
        player = app_house.player()
        while not over.is_set():
            player.played("play")

    with ThreadPoolExecutor(4) as pool:
        busy = [pool.submit(sealed), *(pool.submit(played) for _ in range(3))]
        try:
            read = []
            for _ in range(8):
                kept = kept_checkpoints([tmp_path])
                found = verify_log(app_house.server.url(Role.OWNER), kept=kept, keys=[key.verifier])
                assert found.findings == []
                read.append((found.entries, found.published))
        finally:
            over.set()
        for one in busy:
            one.result()
    assert read[0] < read[-1], "something was played and published meanwhile"
