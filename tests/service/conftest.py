"""Operators of the shared service."""

from __future__ import annotations

import pytest

from tests.running import Operator, RunningService


@pytest.fixture(scope="session")
def operator(service: RunningService) -> Operator:
    """An operator for all tests; each takes players of its own."""
    return service.operator()


@pytest.fixture(scope="session")
def other_operator(service: RunningService) -> Operator:
    """Another one."""
    return service.operator()
