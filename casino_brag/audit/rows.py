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

_DIGITS_AS_0: Final = bytes.maketrans(b"123456789", b"000000000")
_MANY_DIGITS: Final = b"0" * 16
_LARGE_NUMBER: Final = re.compile(rb"[ \[-]\d{16}")
_FRACTION: Final = re.compile(rb"[ \[-]\d+\.\d")


class Row(NamedTuple):
    """The columns of `audit_entry` as they are stored, and its place in the tree; anything may be None or odd.

    UUIDs are 16 bytes, texts UTF-8, `occurred_at` microseconds since 2000 in 8 bytes, documents a 1 and JSON;
    `content` is the column `bytes`.  `leaf_index` and `sealed_hash` are those of its leaf, None while it has none.
    """

    entry_id: bytes
    type: bytes
    occurred_at: bytes
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
    WHERE {where}
"""
_AS_STORED: Final = ("uuid", "text", "timestamptz", "jsonb", "bytea", "xid8")
_CHUNK: Final = 200 if psycopg.capabilities.has_stream_chunked() else 1
"""Rows that are received together, which libpq can from version 17 on."""


def rows(conn: psycopg.Connection[Any], where: LiteralString, *values: Any) -> Iterator[Row]:
    """The rows for which `where` is true of the entry `e` and its leaf `l`, as they are stored, one at a time.

    `where` may say in which order.
    """
    columns = ", ".join(f"e.{name}" for name in COLUMNS)
    with conn.cursor() as cursor:
        for name in _AS_STORED:
            cursor.adapters.register_loader(name, ByteaBinaryLoader)
        query = _SELECT.format(columns=columns, where=where)
        for stored in cursor.stream(query, values, binary=True, size=_CHUNK):
            yield Row(*stored)


def uuid_text(stored: bytes) -> str:
    """A UUID as it is written.

    >>> uuid_text(bytes(15) + b"\\x07")
    '00000000-0000-0000-0000-000000000007'
    """
    digits = stored.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_subject_text = lru_cache(1 << 16)(uuid_text)


def microseconds(stored: bytes | None) -> int:
    """A time as microseconds since 2000; 0 for none."""
    return int.from_bytes(stored or b"", "big", signed=True)


def _moment(stored: bytes) -> datetime:
    """A time, in UTC without saying so; OverflowError for one that Python's calendar does not have."""
    return _EPOCH + timedelta(microseconds=microseconds(stored))


def moment_text(stored: bytes) -> str:
    """A time as entries write it.

    >>> moment_text(bytes(8))
    '2000-01-01T00:00:00.000000Z'
    """
    return _moment(stored).isoformat(timespec="microseconds") + "Z"


def agrees(row: Row) -> bool:
    """Whether the columns, written as an entry, are the row's bytes.

    False says nothing yet: `problems` then tells what is wrong, if anything is.
    """
    try:
        return _written(row) == row.content
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return False


# A time to the full second has no fraction then, which one in a million is: `problems` looks at it again.
_AS_ENTRIES_ARE: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z


def _written(row: Row) -> bytes:
    subjects = {}
    if row.operator_id is not None:
        subjects["operator_id"] = _subject_text(row.operator_id)
    if row.player_id is not None:
        subjects["player_id"] = _subject_text(row.player_id)
    if row.session_id is not None:
        subjects["session_id"] = _subject_text(row.session_id)
    if row.round_id is not None:
        subjects["round_id"] = _subject_text(row.round_id)
    return orjson.dumps(
        {
            "actor": row.actor.decode(),
            "after": None if row.after is None else _document(row.after),
            "authoriser": None if row.authoriser is None else row.authoriser.decode(),
            "before": None if row.before is None else _document(row.before),
            "entry_id": uuid_text(row.entry_id),
            "occurred_at": _moment(row.occurred_at),
            "payload": None if row.payload is None else _document(row.payload),
            "reason": None if row.reason is None else row.reason.decode(),
            "subjects": subjects,
            "type": row.type.decode(),
        },
        option=_AS_ENTRIES_ARE,
    )


def _document(stored: bytes) -> Any:
    """The value of a document, if it is one that can be written in one way only; else ValueError."""
    if b"." in stored and _FRACTION.search(stored):
        raise ValueError("JSON writers differ in fractions")
    if _MANY_DIGITS in stored.translate(_DIGITS_AS_0) and _LARGE_NUMBER.search(stored):
        raise ValueError("JSON writers differ in numbers of more than 15 digits")
    value = orjson.loads(stored[1:])
    if value is None:
        raise ValueError("no document is NULL, not JSON's null")
    return value


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
