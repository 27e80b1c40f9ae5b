"""Reports over the whole installation, as staff asks for them over HTTP."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

import pytest
import requests

from casino_brag.reports.kinds import ReportName
from casino_brag.rounds.reports import NO_ACTIVITY
from tests.inprocess import AppHouse
from tests.running import CALL_SECONDS, Player, code_of


@pytest.fixture(scope="module")
def auditor(app_house: AppHouse) -> Player:
    return app_house.staff("auditor")


def asked(caller: Player, name: str, accept: str = "*/*", **query: Any) -> requests.Response:
    headers = {"Authorization": f"Bearer {caller.token}", "Accept": accept}
    return requests.get(
        f"{caller.base}/v1/reports/{name}", params=query, headers=headers, timeout=CALL_SECONDS
    )


@pytest.mark.parametrize("name", ReportName)
def test_every_report_comes_in_every_form(auditor: Player, name: ReportName) -> None:
    told, table, page = (asked(auditor, name.value, format=form) for form in ("json", "csv", "html"))
    assert (told.status_code, told.json()["report"]) == (200, name.value)
    assert table.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    assert f'filename="{name.value}.csv"' in table.headers["Content-Disposition"]
    assert table.text.startswith("from,to,reported_at,program,complete,")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.headers["Content-Security-Policy"].startswith(
        "default-src 'none'; style-src 'unsafe-inline';"
    )
    assert told.json()["title"] in page.text


def test_the_caller_may_choose_the_form_by_a_header(auditor: Player) -> None:
    assert asked(auditor, "voids", "text/csv").headers["Content-Type"].startswith("text/csv;")
    assert asked(auditor, "voids", "application/json").headers["Content-Type"] == "application/json"


def test_a_report_is_of_the_time_the_operator_and_the_type_that_are_asked_for(
    app_house: AppHouse, auditor: Player
) -> None:
    name = app_house.new_operator().name
    wanted = {"from": "2026-01-01T00:00:00Z", "operator": name, "type": "operator.added"}
    told = asked(auditor, "significant-events", **wanted).json()
    assert (told["from"], told["operator"]) == ("2026-01-01T00:00:00.000000Z", name)
    assert [(item["type"], item["operator"]) for item in told["items"]] == [("operator.added", name)]
    assert told["complete"]


def test_a_time_without_anything_is_without_activity(auditor: Player) -> None:
    wanted = {"from": "2001-01-01T00:00:00Z", "to": "2001-01-02T00:00:00Z"}
    assert asked(auditor, "game-performance", **wanted).json()["activity"] == NO_ACTIVITY
    (row,) = csv.DictReader(StringIO(asked(auditor, "game-performance", "text/csv", **wanted).text))
    assert row["operator"] == NO_ACTIVITY


@pytest.mark.parametrize(
    ("name", "query", "status", "code"),
    [
        ("profits", {}, 404, "not_found"),
        ("voids", {"operator": "nobody"}, 422, "invalid"),
        ("voids", {"operator": "no body"}, 422, "invalid"),
        ("voids", {"format": "xml"}, 422, "invalid"),
        ("voids", {"period": "day", "from": "2026-01-01T00:00:00Z"}, 422, "invalid"),
        ("significant-events", {"type": "nothing.happened"}, 422, "invalid"),
    ],
)
def test_what_will_not_do_is_refused(
    auditor: Player, name: str, query: dict[str, str], status: int, code: str
) -> None:
    answer = asked(auditor, name, **query)
    assert (answer.status_code, code_of(answer)) == (status, code)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("voids", "type", "round.voided"),
        ("par-sheet", "operator", "nobody"),
        ("users-and-rights", "period", "day"),
        ("interrupted", "from", "2026-01-01T00:00:00Z"),
    ],
)
def test_what_a_report_would_not_heed_is_refused_by_its_field(
    auditor: Player, name: str, field: str, value: str
) -> None:
    answer = asked(auditor, name, **{field: value})
    assert (answer.status_code, code_of(answer)) == (422, "invalid")
    assert list(answer.json()["errors"]) == [field]


def test_it_is_for_those_who_check_and_those_who_watch(app_house: AppHouse, auditor: Player) -> None:
    assert asked(app_house.staff("operations"), "voids").status_code == 200
    refused = asked(app_house.staff("editor"), "voids")
    assert (refused.status_code, code_of(refused)) == (403, "forbidden")
    nobody = Player(auditor.base, "")
    assert asked(nobody, "voids").status_code == 401
