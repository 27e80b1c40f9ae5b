"""A part of the log verified: what was done to it is named, whatever is done elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from casino_brag.audit import part
from casino_brag.audit.findings import Wrong
from casino_brag.audit.part import PartVerified, verify_part
from casino_brag.db.embedded import Role
from tests.sealed_log import Log, copy_of, sealed_log
from tests.tampering import TAMPERINGS, VICTIM

NAMED = {
    "column type": Wrong.COLUMNS_ALTERED,
    "column occurred_at": Wrong.COLUMNS_ALTERED,
    "column reason": Wrong.COLUMNS_ALTERED,
    "column payload": Wrong.COLUMNS_ALTERED,
    "column leaf_hash": Wrong.COLUMNS_ALTERED,
    "column bytes": Wrong.ENTRY_ALTERED,
    "column entry_id": Wrong.ENTRY_MISSING,
    "a whole row": Wrong.ENTRY_ALTERED,
    "a whole row and its leaf": Wrong.ROOT_DIFFERS,
    "contents exchanged": Wrong.ENTRY_ALTERED,
    "leaves exchanged": Wrong.ROOT_DIFFERS,
    "one removed": Wrong.ENTRY_MISSING,
    "one removed with its leaf": Wrong.LEAF_MISSING,
    "one there twice": Wrong.ENTRY_TWICE,
}
FIRST, LAST = VICTIM - 10, VICTIM + 10


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with sealed_log(tmp_path_factory.mktemp("log")) as log:
        yield log


def verified(log: Log, first: int, last: int | None) -> PartVerified:
    with log.connect(Role.APP) as conn:
        found = verify_part(conn, first, last)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("first", "last"),
    [(0, 0), (0, 255), (0, None), (1, 256), (255, 256), (256, 511), (300, None), (513, 600)],
)
def test_a_part_that_is_as_it_was_holds(log: Log, first: int, last: int | None) -> None:
    found = verified(log, first, last)
    assert (found.wrong, found.findings, found.next_leaf) == (0, [], None)
    assert (found.first_leaf, found.last_leaf) == (first, found.tree_size - 1 if last is None else last)


def test_what_is_too_long_is_verified_in_parts(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "LEAVES_MAX", 400)
    monkeypatch.setattr(part, "PIECE", 150)
    first: int | None = 0
    ends = []
    while first is not None:
        found = verified(log, first, None)
        assert found.wrong == 0
        ends.append(found.last_leaf)
        first = found.next_leaf
    assert ends[:2] == [399, 799]
    assert ends[-1] == found.tree_size - 1


def test_what_no_signed_tree_has_is_not_verified(log: Log) -> None:
    with log.connect(Role.APP) as conn:
        size = verified(log, 0, 0).tree_size
        assert verify_part(conn, size, None) is None
        assert verify_part(conn, size - 1, None) is not None


@pytest.mark.parametrize("name", NAMED)
def test_what_was_done_to_a_part_is_named(log: Log, name: str) -> None:
    spoil, _ = TAMPERINGS[name]
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            spoil(copy, conn)
        found = verified(copy, FIRST, LAST)
    assert found.wrong >= len(found.findings) >= 1
    assert NAMED[name] in {one.wrong for one in found.findings}
    assert all(FIRST <= one.leaf_index <= LAST for one in found.findings if one.leaf_index is not None)


@pytest.mark.parametrize("name", ["column payload", "one removed", "a whole row"])
def test_a_part_beside_it_holds(log: Log, name: str) -> None:
    spoil, _ = TAMPERINGS[name]
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            spoil(copy, conn)
        assert verified(copy, VICTIM + 1, VICTIM + 50).wrong == 0


@pytest.mark.parametrize(
    "name", ["a whole row and its leaf", "one removed with its leaf", "leaves exchanged"]
)
def test_leaves_beside_it_that_were_altered_are_not_the_tree_that_was_signed(log: Log, name: str) -> None:
    spoil, _ = TAMPERINGS[name]
    with copy_of(log) as copy:
        with copy.spoiling() as conn:
            spoil(copy, conn)
        found = verified(copy, VICTIM + 2, VICTIM + 4)
    assert {one.wrong for one in found.findings} & {Wrong.ROOT_DIFFERS, Wrong.LEAF_MISSING}
