"""The running service, as tests share it: real Postgres, real gunicorn, several workers."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chromium import browser  # noqa: F401 - a fixture
from tests.inprocess import app_house, conn  # noqa: F401 - fixtures
from tests.running import RunningService


def pytest_configure() -> None:
    """Sees to it that commands, which tests start by the hundred, behave as they do elsewhere."""
    # A shell lets what it runs in the background ignore Ctrl-C, and tests send it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Each would compile the whole program again, since Python was told not to keep what it compiles.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """One `casino-brag serve` with three workers for all tests that leave it as they found it."""
    with RunningService.start(tmp_path_factory.mktemp("service"), workers=3) as running:
        yield running


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[RunningService]:
    """A service for one test that breaks it."""
    with RunningService.start(tmp_path, workers=2) as running:
        yield running
