"""The console's reports: made for a time, read, downloaded, and refused at the field that is wrong."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from io import StringIO

import pytest

from casino_brag.reports.kinds import KINDS, ReportName
from casino_brag.staff.people import Role
from tests.colleagues import Colleague, colleague
from tests.inprocess import AppHouse, app_house_in
from tests.web.pages import Page, faults


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("console-reports")) as started:
        started.operator.real_player(100_000).played("fold")
        yield started


@pytest.fixture(scope="module")
def auditor(house: AppHouse) -> Colleague:
    return colleague(house, Role.AUDITOR).signed_in()


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("path", ["", "/voids", "/voids/file.csv"])
def test_reports_are_for_auditors_and_operations(house: AppHouse, role: Role, path: str) -> None:
    allowed = role in (Role.AUDITOR, Role.OPERATIONS)
    assert colleague(house, role).signed_in().get(f"/reports{path}").status_code == (200 if allowed else 403)


def test_the_list_leads_to_every_report(auditor: Colleague) -> None:
    page = auditor.get("/reports").text
    assert faults(page) == []
    assert all(f'href="/console/reports/{name}"' in page for name in ReportName)


@pytest.mark.parametrize("name", ReportName)
def test_a_report_is_read_on_a_sound_page(auditor: Colleague, name: ReportName) -> None:
    answer = auditor.get(f"/reports/{name}")
    assert answer.status_code == 200
    assert faults(answer.text) == []
    assert re.split("[:.]", KINDS[name].says)[0] in answer.text
    assert ("No activity" in answer.text) == (name in ("voids", "rtp-checks", "rtp-cases", "interrupted"))


@pytest.mark.parametrize("period", ["day", "month", "quarter", "year", "life"])
def test_each_period_that_ends_now_is_reported_of(auditor: Colleague, period: str) -> None:
    page = auditor.get(f"/reports/game-performance?period={period}").text
    assert f'<option value="{period}" selected>' in page
    assert "No activity" not in page


def test_days_are_whole_and_the_last_is_part_of_it(auditor: Colleague) -> None:
    asked = "period=span&from=2020-02-28&to=2020-02-29"
    page = auditor.get(f"/reports/game-performance?{asked}").text
    assert 'datetime="2020-02-28T00:00:00Z"' in page
    assert 'datetime="2020-03-01T00:00:00Z"' in page
    assert "No activity" in page


def test_a_page_has_amounts_and_shares_as_people_write_them(auditor: Colleague) -> None:
    page = auditor.get("/reports/game-performance").text
    assert "minor units" not in page
    assert re.search(r"<td[^>]*>[0-9]+\.[0-9]{2} GBP</td>", page)
    assert re.search(r"<td[^>]*>9[0-9]\.[0-9]{4} %</td>", page)
    assert {"Main theoretical RTP", "Pair Bonus staked", "Paytable version"} <= {
        *re.findall(r"<th [^>]*>([^<]*)</th>", page)
    }


def test_files_say_the_same_of_the_same_time(auditor: Colleague) -> None:
    asked = "period=month"
    table = auditor.get(f"/reports/game-performance/file.csv?{asked}")
    document = auditor.get(f"/reports/game-performance/file.json?{asked}")
    printed = auditor.get(f"/reports/game-performance/file.html?{asked}")
    for answer, form in ((table, "csv"), (document, "json"), (printed, "html")):
        assert f'attachment; filename="game-performance.{form}"' in answer.headers["Content-Disposition"]
    (row,) = csv.DictReader(StringIO(table.text, newline=""))
    (item,) = json.loads(document.text)["items"]
    assert (row["rounds"], row["operator"]) == (str(item["rounds"]), item["operator"])
    assert item["operator"] in printed.text


def test_the_page_leads_to_files_of_what_it_shows(auditor: Colleague) -> None:
    page = auditor.get("/reports/voids?period=year").text
    assert 'href="/console/reports/voids/file.csv?period=year"' in page


@pytest.mark.parametrize(
    ("name", "asked", "field"),
    [
        ("voids", "period=fortnight", "period"),
        ("voids", "period=span", "from"),
        ("voids", "period=span&from=soon", "from"),
        ("voids", "period=span&from=2026-01-02&to=2026-01-01", "to"),
        ("voids", "period=span&from=2026-01-02&to=10000-01-01", "to"),
        ("voids", "period=day&from=2026-01-02", "period"),
        ("voids", "operator=nobody", "operator"),
        ("voids", "operator=%00", "operator"),
        ("significant-events", "type=round.eaten", "type"),
    ],
)
def test_what_is_wrong_is_told_at_its_field_and_kept(
    auditor: Colleague, name: str, asked: str, field: str
) -> None:
    answer = auditor.get(f"/reports/{name}?{asked}")
    assert answer.status_code == 422
    page = Page(answer.text)
    assert page.faults == []
    assert [found for found in page.ids if found.startswith("error-")] == [f"error-{field}"]
    assert auditor.get(f"/reports/{name}/file.csv?{asked}").status_code == 422


def test_a_report_of_one_type_of_event_has_no_other(auditor: Colleague) -> None:
    page = auditor.get("/reports/significant-events?type=operator.added").text
    table = page.partition("<h2>Events</h2>")[2]
    assert "operator.added" in table
    assert "paytable.activated" not in table


@pytest.mark.parametrize("path", ["/reports/profits", "/reports/profits/file.csv", "/reports/voids/file.exe"])
def test_what_there_is_not_is_not_found(auditor: Colleague, path: str) -> None:
    assert auditor.get(path).status_code == 404
