"""The way into the console and out of it, as people take it in a browser."""

from __future__ import annotations

import base64
import re

import pytest
from playwright.sync_api import Page, expect

from casino_brag.staff.access import LOCKED_MINUTES, NOT_RIGHT, TRIES_MAX
from casino_brag.staff.invitations import invite
from casino_brag.staff.people import Role, add_staff
from tests.browser.desks import Desk, Hired, Windows
from tests.colleagues import PASSWORD, SAID, code_of
from tests.running import RunningService

REFUSED = r"status of (401|403|422|423|429)"


@pytest.fixture(autouse=True)
def nobody_is_shut_out(house: RunningService) -> None:
    """All people of these tests come from one address, which the failures of others would shut out."""
    with house.connect() as owner:
        owner.execute("DELETE FROM staff_failure")


def give_password(page: Page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Go on").click()


def give_code(page: Page, code: str) -> None:
    page.get_by_label("Code").fill(code)
    page.get_by_role("button", name="Sign in").click()


def test_an_invited_person_joins_by_the_link_and_signs_in(house: RunningService, windows: Windows) -> None:
    with house.connect() as owner:
        add_staff(owner, "nora.vale", [Role.EDITOR], SAID)
        link = invite(owner, "nora.vale", SAID).path
    page = windows(refusals=REFUSED + "|status of 404")
    page.goto(link)
    expect(page.get_by_role("heading", name="Welcome, nora.vale")).to_be_visible()
    shown = page.get_by_text(re.compile(r"^[A-Z2-7]{4}( [A-Z2-7]{4})+$")).inner_text()
    secret = base64.b32decode(shown.replace(" ", ""))
    page.get_by_label("New password").fill("nora.vale and her dog")
    page.get_by_label("The same again").fill("nora.vale and her dog")
    page.get_by_label("Code that it shows now").fill("000000")
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_label("New password")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text(shown)).to_be_visible()  # the authenticator that was set up is good still
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    page.get_by_label("Code that it shows now").fill(code_of(secret))
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    codes = page.get_by_role("listitem").all_inner_texts()
    assert len(set(codes)) == 10
    page.get_by_role("link", name="Go on").click()
    expect(page.get_by_role("heading", name="Paytables")).to_be_visible()  # the code was proof enough
    page.get_by_role("button", name="Sign out").click()
    give_password(page, "nora.vale")
    give_code(page, codes[0])
    expect(page.get_by_role("heading", name="Paytables")).to_be_visible()
    page.goto(link)
    expect(page.get_by_text("This link is not good any more")).to_be_visible()


def test_a_colleague_whom_two_persons_invite_joins_with_a_half_from_each(
    house: RunningService, windows: Windows, desk: Desk, hired: Hired
) -> None:
    olga, anna = desk(hired(Role.OPERATIONS), "/staff"), desk(hired(Role.APPROVER), "/approvals")
    olga.get_by_role("link", name="Invite a colleague…").click()
    olga.get_by_label("Name").fill("petra.quist")
    olga.get_by_label("editor: drafts").check()
    olga.get_by_label("Why").fill("Joins the studio team.")
    olga.get_by_role("button", name="Propose").click()
    expect(olga.get_by_text("An approver decides it.")).to_be_visible()

    anna.reload()
    anna.get_by_role("link", name="Invite a colleague").first.click()
    anna.get_by_role("button", name="Approve, and do it").click()
    expect(anna.get_by_role("heading", name="Join code for petra.quist")).to_be_visible()
    join_code = anna.get_by_text(re.compile(r"^[0-9A-Z]{4}(-[0-9A-Z]{4}){2}$")).inner_text()
    anna.get_by_role("link", name="To approvals").click()
    anna.get_by_role("link", name="Invite a colleague").first.click()
    expect(anna.get_by_text("a reset of petra.quist is proposed")).to_be_visible()
    expect(anna.get_by_role("button", name="Make the link")).to_have_count(0)
    assert join_code not in anna.content()

    olga.reload()
    olga.get_by_role("button", name="Make the link").click()
    link = olga.get_by_text(re.compile("/console/join/")).inner_text()
    assert join_code not in olga.content()

    petra = windows(refusals=REFUSED)
    petra.goto(link)
    secret = petra.get_by_text(re.compile(r"^[A-Z2-7]{4}( [A-Z2-7]{4})+$")).inner_text()
    for typed in ("0000-0000-0000", join_code.lower().replace("-", " ")):
        petra.get_by_label("Join code").fill(typed)
        petra.get_by_label("New password").fill(PASSWORD)
        petra.get_by_label("The same again").fill(PASSWORD)
        petra.get_by_label("Code that it shows now").fill(code_of(base64.b32decode(secret.replace(" ", ""))))
        expect(petra.get_by_text(secret)).to_be_visible()  # the authenticator that was set up is good still
        petra.get_by_role("button", name="Join").click()
        if typed == "0000-0000-0000":
            expect(petra.get_by_label("Join code")).to_have_attribute("aria-invalid", "true")
            expect(petra.get_by_label("Join code")).to_have_value(typed)
    expect(petra.get_by_role("heading", name="Recovery codes")).to_be_visible()
    for half in (join_code, join_code.replace("-", ""), link.rpartition("/")[2]):
        assert half not in house.log()


def test_a_code_that_is_wrong_or_was_used_lets_nobody_in(windows: Windows, hired: Hired) -> None:
    ada = hired(Role.AUDITOR)
    page = windows(refusals=REFUSED)
    page.goto("/console/account")
    give_password(page, ada.name)
    code = ada.code()
    give_code(page, "12345")
    expect(page.get_by_text(NOT_RIGHT).first).to_be_visible()
    give_code(page, code)
    expect(page).to_have_url(re.compile("/console/account$"))  # what was asked for at first
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/console/sign-in"))
    page.go_back()
    page.reload()
    expect(page).to_have_url(re.compile(r"/console/sign-in\?next=/console/account$"))
    give_password(page, ada.name)
    give_code(page, code)
    expect(page.get_by_text(NOT_RIGHT).first).to_be_visible()
    expect(page).to_have_url(re.compile("/console/code"))


def test_three_wrong_passwords_lock_the_account_for_whoever_tries(windows: Windows, hired: Hired) -> None:
    ada = hired(Role.AUDITOR)
    page = windows(refusals=REFUSED)
    page.goto("/console/sign-in")
    for _ in range(TRIES_MAX):
        give_password(page, ada.name, "not her password")
        expect(page.get_by_text(NOT_RIGHT).first).to_be_visible()
        expect(page.get_by_label("Name")).to_have_value(ada.name)
        expect(page.get_by_label("Password")).to_have_value("")
    give_password(page, ada.name)
    expect(page.get_by_label("Password")).to_be_visible()
    with ada.house.connect() as owner:
        locked = owner.execute(
            "SELECT locked_until > now() AND locked_until <= now() + make_interval(mins => %s)"
            " FROM staff_access_now WHERE staff_id = %s",
            [LOCKED_MINUTES, ada.staff_id],
        ).fetchone()
    assert locked == (True,)


def test_a_session_that_was_ended_elsewhere_leads_to_the_sign_in_and_back(
    house: RunningService, windows: Windows, desk: Desk, hired: Hired
) -> None:
    ada = hired(Role.AUDITOR)
    first, second = desk(ada, "/paytables/three-card-brag"), desk(ada, "/account")
    ended = second.get_by_role("button", name="End")
    ended.click()
    expect(second.get_by_text("The session has ended.")).to_be_visible()
    first.get_by_role("link", name="Compare…").click()
    expect(first).to_have_url(
        re.compile(r"/console/sign-in\?next=/console/paytables/three-card-brag/compare$")
    )
    give_password(first, ada.name)
    give_code(first, ada.code())
    expect(first).to_have_url(re.compile("/console/paytables/three-card-brag/compare$"))


def test_a_session_ends_when_nobody_is_at_it_and_not_because_a_page_polls(
    house: RunningService, desk: Desk, hired: Hired
) -> None:
    olga = hired(Role.OPERATIONS)
    page = desk(olga, "/live", refusals="status of 401")
    with house.connect() as owner:
        owner.execute(
            "UPDATE staff_session SET seen_at = seen_at - interval '31 minutes' WHERE staff_id = %s",
            [olga.staff_id],
        )
    # The next poll finds nobody signed in, and takes the page to the sign-in.
    expect(page).to_have_url(re.compile(r"/console/sign-in\?next=/console/live$"))
