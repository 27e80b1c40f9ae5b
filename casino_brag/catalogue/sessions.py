"""Players' sessions: an opaque token that is shown once and kept only as its hash."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.jurisdictions import DEFAULT, jurisdiction
from casino_brag.catalogue.operators import SigningOperator
from casino_brag.db.records import as_jsonb
from casino_brag.errors import Code, ServiceError
from casino_brag.ids import uuid7
from casino_brag.wallet.answers import refusal
from casino_brag.wallet.builtin import player_account
from casino_brag.wallet.currency import exponent

SESSION_HOURS: Final = 12
DEMO_BALANCE_MAJOR: Final = 1_000
"""What a demo account is filled to when a session opens, in whole units of its currency."""


class Mode(StrEnum):
    """Whether a session plays for money."""

    REAL = "real"
    """For the player's own money."""
    DEMO = "demo"
    """For demonstration: the same engine, money that buys nothing, apart from every real figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """What an operator asks for when it opens a session."""

    player: str
    currency: str
    mode: Mode
    game: str | None = None
    jurisdiction: str = DEFAULT
    channel: str | None = None
    language: str = "en"
    test: bool = False
    return_url: str | None = None


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session just opened.  The token is not kept and cannot be shown again."""

    session_id: UUID
    token: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a token belongs to, read at one instant.  `live` is false when the session expired or was closed.

    `wallet_url` is the wallet of the operator's that holds the player's money; None: the built-in one holds it, and
    `balance_minor` is what it holds.
    """

    token_hash: bytes = field(repr=False)
    session_id: UUID
    operator_id: UUID
    operator: str
    player_id: UUID
    player: str
    account_id: UUID
    currency: str
    mode: str
    session_game: str | None
    jurisdiction: str
    language: str
    return_url: str | None
    test: bool
    session_opened_at: datetime
    expires_at: datetime
    balance_minor: int
    live: bool
    read_at: datetime
    client_seeds: bool
    wallet_url: str | None
    funding: str
    interruption_hours: int
    interruption_policy: str

    @classmethod
    def from_columns(cls, row: tuple[Any, ...]) -> tuple[Caller | None, tuple[Any, ...]]:
        """The caller of a row that begins with ``session_caller.*``, None where there is none; the rest of the row."""
        width = len(cls.__dataclass_fields__)
        return (None if row[0] is None else cls(*row[:width])), row[width:]

    @property
    def may_bring_client_seeds(self) -> bool:
        """Whether operator and jurisdiction let the player bring a text of its own into a deal."""
        return self.client_seeds and jurisdiction(self.jurisdiction).client_seeds

    def must_be_live(self) -> None:
        """Raises `session_expired` for a session that ended."""
        if not self.live:
            raise refusal("session_expired")


def hash_of(token: str) -> bytes:
    """SHA-256 of a token: all that is kept of it.  Tokens have 256 random bits, so no salt is needed."""
    return hashlib.sha256(token.encode()).digest()


def open_session(
    conn: psycopg.Connection[Any], operator: SigningOperator, wanted: NewSession
) -> OpenedSession:
    """Opens a session for an operator's player; both player and account are made on first mention.

    `game_unavailable` when a game is named that is not published.
    """
    decimals = exponent(wanted.currency)
    assert decimals is not None, "currencies are validated before"
    if wanted.game is not None:
        published = "SELECT FROM game WHERE game = %s AND active_version_id IS NOT NULL"
        if conn.execute(published, [wanted.game]).fetchone() is None:
            raise ServiceError(Code.GAME_UNAVAILABLE, "No game of this name is published. See GET /v1/games.")
    account = player_account(conn, operator.operator_id, wanted.player, wanted.currency, wanted.mode)
    token = secrets.token_urlsafe(32)
    opened = OpenedSession(uuid7(), token, operator.read_at + timedelta(hours=SESSION_HOURS))
    entry = Entry(
        type=EntryType.SESSION_OPENED,
        occurred_at=operator.read_at,
        actor=f"operator:{operator.name}",
        operator_id=operator.operator_id,
        player_id=account.player_id,
        session_id=opened.session_id,
        payload={
            "mode": wanted.mode.value,
            "currency": wanted.currency,
            "game": wanted.game,
            "jurisdiction": wanted.jurisdiction,
            "channel": wanted.channel,
            "test": wanted.test,
        },
    )
    row = {
        "session_id": opened.session_id,
        "token_hash": hash_of(token),
        "operator_id": operator.operator_id,
        "player_id": account.player_id,
        "account_id": account.account_id,
        "currency": wanted.currency,
        "mode": wanted.mode.value,
        "game": wanted.game,
        "jurisdiction": wanted.jurisdiction,
        "channel": wanted.channel,
        "language": wanted.language,
        "test": wanted.test,
        "return_url": wanted.return_url,
        "opened_at": operator.read_at,
        "expires_at": opened.expires_at,
    }
    conn.execute(
        "SELECT session_open(%s, %s, %s)",
        [as_jsonb(row), DEMO_BALANCE_MAJOR * 10**decimals, entry.text()],
    )
    return opened


def close_session(conn: psycopg.Connection[Any], operator: SigningOperator, session_id: UUID) -> bool:
    """Ends an operator's session; false when there is none that is open.  Open rounds stay decidable."""
    entry = Entry(
        type=EntryType.SESSION_CLOSED,
        occurred_at=operator.read_at,
        actor=f"operator:{operator.name}",
        operator_id=operator.operator_id,
        session_id=session_id,
    )
    row = conn.execute(
        "SELECT session_close(%s, %s, %s)", [operator.operator_id, session_id, entry.text()]
    ).fetchone()
    assert row is not None
    return bool(row[0])


def read_caller(conn: psycopg.Connection[Any], token_hash: bytes) -> Caller:
    """Who calls, by the hash of the token; `unauthenticated` when it belongs to nobody."""
    row = conn.execute("SELECT * FROM session_caller WHERE token_hash = %s", [token_hash]).fetchone()
    caller = None if row is None else Caller.from_columns(row)[0]
    if caller is None:
        raise unknown_token()
    return caller


def unknown_token() -> ServiceError:
    """The error for a token that belongs to nobody."""
    return ServiceError(
        Code.UNAUTHENTICATED, "The session token is not known. Open a session and use its token."
    )
