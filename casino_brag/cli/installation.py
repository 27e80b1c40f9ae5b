"""Where an installation keeps what is its own: the data directory, the keys, the way to its database."""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import psycopg

from casino_brag.audit.notes import SigningKey
from casino_brag.audit.publishing import Publication
from casino_brag.audit.records import verifier_keys
from casino_brag.audit.sealer import Sealing, signing_keys
from casino_brag.config import parse_seal_keys, read_sealing_settings
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.db.migrations import shipped_migrations, verify
from casino_brag.errors import SetUpError
from casino_brag.sealing import SealBroken

T = TypeVar("T")

_SEAL_KEYS, _LOG_KEYS = "the seal's keys", "the log's keys"


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
    """The database of ``DATABASE_URL``, else the embedded one, which runs for as long as somebody uses it.

    `SetUpError`, too, when something sealed in it does not open while it is used.
    """
    try:
        if url := os.environ.get("DATABASE_URL"):
            yield Addresses(app=url, owner=url, superuser=None)
            return
        bindir = os.environ.get("CASINO_BRAG_PG_BINDIR")
        with EmbeddedServer.attach(data_dir, bindir=Path(bindir) if bindir else None) as server:
            yield Addresses(
                app=server.url(Role.APP), owner=server.url(Role.OWNER), superuser=server.url(Role.SUPERUSER)
            )
    except SealBroken as broken:
        raise SetUpError(
            f"{broken}. Check that CASINO_BRAG_SEAL_KEYS, or the data directory, is this database's own."
        ) from broken


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
    _make_first(file, f"k1:{base64.b64encode(secrets.token_bytes(32)).decode()}", _SEAL_KEYS)
    return _kept(file, parse_seal_keys, _SEAL_KEYS)


def log_keys(data_dir: Path) -> tuple[SigningKey, ...]:
    """The keys of ``CASINO_BRAG_LOG_KEYS``, else those of the data directory; the first is the present one.

    `SetUpError` where there are none, and for keys that are damaged.
    """
    if given := read_sealing_settings().log_keys:
        return signing_keys(given)
    file = log_keys_file(data_dir)
    if not file.exists():
        raise SetUpError(
            f"{file} is missing: restore {_LOG_KEYS} from a backup. If they are lost, make one of the log's name, which"
            " casino-brag audit keys tells, by casino-brag audit rotate-key --name NAME, and give it as"
            " CASINO_BRAG_LOG_KEYS."
        )
    return _kept(file, signing_keys, _LOG_KEYS)


def log_keys_file(data_dir: Path) -> Path:
    """Where the log's keys are kept that no environment gives."""
    return data_dir / "log.keys"


def sealing(data_dir: Path, addresses: Addresses) -> Sealing:
    """What the log is sealed with, and where its checkpoints are published.  A log that nobody has signed gets a key.

    `SetUpError` when there is no key, and the log was signed before.
    """
    settings = read_sealing_settings()
    file = log_keys_file(data_dir)
    if not (settings.log_keys or file.exists() or _log_is_signed(addresses)):
        _make_first(file, SigningKey.generate(f"casino-brag/{secrets.token_hex(4)}").text(), _LOG_KEYS)
    directory = settings.checkpoints_dir or data_dir / "checkpoints"
    return Sealing(log_keys(data_dir), Publication(directory, settings.checkpoint_seconds))


def _log_is_signed(addresses: Addresses) -> bool:
    with owner_connection(addresses) as conn:
        # There is no such table before the first migration.
        found = conn.execute("SELECT to_regclass('audit_key')").fetchone()
        return found != (None,) and bool(verifier_keys(conn))


def _make_first(file: Path, keys: str, what: str) -> None:
    """Makes a file of keys, if it is not there."""
    try:
        if not file.exists():
            write_secret(file, keys)
    except OSError as failure:
        raise SetUpError(f"{what.capitalize()} in {file} cannot be made: {failure.strerror}.") from failure


def _kept(file: Path, parse: Callable[[str], T], what: str) -> T:
    """What a file of keys holds."""
    try:
        return parse(file.read_text(encoding="ascii").strip())
    except (SetUpError, UnicodeDecodeError) as damaged:
        raise SetUpError(f"{file} is damaged: restore {what} from a backup.") from damaged
    except OSError as failure:
        raise SetUpError(f"{what.capitalize()} in {file} cannot be read: {failure.strerror}.") from failure


def write_secret(file: Path, text: str, *, anew: bool = False) -> None:
    """Makes a file whole or not at all; one that is there stays as it is, unless it is to be written `anew`."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as written:
            written.write(f"{text}\n")
            written.flush()
            os.fsync(written.fileno())
        if anew:
            aside.replace(file)
        else:
            # Of two processes that begin together one wins, and both read the same.
            with suppress(FileExistsError):
                os.link(aside, file)
    finally:
        aside.unlink(missing_ok=True)
