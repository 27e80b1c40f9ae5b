"""Reports over the whole installation: their numbers, their forms, and the command that prints them."""

from __future__ import annotations

import csv
import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.operators import rotate_key
from casino_brag.catalogue.paytables import publish, publish_directory
from casino_brag.cli.reports import report as command
from casino_brag.config import shipped
from casino_brag.db.clock import clock
from casino_brag.db.embedded import Role
from casino_brag.errors import SetUpError
from casino_brag.game.paytable import Paytable
from casino_brag.ids import uuid7
from casino_brag.odds.par_sheet import par_sheet
from casino_brag.reports import kinds, pages
from casino_brag.reports.kinds import KINDS, ROUTINE, SIGNIFICANT, ReportName
from casino_brag.reports.making import HEADS, PROGRAM, Report, Wanted, WantedWrongly, make_report
from casino_brag.rounds.reports import NO_ACTIVITY, PLAY, Period
from casino_brag.staff.people import Role as StaffRole
from casino_brag.staff.people import Said, add_staff, issue_token
from casino_brag.watch import accumulating, checking
from tests.inprocess import AppHouse, app_house_in
from tests.running import Operator

GAME, OTHER = "three-card-brag", "double-play-brag"
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
TODAY = Wanted()
NOTHING = Wanted(since=LONG_AGO, until=LONG_AGO + timedelta(days=1))
FORMULA = '=HYPERLINK("http://example.com")<script>'


@dataclass(frozen=True)
class Played:
    """An installation on which this and that has happened."""

    house: AppHouse
    operators: tuple[Operator, Operator]
    rounds: list[dict[str, Any]]
    waiting: dict[str, Any]
    voided: dict[str, Any]
    token: str
    rotated: str

    def report(self, name: ReportName, wanted: Wanted = TODAY) -> Report:
        """A report, made as the service makes it."""
        with self.house.service.database.connection() as conn:
            return make_report(conn, name, wanted)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with app_house_in(tmp_path_factory.mktemp("reports")) as house:
        operators = house.new_operator(), house.new_operator()
        rounds = []
        for operator in operators:
            player = operator.real_player(100_000)
            for number in range(4):
                decision = "play" if number % 2 else "fold"
                rounds.append(
                    {
                        "operator": operator.name,
                        **player.played(decision, ante_minor=100, pair_bonus_minor=50),
                    }
                )
            operator.player().played()
        waiting = operators[0].real_player(100_000).open(200, 50).json()
        voided = operators[1].real_player(100_000).played(ante_minor=100)
        said = {"reason": FORMULA, "approver": "the duty manager"}
        path = f"/v1/operator/rounds/{voided['round_id']}/void"
        key = {"Idempotency-Key": secrets.token_hex(8)}
        assert operators[1].send("POST", path, said, headers=key).status_code == 200
        with house.connect() as conn:
            publish_directory(conn, shipped("paytables"), actor="system:tests")
            rotated = rotate_key(conn, house.sealer, operators[0].name, actor="system:tests")
            add_staff(conn, "ann", [StaffRole.AUDITOR], Said(actor="system:tests"))
            token = issue_token(conn, "ann", "her reports", Said(actor="system:tests")).token
        yield Played(house, operators, rounds, waiting, voided, token, rotated.secret)


def rows_of(report: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(report.csv(), newline="")))


class TestGamePerformance:
    def test_every_operator_s_sums_are_those_of_its_rounds(self, played: Played) -> None:
        items = played.report(ReportName.GAME_PERFORMANCE).items
        assert {item["operator"] for item in items} == {operator.name for operator in played.operators}
        for item in items:
            own = [found for found in played.rounds if found["operator"] == item["operator"]]
            staked = sum(found["total_staked_minor"] for found in own)
            paid = sum(found["total_payout_minor"] for found in own)
            assert (item["game"], item["currency"], item["settled"]) == (GAME, "GBP", 4)
            assert (item["staked_minor"], item["paid_minor"]) == (staked, paid)
            assert item["actual_rtp"]["exact"] == str(Fraction(paid, staked))
        by_name = {item["operator"]: item for item in items}
        first, second = (by_name[operator.name] for operator in played.operators)
        assert (first["rounds"], first["open_rounds"], first["held_minor"], first["voids"]) == (5, 1, 250, 0)
        assert (second["rounds"], second["open_rounds"], second["voids"]) == (5, 0, 1)

    def test_of_one_operator_it_is_what_that_operator_reads(self, played: Played) -> None:
        operator = played.operators[1]
        report = played.report(ReportName.GAME_PERFORMANCE, Wanted(operator=operator.name))
        read = operator.send("GET", "/v1/operator/reports/game-performance").json()
        (item,) = report.items
        assert item.pop("operator") == operator.name
        assert [item] == read["items"]

    def test_a_table_has_a_row_for_each_item_with_its_time_and_program(self, played: Played) -> None:
        report = played.report(ReportName.GAME_PERFORMANCE, Wanted(Period.YEAR))
        for row, item in zip(rows_of(report), report.items, strict=True):
            assert (row["operator"], row["staked_minor"]) == (item["operator"], str(item["staked_minor"]))
            assert row["actual_rtp_exact"] == item["actual_rtp"]["exact"]
            assert row["from"] == f"{report.made_at:%Y}-01-01T00:00:00.000000Z"
            assert row["reported_at"] == row["to"]
            assert (row["program"], row["complete"]) == (PROGRAM["version"], "true")


class TestEvents:
    def test_what_was_altered_is_told_with_who_why_and_both_values(
        self, played: Played, tmp_path: Path
    ) -> None:
        file = tmp_path / f"{GAME}.toml"
        original = (shipped("paytables") / file.name).read_text()
        file.write_text(original.replace("max = 300000", "max = 250000", 1))
        with played.house.connect() as conn:
            publish(conn, file, actor="system:tests", authoriser="a colleague", reason="Smaller stakes.")
            publish(conn, shipped("paytables") / file.name, actor="system:tests")
        wanted = Wanted(types=frozenset({EntryType.PAYTABLE_ACTIVATED}))
        back, there = played.report(ReportName.SIGNIFICANT_EVENTS, wanted).items[:2]
        assert (there["actor"], there["authoriser"], there["reason"]) == (
            "system:tests",
            "a colleague",
            "Smaller stakes.",
        )
        assert (
            there["before"]["digest"]
            == back["after"]["digest"]
            == Paytable.load(shipped("paytables") / file.name).digest
        )
        assert there["after"]["digest"] == back["before"]["digest"] == Paytable.load(file).digest

    def test_play_is_no_event_and_everything_else_is_one(self, played: Played) -> None:
        types = {item["type"] for item in played.report(ReportName.SIGNIFICANT_EVENTS).items}
        assert types <= SIGNIFICANT
        assert types >= {"operator.added", "operator.key_rotated", "round.voided", "staff.added"}
        assert not ROUTINE & SIGNIFICANT
        assert PLAY < ROUTINE

    def test_any_type_can_be_asked_for(self, played: Played) -> None:
        wanted = Wanted(types=frozenset({EntryType.ROUND_SETTLED}), operator=played.operators[0].name)
        items = played.report(ReportName.SIGNIFICANT_EVENTS, wanted).items
        assert {item["type"] for item in items} == {"round.settled"}
        assert len(items) == 5
        assert [item["occurred_at"] for item in items] == sorted(
            (item["occurred_at"] for item in items), reverse=True
        )

    def test_what_is_about_all_operators_is_in_each_one_s(self, played: Played) -> None:
        first, second = (
            {
                (item["operator"], item["for_all"])
                for item in played.report(ReportName.SIGNIFICANT_EVENTS, of).items
            }
            for of in (Wanted(operator=operator.name) for operator in played.operators)
        )
        assert first == {(played.operators[0].name, False), (None, True)}
        assert second == {(played.operators[1].name, False), (None, True)}

    def test_they_are_found_by_their_index_and_not_among_all_that_was_played(self, played: Played) -> None:
        wanted = Wanted(types=frozenset({EntryType.PROGRAM_FAILED}))
        with played.house.connect(Role.SUPERUSER) as conn:
            conn.execute("SET enable_seqscan = off")
            conn.execute("SET plan_cache_mode = force_generic_plan")
            conn.execute("LOAD 'auto_explain'")
            conn.execute("SET auto_explain.log_min_duration = 0")
            conn.execute("SET client_min_messages = log")
            said: list[str] = []
            conn.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))
            make_report(conn, ReportName.SIGNIFICANT_EVENTS, wanted)
        plan = next(text for text in said if "audit_entry" in text)
        assert "audit_entry_by_time" not in plan
        assert re.search(
            r"Index Scan.* using audit_entry\w*_occurred_at_entry_id_idx|using audit_entry_of_note", plan
        )


class TestOthers:
    def test_staff_and_operators_are_told_with_what_they_hold_and_no_secret(self, played: Played) -> None:
        report = played.report(ReportName.USERS_AND_RIGHTS)
        by_name = {item["name"]: item for item in report.items}
        ann, first = by_name["ann"], by_name[played.operators[0].name]
        assert (ann["kind"], ann["roles"], ann["tokens"][0]["label"]) == ("staff", ["auditor"], "her reports")
        assert [key["key_id"] for key in first["keys"]][:1] == [played.operators[0].key_id]
        assert len(first["keys"]) == 2
        for form in (report.json(), report.csv(), pages.html(report)):
            assert ann["tokens"][0]["token_id"] in form
            for secret in (played.token, played.rotated, played.operators[0].secret):
                assert secret not in form

    def test_of_one_operator_the_keys_are_its_own(self, played: Played) -> None:
        name = played.operators[0].name
        rows = rows_of(played.report(ReportName.USERS_AND_RIGHTS, Wanted(operator=name)))
        assert [(row["kind"], row["name"]) for row in rows] == [("operator", name)] * 2

    def test_funds_that_are_held_are_told_and_added_up(
        self, played: Played, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert played.report(ReportName.INTERRUPTED).items == []
        monkeypatch.setattr(kinds, "INTERRUPTED_MINUTES", 0)
        report = played.report(ReportName.INTERRUPTED)
        (item,) = report.items
        assert item["round_id"] == played.waiting["round_id"]
        assert (item["operator"], item["held_minor"]) == (played.operators[0].name, 250)
        assert report.totals == [
            {"currency": "GBP", "rounds": 1, "held_minor": 250, "in_flight_minor": 0, "owed_minor": 0}
        ]
        other = played.report(ReportName.INTERRUPTED, Wanted(operator=played.operators[1].name))
        assert (other.items, other.totals) == ([], [])

    def test_a_void_is_told_with_its_funds_and_its_approver(self, played: Played) -> None:
        (item,) = played.report(ReportName.VOIDS).items
        assert str(item["round_id"]) == played.voided["round_id"]
        assert (item["operator"], item["approver"]) == (played.operators[1].name, "the duty manager")
        assert (item["staked_minor"], item["refund_minor"]) == (
            played.voided["total_staked_minor"],
            -played.voided["net_minor"],
        )
        assert played.report(ReportName.VOIDS, Wanted(operator=played.operators[0].name)).items == []

    def test_a_par_sheet_is_that_of_the_stored_rules(self, played: Played) -> None:
        report = played.report(ReportName.PAR_SHEET)
        sheets = {item["paytable_digest"]: item["par_sheet"] for item in report.items}
        for file in shipped("paytables").glob("*.toml"):
            paytable = Paytable.load(file)
            assert sheets[paytable.digest] == par_sheet(paytable) | {
                "claims": sheets[paytable.digest]["claims"]
            }
            assert f"{paytable.game} 1: In short</h2>" in pages.html(report)
        assert {row["main_rtp_exact"] for row in rows_of(report)} == {
            sheet["main"]["rtp_exact"] for sheet in sheets.values()
        }

    def test_a_check_is_told_with_every_figure_it_found(self, played: Played) -> None:
        house = played.house
        with house.connect() as conn:
            conn.execute("SELECT audit_order(1000000)")
            accumulating.attend(house.service.database.connection, house.service.house)
            made = checking.check(conn, house.service.house.shelf, clock(conn).date(), actor="system:tests")
        report = played.report(ReportName.RTP_CHECKS)
        assert made is not None
        assert [item["result"] for item in report.items] == [made]
        (total,) = (
            row
            for row in rows_of(report)
            if (row["window"], row["wager"], row["of"], row["game"]) == ("day", "main", "version", GAME)
        )
        assert total["rounds"] == "8"
        main = [
            wager for found in played.rounds for wager in found["wagers"] if wager["spot"] != "pair_bonus"
        ]
        assert total["staked_minor"] == str(sum(wager["stake_minor"] for wager in main))
        assert total["returned_minor"] == str(sum(wager["payout_minor"] for wager in main))
        (nothing,) = (
            row
            for row in rows_of(report)
            if (row["window"], row["wager"], row["game"]) == ("day", "main", OTHER)
        )
        assert (nothing["rounds"], nothing["actual_rtp"], nothing["verdict"]) == ("0", "no data", "no data")

    def test_a_case_is_told_with_every_step(self, played: Played) -> None:
        case = uuid7()
        with played.house.connect() as conn:
            version = conn.execute("SELECT active_version_id FROM game WHERE game = %s", [GAME]).fetchone()
            assert version is not None
            steps = {"alert": EntryType.RTP_CASE_OPENED, "suspend": EntryType.RTP_CASE_CHANGED}
            for level, of_case in steps.items():
                alert = (case, version[0], level, "system:tests", f"The level {level}.")
                texts = [
                    Entry(type=kind, occurred_at=clock(conn), actor="system:tests").text()
                    for kind in (EntryType.RTP_ALERT, of_case)
                ]
                conn.execute("SELECT rtp_alert(%s, %s, %s, %s, %s, %s, %s)", [*alert, *texts])
        rows = rows_of(played.report(ReportName.RTP_CASES))
        assert [(row["case_id"], row["step"], row["note"]) for row in rows] == [
            (str(case), "1", "The level alert."),
            (str(case), "2", "The level suspend."),
        ]
        assert {row["level"] for row in rows} == {"suspend"}


class TestForms:
    @pytest.mark.parametrize("name", [name for name in ReportName if KINDS[name].of_time])
    def test_where_nothing_happened_every_form_says_so(self, played: Played, name: ReportName) -> None:
        report = played.report(name, NOTHING)
        told = json.loads(report.json())
        assert (told["activity"], told["items"]) == (NO_ACTIVITY, [])
        assert (told["from"], told["to"]) == ("2001-01-01T00:00:00.000000Z", "2001-01-02T00:00:00.000000Z")
        (row,) = rows_of(report)
        assert row[KINDS[name].columns[0]] == NO_ACTIVITY
        assert row["from"] == told["from"]
        assert NO_ACTIVITY in pages.html(report)

    @pytest.mark.parametrize("name", ReportName)
    def test_every_form_says_when_and_by_what_it_was_made(self, played: Played, name: ReportName) -> None:
        report = played.report(name)
        told = json.loads(report.json())
        assert (told["made_at"], told["program"]) == (report.about()["made_at"], PROGRAM)
        assert len(PROGRAM["manifest_digest"]) == 64
        page = pages.html(report)
        assert told["made_at"] in page
        assert PROGRAM["manifest_digest"] in page
        assert {(row["reported_at"], row["program"]) for row in rows_of(report)} == {
            (told["made_at"], PROGRAM["version"])
        }

    @pytest.mark.parametrize("name", ReportName)
    def test_a_page_has_every_column_and_fetches_nothing(self, played: Played, name: ReportName) -> None:
        report = played.report(name)
        page = pages.html(report)
        assert not re.search(r"<script|<link|<img|@import|url\(|\bsrc=|href=\"(?!#)", page)
        if report.items:
            headings = re.findall(r"<th class=\"\w+\" scope=\"col\">([^<]*)</th>", page)
            assert set(headings) >= {
                column.removesuffix("_minor").replace("_", " ") for column in KINDS[name].columns
            }

    def test_what_people_wrote_is_no_formula_and_no_markup(self, played: Played) -> None:
        report = played.report(ReportName.VOIDS)
        assert report.items[0]["reason"] == FORMULA
        assert rows_of(report)[0]["reason"] == "'" + FORMULA
        assert "&lt;script&gt;" in pages.html(report)

    def test_a_report_that_is_cut_says_so(self, played: Played) -> None:
        report = played.report(ReportName.SIGNIFICANT_EVENTS, Wanted(limit=1))
        assert (len(report.items), json.loads(report.json())["complete"]) == (1, False)
        assert rows_of(report)[0]["complete"] == "false"
        assert "There are more than these 1" in pages.html(report)

    def test_columns_are_named_once(self) -> None:
        for kind in KINDS.values():
            columns = (*HEADS, *kind.columns)
            assert len(set(columns)) == len(columns)

    @pytest.mark.parametrize(
        ("name", "field"),
        [(name, "type") for name in ReportName if name is not ReportName.SIGNIFICANT_EVENTS]
        + [(name, field) for name in ReportName if not KINDS[name].of_time for field in ("period", "from")],
    )
    def test_a_report_refuses_what_it_would_not_heed(
        self, played: Played, name: ReportName, field: str
    ) -> None:
        wanted = {
            "type": Wanted(types=frozenset({EntryType.ROUND_VOIDED})),
            "period": Wanted(period=Period.MONTH),
            "from": NOTHING,
        }
        with pytest.raises(WantedWrongly, match="leave") as wrong:
            played.report(name, wanted[field])
        assert wrong.value.field == field

    def test_what_is_of_the_whole_installation_is_of_no_operator(self, played: Played) -> None:
        with pytest.raises(SetUpError, match="leave the operator out"):
            played.report(ReportName.PAR_SHEET, Wanted(operator=played.operators[0].name))
        with pytest.raises(SetUpError, match="There is no operator 'nobody'"):
            played.report(ReportName.VOIDS, Wanted(operator="nobody"))


class TestCommand:
    def run(self, played: Played, *words: str) -> Result:
        address = {"DATABASE_URL": played.house.server.url(Role.OWNER)}
        return CliRunner().invoke(command, list(words), env=address)

    def test_it_prints_every_report_in_every_form(self, played: Played) -> None:
        for name in ReportName:
            found = {
                form: self.run(played, name.value, f"--format={form}") for form in ("json", "csv", "html")
            }
            assert {result.exit_code for result in found.values()} == {0}, name
            assert json.loads(found["json"].stdout)["report"] == name
            assert found["csv"].stdout.startswith("from,to,reported_at,program,complete,")
            assert found["html"].stdout.startswith("<!doctype html>")

    def test_a_day_without_a_time_begins_at_midnight_utc(self, played: Played) -> None:
        told = json.loads(self.run(played, "voids", "--from=2001-01-01", "--to=2001-02-01").stdout)
        assert (told["from"], told["to"]) == ("2001-01-01T00:00:00.000000Z", "2001-02-01T00:00:00.000000Z")

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("voids", "--period=day", "--from=2001-01-01"), "Give --period, or --from and --to."),
            (("voids", "--to=2001-01-01"), "Give --from as well."),
            (("profits",), "'profits' is not one of"),
        ],
    )
    def test_what_will_not_do_is_refused(self, played: Played, words: tuple[str, ...], said: str) -> None:
        refused = self.run(played, *words)
        assert refused.exit_code == 2
        assert said in refused.stderr

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("voids", "--type=round.voided"), "of no types of entries: leave the type out"),
            (("par-sheet", "--period=day"), "of how things stand now: leave period out"),
            (("interrupted", "--from=2001-01-01"), "of how things stand now: leave from out"),
        ],
    )
    def test_what_a_report_would_not_heed_is_refused(
        self, played: Played, words: tuple[str, ...], said: str
    ) -> None:
        refused = self.run(played, *words)
        assert isinstance(refused.exception, SetUpError)
        assert said in str(refused.exception)

    def test_only_the_named_types_are_printed(self, played: Played) -> None:
        printed = self.run(played, "significant-events", "--type=operator.added", "--type=staff.added")
        assert {item["type"] for item in json.loads(printed.stdout)["items"]} == {
            "operator.added",
            "staff.added",
        }
        assert all(UUID(item["entry_id"]) for item in json.loads(printed.stdout)["items"])
