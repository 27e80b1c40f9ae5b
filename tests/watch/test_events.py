"""Events that nobody has to look for: faults of the program, clocks, large wins and wagers; each on record once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg
from psycopg.rows import dict_row

from casino_brag.audit import Entry, EntryType
from casino_brag.db.embedded import Role
from casino_brag.db.pool import Connect
from casino_brag.db.records import as_jsonb
from casino_brag.errors import Code, ServiceError, SetUpError
from casino_brag.watch import clocks, events, large
from casino_brag.watch.clocks import Look
from casino_brag.watch.large import LargeAmounts, Limit
from tests.inprocess import AppHouse, app_house_in, deal_next
from tests.running import Operator, code_of

PRIAL, HIGH_CARD, ACE_HIGH = "3c 3d 3h", "2c 4d 6h", "Ac Kd 9h"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("events")) as started:
        yield started


@pytest.fixture
def connect(house: AppHouse) -> Connect:
    """Connections as a job has them."""
    return house.service.database.connection


@contextmanager
def recorded(house: AppHouse, *subjects: str) -> Iterator[list[dict[str, Any]]]:
    """The entries of these subjects that are written within the block, in their order, filled in at its end."""
    found: list[dict[str, Any]] = []
    with house.connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        query = (
            "SELECT * FROM audit_entry WHERE split_part(type, '.', 1) = ANY (%s) ORDER BY occurred_at, type"
        )
        before = {row["entry_id"] for row in cursor.execute(query, [list(subjects)])}
        yield found
        rows = cursor.execute(query, [list(subjects)]).fetchall()
        found += [row for row in rows if row["entry_id"] not in before]


def ordered(house: AppHouse) -> None:
    """Gives all entries their leaves."""
    with house.connect() as conn:
        conn.execute("SELECT audit_order(1000000)")


def kill_own_connection(house: AppHouse) -> Callable[..., Any]:
    """Stands in for a step: every connection of the application is cut, as by a kill."""

    def cut(*_: Any) -> Any:
        with house.connect(Role.SUPERUSER) as superuser:
            superuser.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'casino-brag'"
            )
        return as_jsonb([])

    return cut


class TestLargeAmounts:
    AMOUNTS = LargeAmounts({"GBP": Limit(1_000, 3_000)})
    LARGE = ("round.large_win", "round.large_wager", "player.large_win", "player.large_wager")

    @pytest.fixture(autouse=True)
    def gone_through(self, house: AppHouse, connect: Connect) -> None:
        """What other tests played is behind us."""
        self.attended(house, connect)

    def attended(self, house: AppHouse, connect: Connect) -> int:
        ordered(house)
        return large.attend(connect, self.AMOUNTS)

    @contextmanager
    def found(self, house: AppHouse, connect: Connect) -> Iterator[list[dict[str, Any]]]:
        found: list[dict[str, Any]] = []
        with recorded(house, "round", "player") as written:
            yield found
            self.attended(house, connect)
        found += [row for row in written if row["type"] in self.LARGE]

    @staticmethod
    def play(
        house: AppHouse, patched: pytest.MonkeyPatch, *antes: int, **wanted: Any
    ) -> list[dict[str, Any]]:
        """Rounds of one player's, played against ace high with a prial, which pays six times the Ante."""
        operator: Operator = house.operator
        player = operator.player(**wanted) if wanted else operator.real_player(1_000_000)
        played = []
        for ante in antes:
            deal_next(patched, PRIAL, ACE_HIGH)
            played.append(player.played("play", ante_minor=ante))
        return played

    def test_a_round_is_large_from_the_limit_on(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.found(house, connect) as found:
            (played,) = self.play(house, monkeypatch, 500)
        assert (played["total_staked_minor"], played["net_minor"]) == (1_000, 3_500)
        single = {row["type"]: row for row in found if row["type"].startswith("round")}
        assert single.keys() == {"round.large_wager", "round.large_win"}
        for kind, amount in (("round.large_wager", 1_000), ("round.large_win", 3_500)):
            row = single[kind]
            assert str(row["round_id"]) == played["round_id"]
            assert row["actor"] == large.ACTOR
            assert row["payload"] == {
                "currency": "GBP",
                "amount_minor": amount,
                "limit_minor": 1_000,
                "settled_at": played["settled_at"],
            }

    def test_a_round_below_the_limit_is_none(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.found(house, connect) as found:
            (played,) = self.play(house, monkeypatch, 140)
        assert (played["total_staked_minor"], played["net_minor"]) == (280, 980)
        assert found == []

    def test_a_player_s_day_is_told_once_with_the_round_that_made_it_large(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.found(house, connect) as found:
            played = self.play(house, monkeypatch, *[140] * 12)
        told = {row["type"]: row for row in found}
        assert len(found) == len(told) == 2
        won, staked = told["player.large_win"], told["player.large_wager"]
        assert (won["before"], won["after"]) == ({"amount_minor": 2_940}, {"amount_minor": 3_920})
        assert (staked["before"], staked["after"]) == ({"amount_minor": 2_800}, {"amount_minor": 3_080})
        assert str(won["round_id"]) == played[3]["round_id"]
        assert str(staked["round_id"]) == played[10]["round_id"]
        assert won["payload"]["day"] == played[3]["settled_at"][:10]
        with self.found(house, connect) as again:
            pass
        assert again == []

    def test_a_day_is_added_up_over_any_number_of_looks(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        player = house.operator.real_player(1_000_000)
        with self.found(house, connect) as found:
            for _ in range(4):
                deal_next(monkeypatch, PRIAL, ACE_HIGH)
                player.played("play", ante_minor=140)
                self.attended(house, connect)
        assert [row["type"] for row in found] == ["player.large_win"]

    def test_lost_rounds_take_nothing_off_what_was_won(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        player = house.operator.real_player(1_000_000)
        with self.found(house, connect) as found:
            for number in range(8):
                deal_next(monkeypatch, HIGH_CARD if number % 2 else PRIAL, ACE_HIGH)
                player.played("play", ante_minor=140)
        assert [row["type"] for row in found] == ["player.large_win"]

    def test_play_for_nothing_is_never_large(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.found(house, connect) as found:
            self.play(house, monkeypatch, 5_000, mode="demo")
            name = "tester"
            assert house.operator.deposit(name, 100_000).status_code == 201
            self.play(house, monkeypatch, 5_000, player=name, mode="real", test=True)
        assert found == []

    def test_workers_beside_each_other_tell_each_amount_once(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.found(house, connect) as found:
            self.play(house, monkeypatch, *[500] * 20)
            ordered(house)
            monkeypatch.setattr(large, "BATCH", 7)
            failed: list[BaseException] = []

            def work() -> None:
                try:
                    while large.attend(connect, self.AMOUNTS):
                        pass
                except BaseException as error:
                    failed.append(error)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert failed == []
        kinds = [row["type"] for row in found]
        assert {kind: kinds.count(kind) for kind in self.LARGE} == dict(
            zip(self.LARGE, (20, 20, 1, 1), strict=True)
        )

    def test_a_worker_that_dies_before_it_writes_leaves_nothing_out(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.found(house, connect) as found:
            self.play(house, monkeypatch, 500)
            ordered(house)
            with monkeypatch.context() as patched:
                patched.setattr(large, "as_jsonb", kill_own_connection(house))
                with pytest.raises(ServiceError, match="database did not answer"):
                    large.attend(connect, self.AMOUNTS)
        assert [row["type"] for row in found] == ["player.large_win", "round.large_wager", "round.large_win"]

    def test_a_worker_that_dies_before_it_hears_of_it_tells_nothing_twice(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        @contextmanager
        def dying() -> Iterator[psycopg.Connection[Any]]:
            with connect() as conn:
                yield conn
            raise KeyboardInterrupt

        with self.found(house, connect) as found:
            self.play(house, monkeypatch, 500)
            ordered(house)
            with pytest.raises(KeyboardInterrupt):
                large.attend(dying, self.AMOUNTS)
        assert [row["type"] for row in found] == ["player.large_win", "round.large_wager", "round.large_win"]

    def test_sums_are_forgotten_once_no_entry_of_their_day_can_come(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.play(house, monkeypatch, 5)
        self.attended(house, connect)
        days = "SELECT count(*) FROM player_day WHERE day < (now() AT TIME ZONE 'UTC')::date - %s"
        with house.connect() as conn:
            for age in (39, 41):
                conn.execute(
                    "INSERT INTO player_day SELECT day - %s, player_id, currency, 1, 0 FROM player_day LIMIT 1",
                    [age],
                )
            assert conn.execute(days, [30]).fetchone() == (2,)
            self.play(house, monkeypatch, 5)
            self.attended(house, connect)
            assert conn.execute(days, [30]).fetchone() == (1,)
            assert conn.execute(days, [40]).fetchone() == (0,)

    @pytest.mark.parametrize(
        "text", ["GBP", "GBP=1", "GBP=0/1", "GBP=1/2,GBP=3/4", "ABC=1/2", "gbp=1/2", "GBP=1.5/2", "GBP=-1/2"]
    )
    def test_limits_that_will_not_do_are_refused(self, text: str) -> None:
        with pytest.raises(SetUpError, match=r"CASINO_BRAG_LARGE_AMOUNTS .* as GBP=500000/1000000"):
            LargeAmounts.parse(text)

    def test_a_currency_that_was_not_set_has_limits_by_its_decimals(self) -> None:
        amounts = LargeAmounts.parse(" EUR=1/2, ")
        assert amounts.of("EUR") == Limit(1, 2)
        assert amounts.of("GBP") == Limit(500_000, 1_000_000)
        assert amounts.of("JPY") == Limit(500_000, 1_000_000)


class TestClocks:
    @pytest.fixture
    def looks(self, house: AppHouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Callable[..., None]:
        """Says what the next look shows, on a machine of this test's own."""
        boot = tmp_path / "boot_id"
        boot.write_text(f"{tmp_path.name}\n")
        monkeypatch.setattr(clocks, "_BOOT_ID", boot)

        def shows(seconds: float, database: float = 0, machine: float = 0) -> None:
            """After so many seconds; each clock is so many seconds ahead."""
            now = timedelta(seconds=seconds)
            shown = Look(
                now, NOON + now + timedelta(seconds=machine), NOON + now + timedelta(seconds=database)
            )
            monkeypatch.setattr(clocks, "look", lambda _: shown)

        return shows

    @pytest.mark.parametrize("ahead", [2.0, -3600.0])
    def test_a_step_of_the_database_s_clock_is_told_once(
        self, house: AppHouse, connect: Connect, looks: Callable[..., None], ahead: float
    ) -> None:
        with recorded(house, "clock") as found:
            looks(0)
            assert clocks.attend(connect) == 0
            looks(10, database=ahead)
            assert clocks.attend(connect) == 2
            looks(20, database=ahead)
            assert clocks.attend(connect) == 0
        drifted, stepped = found
        assert (drifted["type"], stepped["type"]) == ("clock.drifted", "clock.stepped")
        expected = NOON + timedelta(seconds=10)
        read = (datetime.fromisoformat(stepped[side]["database_at"]) for side in ("before", "after"))
        assert tuple(read) == (expected, expected + timedelta(seconds=ahead))
        assert (drifted["before"], drifted["after"]) == ({"apart": False}, {"apart": True})
        assert stepped["payload"].keys() == {"machine", "machine_at", "database_at"}

    def test_a_machine_s_clock_that_drifts_is_told_when_it_begins_and_when_it_ends(
        self, house: AppHouse, connect: Connect, looks: Callable[..., None]
    ) -> None:
        with recorded(house, "clock") as found:
            for seconds, machine in ((0, 0.4), (10, 0.9), (20, 1.2), (30, 1.6), (40, 0.8)):
                looks(seconds, machine=machine)
                clocks.attend(connect)
        assert [(row["type"], row["after"]) for row in found] == [
            ("clock.drifted", {"apart": True}),
            ("clock.drifted", {"apart": False}),
        ]

    def test_processes_of_a_machine_share_their_looks_and_one_tells(
        self, house: AppHouse, connect: Connect, looks: Callable[..., None]
    ) -> None:
        looks(0)
        clocks.attend(connect)
        looks(10, database=5)
        with recorded(house, "clock") as found:
            barrier = threading.Barrier(4)
            told: list[int] = []

            def attend() -> None:
                barrier.wait(timeout=30)
                told.append(clocks.attend(connect))

            threads = [threading.Thread(target=attend) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(found) == 2 == sum(told)

    def test_looks_that_are_far_apart_are_not_compared(
        self, house: AppHouse, connect: Connect, looks: Callable[..., None]
    ) -> None:
        with recorded(house, "clock") as found:
            looks(0)
            clocks.attend(connect)
            looks(3_601, database=4, machine=4)
            clocks.attend(connect)
        assert found == []

    def test_a_look_that_took_long_is_let_pass(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(clocks, "UNSURE_SECONDS", -1)
        with recorded(house, "clock") as found:
            assert clocks.attend(connect) == 0
        assert found == []

    def test_the_clocks_of_this_machine_agree(self, house: AppHouse, connect: Connect) -> None:
        with recorded(house, "clock") as found:
            for _ in range(2):
                clocks.attend(connect)
            with connect() as conn:
                seen = clocks.look(conn)
        assert found == []
        assert seen is not None
        assert not seen.apart


class TestFaults:
    @pytest.fixture(autouse=True)
    def allowance(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(events, "_allowance", events._Allowance())

    @staticmethod
    def fault() -> RuntimeError:
        try:
            raise RuntimeError("a card: As")
        except RuntimeError as raised:
            return raised

    def test_a_request_that_ends_in_a_fault_is_on_record_without_what_it_said(
        self, house: AppHouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: Any) -> Any:
            raise RuntimeError("a card: As")

        player = house.player()
        monkeypatch.setattr("casino_brag.rounds.opening.read_for_opening", broken)
        with recorded(house, "program") as found:
            assert code_of(player.open(100)) == "internal_error"
        (row,) = found
        assert (row["type"], row["payload"]["component"], row["payload"]["kind"]) == (
            "program.failed",
            "web",
            "RuntimeError",
        )
        assert row["payload"]["at"][-1].startswith("test_events.py:")
        assert row["actor"].startswith("system:process-")
        assert b"As" not in row["bytes"]

    def test_so_many_are_recorded_in_a_minute_and_the_others_counted(
        self, house: AppHouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with recorded(house, "program") as found:
            told = [
                events.record_failure(connect, "a job", self.fault()) for _ in range(events.RECORDED_MAX + 5)
            ]
            monkeypatch.setattr(events, "RECORDED_SECONDS", 0)
            assert events.record_failure(connect, "a job", self.fault())
        assert told == [True] * events.RECORDED_MAX + [False] * 5
        assert [row["payload"]["not_recorded"] for row in found] == [0] * events.RECORDED_MAX + [5]

    def test_one_that_cannot_be_written_is_counted_too(self, house: AppHouse, connect: Connect) -> None:
        def away() -> Any:
            raise ServiceError(Code.DATABASE_UNAVAILABLE, "It is away.")

        with recorded(house, "program") as found:
            assert not events.record_failure(away, "a job", self.fault())
            assert events.record_failure(connect, "a job", self.fault())
        assert [row["payload"]["not_recorded"] for row in found] == [1]


@pytest.mark.parametrize(
    "function",
    [
        "program_failure_record(%s)",
        "clock_look_keep('machine', 0, 1, now(), false, ARRAY[%s])",
        "replay_record(%s)",
        "audit_key_add('name+00000000+AA==', %s)",
        "staff_add(gen_random_uuid(), 'somebody', '{auditor}', %s)",
        "staff_called(%s)",
        "staff_refused('192.0.2.1', %s)",
        "rtp_check_add(gen_random_uuid(), current_date, false, '{}', %s)",
    ],
)
def test_no_other_entries_are_written_on_this_way(house: AppHouse, function: str) -> None:
    text = Entry(type=EntryType.ROUND_SETTLED, occurred_at=NOON, actor="system:tests").text()
    with house.connect(Role.APP) as application, pytest.raises(pg.CheckViolation, match="is none of"):
        application.execute(f"SELECT {function}", [text])


def test_nobody_goes_on_past_the_last_leaf(house: AppHouse) -> None:
    beyond = "SELECT large_amounts_keep((SELECT next_leaf FROM large_amounts_done), 1000000000, '[]', '{}')"
    with house.connect(Role.APP) as application:
        assert application.execute(beyond).fetchone() == (False,)
