"""Everything that a superuser may do to the log in secret, and by what it is known afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import rfc8785

from casino_brag.audit.findings import Wrong
from casino_brag.audit.notes import Checkpoint, SigningKey, sign
from tests.sealed_log import Log, entry_at, write

VICTIM = 300
"""A leaf in the midst of the log."""

Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class Named:
    """What has to be named first: what is wrong, where (None: anywhere from `after` on), and with which words.

    `first`: whether it is the first that is named, and not only one of them.  `exported`: whether the script that
    checks an export is held against it too.
    """

    wrong: Wrong
    leaf_index: int | None = VICTIM
    words: str = ""
    first: bool = True
    exported: bool = True


Spoil = Callable[[Log, Connection], object]
THERE = "entry_id = (SELECT entry_id FROM audit_leaf WHERE leaf_index = %s)"


def change(assignment: str, leaf_index: int = VICTIM) -> Spoil:
    """Changes the columns of an entry."""
    return lambda log, conn: conn.execute(f"UPDATE audit_entry SET {assignment} WHERE {THERE}", [leaf_index])


COLUMNS = {
    "entry_id": "entry_id = gen_random_uuid()",
    "type": "type = 'wallet.withdrawal'",
    "occurred_at": "occurred_at = occurred_at + interval '1 microsecond'",
    "actor": "actor = actor || ' '",
    "authoriser": "authoriser = 'somebody'",
    "operator_id": "operator_id = gen_random_uuid()",
    "player_id": "player_id = NULL",
    "session_id": "session_id = gen_random_uuid()",
    "round_id": "round_id = gen_random_uuid()",
    "reason": "reason = 'another'",
    "before": "before = '{}'",
    "after": "after = 'null'",
    "payload": "payload = jsonb_set(payload, '{amount_minor}', '1000000')",
    "bytes": "bytes = bytes || ' '",
    "leaf_hash": "leaf_hash = sha256(leaf_hash)",
}
"""A change of every column under the hash."""

ODD = {
    "true for 1": "payload = jsonb_set(payload, '{what,2,true}', '1')",
    "1.0 for 1": "payload = payload || concat('{\"amount_minor\":', payload -> 'amount_minor', '.0}')::jsonb",
    "an empty text for none": "authoriser = ''",
    "no payload": "payload = NULL",
    "a list for a payload": "payload = '[]'",
    "a number beyond all floats": "payload = '{\"n\": 1e400}'",
    "a time without end": "occurred_at = 'infinity'",
    "a time before the common era": "occurred_at = '4000-01-01 BC'",
    "empty bytes": "bytes = ''",
    "bytes that are no text": "bytes = '\\xff00'",
    "bytes nested without end": "bytes = convert_to(repeat('[', 100000), 'UTF8')",
    "bytes with a number without end": "bytes = convert_to(repeat('9', 100000), 'UTF8')",
    "bytes of another kind": "bytes = '[1]'",
    "half a character": "bytes = convert_to('{\"actor\":\"' || chr(92) || 'ud800\"}', 'UTF8')",
    "no hash": "leaf_hash = ''",
}
"""Values that no entry has."""

ODD_EXPORTED = ("true for 1", "a number beyond all floats", "a time without end", "bytes that are no text")
"""Those that are seen in an export too; an empty text and none are the same in CSV."""


def rewritten(leaf_index: int, **members: Any) -> Spoil:
    """Changes an entry with all that hangs on it in its row."""

    def spoil(log: Log, conn: Connection) -> None:
        row = conn.execute(f"SELECT bytes FROM audit_entry WHERE {THERE}", [leaf_index]).fetchone()
        assert row is not None
        entry = json.loads(row[0]) | members
        conn.execute(
            f"UPDATE audit_entry AS e SET (actor, reason, payload, bytes, leaf_hash) = (SELECT n.actor, n.reason,"
            f" n.payload, n.bytes, n.leaf_hash FROM audit_entry_of(%s) AS n) WHERE {THERE}",
            [rfc8785.dumps(entry).decode(), leaf_index],
        )

    return spoil


def rewritten_and_rehashed(log: Log, conn: Connection) -> None:
    """Changes an entry, and its leaf with it."""
    rewritten(VICTIM, actor="nobody")(log, conn)
    conn.execute(
        "UPDATE audit_leaf AS l SET leaf_hash = e.leaf_hash FROM audit_entry AS e"
        " WHERE e.entry_id = l.entry_id AND leaf_index = %s",
        [VICTIM],
    )


def removed(which: str) -> Spoil:
    """Removes entries, of leaves that are named by a condition."""
    return lambda log, conn: conn.execute(
        f"DELETE FROM audit_entry WHERE entry_id IN (SELECT entry_id FROM audit_leaf WHERE {which})"
    )


def removed_and_passed_off_as_archived(log: Log, conn: Connection) -> None:
    """Removes an entry, and makes its leaf and the checkpoints as old as what may be let go."""
    removed(f"leaf_index = {VICTIM}")(log, conn)
    conn.execute(
        "UPDATE audit_leaf SET entry_id = entry_id_at(now() - interval '6 years') WHERE leaf_index = %s",
        [VICTIM],
    )
    conn.execute("UPDATE audit_checkpoint SET made_at = made_at - interval '6 years'")


def all_removed_and_passed_off_as_archived(log: Log, conn: Connection) -> None:
    """Removes every entry, and makes all of the database as old as what may be let go."""
    conn.execute("DELETE FROM audit_entry")
    conn.execute(
        "UPDATE audit_leaf SET entry_id = (substr(entry_id_at(now() - interval '6 years')::text, 1, 24)"
        " || lpad(leaf_index::text, 12, '0'))::uuid"
    )
    conn.execute("UPDATE audit_checkpoint SET made_at = made_at - interval '6 years'")


def removed_with_their_leaves(which: str) -> Spoil:
    def spoil(log: Log, conn: Connection) -> None:
        removed(which)(log, conn)
        conn.execute(f"DELETE FROM audit_leaf WHERE {which}")

    return spoil


def removed_and_closed_up(log: Log, conn: Connection) -> None:
    """Removes an entry with its leaf, and numbers the others anew."""
    removed_with_their_leaves(f"leaf_index = {VICTIM}")(log, conn)
    conn.execute("UPDATE audit_leaf SET leaf_index = -leaf_index WHERE leaf_index > %s", [VICTIM])
    conn.execute("UPDATE audit_leaf SET leaf_index = -leaf_index - 1 WHERE leaf_index < 0")


def contents_exchanged(log: Log, conn: Connection) -> None:
    """Puts the contents of two rows into each other's place."""
    columns = [name for name in COLUMNS if name != "entry_id"]
    taken = ", ".join(f"o.{name}" for name in columns)
    conn.execute(
        f"UPDATE audit_entry AS e SET ({', '.join(columns)}) = (SELECT {taken} FROM audit_entry AS o, audit_leaf AS l"
        " WHERE o.entry_id = l.entry_id AND l.leaf_index = 2 * %(v)s + 1 - here.leaf_index)"
        " FROM audit_leaf AS here WHERE here.entry_id = e.entry_id AND here.leaf_index IN (%(v)s, %(v)s + 1)",
        {"v": VICTIM},
    )


def leaves_exchanged(log: Log, conn: Connection) -> None:
    conn.execute(
        "UPDATE audit_leaf SET leaf_index = -leaf_index WHERE leaf_index IN (%s, %s)", [VICTIM, VICTIM + 1]
    )
    conn.execute("UPDATE audit_leaf SET leaf_index = %s + leaf_index WHERE leaf_index < 0", [2 * VICTIM + 1])


def inserted(xid: int) -> Spoil:
    """Puts an entry in as of another transaction, to which the sealer never comes."""

    def spoil(log: Log, conn: Connection) -> None:
        write(conn, entry_at(datetime.now(UTC)))
        conn.execute(
            f"UPDATE audit_entry SET written_xid = '{xid}' WHERE NOT EXISTS"
            " (SELECT FROM audit_leaf AS l WHERE l.entry_id = audit_entry.entry_id)"
        )

    return spoil


def inserted_and_not_sealed(log: Log, conn: Connection) -> None:
    """Puts an entry of an hour ago in, as if it waited for the sealer."""
    write(conn, entry_at(datetime.now(UTC) - timedelta(hours=1)))


def inserted_and_sealed(log: Log, conn: Connection) -> None:
    """Puts an entry of yesterday in, and lets the sealer seal it."""
    write(conn, entry_at(datetime.now(UTC) - timedelta(hours=60)))
    log.seal()


def inserted_with_a_leaf(log: Log, conn: Connection) -> None:
    """Puts an entry in with a leaf of its own, and makes room for this."""
    entry = entry_at(datetime.now(UTC) - timedelta(days=2))
    write(conn, entry)
    conn.execute("UPDATE audit_leaf SET leaf_index = -leaf_index WHERE leaf_index >= %s", [VICTIM])
    conn.execute("UPDATE audit_leaf SET leaf_index = 1 - leaf_index WHERE leaf_index < 0")
    conn.execute(
        "INSERT INTO audit_leaf SELECT %s, entry_id, leaf_hash FROM audit_entry WHERE entry_id = %s",
        [VICTIM, entry.entry_id],
    )


def twice(log: Log, conn: Connection) -> None:
    """Removes an entry, and has another there twice in its stead."""
    conn.execute("ALTER TABLE audit_entry DROP CONSTRAINT audit_entry_pkey CASCADE")
    conn.execute(f"INSERT INTO audit_entry SELECT * FROM audit_entry WHERE {THERE}", [VICTIM])
    removed(f"leaf_index = {VICTIM + 1}")(log, conn)


def older_backup(log: Log, conn: Connection) -> None:
    """Leaves the database as it was at an earlier checkpoint."""
    row = conn.execute(
        "SELECT tree_size FROM audit_checkpoint WHERE tree_size > 300 ORDER BY 1 LIMIT 1"
    ).fetchone()
    assert row is not None
    removed(f"leaf_index >= {row[0]}")(log, conn)
    conn.execute("DELETE FROM audit_leaf WHERE leaf_index >= %s", row)
    conn.execute("DELETE FROM audit_node WHERE (node_index + 1) << level > %s", row)
    conn.execute("DELETE FROM audit_checkpoint WHERE tree_size > %s", row)


def forged(log: Log, conn: Connection, **by: Any) -> None:
    """Puts another checkpoint in the place of the newest."""
    row = conn.execute("SELECT tree_size, root_hash FROM audit_checkpoint ORDER BY 1 DESC LIMIT 1").fetchone()
    assert row is not None
    size, root = row
    key, root = by.get("key", log.key), by.get("root", root)
    conn.execute(
        "UPDATE audit_checkpoint SET root_hash = %s, note = %s WHERE tree_size = %s",
        [root, sign(Checkpoint("log.example", size, root), [key]), size],
    )


def forged_by_another(log: Log, conn: Connection) -> None:
    """Signs with a key that is no key of the log, and says that it is one."""
    other = SigningKey.generate("log.example")
    forged(log, conn, key=other)
    conn.execute("INSERT INTO audit_key VALUES (%s, now())", [other.verifier.text()])


def forked(log: Log, conn: Connection) -> None:
    """Changes an entry and seals everything anew, with the true key."""
    rewritten(VICTIM, actor="nobody")(log, conn)
    conn.execute("TRUNCATE audit_leaf, audit_node, audit_checkpoint")
    conn.execute("UPDATE audit_sealing SET system = 0, walked_to = NULL")
    log.seal(at_most=200)


def truncated(*tables: str) -> Spoil:
    return lambda log, conn: conn.execute(f"TRUNCATE {', '.join(tables)} CASCADE")


def sql(statement: str) -> Spoil:
    return lambda log, conn: conn.execute(statement)


A_DAY = "entry_id IN (SELECT entry_id FROM audit_entry WHERE occurred_at::date = (now() - interval '2 days')::date)"

BY_THE_ROOT = Named(Wrong.ROOT_DIFFERS, None, "one of the leaves")

TAMPERINGS: dict[str, tuple[Spoil, Named]] = {
    **{
        f"column {name}": (change(assignment), Named(Wrong.COLUMNS_ALTERED, words=name))
        for name, assignment in COLUMNS.items()
        if name not in ("entry_id", "bytes")
    },
    **{
        f"odd: {name}": (
            change(assignment),
            Named(
                Wrong.ENTRY_ALTERED if "bytes =" in assignment else Wrong.COLUMNS_ALTERED,
                exported=name in ODD_EXPORTED,
            ),
        )
        for name, assignment in ODD.items()
    },
    "column entry_id": (change(COLUMNS["entry_id"]), Named(Wrong.ENTRY_MISSING)),
    "column bytes": (
        change(COLUMNS["bytes"]),
        Named(Wrong.ENTRY_ALTERED, words="not those that were sealed"),
    ),
    "first entry": (change(COLUMNS["actor"], 0), Named(Wrong.COLUMNS_ALTERED, 0, "actor")),
    "a whole row": (rewritten(VICTIM, actor="nobody", payload={"n": 7}), Named(Wrong.ENTRY_ALTERED)),
    "a whole row and its leaf": (rewritten_and_rehashed, BY_THE_ROOT),
    "first removed": (removed("leaf_index = 0"), Named(Wrong.ENTRY_MISSING, 0)),
    "one removed": (removed(f"leaf_index = {VICTIM}"), Named(Wrong.ENTRY_MISSING)),
    "last removed": (
        removed("leaf_index = (SELECT max(leaf_index) FROM audit_leaf)"),
        Named(Wrong.ENTRY_MISSING, None),
    ),
    "a day removed": (removed(A_DAY), Named(Wrong.ENTRY_MISSING, None)),
    "a day removed with its leaves": (
        removed_with_their_leaves("leaf_index BETWEEN 400 AND 700"),
        Named(Wrong.LEAF_MISSING, 400),
    ),
    "first removed with its leaf": (
        removed_with_their_leaves("leaf_index = 0"),
        Named(Wrong.LEAF_MISSING, 0),
    ),
    "one removed with its leaf": (
        removed_with_their_leaves(f"leaf_index = {VICTIM}"),
        Named(Wrong.LEAF_MISSING),
    ),
    "last removed with its leaf": (
        removed_with_their_leaves("leaf_index = (SELECT max(leaf_index) FROM audit_leaf)"),
        Named(Wrong.ROOT_DIFFERS, None, "more than there are"),
    ),
    "one removed and passed off as archived": (
        removed_and_passed_off_as_archived,
        Named(Wrong.ENTRY_MISSING),
    ),
    "all removed and passed off as archived": (
        all_removed_and_passed_off_as_archived,
        Named(Wrong.ENTRY_MISSING, 0),
    ),
    "one removed and closed up": (removed_and_closed_up, BY_THE_ROOT),
    "contents exchanged": (contents_exchanged, Named(Wrong.ENTRY_ALTERED)),
    "leaves exchanged": (leaves_exchanged, BY_THE_ROOT),
    "inserted": (inserted(5), Named(Wrong.ENTRY_UNSEALED, None, exported=False)),
    "inserted as of the future": (inserted(1 << 62), Named(Wrong.ENTRY_UNSEALED, None, exported=False)),
    "inserted as if it waited": (inserted_and_not_sealed, Named(Wrong.ENTRY_UNSEALED, None, exported=False)),
    "inserted and sealed": (inserted_and_sealed, Named(Wrong.ENTRY_LATE, None)),
    "inserted with a leaf": (inserted_with_a_leaf, BY_THE_ROOT),
    "one there twice": (twice, Named(Wrong.ENTRY_TWICE)),
    "entries truncated": (truncated("audit_entry"), Named(Wrong.ENTRY_MISSING, 0)),
    "leaves truncated": (truncated("audit_leaf"), Named(Wrong.ROOT_DIFFERS, 0, "more than there are")),
    "nodes truncated": (truncated("audit_node"), Named(Wrong.NODE_ALTERED, 0, "is missing", exported=False)),
    "checkpoints truncated": (
        truncated("audit_checkpoint"),
        Named(Wrong.CHECKPOINT_MISSING, None, exported=False),
    ),
    "everything truncated": (
        truncated("audit_entry", "audit_leaf", "audit_node", "audit_checkpoint"),
        Named(Wrong.RECORDS_OLDER, 0, "older backup", exported=False),
    ),
    "older backup": (older_backup, Named(Wrong.RECORDS_OLDER, None, "older backup")),
    "a node altered": (
        sql("UPDATE audit_node SET hash = sha256(hash) WHERE node_index = 1"),
        Named(Wrong.NODE_ALTERED, 256, exported=False),
    ),
    "a node too many": (
        sql("INSERT INTO audit_node VALUES (16, 9, sha256(''))"),
        Named(Wrong.NODE_ALTERED, 9 << 16, exported=False),
    ),
    "forged root": (
        lambda log, conn: forged(log, conn, root=bytes(32)),
        Named(Wrong.ROOT_DIFFERS, None),
    ),
    "forged note": (
        sql("UPDATE audit_checkpoint SET note = replace(note, 'log.example', 'log.exemple')"),
        Named(Wrong.CHECKPOINT_FORGED, None),
    ),
    "forged by another": (forged_by_another, Named(Wrong.CHECKPOINT_FORGED, None, "no known key")),
    "forked": (forked, Named(Wrong.HISTORY_DIFFERS, None, first=False)),
    "a leaf without a number": (
        lambda log, conn: (
            conn.execute("ALTER TABLE audit_leaf DROP CONSTRAINT audit_leaf_pkey"),
            conn.execute("ALTER TABLE audit_leaf ALTER leaf_index DROP NOT NULL"),
            conn.execute("UPDATE audit_leaf SET leaf_index = NULL WHERE leaf_index = %s", [VICTIM]),
        ),
        Named(Wrong.LEAF_MISSING),
    ),
    "a leaf without a hash": (
        sql(
            "ALTER TABLE audit_leaf ALTER leaf_hash DROP NOT NULL;"
            f"UPDATE audit_leaf SET leaf_hash = NULL WHERE leaf_index = {VICTIM}"
        ),
        Named(Wrong.LEAF_MISSING),
    ),
    "a checkpoint without a size": (
        sql(
            "ALTER TABLE audit_checkpoint DROP CONSTRAINT audit_checkpoint_pkey, ALTER tree_size DROP NOT NULL;"
            "UPDATE audit_checkpoint SET tree_size = NULL"
            " WHERE tree_size = (SELECT min(tree_size) FROM audit_checkpoint)"
        ),
        Named(Wrong.UNREADABLE, None, "tree", exported=False),
    ),
    "an entry without an identifier": (
        sql(
            "ALTER TABLE audit_entry DROP CONSTRAINT audit_entry_pkey CASCADE;"
            "ALTER TABLE audit_entry ALTER entry_id DROP NOT NULL;"
            "INSERT INTO audit_entry_other SELECT (one.e).* FROM"
            " (SELECT jsonb_populate_record(e, '{\"entry_id\": null}') AS e FROM audit_entry AS e LIMIT 1) AS one"
        ),
        Named(Wrong.UNREADABLE, None, "no identifier", exported=False),
    ),
    "a column renamed": (
        sql("ALTER TABLE audit_entry RENAME COLUMN reason TO reasons"),
        Named(Wrong.UNREADABLE, None, "reason", exported=False),
    ),
}
