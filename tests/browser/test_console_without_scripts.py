"""The console in a browser that runs no script: a paytable is changed and approved all the same."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from casino_brag.staff.people import Role
from tests.browser.desks import Desk, Hired, Windows
from tests.colleagues import PASSWORD

GAME = "double-play-brag"


def test_sign_in_edit_submit_and_approve_without_scripts(windows: Windows, desk: Desk, hired: Hired) -> None:
    anna, ben = hired(Role.EDITOR), hired(Role.APPROVER)
    page = windows(java_script_enabled=False, refusals="status of 422")
    page.goto(f"/console/paytables/{GAME}")
    page.get_by_label("Name").fill(anna.name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Go on").click()
    page.get_by_label("Code").fill(anna.code())
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="New draft").click()
    page.get_by_label("GBP Ante to", exact=True).fill("a lot")
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_label("GBP Ante to", exact=True)).to_have_value("a lot")
    expect(page.get_by_label("GBP Ante to", exact=True)).to_have_attribute("aria-invalid", "true")
    page.get_by_label("GBP Ante to", exact=True).fill("20000")
    page.get_by_role("button", name="Text of the file").click()
    text = page.get_by_label("The paytable's file")
    expect(text).to_have_value(re.compile(r"max = 20000\b"))
    text.fill("# Asked for by the floor.\n" + text.input_value())
    page.get_by_role("button", name="Save and submit…").click()
    page.get_by_label("Certificate", exact=True).fill("A test's")
    page.get_by_label("Why").fill("A lower limit.")
    page.get_by_role("button", name=re.compile("^Submit revision")).click()
    expect(page.get_by_text("was submitted")).to_be_visible()
    draft = page.url.partition("/console")[2]

    page = desk(ben, draft, java_script_enabled=False)
    page.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_role("heading", name=re.compile("^Version [0-9]+"))).to_be_visible()
    page.get_by_text("Show the text").click()
    expect(page.get_by_text("# Asked for by the floor.")).to_be_visible()
