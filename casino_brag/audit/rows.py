"""Rows of the log as the database keeps them, and whether each is what its own bytes say.

Nothing of the database is believed: rows are read as the bytes that are stored, without a function of the schema, and
whatever stands in them.  The usual row is proven by writing the entry anew from its columns: when that gives the bytes
that are kept, these are canonical, and every column is what they say.  Only where it does not is it asked why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, LiteralString, NamedTuple

import orjson
import psycopg
import rfc8785
from psycopg.types.numeric import Int8BinaryLoader
from psycopg.types.string import ByteaBinaryLoader

COLUMNS: Final = (
    *("entry_id", "type", "occurred_at", "actor", "authoriser"),
    *("operator_id", "player_id", "session_id", "round_id"),
    *("reason", "before", "after", "payload", "bytes", "leaf_hash"),
)
"""What is under the hash of an entry, with the bytes that are hashed and the hash."""

SUBJECTS: Final = ("operator_id", "player_id", "session_id", "round_id")
_DOCUMENTS: Final = ("before", "after", "payload")
_MEMBERS: Final = {*COLUMNS, "subjects"} - {*SUBJECTS, "bytes", "leaf_hash"}
_EPOCH: Final = datetime(2000, 1, 1)

_LARGE_NUMBER: Final = re.compile(rb"[ \[-]\d{16}")
_FRACTION: Final = re.compile(rb"[ \[-]\d+\.\d")


class Row(NamedTuple):
    """The columns of `audit_entry` as they are stored, and its place in the tree; anything may be None or odd.

    UUIDs are 16 bytes, texts UTF-8, documents a 1 and JSON; `occurred_at` is in microseconds since 2000, and `content`
    the column `bytes`.  `leaf_index` and `sealed_hash` are those of its leaf, None while it has none.
    """

    entry_id: bytes
    type: bytes
    occurred_at: int
    actor: bytes
    authoriser: bytes | None
    operator_id: bytes | None
    player_id: bytes | None
    session_id: bytes | None
    round_id: bytes | None
    reason: bytes | None
    before: bytes | None
    after: bytes | None
    payload: bytes | None
    content: bytes
    leaf_hash: bytes
    leaf_index: int | None
    sealed_hash: bytes | None
    written_xid: bytes


_SELECT: Final = """
    SELECT {columns}, l.leaf_index, l.leaf_hash, e.written_xid
    FROM audit_entry AS e LEFT JOIN audit_leaf AS l ON l.entry_id = e.entry_id
    {which}
"""
_AS_STORED: Final = ("uuid", "text", "jsonb", "bytea", "xid8")
_CHUNK: Final = 200 if psycopg.capabilities.has_stream_chunked() else 1
"""Rows that are received together, which libpq can from version 17 on."""


def rows(conn: psycopg.Connection[Any], which: LiteralString, **values: Any) -> Iterator[Row]:
    """Rows, as they are stored, one at a time.

    `which` goes on where the entry `e` is joined with its leaf `l`: with more that has to be so of the leaf, what has
    to be so of the entry, and in which order.
    """
    columns = ", ".join(f"e.{name}" for name in COLUMNS)
    with conn.cursor(row_factory=lambda _: Row._make) as cursor:
        for name in _AS_STORED:
            cursor.adapters.register_loader(name, ByteaBinaryLoader)
        cursor.adapters.register_loader("timestamptz", Int8BinaryLoader)
        query = _SELECT.format(columns=columns, which=which)
        yield from cursor.stream(query, values, binary=True, size=_CHUNK)


def uuid_text(stored: bytes) -> str:
    """A UUID as it is written.

    >>> uuid_text(bytes(15) + b"\\x07")
    '00000000-0000-0000-0000-000000000007'
    """
    digits = stored.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _moment(stored: int) -> datetime:
    """A time, in UTC without saying so; OverflowError for one that Python's calendar does not have."""
    return _EPOCH + timedelta(0, 0, stored)


def moment_text(stored: int) -> str:
    """A time as entries write it.

    >>> moment_text(0)
    '2000-01-01T00:00:00.000000Z'
    """
    return _moment(stored).isoformat(timespec="microseconds") + "Z"


def agrees(row: Row) -> bool:
    """Whether the columns, written as an entry, are the row's bytes.

    False says nothing yet: `problems` then tells what is wrong, if anything is.
    """
    try:
        written = _written(row)
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return False
    return written == row.content and not (_EXPONENT in written and _has_large_number(row))


_EXPONENT: Final = orjson.dumps(1e20)[2:3]
"""What is written of any integer of more than 64 bits: it was read as a float, and may be another number since.

Integers of 54 to 64 bits are refused, as no reader of JSON has to keep them.
"""


def _has_large_number(row: Row) -> bool:
    return any(map(_LARGE_NUMBER.search, filter(None, (row.before, row.after, row.payload))))


_ENTRY: Final = (
    b'{"actor":%b,"after":%b,"authoriser":%b,"before":%b,"entry_id":"%b","occurred_at":"%b.%06dZ","payload":%b'
    b',"reason":%b,"subjects":{%b},"type":%b}'
)


def _written(row: Row) -> bytes:
    entry_id, kind, occurred_at, actor, authoriser, operator, player, session, of_round = row[:9]
    reason, before, after, payload = row[9:13]
    seconds, microseconds = divmod(occurred_at, 1_000_000)
    return _ENTRY % (
        *(_text(actor), _document(after), _text(authoriser), _document(before)),
        *(uuid_text(entry_id).encode(), _second(seconds), microseconds),
        *(_document(payload), _text(reason)),
        _subjects(operator, player, of_round, session),
        _text(kind),
    )


# Most entries have these of others shortly before.
@lru_cache(1 << 16)
def _text(stored: bytes | None) -> bytes:
    return b"null" if stored is None else orjson.dumps(stored.decode())


@lru_cache(1 << 10)
def _second(stored: int) -> bytes:
    return _moment(stored * 1_000_000).isoformat().encode()


@lru_cache(1 << 12)
def _subjects(*stored: bytes | None) -> bytes:
    named = zip(sorted(SUBJECTS), stored, strict=True)
    return ",".join(f'"{name}":"{uuid_text(it)}"' for name, it in named if it is not None).encode()


def _document(stored: bytes | None) -> bytes:
    """A document in canonical form, if it is one that can be written in one way only; else ValueError."""
    if stored is None:
        return b"null"
    if b"." in stored and _FRACTION.search(stored):
        raise ValueError("JSON writers differ in fractions")
    value = orjson.loads(stored[1:])
    if value is None:
        raise ValueError("no document is NULL, not JSON's null")
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER)


def problems(row: Row) -> list[str]:
    """What of a row is not as its bytes say, in words; none when all is well."""
    try:
        document = json.loads(row.content, object_pairs_hook=_each_once, parse_constant=_no_number)
        canonical = rfc8785.dumps(document)
    except (TypeError, ValueError, AttributeError, RecursionError, rfc8785.CanonicalizationError) as unread:
        return [f"its bytes are no JSON of an entry: {unread}"]
    if not isinstance(document, dict) or not isinstance(document.get("subjects"), dict):
        return ["its bytes are no JSON of an entry"]
    found = [] if canonical == row.content else ["its bytes are not in canonical form"]
    if unknown := sorted({*document} ^ _MEMBERS) + sorted({*document["subjects"]} - {*SUBJECTS}):
        found.append(f"its bytes lack or have in excess: {', '.join(unknown)}")
    said = {name: document.get(name) for name in COLUMNS} | {
        name: document["subjects"].get(name) for name in SUBJECTS
    }
    for name in COLUMNS[:-2]:
        if _shown(name, getattr(row, name)) != (None if said[name] is None else _exactly(said[name])):
            found.append(f"{name} is not what its bytes say")
    return found


def _shown(name: str, stored: Any) -> str | None:
    """A column as JSON that differs where any part of the value does; None for NULL, or words where it is none."""
    if stored is None:
        return None
    try:
        if name in _DOCUMENTS:
            return _exactly(json.loads(stored[1:]))
        if name == "occurred_at":
            return _exactly(moment_text(stored))
        return _exactly(uuid_text(stored) if name.endswith("_id") else stored.decode())
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return "no value that an entry has"


def _exactly(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _each_once(members: list[tuple[str, Any]]) -> Mapping[str, Any]:
    read = dict(members)
    if len(read) != len(members):
        raise ValueError("a member is there twice")
    return read


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")
