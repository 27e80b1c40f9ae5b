"""Checkpoints of the log, signed: what the tree was at one size, in a form that anybody's tools read.

A checkpoint is a C2SP tlog-checkpoint (https://c2sp.org/tlog-checkpoint) in a signed note
(https://c2sp.org/signed-note) with Ed25519 signatures.  Keys have the text forms of Go's `sumdb/note`.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from casino_brag.audit.tree import HASH_BYTES

NOTE_MAX: Final = 100_000
"""Characters of a note that is looked at; a checkpoint with a signature has about 200."""
SIGNATURES_MAX: Final = 100

_ED25519: Final = b"\x01"
_PRIVATE: Final = "PRIVATE+KEY+"
_SIGNATURE: Final = "\N{EM DASH} "


class NoteError(ValueError):
    """A key, a checkpoint or a signed note is malformed, or a signature does not hold.  The text says which."""


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """What signatures are checked by: a name and an Ed25519 public key of 32 bytes.

    >>> VerifierKey.parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW").name
    'PeterNeumann'
    """

    name: str
    public: bytes

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """The key of `name+hash+base64`; `NoteError` when it is malformed or the hash is not its own."""
        name, key_hash, public = _key_parts(text)
        key = cls(name, public)
        if key.key_hash != key_hash:
            raise NoteError("the key's hash does not belong to the name and the key beside it")
        return key

    def text(self) -> str:
        return f"{self.name}+{self.key_hash.hex()}+{_encoded(_ED25519 + self.public)}"

    @property
    def key_hash(self) -> bytes:
        """Four bytes by which a signature says whose it is."""
        return sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:4]

    def holds(self, signature: bytes, text: str) -> bool:
        """Whether `signature` is this key's of `text`."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text.encode())
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """What checkpoints are signed with: a name and an Ed25519 seed of 32 bytes.

    >>> key = SigningKey.generate("log.example")
    >>> SigningKey.parse(key.text()) == key
    True
    """

    name: str
    seed: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> SigningKey:
        """The key of `PRIVATE+KEY+name+hash+base64`; `NoteError` when it is malformed, without a word of it."""
        if not text.startswith(_PRIVATE):
            raise NoteError("a signing key begins with PRIVATE+KEY+")
        name, key_hash, seed = _key_parts(text.removeprefix(_PRIVATE))
        key = cls(name, seed)
        if key.verifier.key_hash != key_hash:
            raise NoteError("the key's hash does not belong to the name and the key beside it")
        return key

    @classmethod
    def generate(cls, name: str) -> SigningKey:
        """A new key from the operating system's random numbers."""
        _must_be_a_name(name)
        return cls(name, secrets.token_bytes(32))

    def text(self) -> str:
        return f"{_PRIVATE}{self.name}+{self.verifier.key_hash.hex()}+{_encoded(_ED25519 + self.seed)}"

    @property
    def verifier(self) -> VerifierKey:
        """The key that checks what this one signs."""
        private = Ed25519PrivateKey.from_private_bytes(self.seed)
        return VerifierKey(self.name, private.public_key().public_bytes_raw())

    def signature_line(self, text: str) -> str:
        """The line of a note that carries this key's signature of `text`."""
        signature = Ed25519PrivateKey.from_private_bytes(self.seed).sign(text.encode())
        return f"{_SIGNATURE}{self.name} {_encoded(self.verifier.key_hash + signature)}\n"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the tree of the log `origin` was when it had `size` leaves.

    >>> print(Checkpoint("log.example", 7, bytes(32)).text(), end="")
    log.example
    7
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
    """

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """The three lines that are signed."""
        return f"{self.origin}\n{self.size}\n{_encoded(self.root)}\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """The checkpoint of these three lines; `NoteError` when they are anything else.

        >>> Checkpoint.parse(Checkpoint("log.example", 7, bytes(32)).text()).size
        7
        """
        match text.split("\n"):
            case [origin, size, root, ""] if origin and re.fullmatch("0|[1-9][0-9]{0,18}", size, re.ASCII):
                return cls(origin, int(size), _decoded(root, HASH_BYTES))
        raise NoteError("a checkpoint is three lines: the log's name, the tree's size, the root's hash")


def sign(checkpoint: Checkpoint, keys: Sequence[SigningKey]) -> str:
    """The checkpoint as a note signed by every one of `keys`.

    >>> key = SigningKey.generate("log.example")
    >>> checkpoint = Checkpoint("log.example", 7, bytes(32))
    >>> opened(sign(checkpoint, [key]), [key.verifier]) == (checkpoint, [key.verifier])
    True
    """
    text = checkpoint.text()
    return text + "\n" + "".join(key.signature_line(text) for key in keys)


def opened(note: str, keys: Sequence[VerifierKey]) -> tuple[Checkpoint, list[VerifierKey]]:
    """The checkpoint of a signed note, and which of `keys` have signed it.

    `NoteError` when it is malformed, a signature of one of `keys` does not hold, or none of them has signed.
    """
    text, signers = verified(note, keys)
    return Checkpoint.parse(text), signers


def verified(note: str, keys: Sequence[VerifierKey]) -> tuple[str, list[VerifierKey]]:
    """The text of any signed note, and which of `keys` have signed it.  Signatures of other keys are passed over.

    `NoteError` as `opened` does.
    """
    text, signatures = _parts(note)
    signers: list[VerifierKey] = []
    for name, key_hash, signature in signatures:
        known = [key for key in keys if (key.name, key.key_hash) == (name, key_hash)]
        holding = [key for key in known if key.holds(signature, text)]
        if known and not holding:
            raise NoteError(f"the signature of {name}+{key_hash.hex()} does not hold")
        signers += [key for key in holding if key not in signers]
    if not signers:
        raise NoteError("no known key has signed the note")
    return text, signers


def _parts(note: str) -> tuple[str, list[tuple[str, bytes, bytes]]]:
    """The text of a note, and its signatures: whose, by which key, and what."""
    if len(note) > NOTE_MAX:
        raise NoteError(f"a note has at most {NOTE_MAX} characters")
    if any(ord(character) < 0x20 and character != "\n" for character in note):
        raise NoteError("a note has no control characters")
    text, blank, lines = note.rpartition("\n\n")
    if not (text and blank and lines.endswith("\n")):
        raise NoteError("a note is a text, an empty line and signatures, each line ended")
    signatures = [_signature(line) for line in lines[:-1].split("\n")]
    if len(signatures) > SIGNATURES_MAX:
        raise NoteError(f"a note has at most {SIGNATURES_MAX} signatures")
    return text + "\n", signatures


def _signature(line: str) -> tuple[str, bytes, bytes]:
    name, space, encoded = line.removeprefix(_SIGNATURE).partition(" ")
    if not (line.startswith(_SIGNATURE) and space):
        raise NoteError("a signature is a dash, a name and its base64")
    _must_be_a_name(name)
    signature = _decoded(encoded)
    if len(signature) <= 4:
        raise NoteError("a signature begins with the four bytes of its key's hash")
    return name, signature[:4], signature[4:]


def _key_parts(text: str) -> tuple[str, bytes, bytes]:
    name, _, rest = text.partition("+")
    key_hash, _, encoded = rest.partition("+")
    _must_be_a_name(name)
    if not re.fullmatch("[0-9a-f]{8}", key_hash, re.ASCII):
        raise NoteError("a key is a name, the eight hex digits of its hash and its base64, joined by +")
    key = _decoded(encoded, 33)
    if key[:1] != _ED25519:
        raise NoteError("a key is an Ed25519 key: its first byte is 1")
    return name, bytes.fromhex(key_hash), key[1:]


def _must_be_a_name(name: str) -> None:
    if not name or not name.isprintable() or re.search(r"[\s+]", name):
        raise NoteError("a key's name has at least one character, and neither spaces nor +")


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _decoded(text: str, length: int | None = None) -> bytes:
    """The bytes of the one base64 form that they have."""
    try:
        value = base64.b64decode(text, validate=True)
    except ValueError:
        raise NoteError("this is no base64") from None
    if _encoded(value) != text or length not in (None, len(value)):
        raise NoteError("this is base64 of another length, or written in another way than it is done")
    return value
