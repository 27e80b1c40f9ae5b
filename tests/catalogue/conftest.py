"""People who draft and approve."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from casino_brag.staff.people import Person, Role
from tests.catalogue.persons import person


@pytest.fixture
def editor(conn: psycopg.Connection[Any]) -> Person:
    return person(conn, Role.EDITOR)


@pytest.fixture
def approver(conn: psycopg.Connection[Any]) -> Person:
    return person(conn, Role.APPROVER)
