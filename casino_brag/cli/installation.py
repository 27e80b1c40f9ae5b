"""Where an installation keeps what is its own: the data directory, the seal's keys, the way to its database."""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import psycopg

from casino_brag.config import parse_seal_keys
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.db.migrations import shipped_migrations, verify
from casino_brag.errors import SetUpError


def default_data_dir() -> Path:
    """Where data is kept unless it is said otherwise: the system's place for root, else the user's own."""
    if os.geteuid() == 0:
        return Path("/var/lib/casino-brag/data")
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "casino-brag"


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="CASINO_BRAG_DATA_DIR",
    default=default_data_dir,
    show_default="~/.local/share/casino-brag; for root /var/lib/casino-brag/data",
    help="Where the embedded database and the keys are kept.",
)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The database, as the application reaches it and as its owner does."""

    app: str
    owner: str
    superuser: str | None


@contextmanager
def database(data_dir: Path) -> Iterator[Addresses]:
    """The database of ``DATABASE_URL``, else the embedded one, which runs for as long as somebody uses it."""
    if url := os.environ.get("DATABASE_URL"):
        yield Addresses(app=url, owner=url, superuser=None)
        return
    bindir = os.environ.get("CASINO_BRAG_PG_BINDIR")
    with EmbeddedServer.attach(data_dir, bindir=Path(bindir) if bindir else None) as server:
        yield Addresses(
            app=server.url(Role.APP), owner=server.url(Role.OWNER), superuser=server.url(Role.SUPERUSER)
        )


@contextmanager
def owner_connection(addresses: Addresses) -> Iterator[psycopg.Connection[Any]]:
    """A connection as the owner of the schema; `SetUpError` when there is none to be had."""
    try:
        conn = psycopg.connect(addresses.owner, autocommit=True, connect_timeout=5)
    except psycopg.Error as failure:
        raise SetUpError(f"The database cannot be used: {str(failure).strip()}") from failure
    with conn:
        yield conn


@contextmanager
def migrated_connection(addresses: Addresses) -> Iterator[psycopg.Connection[Any]]:
    """The same, to a schema that is what this version expects."""
    with owner_connection(addresses) as conn:
        verify(conn, shipped_migrations())
        yield conn


def seal_keys(data_dir: Path) -> Mapping[str, bytes]:
    """The keys of ``CASINO_BRAG_SEAL_KEYS``, else those of the data directory, which are made on first use."""
    if given := os.environ.get("CASINO_BRAG_SEAL_KEYS"):
        return parse_seal_keys(given)
    file = data_dir / "seal.keys"
    try:
        if not file.exists():
            _make_seal_keys(file)
        return parse_seal_keys(file.read_text(encoding="ascii").strip())
    except (SetUpError, UnicodeDecodeError) as damaged:
        raise SetUpError(f"{file} is damaged: restore the seal's keys from a backup.") from damaged
    except OSError as failure:
        raise SetUpError(
            f"The seal's keys in {file} cannot be read or made: {failure.strerror}."
        ) from failure


def _make_seal_keys(file: Path) -> None:
    # Written aside and linked into place: of two processes that begin together one wins, and both read the same.
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as written:
        written.write(f"k1:{base64.b64encode(secrets.token_bytes(32)).decode()}\n")
        written.flush()
        os.fsync(written.fileno())
    try:
        with suppress(FileExistsError):
            os.link(aside, file)
    finally:
        aside.unlink()
