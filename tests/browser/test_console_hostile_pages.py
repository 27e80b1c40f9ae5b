"""What other sites and hostile content can do to the console in a browser: nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Page, Response, expect

from casino_brag.catalogue.drafts import create_draft
from casino_brag.catalogue.versions import version_text
from casino_brag.staff.people import Role
from casino_brag.web.console import POLICY
from tests.browser.desks import Desk, Hired
from tests.chromium import run_in
from tests.colleagues import Colleague
from tests.running import RunningService

GAME = "three-card-brag"
BEGIN = f"/console/paytables/{GAME}/drafts"


@contextmanager
def another_site(page: str) -> Iterator[str]:
    """The address of a page of another origin, which is on this machine too."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://localhost:{server.server_port}/"
        finally:
            server.shutdown()
            serving.join()


def drafts(house: RunningService, who: Colleague) -> int:
    with house.connect() as owner:
        row = owner.execute(
            "SELECT count(*) FROM paytable_draft WHERE created_by = %s", [who.staff_id]
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_another_site_can_neither_send_a_form_nor_fetch_nor_frame(
    house: RunningService, desk: Desk, hired: Hired
) -> None:
    anna = hired(Role.EDITOR)
    page = desk(
        anna,
        refusals=r"status of (401|403)|CORS policy|ERR_FAILED|frame-ancestors|refused to connect|ERR_BLOCKED",
    )
    token = page.locator("input[name=_csrf]").first.input_value()  # as if it had been betrayed
    form = f"""<!doctype html><link rel="icon" href="data:,"><title>Win a prize</title>
        <form method="post" action="{house.base}{BEGIN}"><input name="_csrf" value="{token}">
        <button>Claim it</button></form>"""
    sent = """async (address, token) => {
        const tries = [
            {}, {mode: "no-cors"}, {headers: {"X-CSRF-Token": token}}, {headers: {"Content-Type": "application/json"}},
        ];
        const body = new URLSearchParams({_csrf: token});
        return Promise.all(tries.map((options) => fetch(
            address, {method: "POST", credentials: "include", body, ...options}
        ).then((answer) => answer.type, () => "refused")));
    }"""
    with another_site(form) as site:
        page.goto(site)
        assert run_in(page, sent, house.base + BEGIN, token) == ["refused", "opaque", "refused", "refused"]
        page.get_by_role("button", name="Claim it").click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.url == house.base + BEGIN
    assert drafts(house, anna) == 0
    with another_site(
        f'<!doctype html><link rel="icon" href="data:,"><iframe src="{house.base}/console/paytables">'
    ) as site:
        page.goto(site)
        (frame,) = page.frames[1:]
        assert "Paytables" not in frame.content()
    page.goto("/console/paytables")
    expect(
        page.get_by_role("heading", name="Paytables")
    ).to_be_visible()  # who was attacked is signed in still


def test_another_site_on_the_same_host_is_another_site(
    house: RunningService, desk: Desk, hired: Hired
) -> None:
    """To a cookie another port is the same site, so what refuses here is not the cookie."""
    anna = hired(Role.EDITOR)
    page = desk(anna, refusals="status of 403")
    token = page.locator("input[name=_csrf]").first.input_value()
    form = f"""<!doctype html><link rel="icon" href="data:,"><form method="post" action="{house.base}{BEGIN}">
        <input name="_csrf" value="{token}"><button>Claim it</button></form>"""
    with another_site(form) as site:
        page.goto(site.replace("localhost", "127.0.0.1"))
        page.get_by_role("button", name="Claim it").click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert drafts(house, anna) == 0


def test_markup_in_a_paytable_is_text(house: RunningService, desk: Desk, hired: Hired) -> None:
    anna = hired(Role.EDITOR)
    hostile = """"><script>window.ran = 1</script><img src=x onerror="window.ran = 1">"""
    with house.connect() as owner:
        text = version_text(owner, GAME, 1)
        line = next(line for line in text.splitlines() if line.startswith("title"))
        draft = create_draft(
            owner,
            anna.person,
            GAME,
            text=text.replace(line, f"title = {json.dumps(hostile)}  # </textarea>{hostile}"),
        )
    page = desk(anna, f"/paytables/{GAME}/drafts/{draft.number}")
    for path in ("", "?tab=text", "/submit"):
        page.goto(f"/console/paytables/{GAME}/drafts/{draft.number}{path}")
        assert page.evaluate("window.ran") is None
    page.goto(f"/console/paytables/{GAME}/drafts/{draft.number}")
    expect(page.get_by_label("Title")).to_have_value(hostile)
    page.get_by_label("Title").press("End")
    page.get_by_label("Title").type("!")
    expect(page.get_by_text("Not saved", exact=True)).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.ran") is None


def test_a_script_that_got_into_a_page_would_not_run(desk: Desk, hired: Hired) -> None:
    page = desk(hired(Role.EDITOR), refusals="Content Security Policy|status of 404")
    page.evaluate(
        """() => {
            for (const name of ["src", "text"]) {
                const script = document.createElement("script");
                script[name] = name === "src" ? "data:text/javascript,window.ran=1" : "window.ran = 1";
                document.body.append(script);
            }
            const image = document.createElement("div");
            image.innerHTML = '<img src="/console/static/none" onerror="window.ran = 1"><form action="https://example.com/">';
            document.body.append(image);
        }"""
    )
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize("path", ["/sign-in", "/paytables", "/nowhere", "/static/0/console.css"])
def test_every_answer_has_the_policy(desk: Desk, hired: Hired, path: str) -> None:
    page: Page = desk(hired(Role.EDITOR), "/paytables", refusals="status of 404")
    answer: Response | None = page.goto(f"/console{path}")
    assert answer is not None
    assert answer.header_value("Content-Security-Policy") == POLICY
    assert answer.header_value("X-Content-Type-Options") == "nosniff"
