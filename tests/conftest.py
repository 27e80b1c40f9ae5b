"""The running service, as tests share it: real Postgres, real gunicorn, several workers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import browser  # noqa: F401 - a fixture
from tests.inprocess import app_house  # noqa: F401 - a fixture
from tests.running import RunningService


def pytest_configure() -> None:
    """Undo what a shell does to a suite in the background: its commands would ignore Ctrl-C, which tests send them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
