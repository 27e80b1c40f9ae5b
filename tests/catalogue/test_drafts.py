"""Drafts of paytables: nobody approves what they had a hand in, by whatever way, and nobody's work is overwritten."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg
from psycopg.types.json import Jsonb

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue import guards
from casino_brag.catalogue.drafts import (
    Draft,
    DraftState,
    approve_draft,
    create_draft,
    list_drafts,
    read_draft,
    reject_draft,
    save_draft,
    submit_draft,
)
from casino_brag.catalogue.guards import check_text
from casino_brag.catalogue.jurisdictions import jurisdiction
from casino_brag.catalogue.paytables import published_figures
from casino_brag.catalogue.versions import list_versions, read_version, version_text
from casino_brag.db.clock import clock
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.errors import Code, ServiceError, SetUpError
from casino_brag.game.paytable import Paytable
from casino_brag.odds.par_sheet import par_sheet
from casino_brag.staff.people import Person, Role, add_staff, presented, revoke, set_roles
from tests.catalogue.persons import GAME, GIVEN, ONE, ORIGINAL, SAID, approved, person, revised, submitted
from tests.inprocess import AppHouse, app_house_in
from tests.running import together

Connection = psycopg.Connection[Any]
SECONDS = 20


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("drafts")) as house:
        yield house


@pytest.fixture
def conn(house: AppHouse) -> Iterator[Connection]:
    with house.connect(DatabaseRole.APP) as conn:
        yield conn


@pytest.fixture
def both(conn: Connection) -> Person:
    """Somebody who may edit and approve."""
    return person(conn, Role.EDITOR, Role.APPROVER)


def refusal(call: Callable[[], object]) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        call()
    return refused.value


def code(call: Callable[[], object]) -> Code:
    return refusal(call).code


def entries(conn: Connection, game: str, number: int) -> list[dict[str, Any]]:
    rows = conn.execute(
        "SELECT type, actor, authoriser, reason, before, after FROM audit_entry"
        " WHERE after ->> 'game' = %s AND (after ->> 'draft')::int = %s ORDER BY entry_id",
        [game, number],
    ).fetchall()
    names = ("type", "actor", "authoriser", "reason", "before", "after")
    return [dict(zip(names, row, strict=True)) for row in rows]


def approves(conn: Connection, by: Person, draft: Draft, ceiling: Fraction = ONE) -> Callable[[], int]:
    digest = draft.digest or ""
    return partial(approve_draft, conn, by, draft.game, draft.number, digest=digest, ceiling=ceiling)


# The way that is meant.


def test_a_draft_becomes_a_version_by_two_persons(conn: Connection, editor: Person, approver: Person) -> None:
    text = revised()
    draft = create_draft(conn, editor, GAME, text=text)
    assert (draft.state, draft.revision, draft.created_by) == (DraftState.DRAFT, 1, editor.name)
    waiting = submit_draft(
        conn,
        editor,
        GAME,
        draft.number,
        revision=1,
        jurisdictions=["none", "gb"],
        certificate="TL-2026-17",
        note=" For Great Britain. ",
        ceiling=ONE,
    )
    paytable = Paytable.parse(text, game=GAME)
    assert (waiting.state, waiting.digest, waiting.submitted_by) == (
        DraftState.SUBMITTED,
        paytable.digest,
        editor.name,
    )
    assert waiting.document == paytable.canonical_bytes().decode()
    before = max(row.version for row in list_versions(conn, GAME))
    assert approves(conn, approver, waiting)() == before + 1
    done = read_draft(conn, GAME, draft.number)
    assert (done.state, done.version, done.decided_by) == (DraftState.APPROVED, before + 1, approver.name)
    (row,) = (row for row in list_versions(conn, GAME) if row.version == before + 1)
    assert (row.state, row.approved_by, row.certificate, row.note, row.draft) == (
        "approved",
        approver.name,
        "TL-2026-17",
        "For Great Britain.",
        draft.number,
    )
    assert row.jurisdictions == ["gb", "none"]
    assert version_text(conn, GAME, row.version) == text


def test_each_step_is_on_record(conn: Connection, editor: Person, approver: Person) -> None:
    draft = create_draft(conn, editor, GAME, text=ORIGINAL)
    saved = save_draft(conn, editor, GAME, draft.number, revised(), revision=1)
    waiting = submit_draft(conn, editor, GAME, draft.number, revision=saved.revision, **GIVEN)
    version = approves(conn, approver, waiting)()
    told = entries(conn, GAME, draft.number)
    assert [entry["type"] for entry in told] == [
        "paytable.draft_created",
        "paytable.draft_saved",
        "paytable.submitted",
        "paytable.approved",
    ]
    assert [entry["actor"] for entry in told] == [editor.actor] * 3 + [approver.actor]
    assert told[1]["before"]["text_sha256"] != told[1]["after"]["text_sha256"]
    assert (told[2]["reason"], told[2]["after"]["digest"]) == (GIVEN["note"], waiting.digest)
    assert (told[3]["before"]["state"], told[3]["after"]["version"]) == ("submitted", version)


def test_a_version_keeps_the_par_sheet_it_was_approved_with(
    conn: Connection, editor: Person, approver: Person
) -> None:
    text = revised()
    version = approved(conn, editor, approver, text)
    row = conn.execute(
        "SELECT s.document::jsonb, v.figures FROM paytable_par_sheet AS s JOIN paytable_version AS v USING (version_id)"
        " WHERE (v.game, v.version) = (%s, %s)",
        [GAME, version],
    ).fetchone()
    paytable = Paytable.parse(text, game=GAME)
    assert row == (par_sheet(paytable), published_figures(paytable))


# What a draft begins with.


def test_a_draft_begins_with_the_file_of_the_active_version(conn: Connection, editor: Person) -> None:
    draft = create_draft(conn, editor, GAME)
    assert (draft.text, draft.started_from) == (ORIGINAL, 1)


def test_a_draft_begins_with_a_version_or_with_another_draft(
    conn: Connection, editor: Person, approver: Person
) -> None:
    text = revised()
    version = approved(conn, editor, approver, text)
    draft = create_draft(conn, editor, GAME, from_version=version)
    assert (draft.text, draft.started_from) == (text, version)
    save_draft(conn, editor, GAME, draft.number, "unfinished", revision=1)
    again = create_draft(conn, editor, GAME, from_draft=draft.number)
    assert (again.text, again.started_from, again.number) == ("unfinished", version, draft.number + 1)


@pytest.mark.parametrize(
    ("game", "given", "expected", "key"),
    [
        ("a_b", {"text": "x"}, Code.INVALID, "game"),
        ("x" * 61, {"text": "x"}, Code.INVALID, "game"),
        ("a\0", {"text": "x"}, Code.INVALID, "game"),
        ("new-game", {}, Code.INVALID, "text"),
        (GAME, {"text": "x", "from_version": 1}, Code.INVALID, "text"),
        (GAME, {"from_draft": 1, "from_version": 1}, Code.INVALID, "text"),
        (GAME, {"text": "", "from_draft": 1}, Code.INVALID, "text"),
        (GAME, {"text": "  \n"}, Code.INVALID, "text"),
        (GAME, {"text": "a\0b"}, Code.INVALID, "text"),
        (GAME, {"text": "\ud800"}, Code.INVALID, "text"),
        (GAME, {"text": "é" * 32_769}, Code.INVALID, "text"),
        (GAME, {"from_version": 9_999}, Code.NOT_FOUND, None),
        (GAME, {"from_draft": 9_999}, Code.NOT_FOUND, None),
    ],
)
def test_what_no_draft_can_begin_with_is_refused(
    conn: Connection, editor: Person, game: str, given: dict[str, Any], expected: Code, key: str | None
) -> None:
    refused = refusal(lambda: create_draft(conn, editor, game, **given))
    assert refused.code is expected
    assert list(refused.errors or {}) == ([] if key is None else [key])


def test_lines_end_as_on_unix_whatever_a_browser_sends(conn: Connection, editor: Person) -> None:
    draft = create_draft(conn, editor, GAME, text=ORIGINAL.replace("\n", "\r\n"))
    assert draft.text == ORIGINAL


def test_an_unfinished_text_is_kept_and_its_problems_told(conn: Connection, editor: Person) -> None:
    draft = create_draft(conn, editor, GAME, text='title = "3 Card Brag"\nante = ')
    assert draft.text == 'title = "3 Card Brag"\nante = '
    checked = check_text(GAME, draft.text)
    assert checked.paytable is None
    assert checked.problems


def test_drafts_are_listed_newest_first_by_game_and_state(conn: Connection, editor: Person) -> None:
    other = "double-play-brag"
    made = [create_draft(conn, editor, game).draft_id for game in (other, other, GAME, other)]
    waiting = submitted(conn, editor)
    assert [draft.draft_id for draft in list_drafts(conn, limit=3)] == [waiting.draft_id, made[3], made[2]]
    of_other = list_drafts(conn, game=other)
    assert [draft.draft_id for draft in of_other] == [made[3], made[1], made[0]]
    assert list_drafts(conn, game=other, after=made[1], limit=1)[0].draft_id == made[0]
    assert list_drafts(conn, game=other, state=DraftState.SUBMITTED) == []
    assert list_drafts(conn, state=DraftState.SUBMITTED, limit=1)[0].draft_id == waiting.draft_id
    assert list_drafts(conn, game="a\0") == []


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**63, 10**30])
def test_a_number_that_no_draft_or_version_has_finds_none(
    conn: Connection, editor: Person, number: int
) -> None:
    for call in (
        partial(read_draft, conn, GAME, number),
        partial(version_text, conn, GAME, number),
        partial(read_version, conn, GAME, number),
        partial(create_draft, conn, editor, GAME, from_version=number),
        partial(create_draft, conn, editor, GAME, from_draft=number),
    ):
        assert code(call) is Code.NOT_FOUND
    draft = create_draft(conn, editor, GAME)
    save = partial(save_draft, conn, editor, GAME, draft.number, "x", revision=number)
    assert code(save) is Code.PRECONDITION_FAILED


# Nothing is overwritten.


def test_of_two_who_save_the_same_revision_one_wins(
    house: AppHouse, conn: Connection, editor: Person
) -> None:
    draft = create_draft(conn, editor, GAME)
    people = [editor, person(conn, Role.EDITOR), person(conn, Role.EDITOR)]

    def saves(by: Person) -> str:
        with house.connect(DatabaseRole.APP) as own:
            try:
                return save_draft(own, by, GAME, draft.number, f"# {by.name}\n{ORIGINAL}", revision=1).text
            except ServiceError as refused:
                return refused.code

    results = together([partial(saves, by) for by in people])
    assert sorted(result == Code.PRECONDITION_FAILED for result in results) == [False, True, True]
    kept = read_draft(conn, GAME, draft.number)
    assert kept.text in results
    assert kept.revision == 2


def test_what_was_changed_meanwhile_is_not_submitted(conn: Connection, editor: Person) -> None:
    draft = create_draft(conn, editor, GAME, text=revised())
    save_draft(conn, person(conn, Role.EDITOR), GAME, draft.number, revised(), revision=1)
    assert code(lambda: submit_draft(conn, editor, GAME, draft.number, revision=1, **GIVEN)) is (
        Code.PRECONDITION_FAILED
    )


def test_what_was_submitted_is_not_saved_or_submitted_again(conn: Connection, editor: Person) -> None:
    draft = submitted(conn, editor)
    for revision in (draft.revision - 1, draft.revision):
        save = partial(save_draft, conn, editor, GAME, draft.number, revised(), revision=revision)
        assert code(save) is Code.WRONG_STATE
    again = partial(submit_draft, conn, editor, GAME, draft.number, revision=draft.revision, **GIVEN)
    assert code(again) is Code.WRONG_STATE


# What is submitted.


@pytest.mark.parametrize(
    ("text", "given", "keys"),
    [
        ("not = toml =", {}, {"not"}),
        ("[ante", {}, {""}),
        (ORIGINAL.replace('title = "3 Card Brag"', "title = 3"), {}, {"title"}),
        (ORIGINAL, {}, {"text"}),
        (None, {"note": " \n "}, {"note"}),
        (None, {"note": "x" * 501}, {"note"}),
        (None, {"note": "a\0"}, {"note"}),
        (None, {"jurisdictions": []}, {"jurisdictions"}),
        (None, {"jurisdictions": ["atlantis"]}, {"jurisdictions"}),
        (None, {"jurisdictions": ["none", "gb"]}, {"certificate"}),
        (None, {"jurisdictions": ["gb"], "certificate": "  "}, {"certificate"}),
        (None, {"certificate": "x" * 201}, {"certificate"}),
        ("a = ", {"note": "", "jurisdictions": []}, {"", "note", "jurisdictions"}),
    ],
)
def test_all_that_is_wrong_with_a_submission_is_named_by_its_field(
    conn: Connection, editor: Person, text: str | None, given: dict[str, Any], keys: set[str]
) -> None:
    draft = create_draft(conn, editor, GAME, text=text or revised())
    refused = refusal(lambda: submit_draft(conn, editor, GAME, draft.number, revision=1, **GIVEN | given))
    assert refused.code is Code.INVALID
    assert (refused.errors or {}).keys() == keys
    assert read_draft(conn, GAME, draft.number) == draft


def test_content_that_is_a_version_is_not_approved_again(conn: Connection, editor: Person) -> None:
    draft = create_draft(conn, editor, GAME, text="# another comment\n" + ORIGINAL)
    refused = refusal(lambda: submit_draft(conn, editor, GAME, draft.number, revision=1, **GIVEN))
    assert refused.errors == {"text": ["version 1 has this content: put that one in force"]}


def test_of_two_drafts_of_one_content_one_becomes_a_version(
    conn: Connection, editor: Person, approver: Person
) -> None:
    text = revised()
    first, second = submitted(conn, editor, text), submitted(conn, editor, text)
    approves(conn, approver, first)()
    assert code(approves(conn, approver, second)) is Code.WRONG_STATE
    reject_draft(conn, approver, GAME, second.number, reason="It is a version by now.")


def test_a_paytable_above_the_ceiling_is_neither_submitted_nor_approved(
    conn: Connection, editor: Person, approver: Person
) -> None:
    waiting = submitted(conn, editor, ceiling=Fraction(98, 100))
    assert waiting.state is DraftState.SUBMITTED, "97.996 % is below it"
    lower = Fraction(979, 1000)
    refused = refusal(approves(conn, approver, waiting, lower))
    assert (refused.code, list(refused.errors or {})) == (Code.INVALID, ["play.pays"])
    assert refusal(lambda: submitted(conn, editor, ceiling=lower)).code is Code.INVALID
    assert read_draft(conn, GAME, waiting.number).state is DraftState.SUBMITTED


def test_the_guards_of_a_jurisdiction_that_changed_meanwhile_hold_at_the_approval(
    conn: Connection, editor: Person, approver: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = submitted(conn, editor, jurisdictions=("mga",))
    stricter = replace(jurisdiction("mga"), certificate=True)
    with monkeypatch.context() as patched:
        patched.setattr(guards, "jurisdiction", lambda _: stricter)
        assert list(refusal(approves(conn, approver, waiting)).errors or {}) == ["certificate"]
        patched.setattr(guards, "names", lambda: ("gb", "none"))
        assert list(refusal(approves(conn, approver, waiting)).errors or {}) == ["jurisdictions"]
    assert approves(conn, approver, waiting)()


# Who approves.


def test_who_made_a_draft_does_not_approve_it(conn: Connection, editor: Person, both: Person) -> None:
    draft = create_draft(conn, both, GAME, text=revised())
    save_draft(conn, editor, GAME, draft.number, revised(), revision=1)
    waiting = submit_draft(conn, editor, GAME, draft.number, revision=2, **GIVEN)
    assert waiting.editors == [both.name, editor.name]
    assert code(approves(conn, both, waiting)) is Code.SAME_PERSON


def test_who_saved_a_draft_once_does_not_approve_it(conn: Connection, editor: Person, both: Person) -> None:
    draft = create_draft(conn, editor, GAME, text=revised())
    save_draft(conn, both, GAME, draft.number, revised(), revision=1)
    save_draft(conn, editor, GAME, draft.number, revised(), revision=2)
    waiting = submit_draft(conn, editor, GAME, draft.number, revision=3, **GIVEN)
    assert code(approves(conn, both, waiting)) is Code.SAME_PERSON


def test_who_submitted_a_draft_does_not_approve_it(conn: Connection, editor: Person, both: Person) -> None:
    draft = create_draft(conn, editor, GAME, text=revised())
    waiting = submit_draft(conn, both, GAME, draft.number, revision=1, **GIVEN)
    assert code(approves(conn, both, waiting)) is Code.SAME_PERSON


@pytest.mark.parametrize("fate", ["a draft", "a rejected draft", "a text changed on the way"])
def test_who_wrote_a_draft_does_not_approve_what_is_made_of_it(
    conn: Connection, editor: Person, both: Person, approver: Person, fate: str
) -> None:
    origin = create_draft(conn, both, GAME, text=revised())
    if fate == "a rejected draft":
        submit_draft(conn, both, GAME, origin.number, revision=1, **GIVEN)
        reject_draft(conn, approver, GAME, origin.number, reason="Not yet.")
    text = revised() if fate == "a text changed on the way" else None
    copy = create_draft(conn, editor, GAME, text=text, from_draft=origin.number)
    again = create_draft(conn, editor, GAME, from_draft=copy.number)
    assert (copy.created_by, copy.editors) == (editor.name, [editor.name, both.name])
    assert again.editors == [editor.name, both.name]
    waiting = submit_draft(conn, editor, GAME, again.number, revision=1, **GIVEN)
    assert code(approves(conn, both, waiting)) is Code.SAME_PERSON
    assert approved_past_the_program(conn, both, waiting) == "same_person"
    assert approves(conn, approver, waiting)() > 1


def test_who_wrote_a_version_may_approve_what_is_made_of_it(
    conn: Connection, editor: Person, both: Person, approver: Person
) -> None:
    """The version was approved by somebody else already."""
    version = approved(conn, both, approver)
    begun = create_draft(conn, editor, GAME, from_version=version)
    save_draft(conn, editor, GAME, begun.number, revised(), revision=1)
    waiting = submit_draft(conn, editor, GAME, begun.number, revision=2, **GIVEN)
    assert waiting.editors == [editor.name]
    assert approves(conn, both, waiting)() > version


def test_another_spelling_of_a_name_is_no_other_person(conn: Connection, both: Person) -> None:
    waiting = submitted(conn, both)
    for spelling in (both.name.upper(), f" {both.name}", f"{both.name} ", "somebody.else"):
        assert code(approves(conn, replace(both, name=spelling), waiting)) is Code.SAME_PERSON
        with pytest.raises(SetUpError):
            # …nor can anybody be added who is called so.
            add_staff(conn, both.name if spelling == "somebody.else" else spelling, [Role.APPROVER], SAID)


def test_a_token_makes_nobody_another_person(house: AppHouse, conn: Connection) -> None:
    caller = house.staff("editor", "approver")
    whose = presented(conn, caller.token)
    assert whose is not None
    waiting = submitted(conn, whose.person)
    assert code(approves(conn, whose.person, waiting)) is Code.SAME_PERSON
    assert approves(conn, person(conn, Role.APPROVER), waiting)()


def test_who_may_no_more_or_never_could_does_not_approve(conn: Connection, editor: Person) -> None:
    waiting = submitted(conn, editor)
    for role in (Role.EDITOR, Role.AUDITOR, Role.OPERATIONS):
        assert code(approves(conn, person(conn, role), waiting)) is Code.FORBIDDEN
    retired = person(conn, Role.APPROVER)
    revoke(conn, retired.name, SAID)
    assert code(approves(conn, retired, waiting)) is Code.FORBIDDEN
    other = person(conn, Role.APPROVER)
    set_roles(conn, other.name, [Role.AUDITOR], SAID)
    assert code(approves(conn, other, waiting)) is Code.FORBIDDEN
    nobody = Person(UUID(int=1), "nobody", frozenset(Role))
    assert code(approves(conn, nobody, waiting)) is Code.FORBIDDEN


def test_another_digest_than_the_submitted_one_is_not_approved(
    conn: Connection, editor: Person, approver: Person
) -> None:
    waiting = submitted(conn, editor)
    other = submitted(conn, editor)
    for digest in (other.digest or "", "", "0" * 64):
        assert code(approves(conn, approver, replace(waiting, digest=digest))) is Code.PRECONDITION_FAILED
    assert read_draft(conn, GAME, waiting.number).state is DraftState.SUBMITTED


def test_what_is_not_submitted_is_not_approved(conn: Connection, editor: Person, approver: Person) -> None:
    draft = create_draft(conn, editor, GAME, text=revised())
    drafted = replace(draft, digest=Paytable.parse(draft.text, game=GAME).digest)
    assert code(approves(conn, approver, drafted)) is Code.WRONG_STATE
    assert code(approves(conn, approver, replace(drafted, number=9_999))) is Code.NOT_FOUND
    waiting = submitted(conn, editor)
    reject_draft(conn, approver, GAME, waiting.number, reason="No.")
    assert code(approves(conn, approver, waiting)) is Code.WRONG_STATE


def test_of_two_parallel_approvals_one_makes_the_version(
    house: AppHouse, conn: Connection, editor: Person
) -> None:
    for _ in range(3):
        waiting = submitted(conn, editor)
        before = len(list_versions(conn, GAME))
        people = [person(conn, Role.APPROVER) for _ in range(3)]

        def approve(by: Person, waiting: Draft = waiting) -> int | Code:
            with house.connect(DatabaseRole.APP) as own:
                try:
                    return approves(own, by, waiting)()
                except ServiceError as refused:
                    return refused.code

        results = together([partial(approve, by) for by in people])
        assert sorted(result == Code.WRONG_STATE for result in results) == [False, True, True]
        assert len(list_versions(conn, GAME)) == before + 1


@contextmanager
def beside(house: AppHouse, call: Callable[[Connection], object]) -> Iterator[list[object]]:
    """Has something done that waits for a lock, which the block lets go of; what it came to is known afterwards."""
    result: list[object] = []

    def make() -> None:
        with house.connect(DatabaseRole.APP) as own:
            own.execute("SET application_name = 'waits'")
            try:
                result.append(call(own))
            except ServiceError as refused:
                result.append(refused.code)

    thread = threading.Thread(target=make)
    thread.start()
    try:
        with house.connect(DatabaseRole.SUPERUSER) as watching:
            deadline = time.monotonic() + SECONDS
            waits = (
                "SELECT FROM pg_stat_activity WHERE application_name = 'waits' AND wait_event_type = 'Lock'"
            )
            while watching.execute(waits).fetchone() is None:
                assert time.monotonic() < deadline, "it did not wait"
                time.sleep(0.02)
        yield result
    finally:
        thread.join(SECONDS)


@pytest.mark.parametrize("how", ["roles", "retired"])
def test_a_role_that_is_taken_away_meanwhile_is_waited_for(
    house: AppHouse, conn: Connection, editor: Person, approver: Person, how: str
) -> None:
    waiting = submitted(conn, editor)
    with house.connect(DatabaseRole.APP) as other, other.transaction():
        if how == "roles":
            set_roles(other, approver.name, [Role.AUDITOR], SAID)
        else:
            revoke(other, approver.name, SAID)
        held = beside(house, lambda own: approves(own, approver, waiting)())
        result = held.__enter__()
    held.__exit__(None, None, None)
    assert result == [Code.FORBIDDEN]
    assert read_draft(conn, GAME, waiting.number).state is DraftState.SUBMITTED


def test_a_role_is_not_taken_away_while_it_is_used(
    house: AppHouse, conn: Connection, editor: Person, approver: Person
) -> None:
    waiting = submitted(conn, editor)
    with house.connect(DatabaseRole.APP) as other, other.transaction():
        version = approves(other, approver, waiting)()
        held = beside(house, lambda own: set_roles(own, approver.name, [Role.AUDITOR], SAID))
        result = held.__enter__()
    held.__exit__(None, None, None)
    assert result == [True]
    assert read_draft(conn, GAME, waiting.number).version == version


# Who rejects.


def test_an_approver_rejects_and_the_submitter_takes_back(
    conn: Connection, editor: Person, approver: Person, both: Person
) -> None:
    for by, draft in (
        (approver, submitted(conn, editor)),
        (editor, submitted(conn, editor)),
        (both, submitted(conn, both)),
    ):
        reject_draft(conn, by, GAME, draft.number, reason="The Pair Bonus pays too little.")
        told = read_draft(conn, GAME, draft.number)
        assert (told.state, told.decided_by, told.decision_reason) == (
            DraftState.REJECTED,
            by.name,
            "The Pair Bonus pays too little.",
        )
        entry = entries(conn, GAME, draft.number)[-1]
        assert (entry["type"], entry["actor"], entry["reason"]) == (
            "paytable.rejected",
            by.actor,
            "The Pair Bonus pays too little.",
        )


def test_nobody_else_rejects_and_nobody_without_a_reason(
    conn: Connection, editor: Person, approver: Person
) -> None:
    draft = submitted(conn, editor)
    for by in (person(conn, Role.EDITOR), person(conn, Role.OPERATIONS), person(conn, Role.AUDITOR)):
        assert code(partial(reject_draft, conn, by, GAME, draft.number, reason="No.")) is Code.FORBIDDEN
    assert code(partial(reject_draft, conn, approver, GAME, draft.number, reason=" ")) is Code.INVALID
    revoke(conn, editor.name, SAID)
    assert code(partial(reject_draft, conn, editor, GAME, draft.number, reason="No.")) is Code.FORBIDDEN


def test_editors_discard_what_was_not_submitted_and_nobody_else_does(
    conn: Connection, editor: Person, approver: Person
) -> None:
    draft = create_draft(conn, editor, GAME)
    assert code(partial(reject_draft, conn, approver, GAME, draft.number, reason="No.")) is Code.FORBIDDEN
    other = person(conn, Role.EDITOR)
    reject_draft(conn, other, GAME, draft.number, reason="Begun twice.")
    told = read_draft(conn, GAME, draft.number)
    assert (told.state, told.decided_by, told.submitted_by) == (DraftState.REJECTED, other.name, None)
    save = partial(save_draft, conn, editor, GAME, draft.number, "x", revision=told.revision)
    assert code(save) is Code.WRONG_STATE
    assert entries(conn, GAME, draft.number)[-1]["type"] == "paytable.rejected"


def test_what_is_decided_is_not_rejected(conn: Connection, editor: Person, approver: Person) -> None:
    waiting = submitted(conn, editor)
    approves(conn, approver, waiting)()
    reject = partial(reject_draft, conn, approver, GAME, waiting.number, reason="No.")
    assert code(reject) is Code.WRONG_STATE
    assert code(partial(reject_draft, conn, approver, GAME, 9_999, reason="No.")) is Code.NOT_FOUND


def test_only_an_editor_drafts_saves_and_submits(conn: Connection, editor: Person, approver: Person) -> None:
    draft = create_draft(conn, editor, GAME, text=revised())
    gone = person(conn, Role.EDITOR)
    revoke(conn, gone.name, SAID)
    for by in (approver, person(conn, Role.OPERATIONS), gone):
        assert code(partial(create_draft, conn, by, GAME)) is Code.FORBIDDEN
        save = partial(save_draft, conn, by, GAME, draft.number, revised(), revision=1)
        assert code(save) is Code.FORBIDDEN
        submit = partial(submit_draft, conn, by, GAME, draft.number, revision=1, **GIVEN)
        assert code(submit) is Code.FORBIDDEN
    assert read_draft(conn, GAME, draft.number) == draft


# The database keeps these rules whatever calls.


def said(conn: Connection, kind: EntryType, actor: str) -> str:
    return Entry(type=kind, occurred_at=clock(conn), actor=actor, after={"game": GAME}).text()


def approved_past_the_program(
    conn: Connection,
    by: Person,
    draft: Draft,
    *,
    digest: str | None = None,
    actor: str | None = None,
    version: int | None = None,
) -> str:
    row = conn.execute(
        "SELECT paytable_draft_approve(%s, %s, %s, %s, coalesce(%s, max(version) + 1), %s, %s, %s, %s)"
        " FROM paytable_version WHERE game = %s",
        [
            *(draft.game, draft.number, digest or draft.digest, UUID(bytes=secrets.token_bytes(16))),
            *(version, Jsonb([]), "{}", by.staff_id),
            said(conn, EntryType.PAYTABLE_APPROVED, actor or by.actor),
            draft.game,
        ],
    ).fetchone()
    assert row is not None
    return str(row[0])


def test_the_database_itself_lets_nobody_approve_their_own(
    conn: Connection, editor: Person, both: Person, approver: Person
) -> None:
    waiting = submitted(conn, both)
    assert approved_past_the_program(conn, both, waiting) == "same_person"
    assert approved_past_the_program(conn, both, waiting, actor=approver.actor) == "same_person"
    assert approved_past_the_program(conn, editor, waiting) == "forbidden"
    assert approved_past_the_program(conn, approver, waiting, digest="0" * 64) == "precondition_failed"
    unsubmitted = create_draft(conn, editor, GAME, text=revised())
    assert approved_past_the_program(conn, approver, unsubmitted) == "wrong_state"
    with pytest.raises(pg.CheckViolation, match="an entry names somebody else"):
        approved_past_the_program(conn, approver, waiting, actor=editor.actor)
    for number in (1, 9_999):
        assert approved_past_the_program(conn, approver, waiting, version=number) == "invalid"
    with pytest.raises(pg.CheckViolation, match="is none of"):
        conn.execute(
            "SELECT paytable_draft_reject(%s, %s, 'No.', %s, %s)",
            [
                *(GAME, waiting.number, approver.staff_id),
                said(conn, EntryType.PAYTABLE_APPROVED, approver.actor),
            ],
        )
    assert read_draft(conn, GAME, waiting.number).state is DraftState.SUBMITTED


def test_the_database_itself_keeps_states_revisions_and_roles(
    conn: Connection, editor: Person, approver: Person
) -> None:
    def save(by: Person, draft: Draft, revision: int) -> Any:
        return one(
            "SELECT paytable_draft_save(%s, %s, %s, 'x', %s, %s)",
            *(GAME, draft.number, revision, by.staff_id),
            said(conn, EntryType.PAYTABLE_DRAFT_SAVED, by.actor),
        )

    def one(query: str, *values: object) -> Any:
        row = conn.execute(query, values).fetchone()
        assert row is not None
        return row[0]

    draft, waiting = create_draft(conn, editor, GAME), submitted(conn, editor)
    assert save(approver, draft, 1) == "forbidden"
    assert save(editor, draft, 2) == "precondition_failed"
    assert save(editor, waiting, waiting.revision) == "wrong_state"
    assert save(editor, replace(draft, number=9_999), 1) == "wrong_state"
    submit = "SELECT paytable_draft_submit(%s, %s, %s, %s, %s, ARRAY['none'], NULL, 'x', %s, %s)"
    paytable = Paytable.parse(ORIGINAL, game=GAME)
    known = (paytable.digest, paytable.canonical_bytes().decode())
    entry = said(conn, EntryType.PAYTABLE_SUBMITTED, editor.actor)
    assert one(submit, GAME, draft.number, 1, *known, editor.staff_id, entry) == "wrong_state"
    with pytest.raises(pg.CheckViolation, match="paytable_draft_digest_is_of_its_document"):
        one(submit, GAME, draft.number, 1, "0" * 64, "{}", editor.staff_id, entry)


# Rows that are not changed, by nobody.

SUBMITTED = {
    "text": "'other'",
    "editors": "editors || gen_random_uuid()",
    "changed_at": "now()",
    "submitted_by": "created_by, submitted_at = now()",
    "digest": "digest || ''  , note = 'other'",
    "document": "'{}', digest = encode(sha256('{}'), 'hex')",
    "jurisdictions": "ARRAY['gb']",
    "certificate": "'other'",
    "note": "'other'",
    "state": "'draft'",
    "revision": "revision - 1",
}
BEGUN = {
    "draft_id": "gen_random_uuid()",
    "game": "'other'",
    "number": "number + 1000",
    "started_from": "7",
    "created_by": "(SELECT staff_id FROM staff WHERE staff_id <> created_by LIMIT 1)",
    "created_at": "created_at - interval '1 day'",
    "editors": "ARRAY[created_by]",
}


@pytest.mark.parametrize("column", SUBMITTED)
def test_nobody_changes_what_was_submitted(
    house: AppHouse, conn: Connection, editor: Person, column: str
) -> None:
    draft = submitted(conn, editor)
    with house.connect(DatabaseRole.SUPERUSER) as powerful, pytest.raises(pg.RestrictViolation):
        powerful.execute(
            f"UPDATE paytable_draft SET {column} = {SUBMITTED[column]} WHERE draft_id = %s", [draft.draft_id]
        )


@pytest.mark.parametrize("column", BEGUN)
def test_nobody_changes_how_a_draft_began_and_who_had_a_hand_in_it(
    house: AppHouse, conn: Connection, editor: Person, column: str
) -> None:
    draft = create_draft(conn, editor, GAME)
    save_draft(conn, person(conn, Role.EDITOR), GAME, draft.number, "x", revision=1)
    with house.connect(DatabaseRole.SUPERUSER) as powerful, pytest.raises(pg.RestrictViolation):
        powerful.execute(
            f"UPDATE paytable_draft SET revision = revision + 1, {column} = {BEGUN[column]} WHERE draft_id = %s",
            [draft.draft_id],
        )


def test_a_decision_is_final_and_a_draft_is_kept(
    house: AppHouse, conn: Connection, editor: Person, approver: Person
) -> None:
    draft = submitted(conn, editor)
    reject_draft(conn, approver, GAME, draft.number, reason="No.")
    approved(conn, editor, approver)
    for change in (
        "UPDATE paytable_draft SET revision = revision + 1, state = 'submitted' WHERE state = 'rejected'",
        "UPDATE paytable_draft SET revision = revision + 1, decision_reason = 'Yes.' WHERE state = 'rejected'",
        "UPDATE paytable_draft SET revision = revision + 1, decided_at = now() WHERE state = 'approved'",
        "UPDATE paytable_par_sheet SET document = document",
        "UPDATE paytable_text SET text = text",
        "UPDATE paytable_version SET approved_by = approved_by",
        "DELETE FROM paytable_draft",
        "DELETE FROM paytable_par_sheet",
        "DELETE FROM paytable_text",
        "DELETE FROM paytable_retirement",
        "DELETE FROM paytable_version",
        "TRUNCATE paytable_draft",
        "TRUNCATE paytable_par_sheet",
        "TRUNCATE paytable_text",
        "TRUNCATE paytable_retirement",
        "TRUNCATE paytable_version CASCADE",
    ):
        with house.connect(DatabaseRole.SUPERUSER) as powerful, pytest.raises(pg.RestrictViolation):
            powerful.execute(change)


def test_not_even_the_owner_records_that_somebody_approved_their_own(
    house: AppHouse, conn: Connection, both: Person
) -> None:
    draft = submitted(conn, both)
    with house.connect() as owner, pytest.raises(pg.CheckViolation, match="approver_is_another"):
        owner.execute(
            "UPDATE paytable_draft SET state = 'approved', revision = revision + 1, decided_by = created_by,"
            " decided_at = now(), version_id = (SELECT version_id FROM paytable_version LIMIT 1) WHERE draft_id = %s",
            [draft.draft_id],
        )
