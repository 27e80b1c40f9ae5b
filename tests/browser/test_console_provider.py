"""The way in by an identity provider, as people take it in a browser: by the pages of a real one, on another site."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from casino_brag.staff.people import Role
from tests.browser.desks import Desk, Hired, Windows
from tests.colleagues import Colleague
from tests.provider import PASSWORD, Provider
from tests.running import RunningService


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with Provider.started(tmp_path_factory.mktemp("provider")) as started:
        yield started


@pytest.fixture(scope="module")
def house(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that knows the provider."""
    directory = tmp_path_factory.mktemp("provided")
    with RunningService.start(directory, workers=2, environment=provider.environment) as running:
        yield running


def at_the_provider(page: Page, name: str) -> None:
    """Signs in there and lets the console know."""
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Authorize").click()


def give_code(page: Page, who: Colleague) -> None:
    page.get_by_label("Code").fill(who.code())
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_an_account_is_linked_signs_in_and_is_unlinked(desk: Desk, windows: Windows, hired: Hired) -> None:
    ada = hired(Role.AUDITOR)
    page = desk(ada, "/account")
    page.get_by_role("link", name=re.compile("^Account at localhost")).click()
    page.get_by_label("Code").fill(ada.code())
    page.get_by_role("button", name="Link account").click()
    at_the_provider(page, "ada")
    expect(page).to_have_url(re.compile("/console/account$"))
    expect(page.get_by_text("From now on you can sign in at localhost")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()

    page.goto("/console/audit")
    page.get_by_role("button", name=re.compile("^Sign in with localhost")).click()
    at_the_provider(page, "ada")  # once more, although the browser is signed in there
    give_code(page, ada)  # the provider's word is none
    expect(page).to_have_url(re.compile("/console/audit$"))
    expect(page.get_by_role("link", name=ada.name).first).to_be_visible()

    page.goto("/console/account/provider")
    page.get_by_role("button", name="Unlink").click()
    expect(page.get_by_text("The account is linked no more.")).to_be_visible()

    other = windows(refusals="status of 401")
    other.goto("/console/sign-in")
    other.get_by_role("button", name=re.compile("^Sign in with localhost")).click()
    at_the_provider(other, "ada")
    expect(other.get_by_text("That account lets nobody in")).to_be_visible()
    expect(other.get_by_label("Password")).to_be_visible()


def test_it_needs_no_scripts(desk: Desk, windows: Windows, hired: Hired) -> None:
    olga = hired(Role.OPERATIONS)
    page = desk(olga, "/account/provider", java_script_enabled=False)
    page.get_by_label("Code").fill(olga.code())
    page.get_by_role("button", name="Link account").click()
    at_the_provider(page, "olga")
    expect(page.get_by_text("From now on you can sign in")).to_be_visible()
    other = windows(java_script_enabled=False)
    other.goto("/console/live")
    other.get_by_role("button", name=re.compile("^Sign in with localhost")).click()
    at_the_provider(other, "olga")
    give_code(other, olga)
    expect(other).to_have_url(re.compile("/console/live$"))
