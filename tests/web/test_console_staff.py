"""The console's pages of staff, over HTTP: the way in and out, one's account, people, approvals."""

from __future__ import annotations

import base64
import re
import secrets
from datetime import timedelta
from functools import partial

import pytest
import requests

from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.staff import access, credentials, invitations
from casino_brag.staff.access import LOCKED_MINUTES, NOT_RIGHT, TRIES_MAX
from casino_brag.staff.invitations import invite
from casino_brag.staff.people import Role, add_staff, presented, set_roles
from casino_brag.staff.proposals import Kind, propose
from casino_brag.web.console.shell import local_path
from tests.colleagues import PASSWORD, SAID, Colleague, code_of, colleague
from tests.inprocess import AppHouse
from tests.running import together

COOKIE = "casino_brag_staff"


@pytest.fixture(autouse=True)
def nobody_is_shut_out(app_house: AppHouse) -> None:
    """All tests come from one address, which the failures of others would shut out."""
    with app_house.connect() as owner:
        owner.execute("DELETE FROM staff_failure")


@pytest.fixture
def ada(app_house: AppHouse) -> Colleague:
    return colleague(app_house, Role.AUDITOR)


@pytest.fixture
def olga(app_house: AppHouse) -> Colleague:
    return colleague(app_house, Role.OPERATIONS, name="olga." + secrets.token_hex(4)).signed_in()


@pytest.fixture
def anna(app_house: AppHouse) -> Colleague:
    return colleague(app_house, Role.APPROVER, name="anna." + secrets.token_hex(4)).signed_in()


def secret_of(who: Colleague) -> str | None:
    return who.http.cookies.get(COOKIE)


def stale(*people: Colleague) -> None:
    """Makes the last codes of people too old for what matters."""
    for who in people:
        with who.house.connect() as owner:
            owner.execute(
                "UPDATE staff_session SET proved_at = proved_at - %s WHERE staff_id = %s AND ended_at IS NULL",
                [timedelta(minutes=11), who.staff_id],
            )


def forget_failures(who: Colleague) -> None:
    with who.house.connect() as owner:
        owner.execute("DELETE FROM staff_failure")


class TestSigningIn:
    def test_a_password_and_a_code_lead_to_the_page_that_was_asked_for(self, ada: Colleague) -> None:
        asked = ada.get("/account", allow_redirects=False)
        assert asked.status_code == 303
        assert asked.headers["Location"] == "/console/sign-in?next=/console/account"
        signed_in = ada.sign_in("/console/account")
        assert (signed_in.status_code, signed_in.headers["Location"]) == (303, "/console/account")
        shown = ada.get("/account")
        assert shown.status_code == 200
        assert ada.name in shown.text

    def test_a_name_may_begin_with_a_capital_as_telephones_write_it(self, ada: Colleague) -> None:
        given = ada.send("/sign-in", name=f" {ada.name.title()} ", password=PASSWORD)
        assert given.status_code == 303

    def test_the_cookie_is_for_no_script_no_other_site_and_no_other_page(self, ada: Colleague) -> None:
        given = ada.send("/sign-in", name=ada.name, password=PASSWORD)
        code = ada.post("/code", code=ada.code())
        for answer in (given, code):
            attributes = {part.strip() for part in answer.headers["Set-Cookie"].split(";")[1:]}
            assert attributes == {"HttpOnly", "Path=/console", "SameSite=Strict"}

    @pytest.mark.parametrize(
        "host", ["casino.example.com", "127.0.0.1.example.com", "localhost.evil.example", "10.0.0.1"]
    )
    def test_over_the_network_the_cookie_goes_over_tls_alone(self, ada: Colleague, host: str) -> None:
        headers = {"Host": host, "Origin": f"http://{host}"}
        given = ada.http.post(
            ada.url("/sign-in"),
            data={"name": ada.name, "password": PASSWORD},
            headers=headers,
            allow_redirects=False,
            timeout=30,
        )
        assert given.status_code == 303
        assert "Secure" in given.headers["Set-Cookie"]

    def test_the_secret_is_new_at_every_step_whatever_the_browser_came_with(self, ada: Colleague) -> None:
        planted = secrets.token_urlsafe(32)
        ada.http.cookies.set(COOKIE, planted, domain="127.0.0.1", path="/console")
        ada.send("/sign-in", name=ada.name, password=PASSWORD)
        awaiting = secret_of(ada)
        ada.post("/code", code=ada.code())
        assert len({planted, awaiting, secret_of(ada)}) == 3
        for other in (planted, awaiting):
            cookies = {COOKIE: other or ""}
            answer = requests.get(ada.url("/account"), cookies=cookies, allow_redirects=False, timeout=30)
            assert answer.status_code == 303

    def test_after_the_password_alone_no_page_is_shown(self, ada: Colleague) -> None:
        ada.send("/sign-in", name=ada.name, password=PASSWORD)
        for path in ("/account", "/paytables", "/staff", "/approvals"):
            assert "/console/sign-in" in ada.get(path, allow_redirects=False).headers["Location"]

    def test_whatever_is_not_right_is_answered_alike_and_what_was_typed_is_kept_but_for_the_password(
        self, ada: Colleague
    ) -> None:
        answers = [
            ada.send("/sign-in", name=name, password="a wrong one, " + typed)
            for name, typed in ((ada.name, "1"), ("nobody", "2"))
        ]
        shown = [
            answer.text.replace(f'value="{name}"', "")
            for answer, name in zip(answers, (ada.name, "nobody"), strict=True)
        ]
        assert [answer.status_code for answer in answers] == [401, 401]
        assert shown[0] == shown[1]
        assert NOT_RIGHT in shown[0]
        assert f'value="{ada.name}"' in answers[0].text
        assert "a wrong one" not in answers[0].text

    def test_after_three_failures_the_right_password_does_not_help_and_after_the_time_it_does(
        self, ada: Colleague
    ) -> None:
        for _ in range(TRIES_MAX):
            assert ada.send("/sign-in", name=ada.name, password="wrong").status_code == 401
        shut_out = ada.send("/sign-in", name=ada.name, password=PASSWORD)
        assert shut_out.status_code == 429
        forget_failures(ada)
        locked = ada.send("/sign-in", name=ada.name, password=PASSWORD)
        assert (locked.status_code, NOT_RIGHT in locked.text) == (401, True)
        with ada.house.connect() as owner:
            owner.execute(
                "UPDATE staff_access SET tried_at = tried_at - %s WHERE staff_id = %s",
                [timedelta(minutes=LOCKED_MINUTES), ada.staff_id],
            )
        assert ada.sign_in().status_code == 303

    def test_three_wrong_codes_lock_the_account_too(self, ada: Colleague) -> None:
        ada.send("/sign-in", name=ada.name, password=PASSWORD)
        for _ in range(TRIES_MAX):
            assert ada.post("/code", code="000").status_code == 401
        assert ada.post("/code", code=ada.code()).status_code == 401
        forget_failures(ada)
        assert ada.send("/sign-in", name=ada.name, password=PASSWORD).status_code == 401

    @pytest.mark.parametrize(
        "elsewhere",
        [
            "https://evil.example/",
            "//evil.example/console/",
            "/console//evil.example",
            "/\\evil.example",
            "/console/\\evil.example",
            "javascript:alert(1)",
            "/v1/games",
            "console/account",
            "/console/\r\nSet-Cookie: x=y",
            "\thttps://evil.example/console/",
            "http:/console/",
            "",
        ],
    )
    def test_nobody_is_sent_elsewhere_after_signing_in(self, ada: Colleague, elsewhere: str) -> None:
        assert ada.sign_in(elsewhere).headers["Location"] == "/console/paytables"
        assert local_path(elsewhere) == "/console/paytables"

    def test_a_form_of_another_site_signs_nobody_in(self, ada: Colleague) -> None:
        for headers in (
            {"Origin": "https://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Origin": "null"},
        ):
            answer = ada.http.post(
                ada.url("/sign-in"),
                data={"name": ada.name, "password": PASSWORD},
                headers=headers,
                timeout=30,
                allow_redirects=False,
            )
            assert answer.status_code == 403
            assert "Set-Cookie" not in answer.headers

    def test_a_code_is_taken_from_the_form_of_the_session_alone(self, ada: Colleague) -> None:
        ada.send("/sign-in", name=ada.name, password=PASSWORD)
        for planted in ("", "0" * 64):
            assert ada.send("/code", code=ada.code(), _csrf=planted).status_code == 403
        assert ada.post("/code", code=ada.code()).status_code == 303

    def test_signing_out_ends_the_session_and_takes_the_cookie(self, ada: Colleague) -> None:
        ada.signed_in()
        secret = secret_of(ada)
        assert ada.send("/sign-out").status_code == 403
        left = ada.post("/sign-out", of="/account")
        assert (left.status_code, left.headers["Location"]) == (303, "/console/sign-in")
        assert secret_of(ada) is None
        again = requests.get(
            ada.url("/account"), cookies={COOKIE: secret or ""}, allow_redirects=False, timeout=30
        )
        assert again.status_code == 303

    def test_roles_that_are_taken_away_end_the_session(self, ada: Colleague) -> None:
        ada.signed_in()
        assert ada.get("/staff", allow_redirects=False).status_code == 200
        with ada.house.connect() as conn:
            set_roles(conn, ada.name, [Role.EDITOR], SAID)
        assert ada.get("/staff", allow_redirects=False).status_code == 303

    def test_a_visit_is_on_record(self, ada: Colleague) -> None:
        ada.signed_in().get("/staff")
        assert colleague(ada.house, Role.EDITOR).signed_in().get("/staff").status_code == 403
        with ada.house.connect() as conn:
            rows = conn.execute(
                "SELECT payload ->> 'path', payload ->> 'granted' FROM audit_entry"
                " WHERE type = 'staff.called' ORDER BY entry_id DESC LIMIT 2"
            ).fetchall()
        assert rows == [("/console/staff", "false"), ("/console/staff", "true")]


class TestJoining:
    def link(self, house: AppHouse) -> tuple[str, str]:
        """A name and the path of its link."""
        name = "bob." + secrets.token_hex(4)
        with house.connect(DatabaseRole.APP) as conn:
            add_staff(conn, name, [Role.EDITOR], SAID)
            return name, invite(conn, name, SAID).path.removeprefix("/console")

    def typed(self, shown: str, **typed: str) -> dict[str, str]:
        offer = re.search(r'name="offer" value="([0-9a-f]+)"', shown)
        assert offer
        return {"offer": offer[1], "password": PASSWORD, "again": PASSWORD, **typed}

    def secret(self, shown: str) -> bytes:
        text = re.search(r"<code>([A-Z2-7 ]{39})</code>", shown)
        assert text
        return base64.b32decode(text[1].replace(" ", ""))

    def test_who_is_invited_joins_and_signs_in(self, app_house: AppHouse, ada: Colleague) -> None:
        name, path = self.link(app_house)
        shown = ada.get(path).text
        assert name in shown
        assert "<svg" in shown
        secret = self.secret(shown)
        joined = ada.send(path, **self.typed(shown, new_code=code_of(secret)))
        assert joined.status_code == 200
        codes = re.findall(r"<code>([a-z2-7]{4}(?:-[a-z2-7]{4}){3})</code>", joined.text)
        assert len(codes) == 10
        assert ada.get(path).status_code == 404
        assert name in ada.get("/account").text, "who has joined is signed in"
        with app_house.connect() as conn:
            failed = conn.execute(
                "SELECT failures FROM staff_access JOIN staff USING (staff_id) WHERE name = %s", [name]
            ).fetchone()
        assert failed == (0,)
        ada.post("/sign-out", of="/account")
        ada.send("/sign-in", name=name, password=PASSWORD)
        assert ada.post("/code", code=codes[0]).status_code == 303
        assert name in ada.get("/account").text

    def test_what_is_wrong_is_told_at_its_field_and_the_secret_stays_the_same(
        self, app_house: AppHouse, ada: Colleague
    ) -> None:
        _, path = self.link(app_house)
        shown = ada.get(path).text
        refused = ada.send(path, **self.typed(shown, password="short", again="short", new_code="12"))
        assert refused.status_code == 422
        assert 'id="error-password"' in refused.text
        assert 'id="error-new_code"' in refused.text
        assert self.secret(refused.text) == self.secret(shown)
        differing = ada.send(path, **self.typed(shown, again="another", new_code="12"))
        assert 'id="error-again"' in differing.text
        assert "short" not in re.findall(r'value="([^"]*)"', refused.text)

    def test_a_secret_of_ones_own_choice_is_not_taken(self, app_house: AppHouse, ada: Colleague) -> None:
        _, path = self.link(app_house)
        shown = ada.get(path).text
        refused = ada.send(path, **self.typed(shown, offer="00" * 40, new_code="123456"))
        assert refused.status_code == 422
        assert 'id="error-new_code"' in refused.text

    def test_a_link_that_is_none_is_told_so(self, ada: Colleague) -> None:
        assert ada.get("/join/nothing").status_code == 404
        assert ada.send("/join/nothing", password=PASSWORD).status_code == 404


class TestTheAccount:
    def test_a_password_is_changed(self, ada: Colleague) -> None:
        ada.signed_in()
        other = Colleague(ada.house, ada.staff_id, ada.name, ada.roles, ada.secret).signed_in()
        refused = ada.post("/account/password", current="wrong", password="too short", again="too short")
        assert refused.status_code == 422
        assert 'id="error-password"' in refused.text
        new = "another one of mine"
        wrong = ada.post("/account/password", current="wrong", password=new, again=new)
        assert 'id="error-current"' in wrong.text
        done = ada.post("/account/password", current=PASSWORD, password=new, again=new)
        assert (done.status_code, done.headers["Location"]) == (303, "/console/account")
        assert "signed out everywhere else" in ada.get("/account").text
        assert other.get("/account", allow_redirects=False).status_code == 303

    def test_no_connection_is_held_while_a_password_is_looked_into(
        self, ada: Colleague, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held: list[int] = []

        def looking(module: object, name: str) -> None:
            real = getattr(module, name)

            def look(*given: object) -> object:
                pool = ada.house.service.database._open_pool()
                stats = pool.get_stats()
                held.append(stats["pool_size"] - stats["pool_available"])
                return real(*given)

            monkeypatch.setattr(module, name, look)

        looking(access, "is_right")
        looking(credentials, "is_right")
        looking(credentials, "hash_of_password")
        looking(invitations, "hash_of_password")
        assert ada.sign_in().status_code == 303
        new = "another one of mine"
        assert ada.post("/account/password", current=PASSWORD, password=new, again=new).status_code == 303
        TestJoining().test_who_is_invited_joins_and_signs_in(ada.house, ada)
        assert held == [0] * 5

    def test_an_authenticator_is_changed_with_a_fresh_proof(self, ada: Colleague) -> None:
        stale(ada.signed_in())
        shown = ada.get("/account/authenticator").text
        secret = TestJoining().secret(shown)
        offer = TestJoining().typed(shown)["offer"]
        unproven = ada.post("/account/authenticator", offer=offer, new_code=code_of(secret))
        assert unproven.status_code == 422
        assert 'id="error-code"' in unproven.text
        assert TestJoining().secret(unproven.text) == secret
        done = ada.post("/account/authenticator", offer=offer, new_code=code_of(secret), code=ada.code())
        assert done.status_code == 200
        assert "Recovery codes" in done.text

    def test_a_fresh_session_alone_gets_no_other_means_to_sign_in_or_to_call(self, ada: Colleague) -> None:
        """Who has stolen the cookie within ten minutes of a code has no code."""
        shown = ada.signed_in().get("/account/authenticator").text
        typed = {
            "/account/authenticator": {
                "offer": TestJoining().typed(shown)["offer"],
                "new_code": code_of(TestJoining().secret(shown)),
            },
            "/account/recovery-codes": {},
            "/account/tokens": {"label": "mine", "days": "30"},
        }
        for path, given in typed.items():
            unproven = ada.post(path, of="/account/recovery-codes", **given)
            assert unproven.status_code == 422
            assert 'id="error-code"' in unproven.text
        assert "You have no token." in ada.get("/account").text

    def test_recovery_codes_are_made_anew(self, ada: Colleague) -> None:
        done = ada.signed_in().post("/account/recovery-codes", code=ada.code())
        assert len(re.findall(r"<code>[a-z2-7]{4}-", done.text)) == 10
        assert "<dd>10</dd>" in ada.get("/account").text

    def test_tokens_are_issued_shown_once_and_revoked_by_their_person_alone(
        self, ada: Colleague, olga: Colleague
    ) -> None:
        stale(ada.signed_in())
        unproven = ada.post("/account/tokens", of="/account", label="monthly check", days="30")
        assert unproven.status_code == 422
        assert 'value="monthly check"' in unproven.text
        made = ada.post("/account/tokens", of="/account", label="monthly check", days="30", code=ada.code())
        (token,) = re.findall(r"cbs_[\w-]+", made.text)
        (token_id,) = set(re.findall(r"t_[0-9a-f]{12}", made.text))
        shown = ada.get("/account").text
        assert token_id in shown
        assert token not in shown
        assert olga.post(f"/account/tokens/{token_id}/revoke", of="/account").status_code == 404
        assert ada.post(f"/account/tokens/{token_id}/revoke", of="/account").status_code == 303
        with ada.house.connect() as conn:
            held = presented(conn, token)
        assert held is not None
        assert held.state == "revoked"

    @pytest.mark.parametrize(
        ("typed", "field"),
        [
            ({"label": "", "days": "30"}, "label"),
            ({"label": "x" * 101, "days": "30"}, "label"),
            ({"label": "x", "days": "0"}, "days"),
            ({"label": "x", "days": "9" * 400}, "days"),
            ({"label": "x", "days": "soon"}, "days"),
            ({"label": "x", "days": "-1"}, "days"),
        ],
    )
    def test_what_is_wrong_with_a_token_is_told_at_its_field(
        self, ada: Colleague, typed: dict[str, str], field: str
    ) -> None:
        refused = ada.signed_in().post("/account/tokens", of="/account", code=ada.code(), **typed)
        assert refused.status_code == 422
        assert f'id="error-{field}"' in refused.text

    def test_a_session_elsewhere_is_ended(self, ada: Colleague) -> None:
        ada.signed_in()
        other = Colleague(ada.house, ada.staff_id, ada.name, ada.roles, ada.secret).signed_in()
        (path,) = re.findall(r'"/console(/account/sessions/[^"]+/end)"', ada.get("/account").text)
        assert ada.post(path, of="/account").status_code == 303
        assert other.get("/account", allow_redirects=False).status_code == 303
        assert ada.get("/account", allow_redirects=False).status_code == 200


class TestTwoPersons:
    def proposed(self, who: Colleague, kind: str, **typed: str) -> str:
        """The path of a proposal that was just made."""
        made = who.post(f"/staff/propose/{kind}", reason="It was agreed.", **typed)
        assert made.status_code == 303, made.text
        return made.headers["Location"].removeprefix("/console")

    def test_a_colleague_is_invited_by_two_and_joins(self, olga: Colleague, anna: Colleague) -> None:
        name = "new." + secrets.token_hex(4)
        path = self.proposed(olga, "staff_invite", subject=name, roles="editor")
        assert path in olga.get("/approvals").text
        assert "Make the link" not in olga.get(path).text
        approved = anna.post(f"{path}/approve", of=path)
        code = self.join_code(approved)
        assert "/link" not in anna.get(path).text
        made = olga.post(f"{path}/link", of=path)
        (link,) = re.findall(r"/console(/join/[\w-]+)", made.text)
        assert name in anna.get(link).text
        assert "/link" not in olga.get(path).text
        shown = olga.get("/staff").text
        assert name in shown
        assert "Invited" in shown
        shown = olga.get(link).text
        typed = {"new_code": code_of(TestJoining().secret(shown)), "join_code": code.lower()}
        joined = olga.send(link, **TestJoining().typed(shown, **typed))
        assert (joined.status_code, "Recovery codes" in joined.text) == (200, True)

    def join_code(self, approved: requests.Response) -> str:
        """The code that an approver is shown, and which nothing keeps that a browser would send or show again."""
        assert approved.status_code == 200, approved.text
        assert approved.headers["Cache-Control"] == "no-store"
        assert "Set-Cookie" not in approved.headers
        (code,) = re.findall(r"<code>([0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4})</code>", approved.text)
        return str(code)

    def test_neither_of_the_two_is_shown_the_other_half(
        self, app_house: AppHouse, olga: Colleague, anna: Colleague
    ) -> None:
        path = self.proposed(olga, "staff_reset", subject=colleague(app_house, Role.EDITOR).name)
        code = self.join_code(anna.post(f"{path}/approve", of=path))
        again = anna.post(f"{path}/approve", of=path)
        assert again.status_code == 409
        made = olga.post(f"{path}/link", of=path)
        (token,) = re.findall(r"/console/join/([\w-]+)", made.text)
        auditor = colleague(app_house, Role.AUDITOR).signed_in()
        shown = again.text + auditor.get("/audit").text
        for who in (olga, anna, auditor):
            shown += "".join(who.get(page).text for page in (path, "/approvals", "/staff", "/account"))
            shown += str(who.http.cookies.get_dict())
        for half in (code, code.replace("-", ""), token):
            assert half not in shown
        assert code not in made.text

    def test_a_wrong_join_code_is_told_at_its_field_and_the_authenticator_stays(
        self, app_house: AppHouse, ada: Colleague, olga: Colleague, anna: Colleague
    ) -> None:
        path = self.proposed(olga, "staff_reset", subject=colleague(app_house, Role.EDITOR).name)
        code = self.join_code(anna.post(f"{path}/approve", of=path))
        (link,) = re.findall(r"/console(/join/[\w-]+)", olga.post(f"{path}/link", of=path).text)
        shown = ada.get(link).text
        secret = TestJoining().secret(shown)
        typed = TestJoining().typed(shown, new_code=code_of(secret))
        unsaid = ada.send(link, **typed)
        wrong = ada.send(link, join_code="0000-0000-0000", **typed)
        for refused in (unsaid, wrong):
            assert refused.status_code == 422
            assert 'id="error-join_code"' in refused.text
            assert TestJoining().secret(refused.text) == secret
        assert 'value="0000-0000-0000"' in wrong.text
        assert ada.send(link, join_code=code, **typed).status_code == 200
        assert 'name="join_code"' not in ada.get(TestJoining().link(app_house)[1]).text

    def test_who_proposed_and_whom_it_is_about_are_refused(
        self, app_house: AppHouse, anna: Colleague
    ) -> None:
        both = colleague(app_house, Role.OPERATIONS, Role.APPROVER).signed_in()
        path = self.proposed(both, "staff_roles", subject=anna.name, roles="approver")
        assert "Approve" not in re.findall(r"<button[^>]*>([^<]+)", both.get(path).text)
        for who in (both, anna):
            refused = who.post(f"{path}/approve", of="/account")
            assert refused.status_code == 403
            assert "another approver" in refused.text
        assert "Open" in anna.get(path).text

    @pytest.mark.parametrize("role", [Role.EDITOR, Role.AUDITOR, Role.OPERATIONS])
    def test_only_approvers_decide(self, app_house: AppHouse, olga: Colleague, role: Role) -> None:
        path = self.proposed(olga, "staff_invite", subject="new." + secrets.token_hex(4), roles="editor")
        other = colleague(app_house, role).signed_in()
        for verdict in ("approve", "reject"):
            assert other.post(f"{path}/{verdict}", of="/account", reason="x").status_code == 403

    def test_what_matters_takes_a_fresh_proof_and_nothing_typed_is_lost(
        self, olga: Colleague, anna: Colleague
    ) -> None:
        stale(olga, anna)
        name = "new." + secrets.token_hex(4)
        typed = {"subject": name, "roles": "editor", "reason": "It was agreed."}
        unproven = olga.post("/staff/propose/staff_invite", **typed)
        assert unproven.status_code == 422
        assert 'id="error-code"' in unproven.text
        for kept in (f'value="{name}"', "It was agreed.", 'value="editor" checked'):
            assert kept in unproven.text
        path = self.proposed(olga, "staff_invite", subject=name, roles="editor", code=olga.code())
        unproven = anna.post(f"{path}/approve", of=path, reason="Seen.")
        assert unproven.status_code == 422
        assert "Seen." in unproven.text
        assert anna.post(f"{path}/approve", of=path, code=anna.code()).status_code == 200

    def test_two_approvals_at_the_same_time_do_it_once(
        self, app_house: AppHouse, olga: Colleague, anna: Colleague
    ) -> None:
        name = "new." + secrets.token_hex(4)
        path = self.proposed(olga, "staff_invite", subject=name, roles="editor")
        other = colleague(app_house, Role.APPROVER).signed_in()
        outcomes = together([partial(who.post, f"{path}/approve", of="/account") for who in (anna, other)])
        assert sorted(answer.status_code for answer in outcomes) == [200, 409]
        with app_house.connect() as conn:
            row = conn.execute(
                "SELECT count(*) FROM audit_entry WHERE type = 'staff.added' AND after ->> 'name' = %s",
                [name],
            ).fetchone()
        assert row == (1,)

    def test_a_rejection_and_a_withdrawal_say_why(self, olga: Colleague, anna: Colleague) -> None:
        path = self.proposed(olga, "staff_invite", subject="new." + secrets.token_hex(4), roles="editor")
        unsaid = anna.post(f"{path}/reject", of=path)
        assert unsaid.status_code == 422
        assert 'id="error-reason"' in unsaid.text
        assert anna.post(f"{path}/reject", of=path, reason="No room.").status_code == 303
        assert "No room." in olga.get(path).text
        path = self.proposed(olga, "staff_invite", subject="new." + secrets.token_hex(4), roles="editor")
        assert olga.post(f"{path}/withdraw", of=path, reason="A slip.").status_code == 303
        assert "Withdrawn" in olga.get(path).text
        assert anna.post(f"{path}/approve", of="/account").status_code == 409

    def test_a_colleague_is_reset_and_retired(
        self, app_house: AppHouse, olga: Colleague, anna: Colleague
    ) -> None:
        for kind, state, answered in (("staff_reset", "Not joined", 200), ("staff_retire", "Retired", 303)):
            subject = colleague(app_house, Role.EDITOR).signed_in()
            path = self.proposed(olga, kind, subject=subject.name)
            assert anna.post(f"{path}/approve", of=path).status_code == answered
            assert subject.get("/account", allow_redirects=False).status_code == 303
            row = re.search(rf'<th scope="row">{subject.name}</th>.*?</tr>', olga.get("/staff").text, re.S)
            assert row
            assert state in row[0]

    def test_what_is_wrong_with_a_proposal_is_told_at_its_field(self, olga: Colleague) -> None:
        refused = olga.post("/staff/propose/staff_invite", subject="Not A Name", reason="")
        assert refused.status_code == 422
        for field in ("subject", "roles", "reason"):
            assert f'id="error-{field}"' in refused.text
        assert 'value="Not A Name"' in refused.text
        assert olga.get("/staff/propose/round_void").status_code == 404
        assert olga.get("/staff/propose/other").status_code == 404

    def test_the_form_for_roles_begins_with_those_held(self, app_house: AppHouse, olga: Colleague) -> None:
        subject = colleague(app_house, Role.AUDITOR)
        shown = olga.get(f"/staff/propose/staff_roles?subject={subject.name}").text
        assert f'value="{subject.name}"' in shown
        assert re.findall(r'value="(\w+)" checked', shown) == ["auditor"]

    def test_a_void_that_is_approved_is_done(
        self, app_house: AppHouse, olga: Colleague, anna: Colleague
    ) -> None:
        player = app_house.player()
        round_id = player.open(100).json()["round_id"]
        with app_house.connect(DatabaseRole.APP) as conn:
            made = propose(
                conn, olga.person, Kind.ROUND_VOID, round_id, {"policy": "refund"}, "A broken table."
            )
        shown = anna.get("/approvals").text
        assert f"/proposals/{made}" in shown
        assert f"/console/rounds/{round_id}" in anna.get(f"/proposals/{made}").text
        assert anna.post(f"/proposals/{made}/approve", of=f"/proposals/{made}").status_code == 303
        assert player.get(f"/v1/rounds/{round_id}").json()["state"] == "voided"

    def test_names_are_shown_as_text(self, olga: Colleague, anna: Colleague) -> None:
        path = self.proposed(olga, "staff_invite", subject="new." + secrets.token_hex(4), roles="editor")
        anna.post(f"{path}/reject", of=path, reason="<script>alert(1)</script>")
        assert "<script>alert" not in anna.get(path).text
        assert "&lt;script&gt;alert" in anna.get(path).text
