"""The tree against the definitions of RFC 9162, written down here a second time, and against published vectors."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casino_brag.audit.tree import (
    EMPTY_ROOT,
    LEVELS,
    Growth,
    Hashes,
    around,
    consistency_proof,
    includes,
    inclusion_proof,
    is_consistent,
    leaf_hash,
    node_hash,
    root_around,
    root_hash,
)

SMALL = 600
LARGE = 66_300
"""More than 65,536, so that a node of level 16 is kept, and the levels between are not."""

LEAVES = [leaf_hash(b"entry %d" % number) for number in range(LARGE)]


# The definitions of section 2.1, of leaves that are hashed already.


@functools.cache
def mth(first: int, end: int) -> bytes:
    """MTH over the leaves from `first` to before `end`."""
    if end == first:
        return sha256(b"").digest()
    if end - first == 1:
        return LEAVES[first]
    k = split(end - first)
    return sha256(b"\x01" + mth(first, first + k) + mth(first + k, end)).digest()


def split(n: int) -> int:
    """The largest power of two smaller than n."""
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def path(m: int, first: int, end: int) -> list[bytes]:
    """PATH(m, D[first:end])."""
    if end - first == 1:
        return []
    k = split(end - first)
    if m < k:
        return [*path(m, first, first + k), mth(first + k, end)]
    return [*path(m - k, first + k, end), mth(first, first + k)]


def subproof(m: int, first: int, end: int, b: bool) -> list[bytes]:
    """SUBPROOF(m, D[first:end], b); PROOF(m, D) is SUBPROOF(m, D, true)."""
    n = end - first
    if m == n:
        return [] if b else [mth(first, end)]
    k = split(n)
    if m <= k:
        return [*subproof(m, first, first + k, b), mth(first + k, end)]
    return [*subproof(m - k, first + k, end, False), mth(first, first + k)]


@pytest.fixture(scope="module")
def grown() -> Growth:
    growth = Growth(of([]), 0)
    growth.extend(LEAVES)
    return growth


@pytest.fixture(scope="module")
def hashes(grown: Growth) -> Hashes:
    """Leaves and kept nodes, and a refusal to say anything else."""
    kept = {(level, number): node for level, number, node in grown.nodes}

    def found(level: int, first: int, count: int) -> Sequence[bytes]:
        assert level in (0, 8, 16)
        assert 0 < count <= 256
        if level == 0:
            return LEAVES[first : first + count]
        return [kept[level, number] for number in range(first, first + count)]

    return found


def of(leaves: Sequence[bytes]) -> Hashes:
    """Leaves alone, for trees that have fewer than 256."""

    def found(level: int, first: int, count: int) -> Sequence[bytes]:
        assert level == 0
        return leaves[first : first + count]

    return found


sizes = st.one_of(
    st.integers(0, LARGE),
    st.sampled_from([255, 256, 257, 511, 512, 513, 65_279, 65_280, 65_535, 65_536, 65_537, 65_792, 65_793]),
)


def test_the_root_of_every_small_tree_is_that_of_the_definition(hashes: Hashes) -> None:
    assert [root_hash(hashes, size) for size in range(SMALL + 1)] == [
        mth(0, size) for size in range(SMALL + 1)
    ]


def test_the_proof_of_every_leaf_of_every_small_tree_is_that_of_the_definition(hashes: Hashes) -> None:
    for size in range(1, SMALL + 1):
        root = mth(0, size)
        # Every leaf of most trees, and of the larger ones those at the ends and where blocks meet.
        near = {0, 1, 254, 255, 256, 257, 511, 512, 513, size // 2, size - 2, size - 1}
        for index in range(size) if size <= 140 else sorted(at for at in near if 0 <= at < size):
            proof = inclusion_proof(hashes, index, size)
            assert proof == path(index, 0, size)
            assert includes(LEAVES[index], index, size, proof, root)


def test_the_proof_between_any_two_small_trees_is_that_of_the_definition(hashes: Hashes) -> None:
    for new in range(1, SMALL + 1):
        near = {1, 2, 3, 127, 128, 255, 256, 257, 511, 512, 513, new // 2, new - 1, new}
        for old in range(1, new + 1) if new <= 140 else sorted(at for at in near if 1 <= at <= new):
            proof = consistency_proof(hashes, old, new)
            assert proof == subproof(old, 0, new, True)
            assert is_consistent(old, new, mth(0, old), mth(0, new), proof)


@settings(max_examples=150, deadline=None)
@given(size=sizes, data=st.data())
def test_a_large_tree_is_proven_as_it_is_defined(hashes: Hashes, size: int, data: st.DataObject) -> None:
    root = root_hash(hashes, size)
    assert root == mth(0, size)
    if size:
        index = data.draw(st.integers(0, size - 1))
        proof = inclusion_proof(hashes, index, size)
        assert proof == path(index, 0, size)
        assert includes(LEAVES[index], index, size, proof, root)
        old = data.draw(st.integers(1, size))
        grown_from = consistency_proof(hashes, old, size)
        assert grown_from == subproof(old, 0, size, True)
        assert is_consistent(old, size, mth(0, old), root, grown_from)


@settings(max_examples=60, deadline=None)
@given(size=sizes, data=st.data())
def test_what_is_around_some_leaves_makes_the_root_with_them(
    hashes: Hashes, size: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, size))
    end = data.draw(st.integers(first, min(size, first + 700)))
    left, right = around(hashes, first, end, size)
    assert len(left) <= 17
    assert len(right) <= 34
    root = root_hash(hashes, size)
    assert root_around(left, LEAVES[first:end], right, first, end, size) == root
    if first < end:
        swapped = [bytes(32), *LEAVES[first + 1 : end]]
        assert root_around(left, swapped, right, first, end, size) != root
        with pytest.raises(ValueError, match="argument"):
            root_around(left, LEAVES[first : end - 1], right, first, end, size)
    with pytest.raises(ValueError, match="argument"):
        root_around([*left, bytes(32)], LEAVES[first:end], right, first, end, size)
    with pytest.raises(ValueError, match="argument"):
        root_around(left, LEAVES[first:end], [*right, bytes(32)], first, end, size)


@pytest.mark.parametrize("start", [0, 1, 255, 256, 257, 65_535, 65_536, 65_537, 66_000])
def test_a_tree_grows_from_any_size(hashes: Hashes, grown: Growth, start: int) -> None:
    growth = Growth(hashes, start)
    assert growth.root() == mth(0, start)
    growth.extend(LEAVES[start : start + 300])
    assert growth.size == start + 300
    assert growth.root() == mth(0, start + 300)
    assert growth.nodes == [
        (level, number, node)
        for level, number, node in grown.nodes
        if start < (number + 1) << level <= start + 300
    ]


@pytest.mark.parametrize("portion", [1, 3, 255, 256, 257, 1000, 65_537])
def test_a_tree_grows_the_same_in_any_portions(grown: Growth, portion: int) -> None:
    growth = Growth(of([]), 0)
    for first in range(0, LARGE, portion):
        growth.extend(LEAVES[first : first + portion])
    growth.extend([])
    assert (growth.size, growth.root(), growth.nodes) == (grown.size, grown.root(), grown.nodes)


def test_the_nodes_that_are_kept_are_the_complete_ones_of_every_eighth_level(grown: Growth) -> None:
    assert sorted(grown.nodes) == [
        (level, number, mth(number << level, (number + 1) << level))
        for level in (LEVELS, 2 * LEVELS)
        for number in range(LARGE >> level)
    ]


# What is refused


def damaged(proof: Sequence[bytes]) -> list[list[bytes]]:
    """A proof, changed in every way that there is: a bit, an element less, one more, the order, a length."""
    changed = [[*proof, bytes(32)], [bytes(32), *proof], [*proof, b""], [*proof, *proof[-1:]]]
    for place, element in enumerate(proof):
        for wrong in (bytes([element[0] ^ 1]) + element[1:], element[:-1] + bytes([element[-1] ^ 128])):
            changed.append([*proof[:place], wrong, *proof[place + 1 :]])
        changed.append([*proof[:place], *proof[place + 1 :]])
        changed.append([*proof[:place], element + b"\0", *proof[place + 1 :]])
        changed.append([*proof[:place], element[:-1], *proof[place + 1 :]])
    if len(proof) > 1:
        changed.append(list(reversed(proof)))
    return [wrong for wrong in changed if wrong != list(proof)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 255, 256, 257])
def test_a_proof_shows_one_leaf_at_one_place_of_one_tree(hashes: Hashes, size: int) -> None:
    root = mth(0, size)
    for index in {0, size // 3, size // 2, size - 1}:
        proof = inclusion_proof(hashes, index, size)
        assert includes(LEAVES[index], index, size, proof, root)
        assert not includes(LEAVES[index + 1], index, size, proof, root)
        assert not includes(LEAVES[index], index, size, proof, mth(0, size + 1))
        assert not includes(LEAVES[index][:-1], index, size, proof, root)
        for other in (-1, index - 1, index + 1, index ^ 2, size, size + index):
            assert other == index or not includes(LEAVES[index], other, size, proof, root)
        for wrong in damaged(proof):
            assert not includes(LEAVES[index], index, size, wrong, root)


@pytest.mark.parametrize("new", [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 255, 256, 257])
def test_a_proof_shows_that_one_tree_began_as_one_other(hashes: Hashes, new: int) -> None:
    for old in {1, (new + 1) // 2, new - 1, new} - {0}:
        proof = consistency_proof(hashes, old, new)
        old_root, new_root = mth(0, old), mth(0, new)
        assert is_consistent(old, new, old_root, new_root, proof)
        assert not is_consistent(old, new, mth(0, old + 1), new_root, proof)
        assert not is_consistent(old, new, old_root, mth(0, new + 1), proof)
        assert not is_consistent(old, new, old_root, mth(1, new + 1), proof)
        assert not is_consistent(old, old - 1, old_root, mth(0, old - 1), proof)
        assert not is_consistent(-1, new, old_root, new_root, proof)
        if old != new:
            assert not is_consistent(old, new, new_root, old_root, proof)
            assert not is_consistent(new, new, old_root, new_root, proof)
        for wrong in damaged(proof):
            assert not is_consistent(old, new, old_root, new_root, wrong)


def test_a_tree_whose_beginning_was_changed_is_not_consistent(hashes: Hashes) -> None:
    generator = random.Random(6962)
    for _ in range(40):
        new = generator.randrange(2, 300)
        old = generator.randrange(1, new)
        forged = LEAVES[:new]
        forged[generator.randrange(old)] = bytes(32)
        theirs = Growth(of([]), 0)
        theirs.extend(forged)
        kept = {(level, number): node for level, number, node in theirs.nodes}

        def found(
            level: int,
            first: int,
            count: int,
            forged: Sequence[bytes] = forged,
            kept: dict[tuple[int, int], bytes] = kept,
        ) -> Sequence[bytes]:
            if level == 0:
                return forged[first : first + count]
            return [kept[level, number] for number in range(first, first + count)]

        proof = consistency_proof(found, old, new)
        assert not is_consistent(old, new, mth(0, old), theirs.root(), proof)


def test_every_tree_began_as_the_empty_one(hashes: Hashes) -> None:
    assert consistency_proof(hashes, 0, 5) == consistency_proof(hashes, 0, 0) == []
    assert is_consistent(0, 5, EMPTY_ROOT, mth(0, 5), [])
    assert is_consistent(0, 0, EMPTY_ROOT, EMPTY_ROOT, [])
    assert not is_consistent(0, 5, mth(0, 1), mth(0, 5), [])
    assert not is_consistent(0, 5, EMPTY_ROOT, mth(0, 5), [mth(0, 5)])
    assert not is_consistent(3, 5, mth(0, 3), mth(0, 5), [])


def test_a_node_is_no_leaf() -> None:
    left, right = LEAVES[:2]
    assert leaf_hash(left + right) != node_hash(left, right)
    assert not includes(node_hash(left, right), 0, 1, [], mth(0, 4))


@pytest.mark.parametrize(
    "call",
    [
        lambda hashes: inclusion_proof(hashes, 5, 5),
        lambda hashes: inclusion_proof(hashes, -1, 5),
        lambda hashes: inclusion_proof(hashes, 0, 0),
        lambda hashes: consistency_proof(hashes, 6, 5),
        lambda hashes: consistency_proof(hashes, -1, 5),
        lambda hashes: around(hashes, 3, 6, 5),
        lambda hashes: around(hashes, 4, 3, 5),
        lambda hashes: root_around([], [], [], -1, 0, 5),
    ],
)
def test_what_is_not_in_the_tree_is_not_proven(hashes: Hashes, call: Callable[[Hashes], object]) -> None:
    with pytest.raises(ValueError, match=r"a tree of [05] leaves"):
        call(hashes)


def test_a_hash_that_is_missing_is_told_and_not_made_up() -> None:
    with pytest.raises(LookupError, match="of 7 hashes of level 0 from 0 on there are 6"):
        root_hash(of(LEAVES[:6]), 7)


# Published vectors: the leaves, roots and proofs that the tests of github.com/google/certificate-transparency and
# github.com/transparency-dev/merkle (testonly/constants.go) have in common.

PUBLISHED_LEAVES = [
    leaf_hash(bytes.fromhex(text))
    for text in [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ]
]
PUBLISHED_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
PUBLISHED_INCLUSION = {
    (0, 1): [],
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
}
PUBLISHED_CONSISTENCY = {
    (1, 1): [],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}


def test_the_roots_are_those_that_others_publish() -> None:
    made = [root_hash(of(PUBLISHED_LEAVES), size).hex() for size in range(9)]
    assert made == PUBLISHED_ROOTS
    assert EMPTY_ROOT.hex() == PUBLISHED_ROOTS[0]


def test_the_proofs_are_those_that_others_publish() -> None:
    for (index, size), published in PUBLISHED_INCLUSION.items():
        assert [step.hex() for step in inclusion_proof(of(PUBLISHED_LEAVES), index, size)] == published
    for (old, new), published in PUBLISHED_CONSISTENCY.items():
        assert [step.hex() for step in consistency_proof(of(PUBLISHED_LEAVES), old, new)] == published
