"""A version is put in force by somebody who did not approve it; open rounds stay on the version they began under."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue import activations
from casino_brag.catalogue.activations import AHEAD_MAX, activate, attend, retire, unschedule
from casino_brag.catalogue.drafts import create_draft
from casino_brag.catalogue.paytables import Published, publish, publish_directory
from casino_brag.catalogue.versions import (
    VersionRow,
    VersionState,
    history,
    list_versions,
    par_sheet_of,
    read_version,
    version_text,
)
from casino_brag.config import shipped
from casino_brag.db.clock import clock, rfc3339
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.errors import Code, ServiceError
from casino_brag.game.paytable import Paytable
from casino_brag.odds.par_sheet import par_sheet
from casino_brag.staff.people import Person, Role, revoke, set_roles
from tests.books import broken_laws
from tests.catalogue.persons import GAME, ORIGINAL, SAID, approved, person, revised
from tests.inprocess import AppHouse, app_house_in, deal_next
from tests.running import code_of, together

Connection = psycopg.Connection[Any]
OTHER = "double-play-brag"
SOON = timedelta(milliseconds=400)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("activations")) as house:
        yield house


@pytest.fixture
def conn(house: AppHouse) -> Iterator[Connection]:
    with house.connect(DatabaseRole.APP) as conn:
        yield conn


@pytest.fixture
def operations(conn: Connection) -> Person:
    return person(conn, Role.OPERATIONS)


@pytest.fixture(autouse=True)
def first_again(conn: Connection) -> Iterator[None]:
    """What is in force and what is scheduled is as it was before."""
    yield
    by = person(conn, Role.OPERATIONS)
    for game in (GAME, OTHER):
        if scheduled(conn, game):
            unschedule(conn, by, game, reason="A test is over.")
        if row(conn, game, 1).state is not VersionState.ACTIVE:
            activate(conn, by, game, 1, reason="A test is over.")


def row(conn: Connection, game: str, version: int) -> VersionRow:
    return read_version(conn, game, version)[0]


def scheduled(conn: Connection, game: str) -> list[VersionRow]:
    return [row for row in list_versions(conn, game) if row.state is VersionState.SCHEDULED]


def active(conn: Connection, game: str = GAME) -> list[int]:
    return [row.version for row in list_versions(conn, game) if row.state is VersionState.ACTIVE]


def code(call: Callable[[], object]) -> Code:
    with pytest.raises(ServiceError) as refused:
        call()
    return refused.value.code


def newest(conn: Connection, kind: EntryType) -> tuple[Any, ...]:
    found = conn.execute(
        "SELECT actor, authoriser, reason, before, after FROM audit_entry WHERE type = %s"
        " ORDER BY entry_id DESC LIMIT 1",
        [kind],
    ).fetchone()
    assert found is not None
    return tuple(found)


def due(house: AppHouse) -> int:
    """What the job did, once what is scheduled soon has become due."""
    time.sleep(SOON.total_seconds() + 0.05)
    return attend(house.service.database.connection)


# Putting a version in force.


def test_a_version_comes_into_force_with_both_names_on_record(
    conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    version = approved(conn, editor, approver)
    assert row(conn, GAME, version).activated_at is None
    activate(conn, operations, GAME, version, reason=" The summer limits. ")
    assert active(conn) == [version]
    digest, first = row(conn, GAME, version).digest, row(conn, GAME, 1).digest
    assert newest(conn, EntryType.PAYTABLE_ACTIVATED) == (
        operations.actor,
        approver.actor,
        "The summer limits.",
        {"game": GAME, "state": "enabled", "version": 1, "digest": first},
        {"game": GAME, "state": "enabled", "version": version, "digest": digest},
    )
    assert row(conn, GAME, version).activated_at is not None


def test_an_earlier_version_is_returned_to(
    conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    first = approved(conn, editor, approver)
    second = approved(conn, editor, approver)
    for version in (first, second, first, 1):
        activate(conn, operations, GAME, version, reason="There and back.")
        assert active(conn) == [version]


def test_who_approved_a_version_does_not_put_it_in_force(conn: Connection, editor: Person) -> None:
    both = person(conn, Role.APPROVER, Role.OPERATIONS)
    version = approved(conn, editor, both)
    at = clock(conn) + timedelta(days=1)
    for when in (None, at):
        call = partial(activate, conn, both, GAME, version, reason="Mine.", at=when)
        assert code(call) is Code.SAME_PERSON
    assert active(conn) == [1]
    assert scheduled(conn, GAME) == []


def test_only_operations_put_in_force_schedule_call_off_and_retire(
    conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    version = approved(conn, editor, approver)
    at = clock(conn) + timedelta(days=1)
    gone, other = person(conn, Role.OPERATIONS), person(conn, Role.OPERATIONS)
    revoke(conn, gone.name, SAID)
    set_roles(conn, other.name, [Role.EDITOR], SAID)
    activate(
        conn,
        operations,
        OTHER,
        approved(conn, editor, approver, revised(other_text()), game=OTHER),
        reason="x",
    )
    activate(conn, operations, OTHER, 1, reason="On another day.", at=at)
    for by in (editor, person(conn, Role.APPROVER), person(conn, Role.AUDITOR), gone, other):
        for call in (
            partial(activate, conn, by, GAME, version, reason="No."),
            partial(activate, conn, by, GAME, version, reason="No.", at=at),
            partial(retire, conn, by, GAME, version, reason="No."),
            partial(unschedule, conn, by, OTHER, reason="No."),
        ):
            assert code(call) is Code.FORBIDDEN
    assert (active(conn), row(conn, GAME, version).state) == ([1], VersionState.APPROVED)
    assert len(scheduled(conn, OTHER)) == 1


def other_text() -> str:
    return (shipped("paytables") / f"{OTHER}.toml").read_text()


def test_each_step_needs_a_reason(
    conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    version = approved(conn, editor, approver)
    for reason in ("", " \n", "x" * 501, "a\0"):
        for call in (
            partial(activate, conn, operations, GAME, version, reason=reason),
            partial(retire, conn, operations, GAME, version, reason=reason),
            partial(unschedule, conn, operations, GAME, reason=reason),
        ):
            assert code(call) is Code.INVALID


def test_what_is_in_force_or_not_there_cannot_be_put_in_force(conn: Connection, operations: Person) -> None:
    assert code(partial(activate, conn, operations, GAME, 1, reason="Again.")) is Code.WRONG_STATE
    assert code(partial(activate, conn, operations, GAME, 9_999, reason="?")) is Code.NOT_FOUND
    assert code(partial(activate, conn, operations, "a\0", 1, reason="?")) is Code.NOT_FOUND


def test_the_database_itself_knows_who_may_put_in_force(
    conn: Connection, editor: Person, operations: Person
) -> None:
    both = person(conn, Role.APPROVER, Role.OPERATIONS)
    version = approved(conn, editor, both)

    def put(by: Person, actor: str, authoriser: str | None) -> str:
        entry = Entry(
            type=EntryType.PAYTABLE_ACTIVATED, occurred_at=clock(conn), actor=actor, authoriser=authoriser
        )
        found = conn.execute(
            "SELECT paytable_activate(%s, %s, %s, %s)", [GAME, version, by.staff_id, entry.text()]
        ).fetchone()
        assert found is not None
        return str(found[0])

    assert put(both, both.actor, both.actor) == "same_person"
    assert put(both, operations.actor, both.actor) == "same_person"
    assert put(editor, editor.actor, both.actor) == "forbidden"
    for actor, authoriser in ((both.actor, both.actor), (operations.actor, None), ("system:x", both.actor)):
        with pytest.raises(pg.CheckViolation, match="names somebody else"):
            put(operations, actor, authoriser)
    assert active(conn) == [1]


# Rounds.


def test_an_open_round_is_settled_on_its_own_version_and_the_next_begins_on_the_new_one(
    house: AppHouse,
    conn: Connection,
    editor: Person,
    approver: Person,
    operations: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deal_next(monkeypatch, "2c 2d 2h", "As Kd Qc")
    player, waiting_player = house.player(), house.player()
    opened = player.open(100, 50).json()
    shown = waiting_player.next_commitment()
    version = approved(conn, editor, approver, revised().replace("prial = 40", "prial = 20"))
    activate(conn, operations, GAME, version, reason="The Pair Bonus paid too much.")
    settled = player.decide(opened["round_id"], "play").json()
    later = player.decide(player.open(100, 50).json()["round_id"], "play").json()
    assert settled["paytable"] == opened["paytable"] != later["paytable"]
    assert later["paytable"]["version"] == version
    assert [played["wagers"][-1]["payout_minor"] for played in (settled, later)] == [50 * 41, 50 * 21]
    # A commitment under the rules before is revealed, and nothing is dealt from it.
    assert waiting_player.open(100).json()["paytable"]["version"] == version
    assert waiting_player.proof(shown["round_id"]).json()["state"] == "expired"
    with house.connect() as owner:
        assert broken_laws(owner) == {}


def test_a_version_is_offered_only_where_it_is_approved_for(
    house: AppHouse, conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    version = approved(conn, editor, approver, jurisdictions=("gb", "mga"), certificate="TL-1")
    before = house.player()
    waiting = before.open(100).json()
    activate(conn, operations, GAME, version, reason="For two countries.")
    british, other = house.player(jurisdiction="gb"), house.player(jurisdiction="nj")
    assert british.next_commitment() is not None
    assert other.next_commitment() is None
    assert british.open(100).json()["paytable"]["version"] == version
    refused = other.open(100)
    assert code_of(refused) == "game_unavailable"
    assert "not approved for New Jersey" in refused.json()["detail"]
    assert list(british.get("/v1/session").json()["limits"]) == [GAME]
    assert other.get("/v1/session").json()["limits"] == {}
    assert before.decide(waiting["round_id"], "play").status_code == 200
    assert before.next_commitment() is None
    assert code_of(before.open(100)) == "game_unavailable"


# At a time to come.


def test_what_is_scheduled_comes_into_force_once_whoever_looks(
    house: AppHouse, conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    version = approved(conn, editor, approver)
    at = clock(conn) + SOON
    activate(conn, operations, GAME, version, reason="At night.", at=at)
    assert attend(house.service.database.connection) == 0
    assert active(conn) == [1]
    found = row(conn, GAME, version)
    assert (found.state, found.scheduled_at, found.scheduled_by) == ("scheduled", at, operations.name)
    time.sleep(SOON.total_seconds() + 0.05)
    done = together([partial(attend, house.service.database.connection)] * 4)
    assert sorted(done) == [0, 0, 0, 1]
    assert active(conn) == [version]
    assert newest(conn, EntryType.PAYTABLE_ACTIVATED)[:3] == (operations.actor, approver.actor, "At night.")
    assert attend(house.service.database.connection) == 0
    assert scheduled(conn, GAME) == []


@pytest.mark.parametrize(
    "leave",
    [
        lambda conn, scheduler, approver: revoke(conn, scheduler.name, SAID),
        lambda conn, scheduler, approver: set_roles(conn, scheduler.name, [Role.AUDITOR], SAID),
        lambda conn, scheduler, approver: revoke(conn, approver.name, SAID),
    ],
    ids=["who scheduled it has retired", "who scheduled it lost the role", "who approved it has retired"],
)
def test_what_somebody_scheduled_or_approved_who_has_left_is_called_off_on_record(
    house: AppHouse, conn: Connection, editor: Person, leave: Callable[..., Any]
) -> None:
    """Nothing comes by itself of those who have left; somebody of operations may still put the version in force."""
    scheduler, leaving = person(conn, Role.OPERATIONS), person(conn, Role.APPROVER)
    version = approved(conn, editor, leaving)
    activate(conn, scheduler, GAME, version, reason="At night.", at=clock(conn) + SOON)
    leave(conn, scheduler, leaving)
    assert due(house) == 1
    assert (active(conn), scheduled(conn, GAME)) == ([1], [])
    actor, authoriser, reason, before, after = newest(conn, EntryType.PAYTABLE_UNSCHEDULED)
    assert (actor, authoriser) == ("system:jobs", None)
    assert "not of operations any more" in reason
    assert (before["version"], after["state"]) == (version, "approved")
    assert due(house) == 0
    activate(conn, person(conn, Role.OPERATIONS), GAME, version, reason="It is wanted still.")
    assert active(conn) == [version]


def test_what_is_scheduled_waits_for_a_worker_however_long(
    house: AppHouse, conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    """A worker that died over it left nothing half done, and nothing of it is in a worker's memory."""
    version = approved(conn, editor, approver)
    activate(conn, operations, GAME, version, reason="At night.", at=clock(conn) + SOON)
    time.sleep(SOON.total_seconds() + 0.05)
    with pytest.MonkeyPatch.context() as patched:

        def dies(*_: object) -> None:
            raise RuntimeError

        patched.setattr(activations, "_in_force", dies)
        with pytest.raises(RuntimeError):
            attend(house.service.database.connection)
    assert active(conn) == [1]
    house.service.database.close()
    assert attend(house.service.database.connection) == 1
    assert active(conn) == [version]


def test_players_are_told_of_what_is_scheduled(
    house: AppHouse, conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    version = approved(conn, editor, approver)
    player = house.player()
    assert player.get(f"/v1/games/{GAME}").json()["change"]["next"] is None
    at = clock(conn) + timedelta(days=2)
    activate(conn, operations, GAME, version, reason="In two days.", at=at)
    told = player.get(f"/v1/games/{GAME}").json()
    assert told["paytable"]["version"] == 1
    assert (told["change"]["next"]["at"], told["change"]["next"]["version"]) == (rfc3339(at), version)
    assert f"Version {version}" in told["change"]["next"]["notice"]
    unschedule(conn, operations, GAME, reason="Not yet.")
    assert player.get(f"/v1/games/{GAME}").json()["change"]["next"] is None


def test_what_is_scheduled_is_called_off_on_record(
    house: AppHouse, conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    version = approved(conn, editor, approver)
    at = clock(conn) + SOON
    activate(conn, operations, GAME, version, reason="At night.", at=at)
    assert newest(conn, EntryType.PAYTABLE_SCHEDULED)[4]["activates_at"] == rfc3339(at)
    unschedule(conn, person(conn, Role.OPERATIONS), GAME, reason="Not at night.")
    assert newest(conn, EntryType.PAYTABLE_UNSCHEDULED)[2] == "Not at night."
    assert due(house) == 0
    assert active(conn) == [1]
    assert code(partial(unschedule, conn, operations, GAME, reason="Again.")) is Code.WRONG_STATE


def test_one_version_of_a_game_is_scheduled_at_most(
    conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    first, second = approved(conn, editor, approver), approved(conn, editor, approver)
    at = clock(conn) + timedelta(days=1)
    activate(conn, operations, GAME, first, reason="Tomorrow.", at=at)
    again = partial(activate, conn, operations, GAME, second, reason="Tomorrow.", at=at)
    assert code(again) is Code.WRONG_STATE
    activate(conn, operations, GAME, second, reason="Today already.")
    assert (active(conn), [row.version for row in scheduled(conn, GAME)]) == ([second], [first])
    activate(conn, operations, GAME, first, reason="After all.")
    assert (active(conn), scheduled(conn, GAME)) == ([first], [])


@pytest.mark.parametrize(
    "when",
    [
        lambda now: now,
        lambda now: now - timedelta(seconds=1),
        lambda now: now + AHEAD_MAX + timedelta(minutes=1),
        lambda now: (now + timedelta(days=1)).replace(tzinfo=None),
    ],
)
def test_nothing_is_scheduled_for_a_time_that_is_not_ahead(
    conn: Connection,
    editor: Person,
    approver: Person,
    operations: Person,
    when: Callable[[datetime], datetime],
) -> None:
    version = approved(conn, editor, approver)
    call = partial(activate, conn, operations, GAME, version, reason="When?", at=when(clock(conn)))
    assert code(call) is Code.INVALID


# Retired for good.


def test_a_retired_version_never_comes_into_force_again(
    conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    version = approved(conn, editor, approver)
    retire(conn, operations, GAME, version, reason="It was a mistake.")
    assert row(conn, GAME, version).state is VersionState.RETIRED
    at = clock(conn) + timedelta(days=1)
    for when in (None, at):
        assert code(partial(activate, conn, operations, GAME, version, reason="?", at=when)) is (
            Code.WRONG_STATE
        )
    assert code(partial(retire, conn, operations, GAME, version, reason="Again.")) is Code.WRONG_STATE
    told = newest(conn, EntryType.PAYTABLE_RETIRED)
    assert (told[3]["state"], told[4]["state"]) == ("approved", "retired")


def test_what_is_in_force_or_scheduled_is_not_retired(
    conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    version = approved(conn, editor, approver)
    activate(conn, operations, GAME, version, reason="x", at=clock(conn) + timedelta(days=1))
    assert code(partial(retire, conn, operations, GAME, version, reason="?")) is Code.WRONG_STATE
    assert code(partial(retire, conn, operations, GAME, 1, reason="?")) is Code.WRONG_STATE
    assert code(partial(retire, conn, operations, GAME, 9_999, reason="?")) is Code.NOT_FOUND


# What is told of versions.


def test_a_version_has_its_par_sheet_stored_or_made(
    conn: Connection, editor: Person, approver: Person
) -> None:
    text = revised()
    version = approved(conn, editor, approver, text)
    assert par_sheet_of(conn, GAME, version) == json.loads(
        json.dumps(par_sheet(Paytable.parse(text, game=GAME)))
    )
    assert par_sheet_of(conn, GAME, 1) == par_sheet(Paytable.parse(ORIGINAL, game=GAME))
    assert code(partial(par_sheet_of, conn, GAME, 9_999)) is Code.NOT_FOUND


def test_the_history_of_a_game_is_what_the_log_says_of_it(
    conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    version = approved(conn, editor, approver)
    activate(conn, operations, GAME, version, reason="Now.")
    create_draft(conn, editor, OTHER)
    told = history(conn, GAME, limit=4)
    assert [entry["type"] for entry in told] == [
        "paytable.activated",
        "paytable.approved",
        "paytable.submitted",
        "paytable.draft_created",
    ]
    assert (told[0]["actor"], told[0]["authoriser"]) == (operations.actor, approver.actor)
    assert history(conn, GAME, after=told[1]["entry_id"], limit=1) == [told[2]]
    assert history(conn, OTHER, limit=1)[0]["type"] == "paytable.draft_created"
    assert history(conn, "a\0") == []


def test_a_game_that_never_had_a_file_comes_into_being(
    house: AppHouse, conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    game = "brag-deluxe"
    text = revised(ORIGINAL.replace(f'game = "{GAME}"', f'game = "{game}"'))
    assert approved(conn, editor, approver, text, game=game) == 1
    player = house.operator.player_of_any_game()
    assert code_of(player.get(f"/v1/games/{game}")) == "not_found"
    activate(conn, operations, game, 1, reason="A new game.")
    assert player.get(f"/v1/games/{game}").json()["state"] == "enabled"
    assert house.player(game=game).open(100).status_code == 201


# Files, once there is somebody who approves.


def file_of(directory: Path, text: str, game: str = GAME) -> Path:
    (directory / f"{game}.toml").write_text(text)
    return directory / f"{game}.toml"


def test_files_change_nothing_while_there_is_an_approver(
    house: AppHouse, conn: Connection, approver: Person, tmp_path: Path
) -> None:
    before = list_versions(conn, GAME)
    for text in (revised(), "no paytable", ORIGINAL.replace("prial = 40", "prial = 4000")):
        file = file_of(tmp_path, text)
        published = publish(conn, file, actor="system:tests")
        assert (published.version, published.changed, published.proposed) == (1, False, file)
    assert list_versions(conn, GAME) == before
    assert house.player().get(f"/v1/games/{GAME}").json()["state"] == "enabled"
    assert publish(conn, file_of(tmp_path, ORIGINAL), actor="system:tests") == Published(
        GAME, 1, (), changed=False
    )


def test_what_operations_put_in_force_without_an_approval_was_in_force_before(
    house: AppHouse, conn: Connection, editor: Person, approver: Person, operations: Person
) -> None:
    """A version of a file comes into force with its publication, and none is made while there is an approver."""
    activate(conn, operations, GAME, approved(conn, editor, approver), reason="A new one.")
    activate(conn, operations, GAME, 1, reason="Back to the file's.")
    assert newest(conn, EntryType.PAYTABLE_ACTIVATED)[:2] == (operations.actor, None)
    rows = conn.execute(
        "SELECT v.game, v.version, EXISTS (SELECT FROM game_entry AS e WHERE e.game = v.game"
        " AND e.type = 'paytable.activated' AND e.actor LIKE 'system:%' AND e.after ->> 'digest' = v.digest)"
        " FROM paytable_version AS v WHERE v.approved_by IS NULL"
    ).fetchall()
    assert rows
    assert [row for row in rows if not row[2]] == []


def test_a_file_that_is_gone_is_nothing_to_tell_of_while_there_is_an_approver(
    conn: Connection, approver: Person, tmp_path: Path
) -> None:
    file_of(tmp_path, ORIGINAL)
    found = {one.game: one for one in publish_directory(conn, tmp_path, actor="system:tests")}
    assert found[OTHER] == Published(OTHER, 1, (), changed=False)


def test_a_new_game_s_file_is_only_proposed_while_there_is_an_approver(
    conn: Connection, approver: Person, tmp_path: Path
) -> None:
    game = "from-a-file"
    file = file_of(tmp_path, ORIGINAL.replace(f'"{GAME}"', f'"{game}"'), game)
    assert publish(conn, file, actor="system:tests") == Published(game, None, (), False, file)
    assert list_versions(conn, game) == []


def test_without_an_approver_files_are_published_as_ever_but_for_what_is_retired(tmp_path: Path) -> None:
    with app_house_in(tmp_path / "house") as house, house.connect() as conn:
        by = person(conn, Role.OPERATIONS, Role.EDITOR)
        gone = person(conn, Role.APPROVER)
        text = revised()
        assert publish(conn, file_of(tmp_path, text), actor="system:tests").proposed is not None
        revoke(conn, gone.name, SAID)
        assert publish(conn, file_of(tmp_path, text), actor="system:tests") == Published(GAME, 2, (), True)
        assert version_text(conn, GAME, 2) == text
        activate(conn, by, GAME, 1, reason="Back.")
        activate(conn, by, GAME, 2, reason="Later.", at=clock(conn) + timedelta(days=1))
        # What a file puts in force is not waited for any more.
        assert publish(conn, file_of(tmp_path, text), actor="system:tests").changed
        assert scheduled(conn, GAME) == []
        activate(conn, by, GAME, 1, reason="Back.")
        retire(conn, by, GAME, 2, reason="A mistake.")
        left = publish(conn, file_of(tmp_path, text), actor="system:tests")
        assert (left.version, left.changed) == (1, False)
        assert "retired" in left.problems[0]
        assert publish(conn, file_of(tmp_path, "broken"), actor="system:tests").version is None
        activate(conn, by, GAME, 1, reason="Open it again.")
        assert active(conn) == [1]


def test_the_database_itself_lets_files_change_nothing_while_there_is_an_approver(
    conn: Connection, approver: Person
) -> None:
    before = list_versions(conn, GAME)
    entry = Entry(type=EntryType.PAYTABLE_ACTIVATED, occurred_at=clock(conn), actor="system:x").text()
    paytable = Paytable.parse(revised(), game=GAME)
    row = conn.execute(
        "SELECT version, changed FROM paytable_publish(gen_random_uuid(), %s, %s, %s, '[]', %s, %s)",
        [GAME, paytable.digest, paytable.canonical_bytes().decode(), entry, revised()],
    ).fetchone()
    assert row == (None, False)
    assert conn.execute("SELECT game_disable(%s, 'x', %s)", [GAME, entry]).fetchone() == (False,)
    assert list_versions(conn, GAME) == before
