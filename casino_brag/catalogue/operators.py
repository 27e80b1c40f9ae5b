"""Operators: who they are, and the keys with which they sign."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.errors import UniqueViolation
from psycopg.rows import class_row

from casino_brag import outbound
from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.errors import SetUpError
from casino_brag.ids import uuid7
from casino_brag.sealing import Sealer
from casino_brag.wallet.seamless import Wallet

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_URL: Final = re.compile(r"https?://[\x21-\x7e]{1,1000}")
_ORIGIN: Final = re.compile(r"https?://[a-z0-9.\-\[\]:]{1,255}")
_PORTS_LEFT_OUT: Final = {"http": ":80", "https": ":443"}


@dataclass(frozen=True, slots=True)
class Credentials:
    """What an operator signs with.  The secret is shown once, when it is made."""

    operator: str
    key_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SigningOperator:
    """An operator as a signed request names it, with the live key it names; `read_at` is the database's clock."""

    operator_id: UUID
    name: str
    launch_url: str | None
    wallet_url: str | None
    key_id: str
    sealed_secret: bytes = field(repr=False)
    read_at: datetime

    def secret(self, sealer: Sealer) -> str:
        """The secret the operator signs with."""
        return sealer.open(self.sealed_secret, context=_context(self.operator_id, self.key_id)).decode()


def add_operator(
    conn: psycopg.Connection[Any],
    sealer: Sealer,
    name: str,
    *,
    actor: str,
    origins: tuple[str, ...] = (),
    launch_url: str | None = None,
) -> Credentials:
    """Adds an operator and makes its first key.  `SetUpError` for a name or origin that will not do."""
    if not _NAME.fullmatch(name):
        raise SetUpError(
            f"{name!r} is no operator's name: use 1 to 63 lower-case letters, digits and hyphens."
        )
    for origin in origins:
        if not _ORIGIN.fullmatch(origin) or origin.endswith(_PORTS_LEFT_OUT[origin.partition(":")[0]]):
            raise SetUpError(
                f"{origin!r} is no web origin as browsers send it: write scheme, host in lower case, and a port "
                "only where it is not the scheme's own, as https://play.example.com"
            )
    if launch_url is not None and not _URL.fullmatch(launch_url):
        raise SetUpError(
            f"{launch_url!r} is no address of a page: write it as https://play.example.com/table"
        )
    operator_id = uuid7()
    made = Credentials(name, _new_key_id(), _new_secret())
    entry = Entry(
        type=EntryType.OPERATOR_ADDED,
        occurred_at=clock(conn),
        actor=actor,
        operator_id=operator_id,
        after={"name": name, "key_id": made.key_id, "origins": list(origins), "launch_url": launch_url},
    )
    try:
        conn.execute(
            "SELECT operator_add(%s, %s, %s, %s, %s, %s, %s)",
            [
                operator_id,
                name,
                list(origins),
                launch_url,
                made.key_id,
                sealer.seal(made.secret.encode(), context=_context(operator_id, made.key_id)),
                entry.text(),
            ],
        )
    except UniqueViolation as taken:
        if taken.diag.constraint_name != "operator_name_is_taken":
            raise
        raise SetUpError(
            f"There is an operator {name!r} already. To replace its key: operator rotate-key."
        ) from taken
    return made


def rotate_key(conn: psycopg.Connection[Any], sealer: Sealer, name: str, *, actor: str) -> Credentials:
    """Gives an operator a new key beside its newest one; an older one ends.  `SetUpError` for an unknown name."""
    operator_id = operator_id_of(conn, name)
    made = Credentials(name, _new_key_id(), _new_secret())
    sealed = sealer.seal(made.secret.encode(), context=_context(operator_id, made.key_id))
    with conn.transaction():  # one after the other, so that each entry tells what its change found
        conn.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('operator_key_rotate:' || %s, 0))", [operator_id]
        )
        live = [
            key_id
            for (key_id,) in conn.execute(
                "SELECT key_id FROM operator_key WHERE operator_id = %s AND retired_at IS NULL"
                " ORDER BY added_at, slot",
                [operator_id],
            )
        ]
        entry = Entry(
            type=EntryType.OPERATOR_KEY_ROTATED,
            occurred_at=clock(conn),
            actor=actor,
            operator_id=operator_id,
            before={"name": name, "key_ids": live},
            after={"name": name, "key_ids": [*live[-1:], made.key_id]},
        )
        conn.execute(
            "SELECT operator_key_rotate(%s, %s, %s, %s)", [operator_id, made.key_id, sealed, entry.text()]
        )
    return made


def set_client_seeds(conn: psycopg.Connection[Any], name: str, allowed: bool, *, actor: str) -> bool:
    """Lets an operator's players bring texts of their own into deals, or not; whether that changed something.

    `SetUpError` for an unknown name.
    """
    operator_id = operator_id_of(conn, name)
    entry = Entry(
        type=EntryType.OPERATOR_CLIENT_SEEDS_CHANGED,
        occurred_at=clock(conn),
        actor=actor,
        operator_id=operator_id,
        before={"client_seeds": not allowed},
        after={"client_seeds": allowed},
    )
    row = conn.execute(
        "SELECT operator_client_seeds(%s, %s, %s)", [operator_id, allowed, entry.text()]
    ).fetchone()
    assert row is not None
    return bool(row[0])


class Funding(StrEnum):
    """When an operator's wallet is debited for the Play wager."""

    TWO_DEBITS = "two_debits"
    """When it is played."""
    RESERVE = "reserve"
    """At the deal, in one debit with the other wagers; a fold returns it."""


def set_wallet(
    conn: psycopg.Connection[Any], name: str, url: str, funding: Funding | None = None, *, actor: str
) -> Funding:
    """Says where an operator's own wallet is, and how it funds the Play wager: as before unless it is said.

    `SetUpError` for an unknown name, for an address that will not do, and where sessions for real money were opened on
    the built-in wallet.
    """
    if outbound.problem_of(url) is not None or "?" in url:
        raise SetUpError(
            f"{url!r} is no address of a wallet: write it as https://wallet.example.com/brag, without a query; "
            "http is for a wallet on this machine"
        )
    operator_id = operator_id_of(conn, name)
    url = url.rstrip("/")
    before = conn.execute(
        "SELECT wallet_url, funding FROM operator WHERE operator_id = %s", [operator_id]
    ).fetchone()
    assert before is not None
    funding = funding or Funding(before[1])
    entry = Entry(
        type=EntryType.OPERATOR_WALLET_CHANGED,
        occurred_at=clock(conn),
        actor=actor,
        operator_id=operator_id,
        before={"wallet_url": before[0], "funding": before[1]},
        after={"wallet_url": url, "funding": funding.value},
    )
    answered = conn.execute(
        "SELECT operator_wallet(%s, %s, %s, %s)", [operator_id, url, funding.value, entry.text()]
    ).fetchone()
    assert answered is not None
    if answered[0] == "players_have_money":
        raise SetUpError(
            f"Players of {name} have played for real money in the built-in wallet. Add another operator instead."
        )
    if answered[0] == "unfinished":
        raise SetUpError(
            f"The wallet of {name} has still to say what became of some transactions, which another one cannot know. "
            f"Let it answer first: wallet reconcile {name} lists them."
        )
    return funding


class InterruptionPolicy(StrEnum):
    """What becomes of a round that nobody decides within its operator's time."""

    FOLD = "fold"
    """It is folded."""
    VOID = "void"
    """It is voided, and its stakes returned."""


def set_interruption(
    conn: psycopg.Connection[Any], name: str, hours: int, policy: InterruptionPolicy, *, actor: str
) -> None:
    """Says how long an operator's interrupted rounds wait, and what becomes of them then; `SetUpError` for an unknown
    name.
    """
    operator_id = operator_id_of(conn, name)
    before = conn.execute(
        "SELECT interruption_hours, interruption_policy FROM operator WHERE operator_id = %s", [operator_id]
    ).fetchone()
    assert before is not None
    entry = Entry(
        type=EntryType.OPERATOR_INTERRUPTION_CHANGED,
        occurred_at=clock(conn),
        actor=actor,
        operator_id=operator_id,
        before={"hours": before[0], "policy": before[1]},
        after={"hours": hours, "policy": policy.value},
    )
    conn.execute(
        "SELECT operator_interruption(%s, %s, %s, %s)", [operator_id, hours, policy.value, entry.text()]
    )


def operator_names(conn: psycopg.Connection[Any]) -> list[str]:
    """All operators, by name."""
    return [name for (name,) in conn.execute("SELECT name FROM operator ORDER BY name")]


def operator_id_of(conn: psycopg.Connection[Any], name: str) -> UUID:
    """The operator of this name; `SetUpError` for an unknown one."""
    row = conn.execute("SELECT operator_id FROM operator WHERE name = %s", [name]).fetchone()
    if row is None:
        raise SetUpError(f"There is no operator {name!r}. To add it: operator add {name}.")
    operator_id: UUID = row[0]
    return operator_id


def signing_operator(conn: psycopg.Connection[Any], name: str, key_id: str) -> SigningOperator | None:
    """The operator and live key that a request names; None when there is no such pair."""
    with conn.cursor(row_factory=class_row(SigningOperator)) as cursor:
        return cursor.execute(
            "SELECT operator_id, name, launch_url, wallet_url, key_id, sealed_secret, now() AS read_at"
            " FROM operator JOIN operator_key USING (operator_id)"
            " WHERE name = %s AND key_id = %s AND retired_at IS NULL",
            [name, key_id],
        ).fetchone()


def wallet_of(conn: psycopg.Connection[Any], sealer: Sealer, operator_id: UUID) -> Wallet | None:
    """The operator's own wallet; None when its players' money is in the built-in one.

    It is signed for with the older live key: the operator has had since the last rotation to install it.
    """
    row = conn.execute(
        "SELECT name, wallet_url, key_id, sealed_secret FROM operator JOIN operator_key USING (operator_id)"
        " WHERE operator_id = %s AND wallet_url IS NOT NULL AND retired_at IS NULL"
        " ORDER BY operator_key.added_at LIMIT 1",
        [operator_id],
    ).fetchone()
    if row is None:
        return None
    name, url, key_id, sealed = row
    secret = sealer.open(sealed, context=_context(operator_id, key_id)).decode()
    return Wallet(operator_id, name, url, key_id, secret)


def newest_credentials(conn: psycopg.Connection[Any], sealer: Sealer, name: str) -> Credentials | None:
    """An operator's newest live key, for a demonstration that is started again; None for an unknown name."""
    row = conn.execute(
        "SELECT key_id FROM operator JOIN operator_key USING (operator_id)"
        " WHERE name = %s AND retired_at IS NULL ORDER BY operator_key.added_at DESC LIMIT 1",
        [name],
    ).fetchone()
    found = None if row is None else signing_operator(conn, name, row[0])
    return None if found is None else Credentials(name, found.key_id, found.secret(sealer))


def take_nonce(conn: psycopg.Connection[Any], operator_id: UUID, nonce: str, until: datetime) -> bool:
    """True the first time a nonce is seen; it is remembered until `until`."""
    row = conn.execute("SELECT operator_nonce_take(%s, %s, %s)", [operator_id, nonce, until]).fetchone()
    assert row is not None
    return bool(row[0])


def is_registered_origin(conn: psycopg.Connection[Any], origin: str) -> bool:
    """Whether some operator's pages are served from this web origin."""
    return (
        conn.execute("SELECT FROM operator WHERE %s = ANY (origins) LIMIT 1", [origin]).fetchone() is not None
    )


def _context(operator_id: UUID, key_id: str) -> str:
    return f"operator key {operator_id} {key_id}"


def _new_key_id() -> str:
    return "k_" + secrets.token_hex(6)


def _new_secret() -> str:
    return "sk_" + secrets.token_urlsafe(32)
