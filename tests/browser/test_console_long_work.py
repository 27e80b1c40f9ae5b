"""Work that takes a while, followed on the page: a verification of the log, a simulation."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from casino_brag.staff.people import Role
from tests.browser.desks import Desk, Hired
from tests.running import RunningService


def test_a_verification_of_the_log_runs_to_its_end_by_itself(
    house: RunningService, desk: Desk, hired: Hired
) -> None:
    page = desk(hired(Role.AUDITOR), "/audit/verify")
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("All of it holds")).to_be_visible()
    expect(page.get_by_role("progressbar", name="Entries looked at")).to_be_visible()
    expect(page.get_by_role("button", name="Go on")).to_have_count(0)


def test_a_simulation_is_queued_followed_and_judged(desk: Desk, hired: Hired) -> None:
    page = desk(hired(Role.EDITOR), "/simulations")
    page.get_by_label("Rounds").fill("100,000")
    page.get_by_role("button", name="Queue it").click()
    expect(page.get_by_text("The simulation was queued.")).to_be_visible()
    expect(page.get_by_text(re.compile("grees with the exact figures|A test is unusual"))).to_be_visible()
    expect(page.get_by_label("Figure", exact=True)).to_be_visible()  # the plot can be asked
