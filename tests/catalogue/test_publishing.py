"""Paytable files become versions that never change; a file that will not do closes its game and no other."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from casino_brag.catalogue.paytables import Published, publish, publish_directory
from casino_brag.config import shipped
from casino_brag.db.embedded import Role
from casino_brag.game.paytable import Paytable
from tests.inprocess import AppHouse, app_house_in
from tests.running import code_of

ACTOR = "system:tests"
GAME = "three-card-brag"
ORIGINAL = (shipped("paytables") / f"{GAME}.toml").read_text()
FAVOURABLE = "\n[ante_bonus]\npaid = 'always'\npays = { run = 1, running_flush = 4, prial = 5 }\n"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    """A house whose games come and go."""
    with app_house_in(tmp_path_factory.mktemp("publishing")) as house:
        yield house


@pytest.fixture
def conn(house: AppHouse) -> Iterator[psycopg.Connection[Any]]:
    with house.connect() as conn:
        yield conn
        publish_directory(conn, shipped("paytables"), actor=ACTOR)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with both games' files."""
    return Path(shutil.copytree(shipped("paytables"), tmp_path / "paytables"))


def revised(number: int) -> str:
    """The game's file with other limits, which make it another version."""
    return ORIGINAL.replace("max = 300000", f"max = {300_000 - 5 * number}", 1)


def entries(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute(
        "SELECT count(*) FROM audit_entry WHERE type IN ('paytable.activated', 'game.disabled')"
    ).fetchone()
    assert row is not None
    return int(row[0])


def states(conn: psycopg.Connection[Any]) -> dict[str, tuple[str, int | None]]:
    rows = conn.execute(
        "SELECT g.game, g.state, v.version FROM game AS g LEFT JOIN paytable_version AS v"
        " ON v.version_id = g.active_version_id"
    )
    return {game: (state, version) for game, state, version in rows}


def test_what_is_published_already_is_left_alone(conn: psycopg.Connection[Any], directory: Path) -> None:
    publish_directory(conn, directory, actor=ACTOR)
    before, written = states(conn), entries(conn)
    published = publish_directory(conn, directory, actor=ACTOR)
    assert published == [Published(game, before[game][1], (), changed=False) for game in sorted(before)]
    assert (states(conn), entries(conn)) == (before, written)


def test_layout_and_comments_make_no_other_version(conn: psycopg.Connection[Any], directory: Path) -> None:
    file = directory / f"{GAME}.toml"
    file.write_text("# a new heading\n" + ORIGINAL.replace(" = ", "   =   "))
    assert not publish(conn, file, actor=ACTOR).changed


def test_other_content_is_the_next_version_and_the_first_can_be_returned_to(
    conn: psycopg.Connection[Any], directory: Path
) -> None:
    file = directory / f"{GAME}.toml"
    first, first_digest = publish(conn, file, actor=ACTOR), Paytable.load(file).digest
    file.write_text(revised(1))
    second = publish(conn, file, actor=ACTOR)
    file.write_text(ORIGINAL)
    again = publish(conn, file, actor=ACTOR, authoriser="a colleague", reason="The revision was hasty.")
    assert first.version is not None
    assert second == Published(GAME, first.version + 1, (), changed=True)
    assert again == Published(GAME, first.version, (), changed=True)
    row = conn.execute(
        "SELECT before, after, actor, authoriser, reason FROM audit_entry WHERE type = 'paytable.activated'"
        " ORDER BY occurred_at DESC LIMIT 1"
    ).fetchone()
    file.write_text(revised(1))
    assert row == (
        {"game": GAME, "state": "enabled", "version": second.version, "digest": Paytable.load(file).digest},
        {"game": GAME, "state": "enabled", "digest": first_digest},
        ACTOR,
        "a colleague",
        "The revision was hasty.",
    )


def together(house: AppHouse, calls: list[Callable[[psycopg.Connection[Any]], Published]]) -> list[Published]:
    """Calls at one instant, each on a connection of its own."""
    barrier, results = threading.Barrier(len(calls)), [None] * len(calls)

    def make(place: int) -> None:
        with house.connect() as own:
            barrier.wait(timeout=30)
            results[place] = calls[place](own)  # type: ignore[call-overload]

    threads = [threading.Thread(target=make, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None not in results
    return results  # type: ignore[return-value]


def publishes(file: Path) -> Callable[[psycopg.Connection[Any]], Published]:
    return lambda own: publish(own, file, actor=ACTOR)


def test_two_who_publish_the_same_at_once_publish_one_version(
    house: AppHouse, conn: psycopg.Connection[Any], tmp_path: Path
) -> None:
    for round_ in range(5):
        file = tmp_path / f"{GAME}.toml"
        file.write_text(revised(10 + round_))
        results = together(house, [publishes(file)] * 4)
        assert len({result.version for result in results}) == 1
        assert sorted(result.changed for result in results) == [False, False, False, True]


def test_two_who_publish_different_rules_at_once_publish_two_versions(
    house: AppHouse, conn: psycopg.Connection[Any], tmp_path: Path
) -> None:
    files = []
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        files.append(tmp_path / str(number) / f"{GAME}.toml")
        files[-1].write_text(revised(100 + number))
    results = together(house, [publishes(file) for file in files])
    versions = {result.version for result in results}
    assert len(versions) == 4
    assert all(result.changed for result in results)
    assert states(conn)[GAME][0] == "enabled"
    assert states(conn)[GAME][1] in versions


UNFIT: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "no TOML": lambda file: file.write_text("ante = bonus"),
    "not UTF-8": lambda file: file.write_bytes(b"\xff\xfe"),
    "a zero byte": lambda file: file.write_text(ORIGINAL.replace("3 Card Brag", "3\0")),
    "an escaped zero": lambda file: file.write_text(ORIGINAL.replace('"3 Card Brag"', '"3\\u0000"')),
    "another game's": lambda file: file.write_text(ORIGINAL.replace(GAME, "double-play-brag")),
    "a misspelt key": lambda file: file.write_text(ORIGINAL + "\nqualifies = 'Q'\n"),
    "a directory": lambda file: file.mkdir(),
    "a link to itself": lambda file: file.symlink_to(file),
    "a link to nothing": lambda file: file.symlink_to(file.with_suffix(".gone")),
    "gone": lambda file: None,
    "huge": lambda file: file.write_text(ORIGINAL + "#" * 1_000_000),
    "better for players than for the house": lambda file: file.write_text(
        (shipped("paytables") / "double-play-brag.toml").read_text().replace("double-play-brag", GAME)
        + FAVOURABLE
    ),
}


@pytest.mark.parametrize("unfit", UNFIT)
def test_a_file_that_will_not_do_closes_its_game_and_no_other(
    conn: psycopg.Connection[Any], directory: Path, unfit: str
) -> None:
    file = directory / f"{GAME}.toml"
    file.unlink()
    UNFIT[unfit](file)
    other, closed = publish_directory(conn, directory, actor=ACTOR)
    assert (other.game, other.problems, states(conn)["double-play-brag"][0]) == (
        "double-play-brag",
        (),
        "enabled",
    )
    assert (closed.game, closed.version, closed.changed) == (GAME, None, True)
    assert closed.problems
    assert all(str(file) in problem for problem in closed.problems)
    assert states(conn)[GAME][0] == "disabled"
    row = conn.execute(
        "SELECT reason, after FROM audit_entry WHERE type = 'game.disabled' ORDER BY occurred_at DESC LIMIT 1"
    ).fetchone()
    assert row == ("\n".join(closed.problems), {"game": GAME, "state": "disabled"})
    assert not publish_directory(conn, directory, actor=ACTOR)[1].changed


def test_a_file_whose_name_is_no_text_closes_no_other_game(
    conn: psycopg.Connection[Any], directory: Path
) -> None:
    (directory / os.fsdecode(b"\xff.toml")).write_text(ORIGINAL)
    published = publish_directory(conn, directory, actor=ACTOR)
    assert [one.game for one in published if one.version is not None] == ["double-play-brag", GAME]


def test_a_closed_game_is_told_and_takes_no_new_rounds(
    house: AppHouse, conn: psycopg.Connection[Any], directory: Path
) -> None:
    player = house.player()
    waiting = player.open(100).json()
    (directory / f"{GAME}.toml").unlink()
    publish_directory(conn, directory, actor=ACTOR)
    told = player.get(f"/v1/games/{GAME}").json()
    assert told["state"] == "disabled"
    assert GAME not in player.get("/v1/session").json()["limits"]
    assert player.decide(waiting["round_id"], "play").status_code == 200
    assert code_of(player.open(100)) == "game_unavailable"
    publish_directory(conn, shipped("paytables"), actor=ACTOR)
    assert player.open(100).status_code == 201


def test_what_a_changed_game_says_of_itself(
    house: AppHouse, conn: psycopg.Connection[Any], directory: Path
) -> None:
    player = house.player()
    before = player.get(f"/v1/games/{GAME}").json()
    file = directory / f"{GAME}.toml"
    file.write_text(revised(2000))
    published = publish(conn, file, actor=ACTOR)
    after = player.get(f"/v1/games/{GAME}").json()
    assert after["paytable"] == {"version": published.version, "digest": Paytable.load(file).digest}
    assert after["limits"]["GBP"]["ante"]["max_minor"] == 290_000
    assert after["change"]["changed_at"] > before["change"]["changed_at"]
    assert str(published.version) in after["change"]["notice"]


def test_no_payout_above_what_an_account_holds_is_ever_promised(
    house: AppHouse, conn: psycopg.Connection[Any], directory: Path
) -> None:
    file = directory / f"{GAME}.toml"
    file.write_text(
        ORIGINAL.replace("payout_max = 5000000", "", 1).replace("max = 300000", "max = 9007199254740990", 1)
    )
    assert publish(conn, file, actor=ACTOR).version is not None
    limits = house.player().get(f"/v1/games/{GAME}").json()["limits"]["GBP"]
    assert limits["maximum_win_minor"] <= 2**53 - 1


def tampered(house: AppHouse, change: str) -> None:
    """Alters published versions as only somebody can who takes the table's own guards away first."""
    with house.connect(Role.SUPERUSER) as superuser, superuser.transaction():
        superuser.execute(
            "ALTER TABLE paytable_version DROP CONSTRAINT IF EXISTS paytable_version_digest_is_of_its_document"
        )
        superuser.execute("ALTER TABLE paytable_version DISABLE TRIGGER paytable_version_is_immutable")
        superuser.execute(f"UPDATE paytable_version SET {change} WHERE game = '{GAME}'")
        superuser.execute("ALTER TABLE paytable_version ENABLE ALWAYS TRIGGER paytable_version_is_immutable")


ALTERED = """document = replace(document, '"prial":40', '"prial":41')"""
REPAIRED = """document = replace(document, '"prial":41', '"prial":40')"""


def test_a_version_that_was_altered_deals_and_settles_nothing_until_it_is_repaired(tmp_path: Path) -> None:
    with app_house_in(tmp_path) as house:
        first = house.player()
        waiting = first.open(100, 50).json()
        with house.connect() as conn:
            document = conn.execute(
                "SELECT document FROM paytable_version WHERE game = %s", [GAME]
            ).fetchone()
        assert document is not None
        assert '"prial":40' in document[0]
        tampered(house, ALTERED)
        forget_versions(house)
        stranger = house.player()
        assert code_of(stranger.open(100)) == "game_unavailable"
        assert code_of(first.decide(waiting["round_id"], "play")) == "game_unavailable"
        assert code_of(stranger.get(f"/v1/games/{GAME}")) == "game_unavailable"
        with house.connect() as conn:
            held = conn.execute("SELECT balance_minor FROM account WHERE kind = 'player'").fetchall()
        assert sorted(held) == [(99_850,), (100_000,)]
        assert house.player(game="double-play-brag").open(100).status_code == 201
        tampered(house, REPAIRED)
        assert first.decide(waiting["round_id"], "play").status_code == 200
        assert stranger.open(100).status_code == 201


def test_one_altered_version_takes_no_other_game_off_the_list(tmp_path: Path) -> None:
    with app_house_in(tmp_path) as house:
        tampered(house, ALTERED)
        forget_versions(house)
        player = house.operator.player_of_any_game()
        listed = player.get("/v1/games")
        assert listed.status_code == 200
        assert [game["game"] for game in listed.json()["items"]] == ["double-play-brag"]
        assert list(player.get("/v1/session").json()["limits"]) == ["double-play-brag"]


def forget_versions(house: AppHouse) -> None:
    """As a process that has just been started."""
    house.service.house.shelf._versions.clear()
