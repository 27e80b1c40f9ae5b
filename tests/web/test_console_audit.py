"""The console's audit pages: entries and their proofs, checkpoints, and a verification that goes on by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from uuid import UUID

import pytest

from casino_brag.audit.notes import SigningKey
from casino_brag.audit.sealer import seal
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.staff.people import Role
from casino_brag.web.console.pages import audit
from tests.colleagues import Colleague, colleague
from tests.inprocess import AppHouse, app_house_in
from tests.web.pages import faults

PATHS = ("/audit", "/audit/verify", "/audit/checkpoints", "/rng")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("console-audit")) as started:
        for _ in range(3):
            started.operator.player().played("fold")
        key = SigningKey.generate("log.example.com/console")
        while seal(started.service.database.connection, [key]):
            pass
        yield started


@pytest.fixture(scope="module")
def auditor(house: AppHouse) -> Colleague:
    return colleague(house, Role.AUDITOR).signed_in()


def newest(house: AppHouse, kind: str) -> tuple[str, str]:
    """The identifier of the newest entry of a type, and its round's."""
    with house.connect() as conn:
        row = conn.execute(
            "SELECT entry_id::text, round_id::text FROM audit_entry WHERE type = %s"
            " ORDER BY occurred_at DESC LIMIT 1",
            [kind],
        ).fetchone()
    assert row is not None
    return row[0], row[1]


@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_sound(auditor: Colleague, path: str) -> None:
    answer = auditor.get(path)
    assert answer.status_code == 200
    assert faults(answer.text) == []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.AUDITOR])
def test_it_is_for_auditors(house: AppHouse, path: str, role: Role) -> None:
    assert colleague(house, role).signed_in().get(path).status_code == 403


def test_entries_are_found_by_what_they_are_about(house: AppHouse, auditor: Colleague) -> None:
    entry_id, round_id = newest(house, "round.settled")
    found = auditor.get(f"/audit?round_id={round_id}").text
    assert entry_id in found
    assert "round.opened" in found
    assert "operator.added</code>" not in found
    only = auditor.get(f"/audit?round_id={round_id}&type=round.settled").text
    assert re.findall(r'href="/console/audit/entries/([0-9a-f-]{36})"', only) == [entry_id]


def test_visits_of_staff_are_among_the_entries_where_they_are_wanted(auditor: Colleague) -> None:
    visit = "<code>staff.called</code>"
    assert visit not in auditor.get("/audit").text
    assert visit in auditor.get("/audit?calls=yes").text
    assert visit in auditor.get("/audit?type=staff.called").text
    assert ",staff.called," not in auditor.get("/audit/entries.csv").text
    assert ",staff.called," in auditor.get("/audit/entries.csv?calls=yes").text


def test_a_filter_that_makes_no_sense_is_told_at_its_field(auditor: Colleague) -> None:
    page = auditor.get("/audit?round_id=twelve&since=yesterday").text
    assert 'value="twelve"' in page
    assert 'id="error-round_id"' in page
    assert 'id="error-since"' in page


def test_older_entries_are_a_link_away(
    house: AppHouse, auditor: Colleague, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "SHOWN", 4)
    seen: list[str] = []
    path = "/audit?type=commitment.made"
    while path:
        page = auditor.get(path).text
        seen += re.findall(r'href="/console/audit/entries/([0-9a-f-]{36})"', page)
        further = re.search(r'rel="next" href="/console([^"]+)"', page)
        path = further[1].replace("&amp;", "&") if further else ""
    with house.connect() as conn:
        kept = conn.execute("SELECT count(*) FROM audit_entry WHERE type = 'commitment.made'").fetchone()
    assert kept == (len(set(seen)),)
    assert len(seen) == len(set(seen)) > 4


def test_an_entry_is_shown_whole_and_its_proof_is_a_file(house: AppHouse, auditor: Colleague) -> None:
    entry_id, round_id = newest(house, "round.settled")
    page = auditor.get(f"/audit/entries/{entry_id}").text
    assert faults(page) == []
    assert round_id in page
    assert "total_payout_minor" in page
    proof = auditor.get(f"/audit/entries/{entry_id}/proof.json")
    assert "attachment" in proof.headers["Content-Disposition"]
    assert json.loads(proof.text)["entries"][0]["inclusion_proof"]


def test_an_entry_that_is_not_there_is_said_not_to_be(auditor: Colleague) -> None:
    for path in ("", "/proof.json"):
        answer = auditor.get(f"/audit/entries/00000000-0000-7000-8000-000000000000{path}")
        assert answer.status_code == (404 if not path else 409)


def test_a_checkpoint_is_the_note_that_was_signed(house: AppHouse, auditor: Colleague) -> None:
    with house.connect() as conn:
        row = conn.execute(
            "SELECT tree_size, note FROM audit_checkpoint ORDER BY tree_size DESC LIMIT 1"
        ).fetchone()
    assert row is not None
    assert f"/console/audit/checkpoints/{row[0]}.txt" in auditor.get("/audit/checkpoints").text
    assert auditor.get(f"/audit/checkpoints/{row[0]}.txt").text == row[1]
    assert auditor.get(f"/audit/checkpoints/{2**70}.txt").status_code == 404


def test_the_table_has_every_entry_that_was_asked_for(house: AppHouse, auditor: Colleague) -> None:
    _, round_id = newest(house, "round.settled")
    lines = auditor.get(f"/audit/entries.csv?round_id={round_id}").text.splitlines()
    with house.connect() as conn:
        kept = conn.execute("SELECT count(*) FROM audit_entry WHERE round_id = %s", [round_id]).fetchone()
    assert kept == (len(lines) - 1,)


def parts(auditor: Colleague, first_leaf: str = "0") -> Iterator[str]:
    """The answers of a verification, each asked for as the page before it asks for it."""
    page = auditor.post("/audit/verify", first_leaf=first_leaf).text
    while True:
        yield page
        fields = dict(re.findall(r'<input type="hidden" name="(first_leaf|begun)" value="(\d+)">', page))
        if not fields:
            return
        page = auditor.post("/audit/verify/further", of="/audit/verify", **fields).text


def test_a_verification_goes_on_until_all_was_looked_at(
    auditor: Colleague, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "PART", 10)
    pages = list(parts(auditor))
    assert len(pages) > 2
    assert all("All of it holds" not in page for page in pages[:-1])
    assert "All of it holds" in pages[-1]


def set_actor(house: AppHouse, entry_id: UUID, actor: str) -> None:
    """What only a superuser of the database can do, and a verification has to see."""
    with house.connect(DatabaseRole.SUPERUSER) as conn, conn.transaction():
        conn.execute("ALTER TABLE audit_entry DISABLE TRIGGER audit_entry_is_append_only")
        conn.execute("UPDATE audit_entry SET actor = %s WHERE entry_id = %s", [actor, entry_id])
        conn.execute("ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_is_append_only")


def test_a_verification_stops_at_what_is_wrong_and_names_it(
    house: AppHouse, auditor: Colleague, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "PART", 10)
    with house.connect() as conn:
        row = conn.execute(
            "SELECT e.entry_id, e.actor FROM audit_leaf AS l JOIN audit_entry AS e USING (entry_id)"
            " WHERE l.leaf_index = 15"
        ).fetchone()
    assert row is not None
    entry_id, actor = row
    set_actor(house, entry_id, "staff:nobody")
    try:
        pages = list(parts(auditor))
    finally:
        set_actor(house, entry_id, actor)
    assert "Columns altered" in pages[1]
    assert str(entry_id) in pages[1]
    assert 'hx-trigger="load' not in pages[1], "what is wrong is looked at before it goes on"
    assert "All of it holds" not in pages[-1]


@pytest.mark.parametrize("leaf", ["-1", "first", "", "99999999999999999999", "123456789"])
def test_a_leaf_that_is_none_is_told_at_its_field(auditor: Colleague, leaf: str) -> None:
    answer = auditor.post("/audit/verify", first_leaf=leaf)
    assert answer.status_code == 422
    assert 'id="error-first_leaf"' in answer.text
    assert f'value="{leaf}"' in answer.text


def test_the_program_is_checked_on_record(house: AppHouse, auditor: Colleague) -> None:
    answer = auditor.post("/rng")
    assert answer.status_code == 200
    assert faults(answer.text) == []
    assert "as they were shipped and published" in answer.text
    with house.connect() as conn:
        row = conn.execute(
            "SELECT actor FROM audit_entry WHERE type = 'integrity.checked' ORDER BY occurred_at DESC LIMIT 1"
        ).fetchone()
    assert row == (f"staff:{auditor.name}",)
