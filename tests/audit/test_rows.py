"""Rows at first sight: they agree where every column is what the bytes say, and nothing is taken for it that is not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.audit import Entry, EntryType
from casino_brag.audit.rows import Row, agrees, problems

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Nd"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15) + 1, 10**15 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)
DOCUMENTS = st.none() | st.dictionaries(TEXTS, VALUES, max_size=4)
UUIDS = st.none() | st.uuids()


def row_of(entry: Entry) -> Row:
    """The row of an entry, as PostgreSQL stores it."""

    def document(value: Any) -> bytes | None:
        return None if value is None else b"\1" + json.dumps(value, ensure_ascii=False).encode()

    def text(value: str | None) -> bytes | None:
        return None if value is None else value.encode()

    def uuid(value: UUID | None) -> bytes | None:
        return None if value is None else value.bytes

    return Row(
        entry_id=entry.entry_id.bytes,
        type=entry.type.value.encode(),
        occurred_at=(entry.occurred_at - EPOCH) // timedelta(microseconds=1),
        actor=entry.actor.encode(),
        authoriser=text(entry.authoriser),
        operator_id=uuid(entry.operator_id),
        player_id=uuid(entry.player_id),
        session_id=uuid(entry.session_id),
        round_id=uuid(entry.round_id),
        reason=text(entry.reason),
        before=document(entry.before),
        after=document(entry.after),
        payload=document(entry.payload),
        content=entry.text().encode(),
        leaf_hash=b"",
        leaf_index=None,
        sealed_hash=None,
        written_xid=b"",
    )


ENTRIES = st.builds(
    Entry,
    type=st.sampled_from(EntryType),
    occurred_at=st.datetimes(timezones=st.just(UTC)).filter(lambda at: at.microsecond > 0),
    actor=TEXTS,
    authoriser=st.none() | TEXTS,
    operator_id=UUIDS,
    player_id=UUIDS,
    session_id=UUIDS,
    round_id=UUIDS,
    reason=st.none() | TEXTS,
    before=DOCUMENTS,
    after=DOCUMENTS,
    payload=DOCUMENTS,
    entry_id=st.uuids(),
)


@given(ENTRIES)
def test_an_entry_agrees_with_its_own_bytes(entry: Entry) -> None:
    row = row_of(entry)
    assert problems(row) == []
    assert agrees(row)


@given(ENTRIES, ENTRIES, st.sampled_from(Row._fields[:13]))
def test_a_row_with_a_column_of_another_agrees_where_there_is_no_problem(
    entry: Entry, other: Entry, column: str
) -> None:
    row = row_of(entry)._replace(**{column: getattr(row_of(other), column)})
    assert agrees(row) == (problems(row) == [])


def test_a_time_to_the_full_second_is_no_problem() -> None:
    assert problems(row_of(an_entry(occurred_at=EPOCH))) == []


@pytest.mark.parametrize("text", ["a+b", "1e+20", "3.5", " 3.5", "12345678901234567890", "[1.0]"])
def test_texts_that_look_like_numbers_are_no_problem(text: str) -> None:
    row = row_of(an_entry(payload={"text": text}))
    assert problems(row) == []


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("1000000000000000000001", "1e+21"),
        ("1000000000000000000000", "1e+21"),
        ("100000000000000000001", "1e+20"),
        ("18446744073709551617", "1.8446744073709552e+19"),
        ("-9223372036854775809", "-9.223372036854776e+18"),
        ("9007199254740993", "9007199254740993"),
        ("0.50", "0.5"),
        ("0.1000000000000000000001", "0.1"),
        ("0.0000001", "1e-7"),
        ("-1.0", "-1.0"),
    ],
)
def test_a_number_that_readers_may_round_is_never_taken_for_another(stored: str, said: str) -> None:
    row = row_of(an_entry(payload={"n": "here"}))
    row = row._replace(
        payload=b'\1{"n": %b}' % stored.encode(), content=row.content.replace(b'"here"', said.encode())
    )
    assert not agrees(row)


def an_entry(**known: Any) -> Entry:
    facts: dict[str, Any] = {
        "type": EntryType.GAME_ENABLED,
        "occurred_at": EPOCH + timedelta(days=9_000, microseconds=1),
        "actor": "system:tests",
    }
    return Entry(**facts | known)
