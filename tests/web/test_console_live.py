"""The console's view of live play: figures and plots of what was played, filters, alerts and their cases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import pytest

from casino_brag.db.clock import clock
from casino_brag.game.settlement import settle
from casino_brag.rounds import settling
from casino_brag.staff.people import Role
from casino_brag.watch.alerts import Suspension
from casino_brag.watch.cases import CaseState, case_of, cases, changes_of
from casino_brag.watch.status import status
from tests.colleagues import Colleague, colleague
from tests.inprocess import AppHouse, app_house_in, deal_next
from tests.watch.played import add_up

GAME = "three-card-brag"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    """A house in which some was played for money, by two operators; one game has never been played."""
    with app_house_in(tmp_path_factory.mktemp("console-live")) as started:
        for operator in (started.operator, started.new_operator()):
            player = operator.real_player(100_000)
            for number in range(6):
                dealt = player.open(100, 50).json()
                assert player.decide(dealt["round_id"], "play" if number % 3 else "fold").status_code == 200
        add_up(started, suspension=Suspension.NONE)
        yield started


@pytest.fixture(scope="module")
def watcher(house: AppHouse) -> Colleague:
    return colleague(house, Role.AUDITOR).signed_in()


@pytest.fixture(scope="module")
def case_id(house: AppHouse) -> UUID:
    """A case, of an Ante that was paid as no cards lead to."""
    with pytest.MonkeyPatch.context() as patched:
        from dataclasses import replace

        patched.setattr(
            settling, "settle", lambda rules, *said: settle(replace(rules, ante_pays=Fraction(2)), *said)
        )
        deal_next(patched, "As Kd Jc", "Qs Jd 9h")
        house.operator.real_player(1_000).played("play")
    add_up(house, suspension=Suspension.NONE)
    with house.connect() as conn:
        return cases(conn)[0].case_id


def told(house: AppHouse) -> dict[str, Any]:
    with house.connect() as conn:
        found = status(conn, game=GAME)
    version: dict[str, Any] = found["versions"][0]
    return version


def section(page: str, game: str) -> str:
    """The part of a page that is of a game's first version."""
    found = re.search(rf'<section [^>]*id="{game}-1">.*?</section>', page, re.DOTALL)
    assert found
    return found[0]


def test_what_was_played_is_shown_as_the_watch_has_it(house: AppHouse, watcher: Colleague) -> None:
    part = section(watcher.get("/live").text, GAME)
    whole = next(row for row in told(house)["figures"] if row["by"] == "version" and row["wager"] == "main")
    assert whole["rounds"] >= 12
    assert f"{100 * float(whole['actual_rtp']['value']):.4f} %" in part
    assert f"theory {100 * float(whole['theoretical_rtp']['value']):.4f} %" in part
    assert f"z {float(whole['given_cards_and_decisions']['z']):+.2f}".replace("-", "−") in part


def test_each_plot_says_in_words_what_it_shows_and_has_its_numbers_beside_it(
    house: AppHouse, watcher: Colleague
) -> None:
    part = section(watcher.get("/live").text, GAME)
    plots = part.count('<svg class="plot"')
    titles = [unescape(title) for title in re.findall(r"<title [^>]*>(.*?)</title>", part)]
    assert plots == len(titles) == part.count("<desc ") >= 4
    for title in titles:
        assert f"As a table: {title}" in unescape(part)
    assert any(title.startswith("Return so far, main game in ") for title in titles)
    assert any(title.startswith("Distance from what hands and decisions") for title in titles)
    assert {
        "The player's categories beside their chances",
        "The dealer's categories beside their chances",
    } <= {*titles}


def test_where_nothing_was_played_there_is_no_data(watcher: Colleague) -> None:
    part = section(watcher.get("/live").text, "double-play-brag")
    assert "No data: nothing was played." in part
    assert "<svg" not in part


def test_no_page_has_styles_or_scripts_that_its_policy_forbids(watcher: Colleague, case_id: UUID) -> None:
    for path in ("/live", "/live/cases", f"/live/cases/{case_id}", "/simulations"):
        answer = watcher.get(path)
        assert "style-src 'self'" in answer.headers["Content-Security-Policy"]
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)", answer.text)


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("game=three-card-brag", "three-card-brag, version 1", "double-play-brag, version 1"),
        ("wager=main", "Main in GBP", "Pair Bonus in GBP"),
        ("wager=pair_bonus", "Pair Bonus in", "Return so far, main"),
        ("currency=gbp", "Main in GBP", "Main in EUR"),
        ("currency=XYZ", "No data", "Main in GBP"),
        ("version=1", "three-card-brag, version 1", "No data: there is no version"),
        ("version=7", "No data: there is no version", "three-card-brag, version 1 <"),
        ("by=channel", "By channel", "By stake band"),
        ("by=operator", "By operator", "By stake band"),
        ("from=1999-01-01&to=1999-12-31", "No data: nothing was played.", "Return so far"),
        ("from=yesterday", "Give a day as 2026-11-30.", "Traceback"),
        ("wager=everything&by=luck&version=x", "By stake band", "Traceback"),
        ("game=%3Cscript%3E", "No data: there is no version", "<script>"),
    ],
)
def test_a_query_chooses_what_is_looked_at(watcher: Colleague, query: str, shown: str, hidden: str) -> None:
    for path in ("/live", "/live/now"):
        answer = watcher.get(f"{path}?{query}")
        assert answer.status_code == 200
        body = answer.text.partition('<div id="live"')
        text = body[1] + body[2]
        if shown.startswith("Give a day"):
            assert path == "/live/now" or shown in answer.text
        else:
            assert shown in text
        assert hidden not in text


def test_what_refreshes_asks_for_what_was_chosen(watcher: Colleague) -> None:
    shown = watcher.get("/live?game=three-card-brag&by=operator").text
    assert 'hx-get="/console/live/now?game=three-card-brag&amp;by=operator"' in shown
    assert 'hx-trigger="every 10s"' in shown


def test_every_operator_has_a_row_of_its_own(house: AppHouse, watcher: Colleague) -> None:
    part = section(watcher.get("/live?by=operator&wager=main").text, GAME)
    of_operators = [row["value"] for row in told(house)["figures"] if row["by"] == "operator"]
    assert len(set(of_operators)) == 2
    for name in of_operators:
        assert f'<th scope="row">{name}</th>' in part


@pytest.mark.parametrize("role", list(Role))
def test_auditors_and_operations_see_live_play(house: AppHouse, case_id: UUID, role: Role) -> None:
    person = colleague(house, role).signed_in()
    expected = 200 if role in (Role.AUDITOR, Role.OPERATIONS) else 403
    for path in ("/live", "/live/now", "/live/cases", f"/live/cases/{case_id}"):
        assert person.get(path).status_code == expected


def test_a_visit_is_on_record_and_a_refresh_is_not(house: AppHouse) -> None:
    person = colleague(house, Role.OPERATIONS).signed_in()
    assert person.get("/live?by=channel").status_code == 200
    assert person.get("/live/now").status_code == 200
    with house.connect() as conn:
        rows = conn.execute(
            "SELECT payload ->> 'path' FROM audit_entry WHERE type = 'staff.called' AND actor = %s",
            [person.person.actor],
        ).fetchall()
    assert rows == [("/console/live",)]


def test_a_case_is_shown_noted_in_investigated_and_closed_by_whoever_is_signed_in(
    house: AppHouse, watcher: Colleague, case_id: UUID
) -> None:
    path = f"/live/cases/{case_id}"
    assert str(case_id) in watcher.get("/live").text
    assert str(case_id) in watcher.get("/live/cases").text
    assert watcher.post(path, step="open", note="Looked at the rounds.").status_code == 303
    assert watcher.post(path, step="investigated", note="It is the Ante's odds.").status_code == 303
    assert watcher.post(path, step="closed", reason="The odds are mended.").status_code == 303
    shown = watcher.get(path).text
    for note in ("Looked at the rounds.", "It is the Ante&#39;s odds.", "The odds are mended."):
        assert note in shown
    assert "which is final" in shown
    with house.connect() as conn:
        assert case_of(conn, case_id).state == CaseState.CLOSED
        steps = changes_of(conn, case_id)
        assert [(step.actor, step.state) for step in steps[-3:]] == [
            (watcher.person.actor, "open"),
            (watcher.person.actor, "investigated"),
            (watcher.person.actor, "closed"),
        ]
        row = conn.execute(
            "SELECT convert_from(bytes, 'UTF8') FROM audit_entry WHERE type = 'rtp.case_changed'"
            " ORDER BY entry_id DESC LIMIT 1"
        ).fetchone()
        assert clock(conn)
    assert row is not None
    entry = json.loads(row[0])
    assert (entry["actor"], entry["reason"]) == (watcher.person.actor, "The odds are mended.")
    refused = watcher.get(path)
    assert "Take a step" not in refused.text


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"step": "open", "note": " "}, "note"),
        ({"step": "open", "note": "x" * 501}, "note"),
        ({"step": "open", "note": "two\nlines"}, "note"),
        ({"step": "elsewhere", "note": "What?"}, "note"),
        ({"step": "closed", "reason": "y" * 501}, "reason"),
        ({"step": "closed", "reason": ""}, "reason"),
    ],
)
def test_a_step_that_will_not_do_says_why_and_keeps_what_was_typed(
    house: AppHouse, watcher: Colleague, typed: dict[str, str], field: str
) -> None:
    with house.connect() as conn:
        version_id = conn.execute("SELECT version_id FROM paytable_version LIMIT 1").fetchone()
        assert version_id is not None
        opened = conn.execute(
            "SELECT case_id FROM rtp_case WHERE paytable_version_id = %s AND state <> 'closed'", version_id
        ).fetchone()
        if opened is None:
            opened = (uuid4(),)
            conn.execute(
                "INSERT INTO rtp_case (case_id, paytable_version_id, level, state, opened_at, changed_at)"
                " VALUES (%s, %s, 'alert', 'open', now(), now())",
                [opened[0], version_id[0]],
            )
        before = len(changes_of(conn, opened[0]))
    answer = watcher.post(f"/live/cases/{opened[0]}", **typed)
    assert answer.status_code == 422
    assert ("#field-note" in answer.text) == (field == "note")
    assert '<div class="notice notice-problem" role="alert"' in answer.text
    assert f'value="{typed[field]}"' in answer.text
    with house.connect() as conn:
        assert len(changes_of(conn, opened[0])) == before


def test_an_unknown_case_is_not_found(watcher: Colleague) -> None:
    assert watcher.get(f"/live/cases/{uuid4()}").status_code == 404
    assert watcher.get("/live/cases/none").status_code == 404
