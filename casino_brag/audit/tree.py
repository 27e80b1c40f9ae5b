"""The Merkle tree of the log (RFC 9162, section 2.1): its root, its proofs, and how it grows.

Pure: hashes come from a function, so the same code runs on tables, on an export and on a list.  Beside the leaves the
complete subtrees of every eighth level are kept, so whatever the size of the tree, a proof reads at most 256 hashes of
each of a few levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

LEVELS: Final = 8
"""Of the levels of the tree every eighth is kept: 0 (the leaves), 8, 16 and so on."""

HASH_BYTES: Final = 32

EMPTY_ROOT: Final = sha256(b"").digest()

Hashes = Callable[[int, int, int], Sequence[bytes]]
"""`(level, first, count)`: the hashes of `count` complete subtrees of 2^level leaves each, from the number `first` on.

It is asked for levels that are kept and for subtrees that are complete, and for 256 at a time at most.
"""


def leaf_hash(entry: bytes) -> bytes:
    """The hash of an entry.

    >>> leaf_hash(b"").hex()[:16]
    '6e340b9cffb37a98'
    """
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash over two subtrees.

    >>> node_hash(leaf_hash(b""), leaf_hash(b"\\0")).hex()[:16]
    'fac54203e7cc696c'
    """
    return sha256(b"\x01" + left + right).digest()


def root_hash(hashes: Hashes, size: int) -> bytes:
    """The hash over the first `size` leaves; `LookupError` when `hashes` lacks some of them.

    >>> leaves = [leaf_hash(b""), leaf_hash(b"\\0")]
    >>> root_hash(lambda level, first, count: leaves[first : first + count], 2) == node_hash(*leaves)
    True
    """
    return _Subtrees(hashes, size).over(0, size)


def inclusion_proof(hashes: Hashes, index: int, size: int) -> list[bytes]:
    """The hashes that lead from leaf `index` to the root of `size` leaves; `ValueError` for no leaf of that tree.

    >>> leaves = [leaf_hash(b"%d" % number) for number in range(3)]
    >>> inclusion_proof(lambda level, first, count: leaves[first : first + count], 2, 3) == [node_hash(*leaves[:2])]
    True
    """
    if not 0 <= index < size:
        raise ValueError(f"a tree of {size} leaves has no leaf {index}")
    subtrees, proof = _Subtrees(hashes, size), []
    first, end = 0, size
    while end - first > 1:
        middle = first + _split(end - first)
        if index < middle:
            proof.append(subtrees.over(middle, end))
            end = middle
        else:
            proof.append(subtrees.over(first, middle))
            first = middle
    return proof[::-1]


def consistency_proof(hashes: Hashes, old: int, new: int) -> list[bytes]:
    """The hashes that show that the tree of `new` leaves begins with the tree of `old`; empty for none or all of them.

    >>> leaves = [leaf_hash(b"%d" % number) for number in range(3)]
    >>> consistency_proof(lambda level, first, count: leaves[first : first + count], 2, 3) == [leaves[2]]
    True
    """
    if not 0 <= old <= new:
        raise ValueError(f"a tree of {new} leaves does not begin with {old} leaves")
    if old == 0:
        return []
    subtrees, proof = _Subtrees(hashes, new), []
    first, end = 0, new
    while end != old:
        middle = first + _split(end - first)
        if old <= middle:
            proof.append(subtrees.over(middle, end))
            end = middle
        else:
            proof.append(subtrees.over(first, middle))
            first = middle
    if first:  # else this is the old tree itself, whose root whoever checks has already
        proof.append(subtrees.over(first, end))
    return proof[::-1]


def includes(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether `proof` shows that `leaf` is number `index` of the `size` leaves under `root`.

    >>> leaves = [leaf_hash(b"%d" % number) for number in range(2)]
    >>> includes(leaves[0], 0, 2, [leaves[1]], node_hash(*leaves))
    True
    >>> includes(leaves[0], 1, 2, [leaves[1]], node_hash(*leaves))
    False
    """
    if not 0 <= index < size or not _are_hashes([leaf, root, *proof]):
        return False
    place, last, under = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            under = node_hash(sibling, under)
            place, last = _left_turn(place, last)
        else:
            under = node_hash(under, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and under == root


def is_consistent(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that the tree of `new` leaves begins with the tree of `old`.

    >>> leaves = [leaf_hash(b"%d" % number) for number in range(2)]
    >>> is_consistent(1, 2, leaves[0], node_hash(*leaves), [leaves[1]])
    True
    >>> is_consistent(1, 2, leaves[1], node_hash(*leaves), [leaves[1]])
    False
    """
    if not 0 <= old <= new or not _are_hashes([old_root, new_root, *proof]):
        return False
    if old == new:
        return not proof and old_root == new_root
    if old == 0:
        return not proof and old_root == EMPTY_ROOT
    # A complete old tree is a subtree of the new one, and its root is not sent.
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if len(path) == 0:
        return False
    place, last = old - 1, new - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    under_old = under_new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            under_old, under_new = node_hash(sibling, under_old), node_hash(sibling, under_new)
            place, last = _left_turn(place, last)
        else:
            under_new = node_hash(under_new, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and under_old == old_root and under_new == new_root


def around(hashes: Hashes, first: int, end: int, size: int) -> tuple[list[bytes], list[bytes]]:
    """The fewest complete subtrees beside the leaves from `first` to before `end`, left and right of them, in order.

    With these leaves they are the whole tree of `size`: `root_around` makes its root of them.

    >>> leaves = [leaf_hash(b"%d" % number) for number in range(4)]
    >>> left, right = around(lambda level, first, count: leaves[first : first + count], 1, 2, 4)
    >>> left == [leaves[0]], right == [node_hash(leaves[2], leaves[3])]
    (True, True)
    """
    _must_be_leaves(first, end, size)
    subtrees = _Subtrees(hashes, size)
    return (
        [subtrees.complete(*place) for place in _complete(0, first)],
        [subtrees.complete(*place) for place in _complete(end, size)],
    )


def root_around(
    left: Sequence[bytes], leaves: Iterable[bytes], right: Sequence[bytes], first: int, end: int, size: int
) -> bytes:
    """The root of `size` leaves, of which those from `first` to before `end` are given; `around` tells the others.

    `ValueError` when there are more or fewer hashes than such a tree has.

    >>> leaves = [leaf_hash(b"%d" % number) for number in range(4)]
    >>> whole = lambda level, first, count: leaves[first : first + count]
    >>> left, right = around(whole, 1, 3, 4)
    >>> root_around(left, leaves[1:3], right, 1, 3, 4) == root_hash(whole, 4)
    True
    """
    _must_be_leaves(first, end, size)
    peaks = _Peaks()
    for (level, _), given in zip(_complete(0, first), left, strict=True):
        peaks.add(level, given)
    for _, given in zip(range(first, end), leaves, strict=True):
        peaks.add(0, given)
    for (level, _), given in zip(_complete(end, size), right, strict=True):
        peaks.add(level, given)
    return peaks.root()


class Growth:
    """A tree that grows by leaves, from the `size` leaves that it has on.

    `nodes` are the complete subtrees made since, of the levels that are kept: level, number, hash.

    >>> growth = Growth(lambda level, first, count: [], 0)
    >>> growth.extend([leaf_hash(b"%d" % number) for number in range(256)])
    >>> growth.size, [(level, number) for level, number, _ in growth.nodes]
    (256, [(8, 0)])
    """

    def __init__(self, hashes: Hashes, size: int) -> None:
        self.size = size
        self.nodes: list[tuple[int, int, bytes]] = []
        self._peaks = _Peaks()
        subtrees = _Subtrees(hashes, size)
        for level, number in _complete(0, size):
            self._peaks.add(level, subtrees.complete(level, number))

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Adds the next leaves, given their hashes."""
        first = self.size
        for level, number in _complete(first, first + len(leaves), highest=LEVELS):
            begin = (number << level) - first
            self.size += 1 << level
            for made_level, made in self._peaks.add(level, _joined(leaves[begin : begin + (1 << level)])):
                if made_level and made_level % LEVELS == 0:
                    self.nodes.append((made_level, (self.size >> made_level) - 1, made))

    def root(self) -> bytes:
        """The hash over all leaves."""
        return self._peaks.root()


def _joined(hashes: Sequence[bytes]) -> bytes:
    """The root of a complete tree over these."""
    while len(hashes) > 1:
        nodes = iter(hashes)
        hashes = [sha256(b"\x01" + left + right).digest() for left, right in zip(nodes, nodes, strict=True)]
    return hashes[0]


class _Peaks:
    """The complete subtrees that make up a tree, largest first: one for each 1 in the binary form of its size."""

    def __init__(self) -> None:
        self._peaks: list[tuple[int, bytes]] = []

    def add(self, level: int, subtree: bytes) -> list[tuple[int, bytes]]:
        """Puts a complete subtree at the right end; that one, and the larger ones that this completes."""
        made = [(level, subtree)]
        while self._peaks and self._peaks[-1][0] == level:
            subtree = node_hash(self._peaks.pop()[1], subtree)
            level += 1
            made.append((level, subtree))
        self._peaks.append((level, subtree))
        return made

    def root(self) -> bytes:
        """The hash over all of them: the smallest two are joined first."""
        if not self._peaks:
            return EMPTY_ROOT
        *larger, (_, root) = self._peaks
        for _, left in reversed(larger):
            root = node_hash(left, root)
        return root


class _Subtrees:
    """Hashes over parts of a tree of `size` leaves.  What is kept is read in blocks of 256, each once."""

    def __init__(self, hashes: Hashes, size: int) -> None:
        self._hashes, self._size = hashes, size
        self._blocks: dict[tuple[int, int], Sequence[bytes]] = {}

    def over(self, first: int, end: int) -> bytes:
        """The hash over the leaves from `first` to before `end`, which are a subtree, if not a complete one."""
        peaks = _Peaks()
        for level, number in _complete(first, end):
            peaks.add(level, self.complete(level, number))
        return peaks.root()

    def complete(self, level: int, number: int) -> bytes:
        """The hash over the complete subtree `number` of `level`."""
        if level % LEVELS:
            return node_hash(self.complete(level - 1, 2 * number), self.complete(level - 1, 2 * number + 1))
        block = number >> LEVELS
        if (level, block) not in self._blocks:
            self._blocks[level, block] = self._read(level, block << LEVELS)
        return self._blocks[level, block][number - (block << LEVELS)]

    def _read(self, level: int, first: int) -> Sequence[bytes]:
        count = min(1 << LEVELS, (self._size >> level) - first)
        found = self._hashes(level, first, count)
        if len(found) != count:
            raise LookupError(f"of {count} hashes of level {level} from {first} on there are {len(found)}")
        return found


def _complete(first: int, end: int, highest: int = 64) -> Iterator[tuple[int, int]]:
    """The fewest complete subtrees that the leaves from `first` to before `end` are: level and number, in order.

    None is of a level above the `highest`.
    """
    while first < end:
        level = min((end - first).bit_length() - 1, highest)
        if first:
            level = min(level, (first & -first).bit_length() - 1)
        yield level, first >> level
        first += 1 << level


def _split(size: int) -> int:
    """The largest power of two below `size`: so many leaves are under the left side of a tree."""
    return 1 << ((size - 1).bit_length() - 1)


def _left_turn(place: int, last: int) -> tuple[int, int]:
    """Up through the levels at which a node has no sibling, to where it is a right one."""
    while place and not place & 1:
        place, last = place >> 1, last >> 1
    return place, last


def _must_be_leaves(first: int, end: int, size: int) -> None:
    if not 0 <= first <= end <= size:
        raise ValueError(f"a tree of {size} leaves has no leaves from {first} to before {end}")


def _are_hashes(values: Sequence[bytes]) -> bool:
    # Of other lengths, the end of one hash could pass for the beginning of the next.
    return all(len(value) == HASH_BYTES for value in values)
