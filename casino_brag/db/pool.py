"""Connections: a pool for each process, opened after a fork, with a bound on every wait."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import errors as pg
from psycopg.abc import RV, PQGen
from psycopg_pool import ConnectionPool, PoolTimeout, TooManyRequests

from casino_brag.errors import Code, ServiceError

Connect: TypeAlias = Callable[[], AbstractContextManager[psycopg.Connection[Any]]]
"""What gives a connection for the length of a block, to whoever must hold none while it waits for somebody else."""

APPLICATION_ROLE: Final = "casino_brag_app"
CONNECT_SECONDS: Final = 5
CHECKOUT_SECONDS: Final = 5.0
STATEMENT_MS: Final = 8_000
LOCK_MS: Final = 5_000
ANSWER_SECONDS: Final = 12.0
WAIT_INTERVAL_SECONDS: Final = 0.1

_SETTINGS: Final = " ".join(
    f"-c {setting}"
    for setting in (
        f"role={APPLICATION_ROLE}",
        "timezone=UTC",
        "synchronous_commit=on",
        # The statements are few and meant for one plan each; planning them anew costs more than running them.
        "plan_cache_mode=force_generic_plan",
        f"statement_timeout={STATEMENT_MS}",
        f"lock_timeout={LOCK_MS}",
        "idle_in_transaction_session_timeout=10000",
    )
)

_WAITED_TOO_LONG: Final = (pg.QueryCanceled, pg.DeadlockDetected, pg.TooManyConnections)
_OUT_OF_ORDER: Final = (psycopg.OperationalError, pg.ReadOnlySqlTransaction)


class BoundedConnection(psycopg.Connection[Any]):
    """Gives a server up that does not answer at all; its own limits only bound one that runs."""

    def wait(
        self, gen: PQGen[RV], interval: float = WAIT_INTERVAL_SECONDS, timeout: float | None = None
    ) -> RV:
        """Waits for an answer for at most `ANSWER_SECONDS`; psycopg's own error for a wait follows."""
        return super().wait(gen, interval, ANSWER_SECONDS if timeout is None else timeout)


class Database:
    """The application's way to the database, as the least privileged role.

    Connections are in autocommit mode: one statement is one transaction, unless a caller opens a longer one.
    A process that was forked from one with an open pool opens its own.
    """

    def __init__(self, url: str, *, pool_size: int = 8) -> None:
        self._url = url
        self._size = pool_size
        self._lock = threading.Lock()
        self._pool: ConnectionPool[BoundedConnection] | None = None
        self._pid = 0

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection for the length of the block.

        Raises `ServiceError`: `busy` when none came free or a statement took too long, `request_in_progress` when
        another request held a lock for too long, `database_unavailable` when the database did not answer; then it
        is not known whether the statement that was running took effect.
        """
        try:
            with self._open_pool().connection() as conn:
                yield conn
        except (PoolTimeout, TooManyRequests) as timeout:
            raise ServiceError(
                Code.BUSY, "No database connection came free. Send the same request again."
            ) from timeout
        except pg.LockNotAvailable as held:
            raise ServiceError(
                Code.REQUEST_IN_PROGRESS,
                "Another request holds the same records. Send the same request again.",
            ) from held
        except _WAITED_TOO_LONG as timeout:
            raise ServiceError(
                Code.BUSY, "The records were held too long. Send the same request again."
            ) from timeout
        except _OUT_OF_ORDER as failure:
            self._discard_broken()
            raise ServiceError(
                Code.DATABASE_UNAVAILABLE,
                "The database did not answer. Send the same request again, with the same Idempotency-Key.",
            ) from failure

    def close(self) -> None:
        """Closes this process's pool.  The next use opens another."""
        with self._lock:
            if self._pool is not None and self._pid == os.getpid():
                self._pool.close(timeout=CONNECT_SECONDS)
            self._pool = None

    def _open_pool(self) -> ConnectionPool[BoundedConnection]:
        if self._pool is None or self._pid != os.getpid():
            with self._lock:
                if self._pool is None or self._pid != os.getpid():
                    self._pool = ConnectionPool(
                        self._url,
                        connection_class=BoundedConnection,
                        kwargs={
                            "autocommit": True,
                            "prepare_threshold": 2,
                            "connect_timeout": CONNECT_SECONDS,
                            "options": _SETTINGS,
                            "application_name": "casino-brag",
                        },
                        min_size=1,
                        max_size=self._size,
                        max_waiting=self._size * 32,
                        timeout=CHECKOUT_SECONDS,
                        max_lifetime=3600,
                        # After a few seconds the next request tries again, rather than a timer that backs off.
                        reconnect_timeout=3,
                        open=True,
                    )
                    self._pid = os.getpid()
        return self._pool

    def _discard_broken(self) -> None:
        # After a restart of the server every pooled connection is dead: replace them all, not one by one.
        pool = self._pool
        if pool is not None:
            pool.drain()
