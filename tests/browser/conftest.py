"""The console as people use it: one running service, and for each person a browser of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from casino_brag.staff.people import Role
from tests.browser.desks import WIDE, Desk, Hired, Windows, sign_in
from tests.chromium import window
from tests.colleagues import Colleague, colleague
from tests.running import RunningService


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with a job worker, whose people the tests of the console are.

    It ends with the file, for its job worker would look every second for what is due until the last test of all.
    """
    with RunningService.start(tmp_path_factory.mktemp("console"), workers=2) as running:
        yield running


@pytest.fixture
def hired(house: RunningService) -> Hired:
    """Somebody new with these roles, who has joined."""

    def hire(*roles: Role) -> Colleague:
        return colleague(house, *roles)

    return hire


@pytest.fixture
def windows(browser: Browser, house: RunningService) -> Iterator[Windows]:
    """Windows in which nobody is signed in; all are closed, and asked for complaints, when the test is over."""
    with ExitStack() as opened:

        def open_window(**options: Any) -> Page:
            named = {"base_url": house.base, "viewport": WIDE} | options
            return opened.enter_context(window(browser, **named))

        yield open_window


@pytest.fixture
def desk(windows: Windows) -> Desk:
    """Windows in which somebody is signed in."""

    def sit_down(who: Colleague, path: str = "/paytables", **options: Any) -> Page:
        page = windows(**options)
        sign_in(page, who)
        page.goto(f"/console{path}")
        return page

    return sit_down
