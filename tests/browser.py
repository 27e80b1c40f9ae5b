"""A headless Chromium for tests, driven through the DevTools protocol over a socket: no driver and no package.

from tests.browser import Browser, browser  # noqa: F401 - a fixture

def test_the_page_has_a_title(browser: Browser) -> None:
    with browser.page() as page:
        page.open("http://127.0.0.1:8080/")
        assert page.run("() => document.title") == "3 Card Brag"
        assert page.complaints() == []
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--no-first-run",
    "--password-store=basic",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",  # nothing beyond this machine
)
STEP_SECONDS = 60
"""The longest that one command may take, or the loading of one page."""

Message = dict[str, Any]


def executable() -> str:
    """The path of the browser; a test that wants one fails where there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    pytest.fail(
        f"None of {', '.join(NAMES)} is on PATH, and this test drives a browser: install Chromium"
        " (Debian: apt-get install --no-install-recommends chromium)."
    )


@dataclass
class Browser:
    """A running browser.  It ends with the block of `start`; one test at a time may use it."""

    channel: socket.socket
    log: Path
    calls: int = 0
    heard: list[Message] = field(default_factory=list)
    """Events of the open pages."""
    _unread: bytearray = field(default_factory=bytearray)

    @classmethod
    @contextmanager
    def start(cls, directory: Path) -> Iterator[Browser]:
        """Starts a browser that keeps everything in this directory."""
        path, log = executable(), directory / "browser.log"
        flags = [*FLAGS, f"--user-data-dir={directory / 'profile'}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # which root cannot have
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = os.posix_spawn(
                path,
                [path, *flags],
                os.environ | {"HOME": str(directory)},
                setpgroup=0,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 3),  # it reads from 3
                    (os.POSIX_SPAWN_DUP2, 3, 4),  # and writes to 4
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
            )
            try:
                theirs.close()
                yield cls(ours, log)
            finally:
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)

    @contextmanager
    def page(self) -> Iterator[Page]:
        """An empty page, with cookies and storage of its own."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        page = Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.call("Page.setLifecycleEventsEnabled", enabled=True)
        try:
            yield page
        finally:
            self.heard.clear()
            self.call("Target.disposeBrowserContext", browserContextId=context)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Message:
        """A command's result.  AssertionError where the browser refuses it."""
        self.calls += 1
        number = self.calls
        command = {"id": number, "method": method, "params": parameters}
        sent = json.dumps(command | ({"sessionId": session} if session else {}))
        self.channel.settimeout(STEP_SECONDS)
        self.channel.sendall(sent.encode() + b"\0")
        answer = self.wait_for(lambda message: message.get("id") == number)
        assert "error" not in answer, f"{method}: {answer['error']['message']}"
        result: Message = answer["result"]
        return result

    def wait_for(self, wanted: Callable[[Message], bool]) -> Message:
        """The first message that is wanted, among those heard and those to come."""
        deadline = time.monotonic() + STEP_SECONDS
        for message in self.heard:
            if wanted(message):
                return message
        while True:
            message = self._next(deadline)
            if "method" in message:
                self.heard.append(message)
            if wanted(message):
                return message

    def _next(self, deadline: float) -> Message:
        while b"\0" not in self._unread:
            self.channel.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                received = self.channel.recv(1 << 20)
            except TimeoutError:
                raise AssertionError(f"the browser did not answer within {STEP_SECONDS} s") from None
            assert received, f"the browser ended:\n{self.log.read_text('utf-8', 'replace')[-4000:]}"
            self._unread += received
        text, _, self._unread = self._unread.partition(b"\0")
        message: Message = json.loads(text)
        return message


@dataclass
class Page:
    """One page of a browser."""

    browser: Browser
    session: str

    def call(self, method: str, **parameters: Any) -> Message:
        """A command of the DevTools protocol, to this page."""
        return self.browser.call(method, self.session, **parameters)

    def open(self, url: str) -> None:
        """Goes there, and waits until everything is loaded."""
        gone = self.call("Page.navigate", url=url)
        assert "errorText" not in gone, f"{url}: {gone['errorText']}"
        loaded = {"frameId": gone["frameId"], "loaderId": gone["loaderId"], "name": "load"}
        self.browser.wait_for(
            lambda event: (
                event.get("method") == "Page.lifecycleEvent" and loaded.items() <= event["params"].items()
            )
        )

    def run(self, function: str, *arguments: Any) -> Any:
        """What a function in JavaScript returns, or its promise becomes.  Arguments and answer are JSON.

        AssertionError with what it threw.
        """
        given = json.dumps(json.dumps(arguments))
        done = self.call(
            "Runtime.evaluate",
            expression=f"({function})(...JSON.parse({given}))",
            awaitPromise=True,
            returnByValue=True,
        )
        thrown = done.get("exceptionDetails")
        assert thrown is None, thrown["exception"].get("description", thrown["exception"])
        return done["result"].get("value")

    def complaints(self) -> list[str]:
        """What a person would find in red in the browser's console: errors, refusals, exceptions nobody caught."""
        found = []
        for event in self.browser.heard:
            method, params = event["method"], event["params"]
            if event.get("sessionId") != self.session:
                continue
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"]))
            elif (method == "Runtime.consoleAPICalled" and params["type"] == "error") or (
                method == "Log.entryAdded" and params["entry"]["level"] == "error"
            ):
                found.append(json.dumps(params))
        return found


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests; each opens a page of its own in it."""
    with Browser.start(tmp_path_factory.mktemp("browser")) as started:
        yield started
