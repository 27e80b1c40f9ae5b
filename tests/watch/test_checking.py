"""Live play beside theory: what is told, the daily check, and the commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import rfc8785
from click.testing import CliRunner, Result
from psycopg import errors as pg

from casino_brag.audit import EntryType
from casino_brag.catalogue.paytables import Shelf
from casino_brag.cli.rtp import rtp as commands
from casino_brag.db.embedded import Role
from casino_brag.errors import SetUpError
from casino_brag.watch import checking
from casino_brag.watch.checking import attend, check, duplicate_deals
from casino_brag.watch.status import status
from tests.inprocess import AppHouse, app_house_in, deal_next
from tests.running import together
from tests.watch.played import add_up

GAME, OTHER = "three-card-brag", "double-play-brag"


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    """A house in which nobody has played."""
    with app_house_in(tmp_path_factory.mktemp("quiet")) as house:
        yield house


@pytest.fixture(scope="module")
def house(quiet: AppHouse) -> AppHouse:
    """The same after some rounds of one game, all of the same cards: these win against a dealer who qualifies."""
    with pytest.MonkeyPatch.context() as patched:
        deal_next(patched, "As Kd Jc", "Qs Jd 9h")
        for channel, ante in (("web", 100), ("web", 100), (None, 300_000)):
            named = {} if channel is None else {"channel": channel}
            player = quiet.operator.real_player(1_000_000, game=GAME, **named)
            assert player.decide(player.open(ante, 50).json()["round_id"], "play").status_code == 200
        assert quiet.operator.player().played("play")["state"] == "settled"
    add_up(quiet)
    return quiet


def figures(found: dict[str, Any], game: str) -> list[dict[str, Any]]:
    (version,) = [version for version in found["versions"] if version["game"] == game]
    return list(version["figures"])


def test_nothing_played_is_no_data(quiet: AppHouse) -> None:
    with quiet.connect() as conn:
        found = status(conn)
        checked = check(conn, Shelf(), datetime.now(UTC).date(), actor="system:tests")
    assert checked is not None
    assert [version["game"] for version in found["versions"]] == [OTHER, GAME]
    told = [*figures(found, GAME), *figures(found, OTHER)]
    for version in checked["versions"]:
        assert version["evidence"]["level"] == "none"
        for window in version["windows"]:
            told += window["figures"]
            assert window["dealt"] == {"rounds": 0, "categories": "no data", "fits": []}
    assert len(told) == 4 + 2 * 4 * 2
    for figure in told:
        assert (figure["rounds"], figure["verdict"], figure["actual_rtp"]) == (
            0,
            "no data",
            {"value": "no data", "exact": None},
        )
    assert "0.000" not in json.dumps(told)


def test_the_figures_are_those_of_what_was_played(house: AppHouse) -> None:
    with house.connect() as conn:
        found = status(conn, game=GAME)
    assert [version["game"] for version in found["versions"]] == [GAME]
    assert found["behind_leaves"] == 0
    told = figures(found, GAME)
    by = {(figure["wager"], figure["by"], figure["value"]): figure for figure in told}
    assert set(by) == {
        ("main", "version", None),
        ("main", "stake_band", "50-158"),
        ("main", "stake_band", "158114-499999"),
        ("main", "channel", None),
        ("main", "channel", "web"),
        ("main", "operator", house.operator.name),
        ("pair_bonus", "version", None),
        ("pair_bonus", "stake_band", "50-158"),
        ("pair_bonus", "channel", None),
        ("pair_bonus", "channel", "web"),
        ("pair_bonus", "operator", house.operator.name),
    }
    main = by["main", "version", None]
    assert (main["rounds"], main["staked_minor"], main["returned_minor"]) == (3, 600_400, 1_200_800)
    assert main["actual_rtp"] == {"value": "2.00000000", "exact": "2"}
    assert main["theoretical_rtp"]["value"].startswith("0.979")
    assert main["verdict"] == "too few rounds"
    assert by["main", "channel", "web"]["rounds"] == 2
    bonus = by["pair_bonus", "version", None]
    assert (bonus["returned_minor"], bonus["given_cards_and_decisions"]["z"], bonus["verdict"]) == (
        0,
        "0.000",
        "within 95 %",
    )
    (version,) = found["versions"]
    assert version["dealt"]["rounds"] == 3
    assert version["dealt"]["categories"][0] == {
        "hand": "player",
        "category": "high_card",
        "counted": 3,
        "expected": "2.23",
    }
    assert [(day["wager"], day["rounds"], day["rounds_of_day"]) for day in version["course"]] == [
        ("main", 3, 3),
        ("pair_bonus", 3, 3),
    ]


def test_other_days_have_no_data(house: AppHouse) -> None:
    with house.connect() as conn:
        found = status(conn, game=GAME, until=datetime.now(UTC).date() - timedelta(2))
    assert {figure["verdict"] for figure in figures(found, GAME)} == {"no data"}


def test_equal_deals_are_counted(house: AppHouse) -> None:
    with house.connect() as conn:
        row = conn.execute("SELECT max(day) FROM rtp_deals").fetchone()
        assert row is not None
        assert duplicate_deals(conn, row[0]) == {"deals": 4, "pairs": 6, "p": "0.000000"}
        assert duplicate_deals(conn, date(2000, 1, 1)) == {"deals": 0, "pairs": 0, "p": None}


def test_a_check_is_kept_and_the_log_has_its_digest(house: AppHouse) -> None:
    with house.connect() as conn:
        made = check(conn, Shelf(), datetime.now(UTC).date(), actor="staff:J. Doe")
        row = conn.execute("SELECT scheduled, result FROM rtp_check ORDER BY made_at DESC LIMIT 1").fetchone()
        entry = conn.execute(
            "SELECT actor, payload FROM audit_entry WHERE type = %s ORDER BY entry_id DESC LIMIT 1",
            [EntryType.RTP_CHECKED],
        ).fetchone()
        assert row == (False, made)
        assert made is not None
        assert entry is not None
        assert entry[0] == "staff:J. Doe"
        assert entry[1]["result_sha256"] == sha256(rfc8785.dumps(row[1])).hexdigest()
        (version,) = [version for version in made["versions"] if version["game"] == GAME]
        assert [window["window"] for window in version["windows"]] == [
            "day",
            "30 days",
            "since activation",
            "life",
        ]
        assert {window["figures"][0]["rounds"] for window in version["windows"]} == {3}
        for statement in ("UPDATE rtp_check SET day = day", "DELETE FROM rtp_check", "TRUNCATE rtp_check"):
            with pytest.raises(pg.RestrictViolation):
                conn.execute(statement)


def checked_days(house: AppHouse) -> list[date]:
    with house.connect() as conn:
        rows = conn.execute("SELECT day FROM rtp_check WHERE scheduled ORDER BY day").fetchall()
    return [day for (day,) in rows]


def test_the_daily_check_waits_until_the_day_is_added_up(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.operator.player().played()
    connect, shared = house.service.database.connection, house.service.house
    with house.connect(Role.SUPERUSER) as conn:
        conn.execute("UPDATE audit_sealing SET attended_at = now() - interval '2 days'")
        assert attend(connect, shared) == 0
        conn.execute("UPDATE audit_sealing SET attended_at = now()")
    # Minutes that put the end of yesterday ahead of us.
    monkeypatch.setattr(checking, "GRACE_MINUTES", -24 * 60)
    assert attend(connect, shared) == 0
    assert checked_days(house) == []


def test_the_daily_check_is_made_once_whoever_makes_it(house: AppHouse) -> None:
    add_up(house)
    connect, shared = house.service.database.connection, house.service.house
    assert sum(together([lambda: attend(connect, shared)] * 4)) == 1
    with house.connect() as conn:
        yesterday = conn.execute(
            "SELECT (now() AT TIME ZONE 'UTC' - interval '10 minutes')::date - 1"
        ).fetchone()
    assert yesterday is not None
    assert checked_days(house) == [yesterday[0]]
    assert attend(connect, shared) == 0


def test_days_on_which_no_worker_ran_are_made_up_for(house: AppHouse) -> None:
    (day,) = checked_days(house)
    connect, shared = house.service.database.connection, house.service.house
    with house.connect(Role.SUPERUSER) as conn:
        conn.execute("SET session_replication_role = replica")
        conn.execute("ALTER TABLE rtp_check DISABLE TRIGGER rtp_check_is_append_only")
        conn.execute("UPDATE rtp_check SET day = day - 3 WHERE scheduled")
        conn.execute("ALTER TABLE rtp_check ENABLE ALWAYS TRIGGER rtp_check_is_append_only")
    while attend(connect, shared):
        pass
    assert checked_days(house) == [day - timedelta(days) for days in (3, 2, 1, 0)]


def command(house: AppHouse, *arguments: str) -> Result:
    return CliRunner().invoke(commands, list(arguments), env={"DATABASE_URL": house.server.url(Role.OWNER)})


def test_the_status_is_told_in_words_and_to_machines(house: AppHouse) -> None:
    told = command(house, "status", "--game", GAME)
    assert told.exit_code == 0, told.output
    assert f"{GAME} version 1, enabled: level none" in told.stdout
    assert "RTP 2.00000000" in told.stdout
    as_json = json.loads(command(house, "status", "--json", "--game", GAME).stdout)
    with house.connect() as conn:
        assert as_json | {"as_of": ""} == status(conn, game=GAME) | {"as_of": ""}
    assert "RTP no data" in command(house, "status", "--game", OTHER).stdout
    assert "RTP no data" in command(house, "status", "--game", GAME, "--until", "2020-01-01").stdout


def test_a_check_is_made_by_a_command(house: AppHouse) -> None:
    told = command(house, "check")
    assert told.exit_code == 0, told.output
    assert "too few rounds" in told.stdout
    assert "no data" in told.stdout
    assert json.loads(command(house, "check", "--json").stdout)["duplicate_deals"]["pairs"] >= 6


def test_cases_are_followed_up_by_commands(house: AppHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(house, "cases").stdout == "No Activity\n"
    version = Shelf()
    with house.connect() as conn:
        row = conn.execute("SELECT active_version_id FROM game WHERE game = %s", [OTHER]).fetchone()
        assert row is not None
        from dataclasses import replace

        from casino_brag.watch.alerts import Suspension, raise_alert
        from casino_brag.watch.evidence import Evidence

        with conn.transaction():
            raise_alert(
                conn,
                version.version(conn, row[0]),
                replace(Evidence.none(), rounds=3, impossible=2),
                Suspension.NONE,
            )
    listed = json.loads(command(house, "cases", "--json").stdout)
    case_id = listed[0]["case_id"]
    assert case_id in command(house, "cases", "--game", OTHER).stdout
    assert command(house, "case", case_id, "investigate", "--note", "Why.").exit_code == 2
    for step, state in (("investigate", "investigated"), ("open", "open"), ("close", "closed")):
        told = command(house, "case", case_id, step, "--note", f"Step: {step}.", "--by", "J. Doe")
        assert told.exit_code == 0, told.output
        assert f"{state:<13}staff:J. Doe: Step: {step}." in told.stdout
    told = json.loads(command(house, "case", case_id, "--json").stdout)
    assert [change["state"] for change in told["changes"]] == ["open", "investigated", "open", "closed"]
    assert isinstance(
        command(house, "case", case_id, "open", "--note", "x", "--by", "y").exception, SetUpError
    )


def test_the_plots_are_one_page_that_loads_nothing(house: AppHouse, tmp_path: Path) -> None:
    file = tmp_path / "live.html"
    assert command(house, "status", "--html", str(file)).exit_code == 0
    written = file.read_text()
    assert not re.search(r"<script|<link|https?:|url\(", written)
    # A document of well-formed elements, but for two that HTML does not close.
    root = ElementTree.fromstring(
        written.replace("<!doctype html>", "").replace('<meta charset="utf-8">', "")
    )
    titles = [title.text for title in root.iter("title")]
    assert titles == [
        "Live play",
        "Return so far, main game in GBP",
        "Distance from what hands and decisions let expect, main game in GBP",
        "Return so far, Pair Bonus in GBP",
        "Distance from what hands and decisions let expect, Pair Bonus in GBP",
        "The player's categories beside their chances",
        "The dealer's categories beside their chances",
    ]
    assert "<p>No data.</p>" in written
