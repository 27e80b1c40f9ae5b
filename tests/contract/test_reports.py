"""What an operator reads of its rounds: each in full, lists as JSON and as tables, and reports."""

from __future__ import annotations

import csv
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
import requests

from casino_brag.catalogue.operators import Funding, set_wallet
from casino_brag.rounds.reports import Period, period_start
from casino_brag.web.api.tables import PAGE_ROWS, pages
from tests.inprocess import AppHouse, deal_next
from tests.running import Operator, Player, code_of
from tests.sandbox_wallet import SandboxWallet, sandbox_wallet

GAME, OTHER_GAME = "three-card-brag", "double-play-brag"
ROUNDS = "/v1/operator/rounds"
PERFORMANCE, INTERRUPTED, ALTERATIONS = (
    f"/v1/operator/reports/{name}" for name in ("game-performance", "interrupted", "alterations")
)
PRIAL, HIGH_CARD, ACE_HIGH = "3c 3d 3h", "2c 4d 6h", "Ac Kd 9h"


@pytest.fixture
def operator(app_house: AppHouse) -> Operator:
    """An operator of its own for each test, with no rounds yet."""
    return app_house.new_operator()


def asked(
    operator: Operator, path: str, headers: dict[str, str] | None = None, **query: Any
) -> requests.Response:
    return operator.send("GET", f"{path}?{urlencode(query)}" if query else path, headers=headers)


def read(operator: Operator, path: str, **query: Any) -> dict[str, Any]:
    answer = asked(operator, path, **query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def rows_of(operator: Operator, path: str, **query: Any) -> list[dict[str, str]]:
    answer = asked(operator, path, format="csv", **query)
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(StringIO(answer.text, newline="")))


def ids(listed: Any) -> list[str]:
    return [item["round_id"] for item in listed]


def voided(operator: Operator, round_id: str, **wanted: Any) -> None:
    body = {"reason": "A fault.", "approver": "the duty manager"} | wanted
    key = {"Idempotency-Key": secrets.token_hex(8)}
    assert operator.send("POST", f"{ROUNDS}/{round_id}/void", body, headers=key).status_code == 200


def real_player(operator: Operator, **wanted: Any) -> Player:
    return operator.real_player(1_000_000, **wanted)


class TestRoundsInFull:
    def test_a_settled_round_is_told_in_full(
        self, operator: Operator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        player = real_player(operator, channel="mobile")
        deal_next(monkeypatch, PRIAL, ACE_HIGH)
        seen = player.played("play", ante_minor=100, pair_bonus_minor=50)
        (found,) = read(operator, ROUNDS)["items"]
        assert read(operator, f"{ROUNDS}/{seen['round_id']}") == found
        same = set(seen) & set(found)
        assert same >= {
            "state",
            "player_cards",
            "dealer_cards",
            "decision",
            "result",
            "wagers",
            "net_minor",
            "paytable",
        }
        assert {name: found[name] for name in same} == {name: seen[name] for name in same}
        assert (found["channel"], found["mode"], found["test"]) == ("mobile", "real", False)
        assert (found["void"], found["wallet_transactions"]) == (None, [])

    def test_of_an_open_round_nothing_of_the_dealers_is_told(self, operator: Operator) -> None:
        player = real_player(operator)
        opened = player.open(100, 50).json()
        found = read(operator, f"{ROUNDS}/{opened['round_id']}")
        assert found["state"] == "awaiting_decision"
        assert found["player_cards"] == opened["player_cards"]
        assert found["wagers"] == opened["wagers"]
        unknown = ("dealer_cards", "dealer_category", "dealer_qualified", "decision", "result", "net_minor")
        assert {found[name] for name in (*unknown, "total_payout_minor", "payout_state", "settled_at")} == {
            None
        }

    def test_a_round_voided_before_its_decision_says_why_and_by_whom(self, operator: Operator) -> None:
        round_id = real_player(operator).open(100).json()["round_id"]
        voided(operator, round_id, reason="=HYPERLINK()", approver="the duty manager")
        (found,) = read(operator, ROUNDS, state="voided")["items"]
        void = found["void"]
        assert void.pop("voided_at") > found["opened_at"]
        assert void == {
            "reason": "=HYPERLINK()",
            "actor": f"operator:{operator.name}",
            "approver": "the duty manager",
            "policy": "refund",
            "refund_minor": 100,
            "compensation_minor": 0,
        }
        assert (found["dealer_cards"], found["net_minor"], found["payout_state"]) == (None, 0, "paid")
        (row,) = rows_of(operator, ROUNDS)
        assert (row["void_reason"], row["void_approver"]) == ("'=HYPERLINK()", "the duty manager")
        assert (row["refund_minor"], row["net_minor"]) == ("100", "0")

    @pytest.mark.parametrize(("dealt", "net_minor"), [(HIGH_CARD, 0), (PRIAL, 700)])
    def test_a_round_voided_afterwards_nets_what_it_left_to_its_player(
        self, operator: Operator, monkeypatch: pytest.MonkeyPatch, dealt: str, net_minor: int
    ) -> None:
        deal_next(monkeypatch, dealt, ACE_HIGH)
        player = real_player(operator)
        before = player.balance_minor()
        settled = player.played("play", ante_minor=100)
        voided(operator, settled["round_id"])
        found = read(operator, f"{ROUNDS}/{settled['round_id']}")
        assert found["dealer_cards"] == settled["dealer_cards"]
        assert found["net_minor"] == net_minor == player.balance_minor() - before

    def test_a_round_of_another_operator_is_not_found(self, operator: Operator, app_house: AppHouse) -> None:
        theirs = app_house.new_operator().player().played()["round_id"]
        for round_id in (theirs, uuid4()):
            answer = asked(operator, f"{ROUNDS}/{round_id}")
            assert (answer.status_code, code_of(answer)) == (404, "round_not_found")


class TestLists:
    def test_rounds_are_filtered_by_what_they_are(self, operator: Operator) -> None:
        ann, bob = real_player(operator), real_player(operator, game=OTHER_GAME)
        settled = ann.played()["round_id"]
        waiting = ann.open().json()["round_id"]
        other = bob.played(game=OTHER_GAME)["round_id"]
        demo = operator.player().played()["round_id"]
        test = real_player(operator, test=True).played()["round_id"]
        everything = read(operator, ROUNDS)["items"]
        assert ids(everything) == [other, waiting, settled]
        name = everything[1]["player"]
        for query, expected in (
            ({"player": name}, [waiting, settled]),
            ({"player": "nobody"}, []),
            ({"state": "settled"}, [other, settled]),
            ({"state": "awaiting_decision"}, [waiting]),
            ({"state": "deciding"}, []),
            ({"game": OTHER_GAME}, [other]),
            ({"mode": "demo"}, [demo]),
            ({"test": "true"}, [test, other, waiting, settled]),
            ({"from": everything[1]["opened_at"]}, [other, waiting]),
            ({"to": everything[1]["opened_at"]}, [settled]),
            ({"player": name, "state": "settled", "game": GAME}, [settled]),
        ):
            assert ids(read(operator, ROUNDS, **query)["items"]) == expected, query
            assert ids(rows_of(operator, ROUNDS, **query)) == expected, query

    def test_pages_follow_one_another_and_a_table_has_them_all(self, operator: Operator) -> None:
        player = operator.player()
        played = [player.played()["round_id"] for _ in range(7)][::-1]
        query: dict[str, Any] = {"mode": "demo", "limit": 3}
        seen: list[str] = []
        while True:
            page = read(operator, ROUNDS, **query)
            seen += ids(page["items"])
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        assert seen == played == ids(rows_of(operator, ROUNDS, mode="demo"))
        first = ids(rows_of(operator, ROUNDS, mode="demo", limit=5))
        assert first + ids(rows_of(operator, ROUNDS, mode="demo", cursor=first[-1])) == played

    def test_a_table_is_one_line_a_round_under_a_header(
        self, operator: Operator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deal_next(monkeypatch, PRIAL, ACE_HIGH)
        name = "=1+1," + secrets.token_hex(4)
        assert operator.deposit(name, 10_000).status_code == 201
        settled = operator.player(player=name, mode="real").played(
            "play", ante_minor=100, pair_bonus_minor=50
        )
        answer = asked(operator, ROUNDS, headers={"Accept": "text/csv"})
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
        assert 'filename="rounds.csv"' in answer.headers["Content-Disposition"]
        assert answer.text.count("\r\n") == answer.text.count("\n") == 2
        (row,) = csv.DictReader(StringIO(answer.text, newline=""))
        assert row["player"] == "'" + name
        assert (row["player_cards"], row["dealer_cards"]) == (PRIAL, ACE_HIGH)
        assert (row["paytable_version"], row["paytable_digest"]) == ("1", settled["paytable"]["digest"])
        for wager in settled["wagers"]:
            assert row[f"{wager['spot']}_stake_minor"] == str(wager["stake_minor"])
            assert row[f"{wager['spot']}_payout_minor"] == str(wager["payout_minor"])
        assert (row["net_minor"], row["test"], row["void_reason"]) == (str(settled["net_minor"]), "false", "")

    def test_a_table_without_rounds_has_its_header(self, operator: Operator) -> None:
        answer = asked(operator, ROUNDS, format="csv")
        assert answer.text.startswith("round_id,player,session_id,")
        assert answer.text.count("\r\n") == 1

    @pytest.mark.parametrize(
        ("accept", "wanted", "expected"),
        [
            ("*/*", {}, "application/json"),
            ("text/csv, application/json;q=0.5", {}, "text/csv"),
            ("text/csv;q=0.5, application/json", {}, "application/json"),
            ("text/csv", {"format": "json"}, "application/json"),
            ("application/json", {"format": "csv"}, "text/csv"),
            ("image/png", {}, "application/json"),
        ],
    )
    def test_the_caller_chooses_the_form(
        self, operator: Operator, accept: str, wanted: dict[str, str], expected: str
    ) -> None:
        answer = asked(operator, ROUNDS, headers={"Accept": accept}, **wanted)
        assert answer.headers["Content-Type"].partition(";")[0] == expected

    @pytest.mark.parametrize("most", [0, 1, PAGE_ROWS, PAGE_ROWS + 1, 2500, 10_000])
    def test_a_table_is_read_in_pages_up_to_a_bound(self, most: int) -> None:
        asked_for: list[int] = []

        def page(after: int | None, limit: int) -> list[dict[str, Any]]:
            asked_for.append(limit)
            first = 0 if after is None else after + 1
            return [{"id": number} for number in range(first, min(first + limit, 2600))]

        listed = [row["id"] for rows in pages(page, "id", None, most) for row in rows]
        assert listed == list(range(min(most, 2600)))
        assert max(asked_for, default=0) <= PAGE_ROWS

    @pytest.mark.parametrize(
        ("path", "query", "wrong"),
        [
            (ROUNDS, {"limit": 0}, "limit"),
            (ROUNDS, {"limit": 201}, "limit"),
            (ROUNDS, {"cursor": "x"}, "cursor"),
            (ROUNDS, {"state": "reserving"}, "state"),
            (ROUNDS, {"mode": "test"}, "mode"),
            (ROUNDS, {"from": "2026-01-01T00:00:00"}, "from"),
            (ROUNDS, {"from": "0001-01-01T00:00:00Z"}, "from"),
            (ROUNDS, {"to": "9999-12-31T23:59:59-12:00"}, "to"),
            (ROUNDS, {"to": "yesterday"}, "to"),
            (ROUNDS, {"format": "xml"}, "format"),
            (ROUNDS, {"player": "\x00"}, "player"),
            (ROUNDS, {"unknown": 1}, "unknown"),
            (PERFORMANCE, {"period": "week"}, "period"),
            (PERFORMANCE, {"period": "day", "from": "2026-01-01T00:00:00Z"}, "period"),
            (PERFORMANCE, {"to": "2026-01-01T00:00:00Z"}, "from"),
            (INTERRUPTED, {"minutes": -1}, "minutes"),
            (ALTERATIONS, {"limit": 1000}, "limit"),
        ],
    )
    def test_a_query_that_will_not_do_is_refused(
        self, operator: Operator, path: str, query: dict[str, Any], wrong: str
    ) -> None:
        answer = asked(operator, path, **query)
        assert (answer.status_code, code_of(answer)) == (422, "invalid")
        assert wrong in answer.json()["errors"]


class TestGamePerformance:
    def test_it_adds_up_to_the_rounds(self, operator: Operator) -> None:
        player = real_player(operator)
        for number in range(12):
            player.played(
                "play" if number % 3 else "fold", ante_minor=100, pair_bonus_minor=50 * (number % 2)
            )
        assert player.open(200, 50).status_code == 201
        operator.player().played()
        real_player(operator, test=True).played()
        report = read(operator, PERFORMANCE)
        settled = read(operator, ROUNDS, state="settled")["items"]
        (row,) = report["items"]
        staked, paid = (
            sum(found[f"total_{what}_minor"] for found in settled) for what in ("staked", "payout")
        )
        assert report["activity"] == "Activity"
        assert (row["game"], row["currency"], row["paytable"]["version"]) == (GAME, "GBP", 1)
        assert (row["rounds"], row["settled"], row["open_rounds"], row["voids"]) == (13, 12, 1, 0)
        assert (row["staked_minor"], row["paid_minor"], row["held_minor"]) == (staked, paid, 250)
        assert row["actual_rtp"] == {"value": f"{paid / staked:.8f}", "exact": str(Fraction(paid, staked))}
        wagers = [wager for found in settled for wager in found["wagers"] if wager["spot"] == "pair_bonus"]
        main, bonus = row["wagers"]
        assert (bonus["staked_minor"], bonus["paid_minor"]) == (
            300,
            sum(one["payout_minor"] for one in wagers),
        )
        assert (main["staked_minor"], main["paid_minor"]) == (staked - 300, paid - bonus["paid_minor"])
        published = {
            figure["wager"]: {name: figure[name] for name in ("value", "exact", "strategy")}
            for figure in requests.get(f"{operator.base}/v1/games/{GAME}", timeout=30).json()["rtp"]
            if figure["figure"] == "rtp"
        }
        assert {wager["wager"]: wager["theoretical_rtp"] for wager in row["wagers"]} == published

    def test_currencies_and_games_have_rows_of_their_own(self, operator: Operator) -> None:
        for currency, game in (("GBP", GAME), ("GBP", OTHER_GAME), ("EUR", GAME)):
            operator.real_player(10_000, currency, game=game).played(game=game)
        rows = read(operator, PERFORMANCE)["items"]
        assert [(row["game"], row["currency"], row["rounds"]) for row in rows] == [
            (OTHER_GAME, "GBP", 1),
            (GAME, "EUR", 1),
            (GAME, "GBP", 1),
        ]

    def test_voided_rounds_are_counted_and_in_no_return(
        self, operator: Operator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        player = real_player(operator)
        deal_next(monkeypatch, PRIAL, ACE_HIGH)
        voided(operator, player.open(100).json()["round_id"], policy="better")
        voided(operator, player.played("play", ante_minor=100)["round_id"])
        deal_next(monkeypatch, HIGH_CARD, ACE_HIGH)
        voided(operator, player.played("play", ante_minor=100)["round_id"])
        (row,) = read(operator, PERFORMANCE)["items"]
        assert (row["rounds"], row["voids"], row["settled"], row["staked_minor"]) == (3, 3, 0, 0)
        assert (row["refunded_minor"], row["compensated_minor"], row["kept_minor"]) == (300, 700, 700)
        assert row["actual_rtp"] == {"value": "no data", "exact": None}
        (line,) = rows_of(operator, PERFORMANCE)
        assert (line["actual_rtp"], line["main_actual_rtp"], line["voids"]) == ("no data", "no data", "3")
        assert line["main_theoretical_rtp"].startswith("0.")

    def test_where_nothing_was_played_it_says_so(self, operator: Operator) -> None:
        report = read(operator, PERFORMANCE, period="year")
        assert (report["activity"], report["items"]) == ("No Activity", [])
        (line,) = rows_of(operator, PERFORMANCE, period="year")
        assert (line["from"], line["game"]) == (report["from"], "No Activity")

    def test_a_round_belongs_to_the_time_in_which_it_was_opened(self, operator: Operator) -> None:
        player = real_player(operator)
        player.played()
        second = player.played()["opened_at"]
        assert read(operator, PERFORMANCE, **{"from": second})["items"][0]["rounds"] == 1
        assert (
            read(operator, PERFORMANCE, **{"from": "2020-01-01T00:00:00Z", "to": second})["items"][0][
                "rounds"
            ]
            == 1
        )
        assert read(operator, PERFORMANCE, **{"from": "2020-01-01T00:00:00Z"})["items"][0]["rounds"] == 2
        assert read(operator, PERFORMANCE, period="life")["items"][0]["rounds"] == 2

    @pytest.mark.parametrize(
        ("period", "expected"),
        [("day", (2026, 8, 17)), ("month", (2026, 8, 1)), ("quarter", (2026, 7, 1)), ("year", (2026, 1, 1))],
    )
    def test_a_period_begins_at_midnight(
        self, app_house: AppHouse, period: str, expected: tuple[int, int, int]
    ) -> None:
        now = datetime(2026, 8, 17, 13, 59, 7, 5, tzinfo=UTC)
        with app_house.connect() as conn:
            assert period_start(conn, uuid4(), Period(period), now) == datetime(*expected, tzinfo=UTC)


class TestInterrupted:
    def test_an_open_round_is_listed_with_what_it_holds_and_when_it_ends(self, operator: Operator) -> None:
        player = real_player(operator)
        opened = player.open(100, 50).json()
        operator.player().open()
        assert read(operator, INTERRUPTED) | {"made_at": ""} == {
            "made_at": "",
            "activity": "No Activity",
            "totals": [],
            "items": [],
            "next_cursor": None,
        }
        report = read(operator, INTERRUPTED, minutes=0)
        (found,) = report["items"]
        assert (found["round_id"], found["state"], found["since"]) == (
            opened["round_id"],
            "awaiting_decision",
            opened["opened_at"],
        )
        assert (found["held_minor"], found["in_flight_minor"], found["owed_minor"]) == (150, 0, 0)
        waits = datetime.fromisoformat(found["resolves_at"]) - datetime.fromisoformat(found["since"])
        assert (found["resolution"], waits.total_seconds()) == ("void", 720 * 3600)
        assert report["totals"] == [
            {"currency": "GBP", "rounds": 1, "held_minor": 150, "in_flight_minor": 0, "owed_minor": 0}
        ]
        player.decide(opened["round_id"], "fold")
        assert read(operator, INTERRUPTED, minutes=0)["items"] == []
        assert rows_of(operator, INTERRUPTED, minutes=0)[0]["round_id"] == "No Activity"

    def test_it_goes_on_page_by_page(self, operator: Operator) -> None:
        opened = sorted((real_player(operator).open().json()["round_id"] for _ in range(3)), reverse=True)
        first = read(operator, INTERRUPTED, minutes=0, limit=2)
        rest = read(operator, INTERRUPTED, minutes=0, limit=2, cursor=first["next_cursor"])
        assert (
            ids(first["items"]) + ids(rest["items"])
            == opened
            == ids(rows_of(operator, INTERRUPTED, minutes=0))
        )
        assert (rest["next_cursor"], first["totals"]) == (None, rest["totals"])

    @pytest.fixture
    def wallet(self, app_house: AppHouse, operator: Operator, tmp_path: Path) -> Iterator[SandboxWallet]:
        """The operator's own wallet; nobody goes on with what is unfinished here."""
        with sandbox_wallet(
            tmp_path, (operator.key_id, operator.secret), options=("--fund", "100000")
        ) as wallet:
            with app_house.connect() as conn:
                set_wallet(conn, operator.name, wallet.url, Funding.TWO_DEBITS, actor="system:tests")
            yield wallet

    def test_what_a_wallet_has_not_answered_for_is_listed(
        self, operator: Operator, app_house: AppHouse, wallet: SandboxWallet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def player() -> Player:
            return operator.player(player=secrets.token_hex(6), mode="real")

        deal_next(monkeypatch, PRIAL, ACE_HIGH)
        paid_late, undecided, unstaked = player(), player(), player()
        owed = paid_late.open(100).json()["round_id"]
        asked_again = undecided.open(100).json()["round_id"]
        wallet.faults({"operation": "credit", "kind": "error_before"})
        settled = paid_late.decide(owed, "play").json()
        assert settled["payout_state"] == "pending"
        wallet.faults(*({"operation": name, "kind": "error_before"} for name in ("debit", "cancel")))
        assert code_of(undecided.decide(asked_again, "play")) == "wallet_unavailable"
        with app_house.restarted():  # for a while the other process would not even ask such a wallet
            assert code_of(unstaked.open(100, 50)) == "wallet_unavailable"

        report = read(operator, INTERRUPTED, minutes=0)
        found = {item["state"]: item for item in report["items"]}
        assert {state: item["resolution"] for state, item in found.items()} == {
            "settled": "credit",
            "awaiting_decision": "cancel",
            "reserving": "cancel",
        }
        amounts = ("held_minor", "in_flight_minor", "owed_minor")
        assert [found["settled"][name] for name in amounts] == [0, 0, settled["total_payout_minor"]]
        assert [found["awaiting_decision"][name] for name in amounts] == [100, 100, 0]
        # The Pair Bonus was never asked for.
        assert [found["reserving"][name] for name in amounts] == [0, 100, 0]
        (totals,) = report["totals"]
        assert totals["rounds"] == 3
        assert [totals[name] for name in amounts] == [
            sum(item[name] for item in found.values()) for name in amounts
        ]
        assert found["settled"]["last_problem"]

        listed = {item["round_id"]: item for item in read(operator, ROUNDS)["items"]}
        assert listed[asked_again]["state"] == "awaiting_decision"
        assert listed[owed]["payout_state"] == "pending"
        # Its debit is being cancelled: it can be folded, and is as it was before.
        assert ids(read(operator, ROUNDS, state="awaiting_decision")["items"]) == [asked_again]
        assert ids(read(operator, ROUNDS, state="deciding")["items"]) == []
        made = [(one["purpose"], one["wager"], one["state"]) for one in listed[owed]["wallet_transactions"]]
        assert made == [
            ("stake", "ante", "done"),
            ("stake", "play", "done"),
            ("settlement", "payout", "pending"),
        ]


class TestAlterations:
    def test_what_was_changed_is_told_with_who_why_and_what_it_was_before(
        self, operator: Operator, app_house: AppHouse
    ) -> None:
        reason = "A fault,\u2028said in two lines."
        round_id = operator.player().open().json()["round_id"]
        voided(operator, round_id, reason=reason, approver="the duty manager")
        operator.send("POST", f"/v1/operator/games/{GAME}/drain", {"reason": "Tonight."})
        app_house.new_operator().send("POST", f"/v1/operator/games/{GAME}/drain", {"reason": "Not ours."})
        report = read(operator, ALTERATIONS, period="life")
        own = [item for item in report["items"] if not item["for_all"]]
        assert [item["type"] for item in own] == ["game.draining", "round.voided", "operator.added"]
        closed, void, _ = own
        assert (closed["actor"], closed["reason"]) == (f"operator:{operator.name}", "Tonight.")
        assert closed["before"] == {"game": GAME, "version": None, "state": "enabled"}
        assert closed["after"] == {"game": GAME, "version": None, "state": "draining"}
        assert (void["round_id"], void["authoriser"], void["reason"]) == (
            round_id,
            "the duty manager",
            reason,
        )
        rows = rows_of(operator, ALTERATIONS, period="life")
        assert [row["entry_id"] for row in rows] == [item["entry_id"] for item in report["items"]]
        assert rows[0]["after"] == '{"game": "three-card-brag", "state": "draining", "version": null}'

    def test_what_was_changed_for_all_is_told_to_each(self, operator: Operator) -> None:
        since = {"from": "2020-01-01T00:00:00Z"}
        types = {item["type"] for item in read(operator, ALTERATIONS, **since)["items"] if item["for_all"]}
        assert "paytable.activated" in types

    def test_it_goes_on_page_by_page(self, operator: Operator) -> None:
        since = {"from": "2020-01-01T00:00:00Z"}
        everything = [item["entry_id"] for item in read(operator, ALTERATIONS, **since)["items"]]
        first = read(operator, ALTERATIONS, limit=1, **since)
        rest = read(operator, ALTERATIONS, cursor=first["next_cursor"], **since)
        assert [item["entry_id"] for item in first["items"] + rest["items"]] == everything

    def test_where_nothing_was_changed_it_says_so(self, operator: Operator) -> None:
        never = {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"}
        report = read(operator, ALTERATIONS, **never)
        assert (report["activity"], report["items"], report["from"]) == (
            "No Activity",
            [],
            "2020-01-01T00:00:00.000000Z",
        )
        assert [row["entry_id"] for row in rows_of(operator, ALTERATIONS, **never)] == ["No Activity"]


@pytest.mark.parametrize(
    "path", [ROUNDS, f"{ROUNDS}/01a22c5f-bc67-727e-9438-f5e0b039c729", PERFORMANCE, INTERRUPTED, ALTERATIONS]
)
def test_only_a_signed_request_is_answered(operator: Operator, path: str) -> None:
    answer = requests.get(operator.base + path, timeout=30)
    assert (answer.status_code, code_of(answer)) == (401, "unauthenticated")
