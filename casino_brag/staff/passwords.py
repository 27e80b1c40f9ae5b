"""Passwords of staff: which will do, and how they are kept (argon2id, RFC 9106)."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from casino_brag.errors import Code, ServiceError

LENGTH_MIN: Final = 12
LENGTH_MAX: Final = 200
DIFFERENT_MIN: Final = 5
"""So many different characters a password has at least."""

AT_ONCE_MAX: Final = 2
WAITING_MAX: Final = 2
WAIT_SECONDS: Final = 5.0
"""So many passwords a process hashes at once, each in 64 MiB; so many more wait, and so long.  Play has the rest."""

_TRIED_FIRST: Final = """
000000000000 111111111111 112233445566 121212121212 123123123123 123412341234 1234567890ab 123456789012
1234567891011 1234567890123 1q2w3e4r5t6y 1qaz2wsx3edc 987654321012 abcd12345678 abcdefghijkl adminadminadmin
adminpassword administrator asdfghjkl123 casinocasino changemeplease correcthorsebatterystaple iloveyou1234
letmeinletmein letmeinplease masterpassword mypassword123 p@ssw0rd1234 passw0rd1234 password1234 password12345
password123456 passwordpassword passwort1234 qazwsxedcrfv qwerty123456 qwertyqwerty qwertyuiop12 qwertyuiop123
qwertyuiopas supersecret123 threecardbrag trustno1trustno1 welcome12345 welcome123456 zaq12wsxcde3
"""
COMMON: Final = frozenset(_TRIED_FIRST.split())
"""Passwords that are tried first, as far as they are long enough to be thought of here."""

STAND_IN: Final = "$argon2id$v=19$m=65536,t=3,p=4$" + "A" * 22 + "$" + "A" * 43
"""Nobody's: what is looked into where there is no password, so that this takes the same time."""

_HASHER: Final = PasswordHasher()


class _Places:
    """Places for so many at once, and for so many more to wait."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._inside = threading.BoundedSemaphore(at_once + waiting)
        self._at_work = threading.BoundedSemaphore(at_once)

    def take(self) -> bool:
        if not self._inside.acquire(blocking=False):
            return False
        taken = self._at_work.acquire(timeout=WAIT_SECONDS)
        if not taken:
            self._inside.release()
        return taken

    def leave(self) -> None:
        self._at_work.release()
        self._inside.release()


_PLACES: Final = _Places(AT_ONCE_MAX, WAITING_MAX)


def password_problems(password: str, name: str) -> list[str]:
    """What is wrong with a password that a person of this name wants; empty where it will do.

    >>> password_problems("a brag of three", "ada")
    []
    >>> password_problems("brag", "ada")
    ['Use 12 to 200 characters.']
    >>> password_problems("I am ada and nobody else", "ada")
    ['It must not contain your name.']
    """
    plain = _normal(password).casefold()
    problems = []
    if not LENGTH_MIN <= len(plain) <= LENGTH_MAX:
        problems.append(f"Use {LENGTH_MIN} to {LENGTH_MAX} characters.")
    if len(name) >= 3 and name in plain:
        problems.append("It must not contain your name.")
    if plain in COMMON or (len(plain) >= LENGTH_MIN and len(set(plain)) < DIFFERENT_MIN):
        problems.append("It is too easily guessed. Use several words, for example.")
    return problems


@contextmanager
def hashing() -> Iterator[None]:
    """A place to hash in, for the length of the block; `ServiceError` busy when none comes free in time.

    Whoever waits for one, or hashes, holds no connection.
    """
    if not _PLACES.take():
        raise ServiceError(Code.BUSY, "Many people sign in at this moment. Try again in a few seconds.")
    try:
        yield
    finally:
        _PLACES.leave()


def hash_of_password(password: str) -> str:
    """What is kept of a password.  To be called within `hashing`."""
    return _HASHER.hash(_normal(password))


def is_right(password: str, kept: str | None) -> bool:
    """Whether a password is the one that was kept; where none was, it is not, after the same work.

    To be called within `hashing`.
    """
    try:
        return _HASHER.verify(kept or STAND_IN, _normal(password)) and kept is not None
    except VerifyMismatchError:
        return False


def newer_hash(password: str, kept: str) -> str | None:
    """The hash of a right password under today's parameters where it was kept under others; otherwise None."""
    return hash_of_password(password) if _HASHER.check_needs_rehash(kept) else None


def _normal(password: str) -> str:
    # The same characters are the same password whatever keyboard they come from.
    return unicodedata.normalize("NFKC", password)
