"""Reading at one instant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg


@contextmanager
def one_instant(conn: psycopg.Connection[Any]) -> Iterator[None]:
    """Everything that is read in the block is of the same instant, whatever is written meanwhile; it writes nothing.

    The block is a transaction of its own: it has to be begun outside of any other.
    """
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
