"""A headless Chromium for tests: the system's, driven by Playwright, which brings none of its own.

def test_the_page_has_a_title(browser: Browser) -> None:
    with window(browser) as page:
        page.goto("http://127.0.0.1:8080/docs")
        assert page.title() == "3 Card Brag"

Whatever a person would find in red in the browser's console fails the test, when the block of `window` is left.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",  # nothing beyond this machine
)
STEP_MILLISECONDS = 60_000
"""The longest that one step may take: the loading of a page, the coming of what is waited for."""
expect.set_options(timeout=STEP_MILLISECONDS)

BROKEN_OFF = r"net::ERR_ABORTED|htmx:afterRequest|htmx:sendAbort"
"""What is said of a request that was given up because something newer was asked for: nothing went wrong."""


def executable() -> str:
    """The path of the browser; a test that wants one fails where there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    pytest.fail(
        f"None of {', '.join(NAMES)} is on PATH, and this test drives a browser: install Chromium"
        " (Debian: apt-get install --no-install-recommends chromium)."
    )


@contextmanager
def started(home: str) -> Iterator[Browser]:
    """A browser that ends with the block, and keeps what it keeps in this directory."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable(),
            args=FLAGS,
            env={**os.environ, "HOME": home},
            chromium_sandbox=os.geteuid() != 0,  # which root cannot have
        )
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for the tests of a file; each opens windows of its own in it.

    It ends with the file, for no other event loop can run in this thread as long as Playwright is there.
    """
    with started(str(tmp_path_factory.mktemp("browser"))) as running:
        yield running


@contextmanager
def window(browser: Browser, *, refusals: str = r"(?!)", **options: Any) -> Iterator[Page]:
    """An empty page with cookies and storage of its own; AssertionError where anything on it went wrong.

    `refusals` is a pattern of complaints that the test is about, such as ``"status of 422"``.  `options` are
    Playwright's, of a browser context.
    """
    with browser.new_context(**options) as context:
        context.set_default_timeout(STEP_MILLISECONDS)
        heard: list[str] = []
        context.on("console", lambda said: heard.append(said.text) if said.type == "error" else None)
        context.on("weberror", lambda thrown: heard.append(str(thrown.error)))
        context.on(
            "requestfailed",
            # What is broken off because something newer is asked for has not gone wrong.
            lambda request: (
                None
                if request.failure == "net::ERR_ABORTED"
                else heard.append(f"{request.url}: {request.failure}")
            ),
        )
        yield context.new_page()
        complaints = [text for text in heard if not re.search(f"{BROKEN_OFF}|{refusals}", text)]
        assert complaints == [], "\n".join(complaints)


def run_in(page: Page, function: str, *arguments: Any) -> Any:
    """What a function in JavaScript returns, or its promise becomes.  Arguments are JSON.

    playwright.sync_api.Error with what it threw.
    """
    return page.evaluate(f"(given) => ({function})(...JSON.parse(given))", json.dumps(arguments))
