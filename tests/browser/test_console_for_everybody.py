"""Every page of the console can be read and used by everybody: in both themes, at two widths, with the keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from casino_brag.staff.people import Role
from casino_brag.web.console.shell import ACCESS
from tests.browser.demonstration import Addresses, address, everything
from tests.browser.desks import NARROW, Desk, Hired
from tests.colleagues import Colleague
from tests.provider import Provider
from tests.running import RunningService

FILES = re.compile(r"\.(csv|json|txt)|/file|/course$|/(now|list)$|/sign-out$|/provider/(return|finish)$")
"""Addresses that give a file or a part of a page, or lead on at once."""

RULES = sorted({access.rule for access in ACCESS if access.method == "GET" and not FILES.search(access.rule)})

AXE: dict[str, Any] = {
    "resultTypes": ["violations"],
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
}
CONTRAST: dict[str, Any] = {"resultTypes": ["violations"], "runOnly": ["color-contrast"]}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that these tests have for themselves, since much happens in it."""
    provider = Provider("https://login.example.com").environment  # so that its pages are there
    with RunningService.start(tmp_path_factory.mktemp("everybody"), environment=provider) as running:
        yield running


@pytest.fixture(scope="module")
def shown(house: RunningService) -> tuple[Colleague, Addresses]:
    """Somebody who may see every page of a house in which something is going on, and the parts of addresses."""
    return everything(house, 24)


def faults(page: Page, options: dict[str, Any]) -> list[str]:
    """What axe finds that is serious or worse, and where."""
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{violation['id']}: {node['target']} {node['html'][:160]} {[each['message'] for each in node['any']][:1]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"][:3]
    ]


@pytest.mark.parametrize("rule", RULES)
def test_a_page_is_open_to_everybody(desk: Desk, shown: tuple[Colleague, Addresses], rule: str) -> None:
    who, named = shown
    page = desk(who, address(rule, named), color_scheme="light", reduced_motion="reduce")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    found = {"light and wide": faults(page, AXE)}
    page.emulate_media(color_scheme="dark")
    found["dark and wide"] = faults(page, CONTRAST)
    page.set_viewport_size(NARROW)
    found["dark and narrow"] = faults(page, AXE)
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found["light and narrow"] = faults(page, CONTRAST)
    assert {name: told for name, told in found.items() if told} == {}
    assert wider == 0, f"the page has to be scrolled sideways by {wider} pixels"


def press_to(page: Page, wanted: Locator) -> Locator:
    """Presses Tab until the keyboard is at what is wanted, which then shows that it is."""
    for _ in range(300):
        page.keyboard.press("Tab")
        if wanted.evaluate("(element) => element === document.activeElement"):
            outline = wanted.evaluate("(element) => getComputedStyle(element).outlineStyle")
            assert outline != "none"
            return wanted
    raise AssertionError(f"the keyboard does not come to {wanted}")


def test_a_paytable_is_changed_approved_and_put_in_force_by_the_keyboard_alone(
    house: RunningService, desk: Desk, hired: Hired
) -> None:
    anna, ben, olga = hired(Role.EDITOR), hired(Role.APPROVER), hired(Role.OPERATIONS)
    page = desk(anna)
    press_to(page, page.get_by_role("link", name=re.compile("Double", re.IGNORECASE)).first).press("Enter")
    press_to(page, page.get_by_role("button", name="New draft")).press("Enter")
    press_to(page, page.get_by_label("GBP Ante to", exact=True))
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("15000")
    press_to(page, page.get_by_role("button", name="Save and submit…")).press("Enter")
    press_to(page, page.get_by_label("Certificate", exact=True))
    page.keyboard.type("A test's")
    press_to(page, page.get_by_label("Why"))
    page.keyboard.type("A lower limit.")
    press_to(page, page.get_by_role("button", name=re.compile("^Submit revision"))).press("Enter")
    expect(page.get_by_text("was submitted")).to_be_visible()
    draft = page.url.rpartition("/")[2]

    page = desk(ben)
    press_to(page, page.get_by_role("link", name="Approvals").first).press("Enter")
    press_to(page, page.get_by_role("link", name=f"double-play-brag, draft {draft}")).press("Enter")
    press_to(page, page.get_by_role("button", name=re.compile("^Approve"))).press("Enter")
    expect(page.get_by_role("heading", name=re.compile("^Version [0-9]+"))).to_be_visible()

    version = page.url.partition("/console")[2]
    page = desk(olga, version)
    press_to(page, page.get_by_label("Why"))
    page.keyboard.type("From tonight.")
    press_to(page, page.get_by_role("button", name=re.compile("^Put version"))).press("Enter")
    expect(page.get_by_text("is in force.")).to_be_visible()


def test_the_first_tab_leads_past_the_navigation_and_the_menu_opens_and_closes(
    desk: Desk, hired: Hired
) -> None:
    page = desk(hired(Role.AUDITOR), viewport=NARROW)
    press_to(page, page.get_by_role("link", name="Skip to the page")).press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.reload()
    menu = page.locator("summary", has_text="Menu")
    press_to(page, menu).press("Enter")
    expect(page.get_by_role("link", name="Audit")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Audit")).to_be_hidden()
    expect(menu).to_be_focused()


def test_the_theme_that_was_chosen_is_kept(desk: Desk, hired: Hired) -> None:
    page = desk(hired(Role.AUDITOR), color_scheme="light", reduced_motion="reduce")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    switch = page.get_by_role("button", name="Theme")
    switch.click()
    switch.click()
    expect(switch).to_contain_text("dark")
    dark = page.evaluate(ground)
    page.goto("/console/approvals")
    assert page.evaluate(ground) == dark != light
