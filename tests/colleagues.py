"""People of staff who can sign in, for tests: with a password, an authenticator, and a browser of their own."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

import requests
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from casino_brag.ids import uuid7
from casino_brag.staff.factors import STEP_SECONDS, seal_secret
from casino_brag.staff.passwords import hash_of_password
from casino_brag.staff.people import Person, Role, Said, add_staff, hash_of
from tests.inprocess import AppHouse
from tests.running import RunningService

PASSWORD = "a brag of three"
SAID = Said(actor="system:tests", reason="A test.")
TOKEN_FIELD = re.compile(r'name="_csrf" value="([0-9a-f]+)"')


@cache
def password_hash() -> str:
    return hash_of_password(PASSWORD)


def code_of(secret: bytes, *, steps_ahead: int = 0) -> str:
    """The code of a secret for the time step so many after the present one."""
    moment = time.time() + steps_ahead * STEP_SECONDS
    return TOTP(secret, 6, SHA1(), STEP_SECONDS).generate(moment).decode()


@dataclass
class Colleague:
    """A person of staff who has joined."""

    house: AppHouse | RunningService
    staff_id: UUID
    name: str
    roles: tuple[Role, ...]
    secret: bytes = field(repr=False)
    http: requests.Session = field(default_factory=requests.Session)

    @property
    def person(self) -> Person:
        return Person(self.staff_id, self.name, frozenset(self.roles))

    def code(self) -> str:
        """A code that was not used yet.  What the database knows of used ones is put back when they run out."""
        with self.house.connect() as conn:
            row = conn.execute(
                "SELECT code_step FROM staff_access WHERE staff_id = %s", [self.staff_id]
            ).fetchone()
            present = int(datetime.now(UTC).timestamp()) // STEP_SECONDS
            if row is None or row[0] >= present:
                conn.execute("UPDATE staff_access SET code_step = 0 WHERE staff_id = %s", [self.staff_id])
        return code_of(self.secret)

    def url(self, path: str) -> str:
        return f"{self.house.base}/console{path}"

    def get(self, path: str, **named: Any) -> requests.Response:
        return self.http.get(self.url(path), timeout=30, **named)

    def post(self, path: str, *, of: str | None = None, **typed: Any) -> requests.Response:
        """Sends the form of a page, as a browser does; `of` is the page where that is another address."""
        shown = self.get(of or path).text
        found = TOKEN_FIELD.search(shown)
        assert found, shown
        return self.send(path, _csrf=found[1], **typed)

    def send(self, path: str, **typed: Any) -> requests.Response:
        """Sends a form without having seen its page, and follows nothing."""
        headers = {"Origin": self.house.base, "Sec-Fetch-Site": "same-origin"}
        return self.http.post(self.url(path), data=typed, headers=headers, timeout=30, allow_redirects=False)

    def sign_in(self, next_path: str = "") -> requests.Response:
        """Password and code, over HTTP; the answer to the code."""
        given = self.send("/sign-in", name=self.name, password=PASSWORD, next=next_path)
        assert given.status_code == 303, given.text
        return self.post(given.headers["Location"].removeprefix("/console"), code=self.code(), next=next_path)

    def signed_in(self) -> Colleague:
        """The same person, signed in without the way there: with a session as the sign-in makes one."""
        secret = secrets.token_urlsafe(32)
        with self.house.connect() as conn:
            conn.execute(
                "INSERT INTO staff_session (session_id, secret_hash, staff_id, address, expires_at, proved_at)"
                " VALUES (%s, %s, %s, '127.0.0.1', now() + interval '12 hours', now())",
                [uuid7(), hash_of(secret), self.staff_id],
            )
        self.http.cookies.set("casino_brag_staff", secret, domain="127.0.0.1", path="/console")
        return self


def colleague(house: AppHouse | RunningService, *roles: Role, name: str = "") -> Colleague:
    """A new person with these roles who has joined."""
    name = name or "ada." + secrets.token_hex(4)
    secret = secrets.token_bytes(20)
    with house.connect() as conn:
        add_staff(conn, name, roles, SAID)
        row = conn.execute("SELECT staff_id FROM staff WHERE name = %s", [name]).fetchone()
        assert row is not None
        conn.execute(
            "INSERT INTO staff_access (staff_id, password_hash, sealed_secret, code_step, recovery_codes)"
            " VALUES (%s, %s, %s, 0, '{}')",
            [row[0], password_hash(), seal_secret(house.sealer, secret, row[0])],
        )
    return Colleague(house, row[0], name, roles, secret)
