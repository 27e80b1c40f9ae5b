"""Signed checkpoints, and the vectors of golang.org/x/mod/sumdb/note, from which the format comes."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.audit.notes import Checkpoint, NoteError, SigningKey, VerifierKey, opened, sign, verified

# note_test.go of that package.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETERS_OWN = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
ENOCH = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
BY_PETER = (
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXg"
    "KvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
BY_ENOCH = "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"
NOTE = TEXT + "\n" + BY_PETER

KEY = SigningKey("log.example/brag", bytes(range(32)))
CHECKPOINT = Checkpoint("log.example/brag", 12_345, bytes(range(32)))


def key_of(text: str) -> VerifierKey:
    return VerifierKey.parse(text)


def test_the_published_note_is_verified() -> None:
    assert verified(NOTE, [key_of(PETER)]) == (TEXT, [key_of(PETER)])
    both = NOTE + BY_ENOCH
    assert verified(both, [key_of(ENOCH), key_of(PETER)]) == (TEXT, [key_of(PETER), key_of(ENOCH)])


def test_the_published_note_is_made() -> None:
    """Ed25519 has one signature for a key and a text, so the whole note is the published one, to the byte."""
    key = SigningKey.parse(PETERS_OWN)
    assert key.verifier.text() == PETER
    assert key.text() == PETERS_OWN
    assert TEXT + "\n" + key.signature_line(TEXT) == NOTE


def test_signatures_of_unknown_keys_are_passed_over() -> None:
    assert verified(NOTE + BY_ENOCH, [key_of(PETER)]) == (TEXT, [key_of(PETER)])
    namesake = SigningKey("PeterNeumann", bytes(32))
    assert verified(NOTE + namesake.signature_line(TEXT), [key_of(PETER)]) == (TEXT, [key_of(PETER)])


def test_a_signature_that_is_there_twice_counts_once() -> None:
    assert verified(NOTE + BY_PETER, [key_of(PETER)]) == (TEXT, [key_of(PETER)])


@pytest.mark.parametrize("keys", [[], [key_of(ENOCH)], [SigningKey("PeterNeumann", bytes(32)).verifier]])
def test_a_note_that_no_known_key_has_signed_is_refused(keys: list[VerifierKey]) -> None:
    with pytest.raises(NoteError, match="no known key"):
        verified(NOTE, keys)


@pytest.mark.parametrize(
    "change",
    [
        lambda note: note.replace("cryptography", "Cryptography"),
        lambda note: note.replace("\n\n", " \n\n"),
        lambda note: note.replace("\n\n", "\n\n\n"),
        lambda note: "\n" + note,
        lambda note: note.replace("x08go/ZJ", "x08go/ZK"),
        lambda note: note.replace("JnAM=", "JnAA="),
        # A second signature by the same key does not make up for the first, nor the first for the second.
        lambda note: note + BY_PETER.replace("x08go/ZJ", "x08go/ZK"),
        lambda note: note.replace("\n\n", "\n\n" + BY_PETER.replace("x08go/ZJ", "x08go/ZK")),
    ],
)
def test_a_signature_of_a_known_key_has_to_hold(change: Callable[[str], str]) -> None:
    changed = change(NOTE)
    assert changed != NOTE
    with pytest.raises(NoteError, match=r"signature of PeterNeumann\+c74f20a3 does not hold"):
        verified(changed, [key_of(PETER)])


@pytest.mark.parametrize(
    "malformed",
    [
        "",
        "\n",
        "\n\n",
        TEXT,
        TEXT + "\n",
        TEXT + BY_PETER,
        NOTE[:-1],
        NOTE + "\n",
        "\x01" + NOTE,
        NOTE.replace("\n", "\r\n"),
        NOTE + "Unexpected line.\n",
        TEXT + "\n" + BY_PETER.replace("PeterNeumann", "Bad Name"),
        TEXT + "\n" + BY_PETER.replace("PeterNeumann", "Bad+Name"),
        TEXT + "\n" + BY_PETER.replace("PeterNeumann", ""),
        TEXT + "\n" + BY_PETER.replace("—", "-"),
        TEXT + "\n" + BY_PETER.replace("JnAM=", "JnAM"),
        TEXT + "\n" + BY_PETER.replace("JnAM=", "JnAN="),
        TEXT + "\n— PeterNeumann\n",
        TEXT + "\n— PeterNeumann x08goA==\n",
        TEXT + "\n" + BY_PETER * 101,
        "x" * 100_000 + NOTE,
        "\n\n" + BY_PETER,
    ],
    ids=range(22),
)
def test_a_malformed_note_is_refused(malformed: str) -> None:
    with pytest.raises(NoteError):
        verified(malformed, [key_of(PETER)])


@given(text=st.text())
def test_any_text_is_refused_that_nobody_signed(text: str) -> None:
    with pytest.raises(NoteError):
        opened(text, [KEY.verifier])


# Keys


@pytest.mark.parametrize("text", [PETER, PETERS_OWN], ids=["verifier", "signing"])
def test_no_part_of_a_key_is_a_key(text: str) -> None:
    def parsed(part: str) -> object:
        return SigningKey.parse(part) if text is PETERS_OWN else VerifierKey.parse(part)

    parsed(text)
    for first in range(len(text) + 1):
        for end in range(first, len(text) + 1):
            if (first, end) != (0, len(text)):
                with pytest.raises(NoteError):
                    parsed(text[first:end])
    for place in range(len(text)):
        with pytest.raises(NoteError):
            parsed(text[:place] + chr(ord(text[place]) + 1) + text[place + 1 :])


@pytest.mark.parametrize(
    "text",
    [
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        PETER.replace("c74f20a3", "C74F20A3"),
        PETER + "\n",
        " " + PETER,
    ],
)
def test_a_key_has_one_form(text: str) -> None:
    with pytest.raises(NoteError):
        VerifierKey.parse(text)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "a\u00a0b", "a\tb"])
def test_a_key_has_a_name_that_fits_into_a_line(name: str) -> None:
    with pytest.raises(NoteError, match="name"):
        SigningKey.generate(name)


def test_keys_are_read_as_they_are_written_and_are_never_the_same() -> None:
    first, second = SigningKey.generate("a/b"), SigningKey.generate("a/b")
    assert first != second
    for key in (first, second):
        assert SigningKey.parse(key.text()) == key
        assert VerifierKey.parse(key.verifier.text()) == key.verifier
        assert key.text().startswith(f"PRIVATE+KEY+a/b+{key.verifier.key_hash.hex()}+")


def test_neither_a_message_nor_a_display_repeats_a_signing_key() -> None:
    secret = PETERS_OWN.rpartition("+")[2]
    assert secret not in repr(SigningKey.parse(PETERS_OWN))
    assert repr(SigningKey.parse(PETERS_OWN).seed) not in repr(SigningKey.parse(PETERS_OWN))
    for wrong in (PETERS_OWN[1:], PETERS_OWN.replace("c74f20a3", "c74f20a4"), PETERS_OWN + "A"):
        with pytest.raises(NoteError) as refused:
            SigningKey.parse(wrong)
        assert secret[:10] not in str(refused.value)


# Checkpoints


def test_a_checkpoint_is_three_lines() -> None:
    assert CHECKPOINT.text() == (f"log.example/brag\n12345\n{base64.b64encode(bytes(range(32))).decode()}\n")


@given(
    origin=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1),
    size=st.integers(0, 2**62),
    root=st.binary(min_size=32, max_size=32),
)
def test_a_checkpoint_is_read_as_it_is_written(origin: str, size: int, root: bytes) -> None:
    checkpoint = Checkpoint(origin, size, root)
    assert Checkpoint.parse(checkpoint.text()) == checkpoint
    assert opened(sign(checkpoint, [KEY]), [KEY.verifier]) == (checkpoint, [KEY.verifier])


ROOT = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n1\n",
        f"\n1\n{ROOT}\n",
        f"a\n1\n{ROOT}",
        f"a\n1\n{ROOT}\nmore\n",
        f"a\n1\n{ROOT}\n\n",
        f"a\n01\n{ROOT}\n",
        f"a\n-1\n{ROOT}\n",
        f"a\n+1\n{ROOT}\n",
        f"a\n1_0\n{ROOT}\n",
        f"a\n１\n{ROOT}\n",
        f"a\n1e3\n{ROOT}\n",
        f"a\n99999999999999999999\n{ROOT}\n",
        f"a\n1\n{ROOT[:-1]}\n",
        f"a\n1\n{base64.b64encode(bytes(31)).decode()}\n",
        f"a\n1\n{base64.b64encode(bytes(33)).decode()}\n",
        f"a\n1\n{'00' * 32}\n",
    ],
)
def test_a_text_that_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(NoteError):
        Checkpoint.parse(text)


def test_a_note_that_is_no_checkpoint_is_not_opened_as_one() -> None:
    with pytest.raises(NoteError, match="three lines"):
        opened(NOTE, [key_of(PETER)])


def test_every_key_signs_and_any_of_them_opens() -> None:
    old, new = KEY, SigningKey.generate(KEY.name)
    note = sign(CHECKPOINT, [new, old])
    assert note.count("\n— ") == 2
    assert opened(note, [old.verifier]) == (CHECKPOINT, [old.verifier])
    assert opened(note, [old.verifier, new.verifier]) == (CHECKPOINT, [new.verifier, old.verifier])
    with pytest.raises(NoteError, match="does not hold"):
        opened(note.replace("12345", "12346"), [old.verifier])
