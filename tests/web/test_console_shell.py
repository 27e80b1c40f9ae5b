"""The frame of the console: who gets in, what is refused, what every page has."""

from __future__ import annotations

import inspect
import re
import secrets
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import requests
from flask.testing import FlaskClient

from casino_brag.config import Config
from casino_brag.staff.people import Role
from casino_brag.web.app import create_app
from casino_brag.web.console import POLICY
from casino_brag.web.console.assets import static_url
from casino_brag.web.console.shell import ACCESS, Access, local_path
from tests.colleagues import Colleague, colleague
from tests.inprocess import AppHouse
from tests.web.pages import faults

STATIC = Path(__file__).parents[2] / "casino_brag" / "web" / "static"
HTML = "text/html; charset=utf-8"


@pytest.fixture
def editor(app_house: AppHouse) -> Colleague:
    return colleague(app_house, Role.EDITOR).signed_in()


@pytest.fixture
def stranger(app_house: AppHouse) -> FlaskClient:
    return app_house.app.test_client()


@pytest.fixture
def alone() -> FlaskClient:
    """An application without a database, which answers what needs none."""
    config = Config(database_url="postgresql://", seal_keys={"k1": bytes(32)}, rate_per_second=1)
    return create_app(config).test_client()


def calls_of(house: AppHouse, who: Colleague) -> list[dict[str, object]]:
    with house.connect() as conn:
        rows = conn.execute(
            "SELECT payload FROM audit_entry WHERE type = 'staff.called' AND actor = %s ORDER BY entry_id",
            [f"staff:{who.name}"],
        ).fetchall()
    return [payload for (payload,) in rows]


def test_who_is_not_signed_in_is_sent_to_the_sign_in_and_from_there_on(stranger: FlaskClient) -> None:
    answer = stranger.get("/console/paytables/three-card-brag?x=1")
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/console/sign-in?next=/console/paytables/three-card-brag%3Fx%3D1"


def test_a_part_of_a_page_sends_the_whole_page_to_the_sign_in(stranger: FlaskClient) -> None:
    answer = stranger.get(
        "/console/paytables",
        headers={"HX-Request": "true", "HX-Current-URL": "http://localhost/console/paytables/x/drafts/1"},
    )
    assert answer.headers["HX-Redirect"] == "/console/sign-in?next=/console/paytables/x/drafts/1"


def test_who_sends_a_form_after_the_session_has_ended_keeps_what_was_typed(stranger: FlaskClient) -> None:
    form = {
        "tab": "fields",
        "text": "[play]\nmultiple = 1 # <b>\n",
        "f:play.multiple": "2",
        "password": "hidden",
    }
    answer = stranger.post("/console/paytables/x/drafts/1", data=form)
    assert (answer.status_code, answer.content_type) == (401, HTML)
    assert "multiple = 2 # &lt;b&gt;" in answer.text
    assert "a brag of three" not in answer.text
    assert faults(answer.text) == []


def test_nothing_is_shown_of_what_another_site_has_sent(stranger: FlaskClient) -> None:
    answer = stranger.post(
        "/console/paytables/x/drafts/1", data={"text": "foreign"}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert "foreign" not in answer.text


def test_a_secret_that_is_no_sessions_is_no_sign_in(stranger: FlaskClient) -> None:
    stranger.set_cookie("casino_brag_staff", secrets.token_urlsafe(32), path="/console")
    assert stranger.get("/console/paytables").status_code == 303


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://example.com/",
        "//example.com/console/x",
        "/console//example.com",
        "/console/\\example.com",
        "/v1/games",
        "console/x",
        "/console/x\r\nSet-Cookie: a=b",
        "javascript:alert(1)",
        "",
    ],
)
def test_the_sign_in_leads_to_no_other_address_than_the_consoles(elsewhere: str) -> None:
    assert local_path(elsewhere) == "/console/paytables"


def test_a_page_of_the_console_is_one_that_the_sign_in_leads_to() -> None:
    assert (
        local_path("/console/paytables/x/compare?old=v1&new=d2")
        == "/console/paytables/x/compare?old=v1&new=d2"
    )


def test_a_visit_is_on_record_with_what_was_asked_and_not_with_what_was_typed(
    app_house: AppHouse, editor: Colleague
) -> None:
    editor.get("/paytables?secret=1")
    editor.post("/paytables/new", game="Not a name", text="title = 'typed'")
    calls = calls_of(app_house, editor)
    assert [(call["method"], call["path"], call["granted"]) for call in calls] == [
        ("GET", "/console/paytables", True),
        ("GET", "/console/paytables/new", True),
        ("POST", "/console/paytables/new", True),
    ]
    assert "typed" not in str(calls)


def test_a_visit_that_was_not_allowed_is_on_record_too(app_house: AppHouse) -> None:
    approver = colleague(app_house, Role.APPROVER).signed_in()
    answer = approver.get("/paytables/new")
    assert answer.status_code == 403
    assert "This is for editor; you are approver." in answer.text
    assert [call["granted"] for call in calls_of(app_house, approver)] == [False]


def test_a_form_without_its_token_is_refused_and_does_nothing(editor: Colleague) -> None:
    before = editor.get("/paytables/three-card-brag").text.count("Draft ")
    for token in ({}, {"_csrf": "0" * 64}, {"_csrf": "é"}):
        answer = editor.send("/paytables/three-card-brag/drafts", **token)
        assert answer.status_code == 403
        assert "not of your present session" in answer.text
    assert editor.get("/paytables/three-card-brag").text.count("Draft ") == before


def test_the_token_of_another_session_is_none(app_house: AppHouse, editor: Colleague) -> None:
    other = colleague(app_house, Role.EDITOR).signed_in()
    token = re.search(r'name="_csrf" value="([0-9a-f]+)"', other.get("/paytables").text)
    assert token is not None
    assert editor.send("/paytables/three-card-brag/drafts", _csrf=token[1]).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://example.com"},
        {"Origin": "null"},
    ],
)
def test_a_form_that_another_site_sends_is_refused_even_with_its_token(
    editor: Colleague, headers: dict[str, str]
) -> None:
    token = re.search(r'name="_csrf" value="([0-9a-f]+)"', editor.get("/paytables").text)
    assert token is not None
    answer = editor.http.post(
        editor.url("/paytables/new"), data={"_csrf": token[1]}, headers=headers, timeout=30
    )
    assert answer.status_code == 403


def test_nothing_runs_in_a_page_but_the_consoles_own_files(editor: Colleague) -> None:
    answer = editor.get("/paytables")
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "same-origin", (
        "or a form would say that it comes from nowhere"
    )
    assert faults(answer.text) == []


def test_a_file_may_be_kept_for_good_at_the_address_of_its_digest(alone: FlaskClient) -> None:
    answer = alone.get(static_url("console.css"))
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.content_type == "text/css; charset=utf-8"
    again = alone.get(static_url("console.css"), headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path", ["0" * 16 + "/console.css", "x/../console.css", "x/vendor/README.md", "x/vendor/htmx.LICENSE"]
)
def test_nothing_is_served_at_another_address(alone: FlaskClient, path: str) -> None:
    assert alone.get(f"/console/static/{path}").status_code == 404


def test_the_files_of_others_are_those_that_were_taken_in() -> None:
    listed = dict(
        re.findall(r"\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|", (STATIC / "vendor/README.md").read_text())
    )
    found = {path.name: path for path in (STATIC / "vendor").iterdir() if path.suffix in (".js", ".css")}
    assert found.keys() == listed.keys()
    assert {name: sha256(path.read_bytes()).hexdigest() for name, path in found.items()} == listed
    licences = {name.split(".")[0] + ".LICENSE" for name in listed}
    assert licences <= {path.name for path in (STATIC / "vendor").iterdir()}


def test_an_address_that_is_none_is_a_page_that_says_so(alone: FlaskClient) -> None:
    answer = alone.get("/console/nowhere")
    assert (answer.status_code, answer.content_type) == (404, HTML)
    assert "There is nothing at this address" in answer.text
    assert answer.headers["X-Request-ID"] in answer.text
    assert faults(answer.text) == []


def test_the_api_goes_on_answering_with_problems(alone: FlaskClient) -> None:
    assert alone.get("/v1/nowhere").content_type == "application/problem+json"


def test_who_asks_too_often_is_told_by_a_page(alone: FlaskClient) -> None:
    answers = [alone.get("/console/nowhere") for _ in range(4)]
    assert answers[-1].status_code == 429
    assert answers[-1].content_type == HTML
    assert answers[-1].headers["Retry-After"] == "1"


def test_a_database_that_is_away_is_told_by_a_page(editor: Colleague, app_house: AppHouse) -> None:
    nowhere = replace(app_house.config, database_url="postgresql://127.0.0.1:1/none")
    client = create_app(nowhere).test_client()
    answer = client.get("/console/paytables")
    assert (answer.status_code, answer.content_type) == (503, HTML)
    assert "try again" in answer.text


def test_a_form_that_is_too_large_is_told_by_a_page(editor: Colleague) -> None:
    answer = editor.send("/paytables/new", text="x" * 70_000)
    assert (answer.status_code, answer.headers["Content-Type"]) == (413, HTML)
    assert "at most 64 KiB" in answer.text


def test_a_fault_of_ours_is_a_page_without_its_text(
    editor: Colleague, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("the text of a fault")

    monkeypatch.setattr("casino_brag.web.console.pages.paytables.list_drafts", broken)
    answer = editor.get("/paytables")
    assert (answer.status_code, answer.headers["Content-Type"]) == (500, HTML)
    assert "the text of a fault" not in answer.text
    assert faults(answer.text) == []


def test_a_part_of_a_page_is_refused_with_a_part_of_a_page(editor: Colleague) -> None:
    answer = editor.get("/paytables/nothing", headers={"HX-Request": "true"})
    assert answer.status_code == 404
    assert "<html" not in answer.text
    assert 'role="alert"' in answer.text


def test_what_is_to_be_said_is_said_once(editor: Colleague) -> None:
    begun = editor.post("/paytables/three-card-brag/drafts", of="/paytables/three-card-brag")
    assert begun.status_code == 303
    path = begun.headers["Location"].removeprefix("/console")
    assert "was begun." in editor.get(path).text
    assert "was begun." not in editor.get(path).text


@pytest.mark.parametrize("forged", ["W1siZG9uZSIsICJmb3JnZWQiXV0=.0", "x", ".", "é.é"])
def test_nobody_puts_words_into_a_page_by_a_cookie(editor: Colleague, forged: str) -> None:
    cookie = f"casino_brag_said={forged}; casino_brag_staff={editor.http.cookies['casino_brag_staff']}"
    answer = requests.get(
        editor.url("/paytables"), headers={"Cookie": cookie.encode()}, timeout=30, allow_redirects=False
    )
    assert answer.status_code == 200
    assert "forged" not in answer.text


def _filled(rule: str) -> str:
    """An address of a rule, of something that there is not."""
    values = {"int": "999999", "uuid": "01900000-0000-7000-8000-000000000000"}

    def value(found: re.Match[str]) -> str:
        kind, given = found[1] or "", found[2] or ""
        return given.split(",")[0].strip() if kind == "any" else values.get(kind, "none")

    return re.sub(r"<(?:(\w+)(?:\(([^)]*)\))?:)?\w+>", value, rule).removeprefix("/console")


@pytest.fixture(scope="module")
def staff(app_house: AppHouse) -> dict[Role, Colleague]:
    return {role: colleague(app_house, role) for role in Role}


@pytest.mark.parametrize("access", ACCESS, ids=lambda access: f"{access.method} {access.rule}")
def test_everybody_gets_in_where_the_table_says_so_and_nowhere_else(
    app_house: AppHouse, staff: dict[Role, Colleague], access: Access
) -> None:
    path = _filled(access.rule)
    nobody = requests.request(
        access.method, f"{app_house.base}/console{path}", timeout=30, allow_redirects=False
    )
    if not access.roles:
        assert nobody.status_code != 403
        return
    assert nobody.status_code == (303 if access.method == "GET" else 401)
    for role, person in staff.items():
        person.signed_in()
        if access.method == "GET":
            answer = person.get(path, allow_redirects=False)
        else:
            answer = person.post(path, of="/paytables")
        let_in = "; you are " not in answer.text
        assert let_in == (role in access.roles), f"{role}: {answer.status_code}"


ODD = {
    "a zero byte": "%00",
    "no UTF-8": "%ff",
    "a huge number": "9" * 400,
    "a long text": "x" * 5_000,
    "an address that is none": "//[",
    "an address that is none after normalisation": "//%E2%84%80",
}

ADDRESSES = sorted({access.rule for access in ACCESS if access.method == "GET"})

_READ = re.compile(r'\.(?:values?|number|identifier|day|get)\(\s*"([a-z_]+)"')


def _asked_by(house: AppHouse, path: str) -> list[str]:
    """What the page of an address, or one of the same module, reads of its query."""
    endpoint, _ = house.app.url_map.bind("localhost").match(f"/console{path}")
    module = sys.modules[house.app.view_functions[endpoint].__module__]
    return sorted({"x", *_READ.findall(inspect.getsource(module))})


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_no_query_is_a_fault_of_ours(app_house: AppHouse, odd: str) -> None:
    everybody = colleague(app_house, *Role).signed_in()
    asked = [
        f"{path}?{name}={odd}" for path in map(_filled, ADDRESSES) for name in _asked_by(app_house, path)
    ]
    faulty = [path for path in asked if everybody.get(path, allow_redirects=False).status_code >= 500]
    assert faulty == []


def test_of_each_area_what_is_read_of_its_queries_is_tried(app_house: AppHouse) -> None:
    tried = {name for rule in ADDRESSES for name in _asked_by(app_house, _filled(rule))}
    assert tried >= {"next", "cursor", "game", "version", "currency", "from", "round", "tab", "subject"}


def test_no_word_of_a_form_is_a_fault_of_ours(app_house: AppHouse) -> None:
    olga = colleague(app_house, Role.OPERATIONS).signed_in()
    for name in ("game", "operator", "version", "reason", "action"):
        typed = {"game": "three-card-brag", "action": "drain", "reason": "Why."} | {name: "a\0b"}
        assert olga.post("/games/change", **typed).status_code == 422


@pytest.mark.parametrize("foreign", ["http://[", "//\u2100", "http://[::1"])
def test_an_address_that_is_none_is_not_ours(
    app_house: AppHouse, foreign: str, stranger: FlaskClient
) -> None:
    assert local_path(foreign) == "/console/paytables"
    sent = stranger.post("/console/sign-in", data={"name": "x"}, headers={"Origin": foreign})
    assert sent.status_code == 403
    shown = stranger.get("/console/paytables", headers={"HX-Request": "true", "HX-Current-URL": foreign})
    assert shown.headers["HX-Redirect"] == "/console/sign-in?next=/console/paytables"
