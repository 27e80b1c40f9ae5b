"""Signing in at the operator's identity provider: against a real one, and against one that does everything wrong."""

from __future__ import annotations

import html
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import psycopg
import pytest
import requests
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from structlog.testing import capture_logs
from werkzeug.wrappers import Response

from casino_brag.config import OidcSettings, read_config
from casino_brag.errors import SetUpError
from casino_brag.staff.access import NOT_RIGHT
from casino_brag.staff.invitations import reset
from casino_brag.staff.people import Role, revoke
from casino_brag.web.console import oidc
from casino_brag.web.service import EXTENSION
from tests import provider as real
from tests.colleagues import SAID, Colleague, colleague
from tests.inprocess import AppHouse
from tests.issuer import CLIENT_SECRET, Issuer, issuing
from tests.running import together
from tests.web.pages import faults

COOKIE = "casino_brag_staff"
WAY_COOKIE = "casino_brag_provider"
LINKED = "From now on you can sign in at"
UNHEARD = "lets nobody in"
DOES_NOT_HOLD = "does not hold"


@contextmanager
def signing_in_at(house: AppHouse, settings: OidcSettings) -> Iterator[None]:
    """The house as it is with a provider configured."""
    before = house.service
    house.app.extensions[EXTENSION] = replace(before, provider=oidc.Provider(settings, house.sealer))
    try:
        yield
    finally:
        house.app.extensions[EXTENSION] = before


@pytest.fixture
def issuer(app_house: AppHouse) -> Iterator[Issuer]:
    with app_house.connect() as owner:
        owner.execute("DELETE FROM staff_failure")
    with issuing() as found, signing_in_at(app_house, found.settings):
        yield found


@pytest.fixture
def ada(app_house: AppHouse) -> Colleague:
    return colleague(app_house, Role.AUDITOR)


@pytest.fixture
def bob(app_house: AppHouse) -> Colleague:
    return colleague(app_house, Role.EDITOR, name="bob." + secrets.token_hex(4))


def onward(page: requests.Response) -> str:
    """Where a page leads by itself."""
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', page.text)
    assert found, page.text
    assert faults(page.text) == []
    return html.unescape(found[1])


def set_out(browser: Colleague, next_path: str = "") -> str:
    """The address at the provider that the sign-in leads to."""
    return onward(browser.send("/provider", next=next_path))


def set_out_to_link(who: Colleague) -> str:
    return onward(who.post("/account/provider", code=who.code()))


def come_back(browser: Colleague, brought: dict[str, str]) -> requests.Response:
    """What the console makes of what a browser brings back, the page between included."""
    between = browser.get("/provider/return", params=brought)
    assert between.status_code == 200
    return browser.get(onward(between).removeprefix("/console"), allow_redirects=False)


def link(who: Colleague, issuer: Issuer, subject: str) -> str:
    """Links an account; the page that is shown then."""
    done = come_back(who, issuer.approve(set_out_to_link(who), subject))
    assert (done.status_code, done.headers["Location"]) == (303, "/console/account")
    return who.get("/account").text


def enter(browser: Colleague, issuer: Issuer, subject: str, next_path: str = "") -> requests.Response:
    """What the console makes of the account, and of the code that it asks for then."""
    returned = come_back(browser, issuer.approve(set_out(browser, next_path), subject))
    return give_code(browser, returned) if returned.status_code == 303 else returned


def give_code(browser: Colleague, returned: requests.Response) -> requests.Response:
    asked = urlsplit(returned.headers["Location"])
    assert asked.path == "/console/code"
    onward_to = dict(parse_qsl(asked.query))["next"]
    return browser.post("/code", code=browser.code(), next=onward_to)


def elsewhere(who: Colleague) -> Colleague:
    """The same person at another browser, in which nobody is signed in."""
    return replace(who, http=requests.Session())


def linked(house: AppHouse, issuer: Issuer) -> tuple[Colleague, str]:
    """Somebody new, at a browser where nobody is signed in, and the account that is linked."""
    who, subject = colleague(house, Role.AUDITOR).signed_in(), secrets.token_hex(8)
    assert LINKED in link(who, issuer, subject)
    return elsewhere(who), subject


def entries(house: AppHouse, kind: str, name: str | None) -> list[Any]:
    """Actor, reason and payload of what is on record of somebody, oldest first."""
    with house.connect() as owner:
        return owner.execute(
            "SELECT actor, reason, payload FROM audit_entry"
            " WHERE type = %s AND payload ->> 'name' IS NOT DISTINCT FROM %s ORDER BY entry_id",
            [kind, name],
        ).fetchall()


def sessions_of(who: Colleague) -> int:
    with who.house.connect() as owner:
        row = owner.execute(
            "SELECT count(*) FROM staff_session_now WHERE staff_id = %s AND state = 'live'", [who.staff_id]
        ).fetchone()
    assert row is not None
    return int(row[0])


def failures(house: AppHouse, name: str | None = None) -> list[str]:
    """Why somebody did not get in by a provider, as it is on record, oldest first."""
    found = entries(house, "staff.sign_in_failed", name)
    return [reason for _, reason, told in found if told.get("by") == "oidc"]


def assert_refused(
    answer: requests.Response, browser: Colleague, why: str, status: int = 401, *, on_a_way: bool = False
) -> None:
    """The sign-in page, which says why and has the password's way in, and no session.  The way is over, or goes on."""
    assert (answer.status_code, faults(answer.text)) == (status, [])
    assert why in html.unescape(answer.text)
    assert 'name="password"' in answer.text
    assert COOKIE not in browser.http.cookies
    assert (WAY_COOKIE in browser.http.cookies) == on_a_way


class TestTheWayIn:
    def test_the_sign_in_page_shows_it_only_where_a_provider_is_configured(
        self, app_house: AppHouse, ada: Colleague
    ) -> None:
        assert "Sign in with" not in ada.get("/sign-in").text
        assert ada.send("/provider").status_code == 404
        assert ada.get("/provider/finish", allow_redirects=False).status_code == 404
        assert ada.signed_in().get("/account/provider").status_code == 404
        with signing_in_at(app_house, OidcSettings("https://login.example.com/o", "id", "secret")):
            assert "Sign in with login.example.com" in ada.get("/sign-in").text
            assert "Account at login.example.com" in ada.get("/account").text

    def test_an_account_that_was_linked_leads_to_the_page_that_was_asked_for(
        self, app_house: AppHouse, issuer: Issuer
    ) -> None:
        who, subject = linked(app_house, issuer)
        entered = enter(who, issuer, subject, "/console/account?x=1")
        assert (entered.status_code, entered.headers["Location"]) == (303, "/console/account?x=1")
        assert who.name in who.get("/account").text
        assert f"{subject} at {issuer.base}" in who.get("/account").text
        assert WAY_COOKIE not in who.http.cookies
        ((actor, _, told),) = entries(app_house, "staff.provider_linked", who.name)
        assert actor == f"staff:{who.name}"
        assert (told["issuer"], told["subject"]) == (issuer.base, subject)
        ((actor, _, told),) = entries(app_house, "staff.signed_in", who.name)
        assert (actor, told["by"], told["address"]) == (f"staff:{who.name}", "authenticator", "127.0.0.1")

    def test_it_leads_to_no_other_site(self, app_house: AppHouse, issuer: Issuer) -> None:
        who, subject = linked(app_house, issuer)
        for elsewhere_to in ("https://evil.example.com/", "//evil.example.com", "/console//evil.example.com"):
            entered = enter(who, issuer, subject, elsewhere_to)
            assert entered.headers["Location"] == "/console/paytables"

    @pytest.mark.parametrize(
        ("host", "scheme"),
        [("casino.example.com", "https"), ("casino.example.com:8443", "https"), ("localhost:8080", "http")],
    )
    def test_it_leads_back_by_the_name_that_the_browser_has_and_over_tls(
        self, issuer: Issuer, ada: Colleague, host: str, scheme: str
    ) -> None:
        shown = ada.http.post(ada.url("/provider"), headers={"Host": host}, timeout=30)
        back = dict(parse_qsl(urlsplit(onward(shown)).query))["redirect_uri"]
        assert back == f"{scheme}://{host}/console/provider/return"

    @pytest.mark.parametrize("longer", ["x" * 8000, "ä" * 480, "🂡" * 480, '"' * 480])
    def test_however_long_the_page_is_that_was_asked_for_a_browser_keeps_its_way(
        self, app_house: AppHouse, issuer: Issuer, longer: str
    ) -> None:
        who, subject = linked(app_house, issuer)
        brought = issuer.approve(set_out(who, f"/console/audit?q={longer}"), subject)
        (way,) = [cookie for cookie in who.http.cookies if cookie.name == WAY_COOKIE]
        assert len(str(way.value)) < 3500
        assert way.expires is not None  # it ends without a browser's end
        entered = give_code(who, come_back(who, brought))
        assert entered.status_code == 303
        short = longer.isascii() and len(longer) < 500
        assert entered.headers["Location"].startswith("/console/audit?q=" if short else "/console/paytables")

    def test_the_page_to_the_provider_is_sent_by_our_own_pages_only(
        self, issuer: Issuer, ada: Colleague
    ) -> None:
        foreign = ada.http.post(
            ada.url("/provider"), headers={"Origin": "https://evil.example.com"}, timeout=30
        )
        assert foreign.status_code == 403
        assert issuer.asked == []

    def test_it_stands_for_the_password_and_never_for_the_code(
        self, app_house: AppHouse, issuer: Issuer
    ) -> None:
        who, subject = linked(app_house, issuer)
        returned = come_back(who, issuer.approve(set_out(who), subject))
        assert urlsplit(returned.headers["Location"]).path == "/console/code"
        assert sessions_of(who) == 1, "that in which it was linked"
        assert who.get("/account", allow_redirects=False).status_code == 303
        wrong = who.post("/code", code="000000")
        assert (wrong.status_code, NOT_RIGHT in html.unescape(wrong.text)) == (401, True)
        assert who.get("/account", allow_redirects=False).status_code == 303
        assert give_code(who, returned).status_code == 303
        assert who.get("/account", allow_redirects=False).status_code == 200


class TestLinking:
    def test_a_code_is_asked_for_however_fresh_the_last_one_is(self, issuer: Issuer, ada: Colleague) -> None:
        refused = ada.signed_in().post("/account/provider")
        assert refused.status_code == 422
        assert issuer.asked == []

    def test_an_account_of_one_person_is_never_another_persons(
        self, app_house: AppHouse, issuer: Issuer, ada: Colleague, bob: Colleague
    ) -> None:
        assert LINKED in link(ada.signed_in(), issuer, "shared by two")
        assert "is or was another person" in link(bob.signed_in(), issuer, "shared by two")
        ada.post("/account/provider/unlink", of="/account/provider")
        assert "is or was another person" in link(bob, issuer, "shared by two")
        assert LINKED in link(ada, issuer, "shared by two")  # it is still hers
        assert enter(elsewhere(ada), issuer, "shared by two").status_code == 303
        assert len(entries(app_house, "staff.signed_in", ada.name)) == 1
        assert entries(app_house, "staff.signed_in", bob.name) == []
        assert entries(app_house, "staff.provider_linked", bob.name) == []
        assert failures(app_house, bob.name) == ["taken", "taken"]

    def test_of_two_who_link_one_account_at_once_one_gets_it(
        self, issuer: Issuer, ada: Colleague, bob: Colleague
    ) -> None:
        both = [ada.signed_in(), bob.signed_in()]
        brought = [issuer.approve(set_out_to_link(who), "wanted by two") for who in both]
        together([partial(come_back, who, what) for who, what in zip(both, brought, strict=True)])
        assert sorted(LINKED in who.get("/account").text for who in both) == [False, True]
        assert sorted("Not linked" in who.get("/account/provider").text for who in both) == [False, True]

    def test_of_two_accounts_that_one_person_links_at_once_one_is_linked(
        self, app_house: AppHouse, issuer: Issuer, ada: Colleague
    ) -> None:
        both = [elsewhere(ada).signed_in() for _ in range(2)]
        brought = [issuer.approve(set_out_to_link(who), f"hers, of {n}") for n, who in enumerate(both)]
        together([partial(come_back, who, what) for who, what in zip(both, brought, strict=True)])
        assert len(entries(app_house, "staff.provider_linked", ada.name)) == 1

    def test_whose_an_account_is_is_not_changed_by_anybody(self, app_house: AppHouse, issuer: Issuer) -> None:
        who, _ = linked(app_house, issuer)
        with app_house.connect() as owner:
            for change in (
                "UPDATE staff_provider_account SET subject = 'x' WHERE staff_id = %s",
                "UPDATE staff_provider_account SET issuer = 'x' WHERE staff_id = %s",
                "DELETE FROM staff_provider_account WHERE staff_id = %s",
            ):
                with pytest.raises(psycopg.errors.RestrictViolation):
                    owner.execute(change, [who.staff_id])

    def test_a_person_has_one_account_at_most(self, issuer: Issuer, ada: Colleague) -> None:
        ada.signed_in()
        first = issuer.approve(set_out_to_link(ada), "hers, the first")
        assert LINKED in link(ada, issuer, "hers, the second")
        # The first way was the earlier one, and its cookie has gone.
        assert come_back(ada, first).status_code == 401
        assert "have linked an account already" in link(ada, issuer, "hers, the third")

    def test_unlinking_ends_it_and_the_other_sessions(self, app_house: AppHouse, issuer: Issuer) -> None:
        who, subject = linked(app_house, issuer)
        enter(who, issuer, subject)
        here = elsewhere(who).signed_in()
        done = here.post("/account/provider/unlink", of="/account/provider")
        assert (done.status_code, sessions_of(who)) == (303, 1)
        browser = elsewhere(who)
        assert_refused(enter(browser, issuer, subject), browser, UNHEARD)
        ((_, _, told),) = entries(app_house, "staff.provider_unlinked", who.name)
        assert told["subject"] == subject
        assert here.post("/account/provider/unlink", of="/account/provider").status_code == 303
        assert len(entries(app_house, "staff.provider_unlinked", who.name)) == 1

    def test_it_is_for_the_session_that_set_out(self, issuer: Issuer, ada: Colleague, bob: Colleague) -> None:
        brought = issuer.approve(set_out_to_link(ada.signed_in()), "whoever's")
        bob.signed_in().http.cookies.set(
            WAY_COOKIE, ada.http.cookies[WAY_COOKIE], domain="127.0.0.1", path="/console"
        )
        refused = come_back(bob, brought)
        assert (refused.status_code, "has ended" in refused.text) == (401, True)
        assert "Not linked" in bob.get("/account/provider").text

    def test_a_code_that_is_too_old_by_then_links_nothing(
        self, app_house: AppHouse, issuer: Issuer, ada: Colleague
    ) -> None:
        brought = issuer.approve(set_out_to_link(ada.signed_in()), "late")
        with app_house.connect() as owner:
            owner.execute(
                "UPDATE staff_session SET proved_at = proved_at - interval '11 minutes' WHERE staff_id = %s",
                [ada.staff_id],
            )
        come_back(ada, brought)
        assert "too old" in ada.get("/account").text


class TestWhoIsNotLetIn:
    def test_whose_account_is_linked_to_nobody(
        self, app_house: AppHouse, issuer: Issuer, ada: Colleague
    ) -> None:
        before = len(entries(app_house, "staff.sign_in_failed", None))
        assert_refused(enter(ada, issuer, "a stranger"), ada, UNHEARD)
        *_, (actor, reason, told) = entries(app_house, "staff.sign_in_failed", None)
        assert len(entries(app_house, "staff.sign_in_failed", None)) == before + 1
        assert (actor, reason, told["by"], told["address"]) == (
            "system:http",
            "not_linked",
            "oidc",
            "127.0.0.1",
        )

    def test_who_has_retired(self, app_house: AppHouse, issuer: Issuer) -> None:
        who, subject = linked(app_house, issuer)
        with app_house.connect() as owner:
            revoke(owner, who.name, SAID)
        assert_refused(enter(who, issuer, subject), who, UNHEARD)

    def test_who_was_reset(self, app_house: AppHouse, issuer: Issuer) -> None:
        who, subject = linked(app_house, issuer)
        with app_house.connect() as owner:
            reset(owner, who.name, SAID)
        assert_refused(enter(who, issuer, subject), who, UNHEARD)

    def test_who_is_locked_out(self, app_house: AppHouse, issuer: Issuer) -> None:
        who, subject = linked(app_house, issuer)
        with app_house.connect() as owner:
            owner.execute(
                "UPDATE staff_access SET failures = 3, locked = true, tried_at = now() WHERE staff_id = %s",
                [who.staff_id],
            )
        assert_refused(enter(who, issuer, subject), who, UNHEARD)
        ((_, reason, told),) = entries(app_house, "staff.sign_in_failed", who.name)
        assert (reason, told["by"]) == ("not_tried", "oidc")
        with app_house.connect() as owner:
            owner.execute(
                "UPDATE staff_access SET tried_at = now() - interval '16 minutes' WHERE staff_id = %s",
                [who.staff_id],
            )
        assert enter(who, issuer, subject).status_code == 303

    def test_who_said_no_at_the_provider(self, app_house: AppHouse, issuer: Issuer, ada: Colleague) -> None:
        before = failures(app_house)
        for _ in range(4):  # as often as one likes
            brought = issuer.approve(set_out(ada), "x")
            refused = come_back(ada, {"state": brought["state"], "error": "access_denied"})
            assert_refused(refused, ada, "signed nobody in")
        assert failures(app_house) == before

    def test_from_where_too_much_was_tried(self, app_house: AppHouse, issuer: Issuer) -> None:
        who, subject = linked(app_house, issuer)
        for _ in range(3):
            brought = issuer.approve(set_out(who), subject)
            assert_refused(come_back(who, brought | {"code": "made up"}), who, DOES_NOT_HOLD)
        brought = issuer.approve(set_out(who), subject)
        issuer.asked.clear()
        assert_refused(come_back(who, brought), who, "Wait a minute", 429)
        assert issuer.asked == []


class TestStates:
    def test_a_state_of_another_browser_is_refused(
        self, app_house: AppHouse, issuer: Issuer, bob: Colleague
    ) -> None:
        who, subject = linked(app_house, issuer)
        brought = issuer.approve(set_out(who), subject)
        for on_a_way in (False, True):
            issuer.asked.clear()
            assert_refused(come_back(bob, brought), bob, "did not set out", on_a_way=on_a_way)
            assert issuer.asked == []
            set_out(bob)

    def test_a_state_of_another_way_leaves_the_browser_on_its_own(
        self, app_house: AppHouse, issuer: Issuer
    ) -> None:
        who, subject = linked(app_house, issuer)
        brought = issuer.approve(set_out(who), subject)
        assert_refused(come_back(who, {"state": "x"}), who, "did not set out", on_a_way=True)
        assert come_back(who, brought).status_code == 303

    def test_a_state_is_good_once(self, app_house: AppHouse, issuer: Issuer) -> None:
        who, subject = linked(app_house, issuer)
        brought = issuer.approve(set_out(who), subject)
        assert come_back(who, brought).status_code == 303
        who.http.cookies.pop(COOKIE)
        assert_refused(come_back(who, brought), who, "did not set out")

    def test_a_code_is_good_once_even_for_who_kept_the_cookie(
        self, app_house: AppHouse, issuer: Issuer
    ) -> None:
        who, subject = linked(app_house, issuer)
        brought = issuer.approve(set_out(who), subject)
        kept = who.http.cookies[WAY_COOKIE]
        assert come_back(who, brought).status_code == 303
        again = elsewhere(who)
        again.http.cookies.set(WAY_COOKIE, kept, domain="127.0.0.1", path="/console")
        assert_refused(come_back(again, brought), again, DOES_NOT_HOLD)

    def test_a_way_that_took_too_long_is_refused(
        self, issuer: Issuer, ada: Colleague, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        brought = issuer.approve(set_out(ada), "x")
        monkeypatch.setattr(oidc, "WAY_SECONDS", -1)
        assert_refused(come_back(ada, brought), ada, "did not set out", on_a_way=True)

    @pytest.mark.parametrize("sealed", ["", "x", "00", "6b3100" + "00" * 60])
    def test_a_cookie_that_was_made_up_is_refused(self, issuer: Issuer, ada: Colleague, sealed: str) -> None:
        ada.http.cookies.set(WAY_COOKIE, sealed, domain="127.0.0.1", path="/console")
        refused = come_back(ada, {"state": "s", "code": "c"})
        assert_refused(refused, ada, "did not set out", on_a_way=True)


Fault = Callable[[Issuer], Any]

WRONG_TOKENS: dict[str, Fault] = {
    "another nonce": lambda at: at.claims.update(nonce="another"),
    "no nonce": lambda at: at.claims.update(nonce=None),
    "another audience": lambda at: at.claims.update(aud="another-client"),
    "another audience, and us as who it is for": lambda at: at.claims.update(
        aud="another-client", azp="casino-brag"
    ),
    "two audiences, and another as who it is for": lambda at: at.claims.update(
        aud=["casino-brag", "b"], azp="b"
    ),
    "two audiences": lambda at: at.claims.update(aud=["casino-brag", "b"]),
    "no audience": lambda at: at.claims.update(aud=None),
    "another issuer": lambda at: at.claims.update(iss="https://evil.example.com"),
    "no issuer": lambda at: at.claims.update(iss=None),
    "expired": lambda at: at.claims.update(exp=int(time.time()) - 120),
    "without an end": lambda at: at.claims.update(exp=None),
    "from the future": lambda at: at.claims.update(iat=int(time.time()) + 3600),
    "signed in there long ago": lambda at: at.claims.update(auth_time=int(time.time()) - 3600),
    "signed in there nobody knows when": lambda at: at.claims.update(auth_time=None),
    "signed in there at a word": lambda at: at.claims.update(auth_time="now"),
    "nobody": lambda at: at.claims.update(sub=None),
    "a number": lambda at: at.claims.update(sub=7),
    "an empty name": lambda at: at.claims.update(sub=""),
    "a name too long": lambda at: at.claims.update(sub="s" * 256),
    "a name that cannot be kept": lambda at: at.claims.update(sub="s\0"),
    "not signed": lambda at: setattr(at, "sign", at.unsigned),
    "signed with the secret of the client": lambda at: setattr(
        at, "sign", lambda c: at.hs256(c, CLIENT_SECRET.encode())
    ),
    "signed with the public key": lambda at: setattr(at, "sign", lambda c: at.hs256(c, at.public_pem)),
    "signed by another": lambda at: setattr(
        at, "sign", lambda c: at.rs256(c, generate_private_key(65537, 2048))
    ),
    "altered": lambda at: setattr(at, "sign", lambda c: at.rs256(c)[:-8] + "AAAAAAAA"),
    "no token": lambda at: setattr(at, "sign", lambda _: "not one"),
}


@pytest.mark.parametrize("wrong", WRONG_TOKENS)
def test_a_token_that_is_wrong_lets_nobody_in(app_house: AppHouse, issuer: Issuer, wrong: str) -> None:
    who, subject = linked(app_house, issuer)
    before = len(entries(app_house, "staff.sign_in_failed", None))
    WRONG_TOKENS[wrong](issuer)
    assert_refused(enter(who, issuer, subject), who, DOES_NOT_HOLD)
    assert len(entries(app_house, "staff.sign_in_failed", None)) == before + 1
    issuer.claims, issuer.sign = {}, None
    assert enter(who, issuer, subject).status_code == 303


WRONG_GRANTS: dict[str, Any] = {
    "good for longer than there are numbers": {"expires_in": float("inf")},
    "good for nobody knows how long": {"expires_in": "long"},
    "a token that is a number": {"id_token": 5},
    "an access token that is a number": {"access_token": 5, "id_token": None},
}


@pytest.mark.parametrize("wrong", WRONG_GRANTS)
def test_an_answer_to_a_code_that_is_wrong_lets_nobody_in(
    app_house: AppHouse, issuer: Issuer, wrong: str
) -> None:
    who, subject = linked(app_house, issuer)
    issuer.granted = WRONG_GRANTS[wrong]
    assert_refused(enter(who, issuer, subject), who, DOES_NOT_HOLD)


def test_a_wrong_token_links_nothing_and_is_on_record(
    app_house: AppHouse, issuer: Issuer, ada: Colleague
) -> None:
    issuer.claims["aud"] = "another-client"
    assert DOES_NOT_HOLD in link(ada.signed_in(), issuer, "x")
    assert "Not linked" in ada.get("/account/provider").text
    assert failures(app_house, ada.name) == ["provider"]


def test_a_new_key_of_the_provider_is_good_at_once(app_house: AppHouse, issuer: Issuer) -> None:
    who, subject = linked(app_house, issuer)
    issuer.key = generate_private_key(65537, 2048)
    assert enter(who, issuer, subject).status_code == 303


WRONG_ANSWERS: dict[str, tuple[Fault, int]] = {
    "of another issuer": (lambda at: at.document.update(issuer="https://evil.example.com"), 401),
    "a token is sent unencrypted": (
        lambda at: at.document.update(token_endpoint="http://evil.example.com/t"),
        401,
    ),
    "to sign in at a script": (
        lambda at: at.document.update(authorization_endpoint="javascript:alert(1)"),
        401,
    ),
    "without keys": (lambda at: at.document.update(jwks_uri=None), 401),
    "an address that is a number": (lambda at: at.document.update(token_endpoint=5), 401),
    "an address that is true": (lambda at: at.document.update(token_endpoint=True), 401),
    "no JSON": (lambda at: setattr(at, "answer", Response("<html>")), 401),
    "nested without end": (lambda at: setattr(at, "answer", Response("[" * 200_000)), 401),
    "not an object": (lambda at: setattr(at, "answer", Response("[]")), 401),
    "too long": (lambda at: setattr(at, "answer", Response(b" " * (oidc.BYTES_MAX + 1))), 503),
    "an error": (lambda at: setattr(at, "answer", Response("{}", 500)), 503),
    "leads elsewhere": (lambda at: setattr(at, "answer", Response("", 302, {"Location": "/o"})), 503),
}


@pytest.mark.parametrize("wrong", WRONG_ANSWERS)
def test_a_provider_that_describes_itself_wrongly_is_not_gone_to(
    issuer: Issuer, ada: Colleague, wrong: str
) -> None:
    fault, status = WRONG_ANSWERS[wrong]
    fault(issuer)
    answer = ada.send("/provider")
    assert (answer.status_code, faults(answer.text)) == (status, [])
    assert ("does not answer" if status == 503 else DOES_NOT_HOLD) in answer.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("issuer", "http://127.0.0.1/with-a-slash-too-many/"),
        ("token_endpoint", "http://login.example.com/token"),
        ("jwks_uri", 5),
    ],
)
def test_what_is_wrong_with_a_description_is_in_the_log_of_the_service(
    issuer: Issuer, ada: Colleague, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(oidc, "log", structlog.get_logger())  # one that was used before keeps to its way
    issuer.document[name] = value
    with capture_logs() as logged:
        assert DOES_NOT_HOLD in ada.send("/provider").text
    (told,) = [line for line in logged if line["event"] == "provider"]
    assert (told["claim"], told["error"]) == (name, str(value))


class TestAProviderThatIsSlow:
    def test_is_waited_for_no_longer_for_three_answers_than_for_one(
        self, app_house: AppHouse, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        who, subject = linked(app_house, issuer)
        brought = issuer.approve(set_out(who), subject)
        monkeypatch.setattr(oidc, "SECONDS", 1)
        issuer.delay = 0.4
        assert_refused(come_back(who, brought), who, "does not answer", 503)

    def test_holds_no_more_than_two_threads_of_a_worker_and_none_that_waits_for_them(
        self, issuer: Issuer, ada: Colleague, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Turns(BoundedSemaphore):
            def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
                assert not blocking
                return super().acquire(blocking, timeout)

        turns = Turns(oidc.AT_ONCE_MAX)
        monkeypatch.setattr(oidc, "_waiting", turns)
        assert turns.acquire(blocking=False)
        set_out(ada)
        assert turns.acquire(blocking=False)
        issuer.asked.clear()
        assert_refused(ada.send("/provider"), ada, "Others are on their way", 503, on_a_way=True)
        assert issuer.asked == []
        turns.release()
        set_out(ada)


class TestAProviderThatIsDown:
    def test_is_told_and_the_password_leads_in(self, app_house: AppHouse, ada: Colleague) -> None:
        with issuing() as gone:
            settings = gone.settings
        with signing_in_at(app_house, settings):
            assert_refused(ada.send("/provider"), ada, "does not answer. Sign in with your password", 503)
            assert ada.sign_in().status_code == 303

    def test_between_going_and_coming_back_is_told_too(
        self, app_house: AppHouse, issuer: Issuer, bob: Colleague
    ) -> None:
        who, subject = linked(app_house, issuer)
        brought = issuer.approve(set_out(who), subject)
        issuer.answer = Response("Bad Gateway", 502)
        assert_refused(come_back(who, brought), who, "does not answer", 503)


class TestSettings:
    @pytest.fixture(autouse=True)
    def given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CASINO_BRAG_OIDC_ISSUER", "https://login.example.com")
        monkeypatch.setenv("CASINO_BRAG_OIDC_CLIENT_ID", "id")
        monkeypatch.setenv("CASINO_BRAG_OIDC_CLIENT_SECRET", "a secret")

    def test_are_read_and_the_secret_is_not_shown(self) -> None:
        read = read_config(database_url="postgresql://", seal_keys={"k": bytes(32)})
        assert read.oidc == OidcSettings("https://login.example.com", "id", "a secret")
        assert "a secret" not in repr(read)

    @pytest.mark.parametrize(
        ("name", "value", "says"),
        [
            ("CASINO_BRAG_OIDC_CLIENT_SECRET", "", "CASINO_BRAG_OIDC_CLIENT_SECRET is missing"),
            ("CASINO_BRAG_OIDC_ISSUER", "", "CASINO_BRAG_OIDC_ISSUER is missing"),
            ("CASINO_BRAG_OIDC_ISSUER", "http://login.example.com", "is not encrypted"),
            ("CASINO_BRAG_OIDC_ISSUER", "login.example.com", "is no URL"),
        ],
    )
    def test_say_what_is_wrong_with_them(
        self, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
    ) -> None:
        monkeypatch.setenv(name, value)
        with pytest.raises(SetUpError, match=says):
            read_config(database_url="postgresql://", seal_keys={"k": bytes(32)})

    def test_name_the_command_that_installs_what_they_need(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("casino_brag.config.find_spec", lambda _: None)
        with pytest.raises(SetUpError, match=re.escape("pip install 'casino-brag[oidc]'")):
            read_config(database_url="postgresql://", seal_keys={"k": bytes(32)})


def test_without_settings_nothing_of_it_is_imported() -> None:
    program = """
import sys
from casino_brag.config import Config
from casino_brag.web.app import create_app
create_app(Config("postgresql://", {"k": bytes(32)}))
assert not {"authlib", "joserfc", "casino_brag.web.console.oidc"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.Provider]:
    with real.Provider.started(tmp_path_factory.mktemp("provider")) as started:
        yield started


def approve(address: str, name: str) -> dict[str, str]:
    """What somebody does on the pages of the real provider, and what the browser brings back."""
    browser = requests.Session()
    shown = browser.get(address, timeout=30)
    for typed in ({"username": name, "password": real.PASSWORD}, {"allow": "Authorize"}):
        assert shown.status_code == 200, shown.text
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', shown.text))
        fields |= dict(re.findall(r'name="([^"]+)" value="([^"]*)"', shown.text))
        shown = browser.post(
            shown.url,
            {name: html.unescape(value) for name, value in fields.items()} | typed,
            headers={"Referer": shown.url},
            timeout=30,
            allow_redirects="username" in typed,
        )
    assert shown.status_code == 302, shown.text
    return dict(parse_qsl(urlsplit(shown.headers["Location"]).query))


def test_a_real_provider_is_linked_and_signs_in(
    app_house: AppHouse, provider: real.Provider, ada: Colleague
) -> None:
    with signing_in_at(app_house, provider.settings):
        ada.signed_in()
        come_back(ada, approve(set_out_to_link(ada), "ada"))
        assert LINKED in ada.get("/account").text
        who = elsewhere(ada)
        brought = approve(set_out(who, "/console/account"), "ada")
        kept = who.http.cookies[WAY_COOKIE]
        entered = give_code(who, come_back(who, brought))
        assert (entered.status_code, entered.headers["Location"]) == (303, "/console/account")
        # Its code is good once, also for the same browser.
        again = elsewhere(ada)
        again.http.cookies.set(WAY_COOKIE, kept, domain="127.0.0.1", path="/console")
        assert_refused(come_back(again, brought), again, DOES_NOT_HOLD)
        other = elsewhere(ada)
        assert_refused(come_back(other, approve(set_out(other), "olga")), other, UNHEARD)
