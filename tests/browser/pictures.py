"""Makes the pictures of the console in docs/images/console, from a house in which all is invented.

.venv/bin/python -m tests.browser.pictures
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.demonstration import address, everything, play
from tests.browser.desks import NARROW, sign_in
from tests.chromium import started, window
from tests.running import RunningService

DIRECTORY: Final = Path(__file__).parents[2] / "docs" / "images" / "console"
ROUNDS: Final = 80
DAYS: Final = 9
BYTES_MAX: Final = 150_000

WIDE: Final = ViewportSize(width=1280, height=720)
LOW: Final = ViewportSize(width=1280, height=650)

PICTURES: Final = {
    "editor": ("/paytables/<game>/drafts/<number>", LOW, ""),
    "comparison": ("/paytables/<game>/compare?old=v<version>&new=d<number>", WIDE, ""),
    "approvals": ("/approvals", WIDE, ""),
    "live": ("/live?game=<game>", WIDE, "<game>, version <version>"),
    "round": ("/rounds/<round_id>", WIDE, "Card by card"),
    "audit": ("/audit?round_id=<round_id>", WIDE, ""),
    "editor-narrow": ("/paytables/<game>/drafts/<number>", NARROW, ""),
    "round-narrow": ("/rounds/<round_id>", NARROW, "Card by card"),
}
"""What is shown, how large, and the heading that is moved to the top."""


def taken(page: Page, name: str) -> None:
    """Writes the picture of what the window shows; AssertionError where it is too big to be kept."""
    page.wait_for_load_state("networkidle")
    path = DIRECTORY / f"{name}.png"
    page.screenshot(path=path, animations="disabled", caret="hide")
    assert path.stat().st_size <= BYTES_MAX, f"{path.name} has {path.stat().st_size} bytes"


def take_all(house: RunningService, browser: Browser) -> None:
    """Has it all happen, and takes every picture."""
    who, named = everything(house, ROUNDS)
    operator = house.operator("meadow-court")
    with window(browser, base_url=house.base, viewport=WIDE) as page:
        sign_in(page, who)
        for days_ago in range(DAYS, 0, -1):
            play(operator, ROUNDS)
            page.goto("/console/live")
            expect(page.get_by_text("not added up yet")).to_have_count(0)
            move_to_earlier_day(house, days_ago)
    for name, (path, size, heading) in PICTURES.items():
        with window(browser, base_url=house.base, viewport=size, color_scheme="light") as page:
            sign_in(page, who)
            page.goto(f"/console{address(path, named)}")
            if name.startswith("editor"):
                page.get_by_label("Pair Bonus pays, running flush").fill("25")
            if heading:
                at = page.get_by_role("heading", name=address(heading, named))
                at.evaluate("(element) => element.parentElement.scrollIntoView()")
            taken(page, name)


def move_to_earlier_day(house: RunningService, days_ago: int) -> None:
    """Has the rounds that were just added up stand under an earlier day, for no house is as old as its pictures."""
    with house.connect() as owner:
        for table in ("rtp_bucket", "rtp_dealt"):
            owner.execute(
                f"UPDATE {table} SET day = day - %s WHERE day = current_date",
                [days_ago],
            )


def main() -> None:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        RunningService.start(Path(directory)) as house,
        started(directory) as browser,
    ):
        take_all(house, browser)


if __name__ == "__main__":
    main()
