"""Is this the log as it was signed?  An export of the audit log, or a proof from it, checked without the casino.

The log is a row of entries.  Each is hashed, as it was written, into a leaf of a Merkle tree (RFC 9162, section 2.1);
a signed *checkpoint* says what the root of the tree was when it had so many leaves.  Whoever keeps a checkpoint, and
the key that checks its signature, sees by it whether any entry before it was changed, removed, put in or moved.

    verify_log.py log DIRECTORY        what `casino-brag audit export` wrote
    verify_log.py proof FILE           what `casino-brag audit prove ROUND --json` printed, or a player's receipt
                                       (GET /v1/rounds/{id}/proof)
    verify_log.py consistency FILE     what `casino-brag audit consistency SIZE SIZE --json` printed

Give the key as it was published elsewhere, and checkpoints that were kept elsewhere: without these, all that is shown
is that what you hold fits together.  An entry that is not there was removed, unless you know that old ones were
archived and let go, and say so by --let-go-before DATE.  Python's standard library is all that is needed, PyArrow for
exports as Parquet.

Exit status: 0 all holds; 1 something does not; 2 nothing is shown either way, because a file cannot be read as what it
should be (an empty one, say) or the command is mistaken.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

# 1. The tree.


def sha256(data: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()


def leaf_hash(entry: bytes) -> bytes:
    """The hash of an entry."""
    return sha256(b"\x00" + entry)


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash over two subtrees; what is in front keeps it from passing for that of an entry."""
    return sha256(b"\x01" + left + right)


class Tree:
    """A tree that grows to the right, by leaves (level 0) or by whole subtrees of 2^level leaves."""

    def __init__(self) -> None:
        self.size = 0
        self.subtrees: list[tuple[int, bytes]] = []

    def add(self, subtree: bytes, level: int = 0) -> None:
        """Adds to the right end."""
        self.size += 1 << level
        while self.subtrees and self.subtrees[-1][0] == level:
            subtree = node_hash(self.subtrees.pop()[1], subtree)
            level += 1
        self.subtrees.append((level, subtree))

    def root(self) -> bytes:
        """The hash over all leaves."""
        if not self.subtrees:
            return sha256(b"")
        root = self.subtrees[-1][1]
        for _, subtree in reversed(self.subtrees[:-1]):
            root = node_hash(subtree, root)
        return root


def subtree_levels(first: int, end: int) -> Iterator[int]:
    """The levels of the fewest whole subtrees that the leaves from `first` to before `end` are, from left to right."""
    while first < end:
        level = (end - first).bit_length() - 1
        if first:
            level = min(level, (first & -first).bit_length() - 1)
        yield level
        first += 1 << level


def root_by_inclusion(leaf: bytes, index: int, size: int, proof: list[bytes]) -> bytes | None:
    """The root of `size` leaves to which the hashes beside its way lead a leaf; None when they are not that many."""
    if not 0 <= index < size:
        return None
    place, last, under = index, size - 1, leaf
    for beside in proof:
        if last == 0:
            return None
        if place % 2 == 1 or place == last:
            under = node_hash(beside, under)
            while place % 2 == 0 and place:
                place, last = place // 2, last // 2
        else:
            under = node_hash(under, beside)
        place, last = place // 2, last // 2
    return under if last == 0 else None


def roots_by_consistency(
    old: int, new: int, old_root: bytes, proof: list[bytes]
) -> tuple[bytes, bytes] | None:
    """The roots of the first `old` and of all `new` leaves that a proof leads to; None when it is not of that form."""
    if not 0 < old <= new:
        return None
    if old == new:
        return (old_root, old_root) if not proof else None
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if not path:
        return None
    place, last = old - 1, new - 1
    while place % 2 == 1:
        place, last = place // 2, last // 2
    under_old = under_new = path[0]
    for beside in path[1:]:
        if last == 0:
            return None
        if place % 2 == 1 or place == last:
            under_old, under_new = node_hash(beside, under_old), node_hash(beside, under_new)
            while place % 2 == 0 and place:
                place, last = place // 2, last // 2
        else:
            under_new = node_hash(under_new, beside)
        place, last = place // 2, last // 2
    return (under_old, under_new) if last == 0 else None


# 2. Ed25519 (RFC 8032, section 5.1): whether a signature holds.  Points are X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z.

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

Point = tuple[int, int, int, int]


def add(one: Point, other: Point) -> Point:
    """The sum of two points."""
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c = 2 * one[3] * other[3] * D % P
    d = 2 * one[2] * other[2] % P
    return (b - a) * (d - c) % P, (d + c) * (b + a) % P, (d - c) * (d + c) % P, (b - a) * (b + a) % P


def times(number: int, point: Point) -> Point:
    """A point, so many times."""
    total = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = add(total, point)
        point, number = add(point, point), number >> 1
    return total


def point_of(encoded: bytes) -> Point:
    """The point of 32 bytes; ValueError where they are none."""
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        raise ValueError("no point")
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        raise ValueError("no point")
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def signature_holds(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature is that of the message, by the owner of the key."""
    if len(public) != 32 or len(signature) != 64:
        return False
    scalar = int.from_bytes(signature[32:], "little")
    if scalar >= ORDER:
        return False
    try:
        key, commitment = point_of(public), point_of(signature[:32])
    except ValueError:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    left, right = times(scalar, BASE), add(commitment, times(challenge, key))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 == (left[1] * right[2] - right[1] * left[2]) % P


# 3. Keys and checkpoints: C2SP signed-note and tlog-checkpoint.


class Refused(ValueError):
    """Something is not of its form, or is not signed."""


class Unreadable(Refused):
    """A text is not of its form: a finding in what the log's keeper gave, and none in a file of one's own."""


def base64_of(text: Any) -> bytes:
    """The bytes of a base64 text that is written as it has to be."""
    try:
        value = base64.b64decode(text, validate=True)
    except (ValueError, TypeError):
        raise Unreadable("this is no base64") from None
    if base64.b64encode(value).decode() != text:
        raise Unreadable("this is no base64 as it is written")
    return value


def hashes_of(texts: Any) -> list[bytes]:
    """Hashes of 32 bytes each, from a list of base64 texts."""
    hashes = [base64_of(text) for text in texts] if type(texts) is list else [b""]
    if any(len(one) != 32 for one in hashes):
        raise Refused("this is no list of hashes")
    return hashes


Key = tuple[str, bytes, bytes]
HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # of a surrogate pair: no text of its own
LONGEST_NOTE = 100_000


def key_of(text: str) -> Key:
    """The name of a verifier key, the hash that says whose a signature is, and the public key itself."""
    if HALF_CHARACTER.search(text):
        raise Refused("there is half a character in a key")
    name, _, rest = text.partition("+")
    key_hash, _, encoded = rest.partition("+")
    kind_and_public = base64_of(encoded)
    if not name or len(kind_and_public) != 33 or kind_and_public[0] != 1:
        raise Refused("a key is NAME+HASH+BASE64 of an Ed25519 key")
    own_hash = sha256(name.encode() + b"\n" + kind_and_public)[:4]
    if own_hash.hex() != key_hash:
        raise Refused("the hash in a key is not that of its name and of the key itself")
    return name, own_hash, kind_and_public[1:]


class Checkpoint:
    """What a signed note says the tree was, and which of the keys have signed it."""

    def __init__(self, note: Any, keys: list[Key]) -> None:
        if type(note) is str and (len(note) > LONGEST_NOTE or HALF_CHARACTER.search(note)):
            raise Unreadable("this is no checkpoint: it is too long, or has half a character in it")
        text, _, signatures = note.rpartition("\n\n") if type(note) is str else ("", "", "")
        lines = text.split("\n")
        if len(lines) != 3 or not re.fullmatch("0|[1-9][0-9]{0,18}", lines[1], re.ASCII) or note[-1] != "\n":
            raise Unreadable("this is no checkpoint: the log, the size, the root, an empty line, signatures")
        self.origin, self.size, self.root = lines[0], int(lines[1]), base64_of(lines[2])
        self.signers: list[str] = []
        for line in signatures[:-1].split("\n"):
            mark, _, rest = line.partition(" ")
            name, _, encoded = rest.partition(" ")
            if mark != "\N{EM DASH}" or not name:
                raise Unreadable("a signature is a dash, a name and its base64")
            signed = base64_of(encoded)
            for key in keys:
                if key[:2] == (name, signed[:4]):
                    if not signature_holds(key[2], f"{text}\n".encode(), signed[4:]):
                        raise Refused(f"the signature of {name}+{signed[:4].hex()} does not hold")
                    self.signers.append(name)
        if self.origin not in self.signers:
            raise Refused(f"no key that is given has signed it as the log {self.origin}")


def must_be_checkpoints(kept: list[Path]) -> None:
    """Refused where a file of one's own holds no checkpoint at all.  Who has signed one is judged with the rest."""
    for path in kept:
        note = read_text(path)
        try:
            Checkpoint(note, [])
        except Unreadable as unreadable:
            raise Unreadable(f"{path}: {unreadable}") from None
        except Refused:
            pass  # it is one


# 4. An entry: its bytes are the record; the columns beside them have to say the same.

SUBJECTS = ("operator_id", "player_id", "session_id", "round_id")
TEXTS = ("entry_id", "type", "occurred_at", "actor", "authoriser", "reason")
DOCUMENTS = ("before", "after", "payload")
COLUMNS = ("leaf_index", *TEXTS, *SUBJECTS, *DOCUMENTS, "bytes", "leaf_hash", "sealed_hash")
WHOLE_MAX = 2**53 - 1  # up to here every program that reads JSON has a whole number exactly


def canonical(value: Any) -> str:
    """The one text of a JSON value (RFC 8785).  ValueError for what entries never hold."""
    if value is None or type(value) is bool or (type(value) is int and abs(value) <= WHOLE_MAX):
        return json.dumps(value)
    if type(value) is str and not HALF_CHARACTER.search(value):
        return json.dumps(value, ensure_ascii=False)
    if type(value) is list:
        return f"[{','.join(map(canonical, value))}]"
    if type(value) is dict:
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return f"{{{','.join(f'{canonical(name)}:{canonical(value[name])}' for name in names)}}}"
    raise ValueError("a fraction, too large a number, or half a character")


def read_entry(content: bytes) -> dict[str, Any]:
    """The entry that is written in bytes; Refused where it could be read in another way too, or is none."""
    try:
        entry = json.loads(content)
        reads_one_way = canonical(entry).encode() == content
    except (ValueError, RecursionError):
        reads_one_way = False
    if not reads_one_way:
        raise Refused("its bytes are not canonical JSON (RFC 8785) of texts and whole numbers")
    members = {*TEXTS, *DOCUMENTS, "subjects"}
    if type(entry) is not dict or {*entry} != members or type(entry["subjects"]) is not dict:
        raise Refused(f"its bytes are no entry: that has {', '.join(sorted(members))}")
    if not {*entry["subjects"]} <= {*SUBJECTS}:
        raise Refused("its bytes name a subject that is none")
    return entry


def row_problems(row: dict[str, Any]) -> list[str]:
    """What of a row of an export is not what its bytes say; CSV has no other way to write none than an empty text."""
    content = row["bytes"]
    if leaf_hash(content) != row["sealed_hash"]:
        return ["its bytes are not those that were sealed"]
    try:
        entry = read_entry(content)
    except Refused as refused:
        return [str(refused)]
    problems = [] if leaf_hash(content) == row["leaf_hash"] else ["leaf_hash is not that of its bytes"]
    for name in (*TEXTS, *SUBJECTS, *DOCUMENTS):
        said = entry["subjects"].get(name) if name in SUBJECTS else entry[name]
        shown = row[name]
        written = said if row["nulls"] else as_csv(said)
        if not (same_document(said, shown) if name in DOCUMENTS else shown == written):
            problems.append(f"column {name} is not what its bytes say")
    return problems


def same_document(said: Any, shown: str | None) -> bool:
    """Whether a column shows the JSON value that an entry has there."""
    if said is None:
        return not shown
    try:
        return canonical(json.loads(shown or "")) == canonical(said)
    except (ValueError, RecursionError):
        return False


def as_csv(said: Any) -> Any:
    """A text as the CSV has it: one that a spreadsheet would compute has an apostrophe in front."""
    if type(said) is not str:
        return said or ""
    return f"'{said}" if said[:1] in ("=", "+", "-", "@", "\t", "\r") else said


def is_older(entry_id: Any, moment: datetime) -> bool:
    """Whether an entry was made before a moment: its identifier begins with its time, which nothing proves."""
    try:
        return datetime.fromtimestamp(int(entry_id.replace("-", "")[:12], 16) / 1000, UTC) < moment
    except (ValueError, AttributeError, OverflowError, OSError):
        return False


def is_younger(claimed: str, moment: datetime) -> bool:
    """Whether a time is not before a moment; False where it is none."""
    try:
        return datetime.fromisoformat(claimed) >= moment
    except (ValueError, TypeError, OverflowError):
        return False


def is_late(claimed: str, before: str) -> bool:
    """Whether a time is more than an hour before another; False where one of them is none."""
    try:
        return datetime.fromisoformat(claimed) < datetime.fromisoformat(before) - timedelta(hours=1)
    except (ValueError, TypeError, OverflowError):
        return False


# 5. An export.

FORMAT = "casino-brag-log-export-1"
FILES = {"tree.json", "checkpoint.txt", "checkpoints.jsonl", "keys.txt"}  # and entries of either form


def shown(words: str) -> str:
    """What others have written as it may be printed: nothing in it moves or hides what stands elsewhere."""
    words = words if len(words) <= 2000 else f"{words[:2000]}..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)


class Findings:
    """What was checked, in words, what of it does not hold, and how many entries were let go."""

    NAMED = 20

    def __init__(self) -> None:
        self.problems = 0
        self.let_go = 0

    def holds(self, words: str) -> None:
        """Tells what holds."""
        print(f"  {'holds':<15}{shown(words)}")

    def not_compared(self, words: str) -> None:
        """Tells what cannot be judged."""
        print(f"  {'not compared':<15}{shown(words)}")

    def fails(self, words: str) -> None:
        """Tells what does not; of very many the first."""
        self.problems += 1
        if self.problems <= self.NAMED:
            print(f"  {'DOES NOT HOLD':<15}{shown(words)}")

    def check(self, is_so: bool, words: str) -> None:
        """Tells which of the two it is."""
        self.holds(words) if is_so else self.fails(words)


def check_log(
    directory: Path, keys: list[Key], kept: list[Path], let_go_before: datetime | None, findings: Findings
) -> None:
    """Checks an export."""
    manifest = read_json(directory / "manifest.json")
    if type(manifest) is not dict or manifest.get("format") != FORMAT:
        raise Refused(f"{directory / 'manifest.json'} is not that of an export ({FORMAT})")
    check_files(directory, manifest, findings)
    stretch = Stretch(directory / "tree.json")
    told = tuple(manifest.get(name) for name in ("first", "end", "tree_size"))
    if told != (stretch.first, stretch.end, stretch.size):
        findings.fails("the manifest tells of another stretch or tree than tree.json")
    if manifest.get("from") is None and stretch.first != 0:
        findings.fails(
            "the manifest says that it is the log from its beginning on, and the first leaves lack"
        )
    if manifest.get("to") is None and stretch.end != stretch.size:
        findings.fails("the manifest says that it is the log up to its end, and the last leaves lack")
    said = checkpoints_said(directory, kept, keys, findings)
    grown = Tree()
    for level, subtree in stretch.left:
        grown.add(subtree, level)
    roots = {grown.size: grown.root()}
    if not check_entries(directory, stretch, grown, {*said}, roots, let_go_before, findings):
        return
    for level, subtree in stretch.right:
        grown.add(subtree, level)
    roots[stretch.size] = grown.root()
    check_roots(roots, said, stretch, manifest.get("to") is None, findings)


class Stretch:
    """The leaves that are exported, of the tree of `size`, and the subtrees beside them, each after its level."""

    def __init__(self, path: Path) -> None:
        tree = read_json(path)
        try:
            numbers: list[int] = [tree[name] for name in ("first", "end", "tree_size")]
            self.first, self.end, self.size = numbers
            if {*map(type, numbers)} != {int} or not 0 <= self.first < self.end <= self.size < 1 << 63:
                raise Refused("there is no such stretch")
            levels = subtree_levels(0, self.first), subtree_levels(self.end, self.size)
            self.left, self.right = (
                list(zip(side, hashes_of(tree[name]), strict=True))
                for side, name in zip(levels, ("left", "right"), strict=True)
            )
        except (KeyError, TypeError, ValueError) as wrong:
            raise Refused(f"{path} is not of its form: {wrong}") from wrong


def check_entries(
    directory: Path,
    stretch: Stretch,
    grown: Tree,
    sizes: set[int],
    roots: dict[int, bytes],
    let_go_before: datetime | None,
    findings: Findings,
) -> bool:
    """Checks the entries, and grows the tree by them; puts down its root at some sizes.  False where one lacks."""
    before = ""
    for row in rows_of(directory):
        if row["leaf_index"] != str(grown.size):
            findings.fails(
                f"leaf {grown.size}: it is missing; the row in its place is of leaf {row['leaf_index']}"
            )
            return False
        if row["bytes"]:
            for problem in row_problems(row):
                findings.fails(f"leaf {row['leaf_index']}, entry {row['entry_id']}: {problem}")
            if is_late(row["occurred_at"], before):
                late = "it claims to be more than an hour older than the one that was sealed before it"
                findings.fails(f"leaf {row['leaf_index']}, entry {row['entry_id']}: {late}")
            before = row["occurred_at"]
        elif let_go_before is None:
            missing = "the entry is missing. If you know that it was archived: --let-go-before DATE"
            findings.fails(f"leaf {row['leaf_index']}, entry {row['entry_id']}: {missing}")
        elif is_older(row["entry_id"], let_go_before) and not is_younger(before, let_go_before):
            findings.let_go += 1  # the oldest are the first to go
        else:
            missing = f"the entry is missing, and none that was let go before {let_go_before:%Y-%m-%d}"
            findings.fails(f"leaf {row['leaf_index']}, entry {row['entry_id']}: {missing}")
        grown.add(row["sealed_hash"])
        if grown.size in sizes:
            roots[grown.size] = grown.root()
    words = f"there are {stretch.end - stretch.first} leaves, {stretch.first} to {stretch.end - 1}"
    findings.check(grown.size == stretch.end, words)
    return grown.size == stretch.end


def check_files(directory: Path, manifest: dict[str, Any], findings: Findings) -> None:
    """Compares the files with the manifest, which tells damage, and no more: whoever forges can write one too."""
    files = manifest.get("files")
    if type(files) is not dict or {*files} not in ({"entries.csv", *FILES}, {"entries.parquet", *FILES}):
        raise Refused(f"{directory / 'manifest.json'} does not list the files of an export")
    if others := {path.name for path in directory.iterdir()} - {"manifest.json", *files}:
        raise Refused(f"{directory} has files that are none of the export: {', '.join(sorted(others))}")
    for name, told in files.items():
        with open_file(directory / name) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if type(told) is not dict or digest != told.get("sha256"):
            findings.fails(f"{name} is not the file that the manifest was made of")


Said = dict[int, list[tuple[str, bytes, bool]]]


def checkpoints_said(directory: Path, kept: list[Path], keys: list[Key], findings: Findings) -> Said:
    """By size, what signed checkpoints say the root is: where, and whether that was kept elsewhere.

    Those that were kept come first; the others are the export's.
    """
    notes: list[tuple[str, Any]] = [(str(path), read_text(path)) for path in kept]
    notes.append(("checkpoint.txt", read_text(directory / "checkpoint.txt")))
    for number, line in enumerate(lines_of(directory / "checkpoints.jsonl"), start=1):
        try:
            notes.append((f"checkpoints.jsonl, line {number}", json.loads(line)))
        except (ValueError, RecursionError):
            findings.fails(f"checkpoints.jsonl, line {number} is no JSON")
    said: Said = {}
    others = [key for key in map(key_of, own_keys("log", directory)) if key not in keys]
    by_others: dict[str, int] = {}
    for number, (where, note) in enumerate(notes):
        try:
            checkpoint = Checkpoint(note, keys)
            said.setdefault(checkpoint.size, []).append((where, checkpoint.root, number < len(kept)))
        except Refused as refused:
            if signer := signer_of(note, others):
                by_others[signer] = by_others.get(signer, 0) + 1
            else:
                findings.fails(f"{where}: {refused}")
    for signer, count in by_others.items():
        findings.fails(
            f"{count} checkpoints are signed by {signer} of keys.txt, which was not given as a --key"
        )
    if not findings.problems:
        findings.holds(f"{len(said)} checkpoints are signed")
    return said


def signer_of(note: Any, keys: list[Key]) -> str | None:
    """Which of the keys has signed a checkpoint as the log's own, if one has."""
    for key in keys:
        try:
            Checkpoint(note, [key])
        except Refused:
            continue
        return f"{key[0]}+{key[1].hex()}"
    return None


def check_roots(
    roots: dict[int, bytes], said: Said, stretch: Stretch, to_the_end: bool, findings: Findings
) -> None:
    """Compares what the entries make of the tree with what was signed of it."""
    compared = 0
    good = {True: 0, False: 0}  # what the export itself has signed may be another history from some place on
    for size, tellers in sorted(said.items()):
        compared += any(roots.get(size) == root for _, root, _ in tellers)
        for where, root, is_kept in tellers:
            if roots.get(size) == root:
                good[is_kept] = size
            elif size in roots:
                findings.fails(
                    f"{where}: the root of {size} entries is another. Of the leaves {good[is_kept]} to {size - 1} one"
                    " was changed, removed, put in or moved after it was signed, or it was forged"
                )
            elif to_the_end and size > stretch.size:
                findings.fails(
                    f"{where}: it is of {size} entries, and the log ends after {stretch.size}. Records were removed,"
                    " an older backup was restored, or this was exported before"
                )
            else:
                findings.not_compared(f"{where}: the export does not tell the root of {size} entries")
    if stretch.size not in said:
        findings.fails(f"no signed checkpoint is of {stretch.size} entries")
    elif not findings.problems:
        findings.holds(f"{compared} checkpoints are of these entries")


def rows_of(directory: Path) -> Iterator[dict[str, Any]]:
    """The rows of an export; `bytes` and hashes as bytes, `leaf_index` as text; whether there are `nulls`."""
    parquet = directory / "entries.parquet"
    if parquet.exists():
        yield from parquet_rows(parquet)
        return
    csv.field_size_limit(LARGEST_FILE)
    reader = csv.reader((line.decode("utf-8") for line in lines_of(directory / "entries.csv")), strict=True)
    try:
        names = next(reader, [])
        if {*names} != {*COLUMNS} or len(names) != len(COLUMNS):
            raise Refused(f"entries.csv has other columns than {', '.join(COLUMNS)}")
        for values in reader:
            if len(values) != len(names):
                raise Refused(f"entries.csv, line {reader.line_num} has {len(values)} columns")
            row: dict[str, Any] = dict(zip(names, values, strict=True))
            row["bytes"] = base64_of(row["bytes"])
            row |= {name: bytes.fromhex(row[name]) for name in ("leaf_hash", "sealed_hash")}
            row["nulls"] = False
            yield row
    except (csv.Error, UnicodeDecodeError, ValueError) as wrong:
        raise Refused(f"entries.csv, line {reader.line_num} is not of its form: {wrong}") from wrong


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The same of a Parquet file."""
    try:
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - it need not be there
    except ImportError:
        raise Refused("an export as Parquet needs PyArrow: install it, or export as CSV") from None
    types = dict.fromkeys(COLUMNS, "string") | {"leaf_index": "int64"}
    types |= dict.fromkeys(("bytes", "leaf_hash", "sealed_hash"), "binary")
    try:
        with open_file(path) as raw, ParquetFile(raw) as file:
            schema = file.schema_arrow
            if sorted(zip(schema.names, map(str, schema.types), strict=True)) != sorted(types.items()):
                raise Refused(f"{path.name} has other columns than {', '.join(COLUMNS)}")
            for batch in file.iter_batches(batch_size=5000):
                for row in batch.to_pylist():
                    hashed = {name: row[name] or b"" for name in ("bytes", "leaf_hash", "sealed_hash")}
                    yield row | hashed | {"leaf_index": str(row["leaf_index"]), "nulls": True}
    except (OSError, ValueError) as wrong:  # PyArrow's own are of these
        raise Refused(f"{path.name} is not of its form: {wrong}") from wrong


# 6. Proofs.


def check_proof(path: Path, keys: list[Key], kept: list[Path], findings: Findings) -> None:
    """Checks that entries are in the tree of a signed checkpoint."""
    proof = read_json(path)
    try:
        if "inclusion" in proof:
            proof = of_receipt(proof)
        checkpoint = Checkpoint(proof["checkpoint"], keys)
        findings.holds(f"the checkpoint of {checkpoint.size} entries is signed")
        findings.check(proof["tree_size"] == checkpoint.size, "tree_size is that of the checkpoint")
        if not proof["entries"]:
            findings.fails("there is no entry")
        for given in proof["entries"]:
            content, index = base64_of(given["bytes_b64"]), given["leaf_index"]
            hashes = hashes_of(given["inclusion_proof"])
            if type(index) is not int:
                raise Refused("a leaf_index is a whole number")
            root = root_by_inclusion(leaf_hash(content), index, checkpoint.size, hashes)
            entry = read_entry(content)
            about = f"{entry['type']} of {entry['occurred_at']}, entry {entry['entry_id']}"
            for name, subject in sorted(entry["subjects"].items(), reverse=True):
                about += f", {name} {subject}"
            findings.check(root == checkpoint.root, f"leaf {index} is {about}")
    except Refused as refused:
        findings.fails(str(refused))
    except (KeyError, TypeError, AttributeError, UnicodeEncodeError):
        raise Refused(f"{path} is not what `casino-brag audit prove ROUND --json` prints") from None
    if kept:
        findings.not_compared(
            "checkpoints kept elsewhere: `casino-brag audit consistency` relates them to this one"
        )


def of_receipt(receipt: dict[str, Any]) -> dict[str, Any]:
    """What a player's receipt of a round shows of the log, in the form of a proof; Refused while it shows nothing."""
    inclusion = receipt["inclusion"]
    if inclusion is None:
        raise Refused("the receipt is from before the entry was sealed: ask for it again")
    entry = base64.b64encode(receipt["audit"]["entry"].encode()).decode()
    given = {"bytes_b64": entry, "leaf_index": inclusion["leaf_index"], "inclusion_proof": inclusion["proof"]}
    return {"entries": [given], "tree_size": inclusion["tree_size"], "checkpoint": inclusion["checkpoint"]}


def check_consistency(path: Path, keys: list[Key], kept: list[Path], findings: Findings) -> None:
    """Checks that the tree of the newer of two signed checkpoints begins with that of the older."""
    proof = read_json(path)
    try:
        old, new = (Checkpoint(proof[name], keys) for name in ("old", "new"))
        findings.holds(f"the checkpoints of {old.size} and of {new.size} entries are signed")
        findings.check(old.origin == new.origin, f"both are of the log {old.origin}")
        roots = roots_by_consistency(old.size, new.size, old.root, hashes_of(proof["proof"]))
        grew = f"the {new.size} entries begin with the {old.size} of the older checkpoint"
        findings.check(roots == (old.root, new.root), grew)
        for one in kept:
            elsewhere = Checkpoint(read_text(one), keys)
            same = [held for held in (old, new) if held.size == elsewhere.size]
            if same:
                findings.check(
                    same[0].root == elsewhere.root, f"{one} is the one of {elsewhere.size} entries"
                )
            else:
                findings.not_compared(f"{one} is of {elsewhere.size} entries")
    except Refused as refused:
        findings.fails(str(refused))
    except (KeyError, TypeError):
        raise Refused(f"{path} is not what `casino-brag audit consistency SIZE SIZE --json` prints") from None


# 7. The command.

LARGEST_FILE = 1 << 26
MOST_KEYS = 1000


def open_file(path: Path) -> Any:
    """A file to read; Refused where there is none, and for what may never end."""
    try:
        if stat.S_ISREG(path.stat().st_mode):
            return path.open("rb")
    except OSError as error:
        raise Refused(f"cannot read {path} ({error.strerror})") from error
    raise Refused(f"cannot read {path} (it is no regular file)")


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file; Refused where one is too long."""
    with open_file(path) as file:
        while line := file.readline(LARGEST_FILE):
            if len(line) == LARGEST_FILE:
                raise Refused(f"{path} has a line that is too long")
            yield line


def read_text(path: Path) -> str:
    """What is written in a file; Refused where it is too long or no text."""
    with open_file(path) as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise Refused(f"{path} is too long")
    try:
        return str(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise Refused(f"{path} is no UTF-8 text") from None


def read_json(path: Path) -> Any:
    """The JSON in a file; Refused where there is none."""
    try:
        return json.loads(read_text(path))
    except Refused:
        raise
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path} is no JSON ({error})") from None


CHECKS = {"proof": check_proof, "consistency": check_consistency}


def moment_of(text: str) -> datetime:
    """A date, or a time, UTC if it says none."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def main() -> int:
    """Check what is named, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("log", *CHECKS))
    parser.add_argument("path", type=Path, help="the directory of an export, or the file of a proof")
    key_help = "a verifier key of the log, NAME+HASH+BASE64, as it was published elsewhere; may be repeated"
    parser.add_argument("--key", metavar="KEY", action="append", default=[], help=key_help)
    kept_help = "a signed checkpoint that was kept elsewhere; may be repeated"
    parser.add_argument(
        "--checkpoint", metavar="FILE", type=Path, action="append", default=[], help=kept_help
    )
    let_go_help = "with `log`: entries of before then may have been archived and let go"
    parser.add_argument("--let-go-before", metavar="DATE", type=moment_of, help=let_go_help)
    arguments = parser.parse_args()
    if arguments.let_go_before and arguments.what != "log":
        parser.error("--let-go-before goes with log")
    findings = Findings()
    try:
        must_be_checkpoints(arguments.checkpoint)
        keys = [key_of(text) for text in dict.fromkeys(arguments.key)]
        if not keys:
            print("No --key is given: whose the signatures are is not shown, only that they are alike.")
            keys = [key_of(text) for text in own_keys(arguments.what, arguments.path)]
        if arguments.what == "log":
            check_log(arguments.path, keys, arguments.checkpoint, arguments.let_go_before, findings)
        else:
            CHECKS[arguments.what](arguments.path, keys, arguments.checkpoint, findings)
    except (ValueError, ArithmeticError, RecursionError, MemoryError) as refused:  # Refused, as a rule
        print(f"{Path(sys.argv[0]).name}: {shown(str(refused))}", file=sys.stderr)
        print(
            "SOMETHING DOES NOT HOLD."
            if findings.problems
            else "NOT VERIFIED: this tells nothing of the log."
        )
        return 1 if findings.problems else 2
    if findings.problems > findings.NAMED:
        print(f"  and {findings.problems - findings.NAMED} more")
    but = (
        f" {findings.let_go} entries that were let go before {arguments.let_go_before:%Y-%m-%d} are not here."
        if findings.let_go
        else ""
    )
    print(("SOMETHING DOES NOT HOLD." if findings.problems else "Everything holds.") + but)
    return 1 if findings.problems else 0


def own_keys(what: str, path: Path) -> Iterable[str]:
    """The keys that come with what is checked."""
    if what == "log":
        keys = {*read_text(path / "keys.txt").split()}
        if len(keys) > MOST_KEYS:
            raise Refused(f"{path / 'keys.txt'} has more than {MOST_KEYS} keys")
        return sorted(keys)
    proof = read_json(path)
    try:
        return (
            [*dict.fromkeys(map(str, proof["inclusion"]["verifier_keys"]))]
            if "inclusion" in proof
            else [str(proof["verifier_key"])]
        )
    except (KeyError, TypeError):
        raise Refused("no key comes with this: give one as --key") from None


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left to say has nowhere to go
        print(f"cannot print what was found ({error.strerror})", file=sys.stderr)
        status = 2
    sys.exit(status)
