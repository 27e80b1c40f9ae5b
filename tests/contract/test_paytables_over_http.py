"""The life of a paytable over HTTP: one person writes and submits it, another approves it, a third puts it in force."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import requests

from casino_brag.catalogue.activations import attend
from casino_brag.errors import Code
from casino_brag.game.paytable import Paytable
from casino_brag.odds.returns import main_game
from casino_brag.staff.people import Role, Said, set_roles
from tests.catalogue.persons import GAME, ORIGINAL, revised
from tests.inprocess import AppHouse, app_house_in
from tests.running import CALL_SECONDS, Player, code_of, together

PATH = "/v1/paytables"
NOTE = {"jurisdictions": ["none"], "note": "Another limit."}
WHY = {"reason": "A test."}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("paytables-http")) as started:
        yield started


@pytest.fixture(scope="module")
def editor(house: AppHouse) -> Player:
    return house.staff("editor")


@pytest.fixture(scope="module")
def approver(house: AppHouse) -> Player:
    return house.staff("approver")


@pytest.fixture(scope="module")
def operations(house: AppHouse) -> Player:
    return house.staff("operations")


def call(caller: Player, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
    return caller.http.request(
        method,
        caller.base + PATH + path,
        json=body,
        headers={"Authorization": f"Bearer {caller.token}"}
        | {name.replace("_", "-"): value for name, value in headers.items()},
        timeout=CALL_SECONDS,
    )


def begun(editor: Player, text: str | None = None, game: str = GAME) -> tuple[str, requests.Response]:
    """The address of a new draft, below PATH, and the answer that told of it."""
    answer = call(editor, "POST", "", {"game": game, "text": revised() if text is None else text})
    assert answer.status_code == 201, answer.text
    return answer.headers["Location"].removeprefix(PATH), answer


def submitted(editor: Player, text: str | None = None, **said: Any) -> tuple[str, str]:
    """The address of a draft that waits for approval, and its digest."""
    draft, _ = begun(editor, text)
    answer = call(editor, "POST", f"{draft}/submit", NOTE | said, If_Match="*")
    assert answer.status_code == 200, answer.text
    return draft, answer.json()["digest"]


def approved(editor: Player, approver: Player, text: str | None = None) -> str:
    """The address of a version that these two made."""
    draft, digest = submitted(editor, text)
    answer = call(approver, "POST", f"{draft}/approve", {"digest": digest})
    assert answer.status_code == 201, answer.text
    return answer.headers["Location"].removeprefix(PATH)


def active(caller: Player, game: str = GAME) -> dict[str, Any]:
    games = {found["game"]: found for found in call(caller, "GET", "").json()["items"]}
    told: dict[str, Any] = games[game]["active"]
    return told


def errors_of(answer: requests.Response) -> dict[str, list[str]]:
    assert code_of(answer) == "invalid"
    told: dict[str, list[str]] = answer.json()["errors"]
    return told


def recorded(house: AppHouse, caller: Player) -> list[dict[str, Any]]:
    """What is on record of somebody's calls, newest first."""
    with house.connect() as conn:
        return [
            payload
            for (payload,) in conn.execute(
                "SELECT payload FROM audit_entry WHERE type = 'staff.called' AND actor = %s"
                " ORDER BY occurred_at DESC, entry_id DESC",
                [f"staff:{caller.name}"],
            )
        ]


def test_a_paytable_is_written_submitted_approved_and_put_in_force_while_a_round_is_open(
    house: AppHouse, editor: Player, approver: Player, operations: Player
) -> None:
    before = active(editor)
    player = house.player()
    opened = player.open().json()
    assert opened["paytable"] == before

    text = revised()
    draft, answer = begun(editor, "# unfinished\n")
    assert answer.headers["ETag"] == '"1"'
    told = answer.json()
    assert (told["state"], told["created_by"], told["started_from"]) == ("draft", editor.name, None)
    assert told["problems"]
    saved = call(editor, "PUT", draft, {"text": text}, If_Match=answer.headers["ETag"])
    assert (saved.status_code, saved.headers["ETag"], saved.json()["problems"]) == (200, '"2"', {})
    said = call(editor, "POST", f"{draft}/submit", NOTE, If_Match='"2"')
    assert said.status_code == 200, said.text
    told = said.json()
    assert (told["state"], told["submitted_by"], told["jurisdictions"]) == (
        "submitted",
        editor.name,
        ["none"],
    )
    assert told["digest"] == sha256(told["document"].encode()).hexdigest()

    made = call(approver, "POST", f"{draft}/approve", {"digest": told["digest"]})
    assert made.status_code == 201, made.text
    version = made.json()
    assert (version["state"], version["approved_by"]) == ("approved", approver.name)
    assert active(editor) == before
    path = made.headers["Location"].removeprefix(PATH)
    put = call(operations, "POST", f"{path}/activate", WHY)
    assert put.status_code == 200, put.text
    assert put.json()["state"] == "active"

    now = {"version": version["version"], "digest": told["digest"]}
    assert active(editor) == now
    assert requests.get(f"{house.base}/v1/games/{GAME}", timeout=CALL_SECONDS).json()["paytable"] == now
    settled = player.decide(opened["round_id"], "fold").json()
    assert settled["paytable"] == before
    assert player.open().json()["paytable"] == now

    happened = call(editor, "GET", f"/{GAME}/history?limit=4").json()["items"]
    assert [(entry["type"], entry["actor"]) for entry in happened] == [
        ("paytable.activated", f"staff:{operations.name}"),
        ("paytable.approved", f"staff:{approver.name}"),
        ("paytable.submitted", f"staff:{editor.name}"),
        ("paytable.draft_saved", f"staff:{editor.name}"),
    ]
    assert (happened[0]["authoriser"], happened[0]["reason"]) == (f"staff:{approver.name}", "A test.")


def test_a_version_is_read_with_its_file_and_its_par_sheet(
    house: AppHouse, editor: Player, approver: Player
) -> None:
    text = "# Why: a test.\n" + revised()
    path = approved(editor, approver, text)
    answer = call(editor, "GET", path)
    told = answer.json()
    assert answer.headers["ETag"] == f'W/"{told["digest"]}"'
    assert Paytable.from_document(told["paytable"]).digest == told["digest"]
    file = call(editor, "GET", f"{path}/file")
    assert (file.text, file.headers["Content-Type"]) == (text, "application/toml")
    assert file.headers["Content-Disposition"] == f'attachment; filename="{GAME}.toml"'
    sheet = call(editor, "GET", f"{path}/par-sheet").json()
    assert (sheet["digest"], sheet["main"]["rtp_exact"]) == (told["digest"], "167006979/170422000")
    page = call(editor, "GET", f"{path}/par-sheet?format=html")
    assert page.text.startswith("<!doctype html>")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert call(editor, "GET", f"{path}/par-sheet?format=markdown").text.startswith("# ")
    listed = call(editor, "GET", f"/{GAME}/versions").json()["items"]
    assert listed[0] == {name: value for name, value in told.items() if name != "paytable"}


def test_a_new_game_begins_as_a_draft(editor: Player, approver: Player, operations: Player) -> None:
    game = "brag-" + secrets.token_hex(3)
    draft, _ = begun(editor, ORIGINAL.replace(GAME, game), game)
    listed = {found["game"]: found for found in call(editor, "GET", "").json()["items"]}[game]
    assert (listed["active"], listed["scheduled"]) == (None, None)
    assert [(one["number"], one["state"]) for one in listed["open_drafts"]] == [(1, "draft")]
    digest = call(editor, "POST", f"{draft}/submit", NOTE, If_Match="*").json()["digest"]
    path = call(approver, "POST", f"{draft}/approve", {"digest": digest}).headers["Location"]
    assert path == f"{PATH}/{game}/versions/1"
    assert call(operations, "POST", f"/{game}/versions/1/activate", WHY).status_code == 200
    assert active(editor, game)["version"] == 1


def test_a_draft_begins_with_a_version_or_another_draft(editor: Player, approver: Player) -> None:
    path = approved(editor, approver, "# kept\n" + revised())
    version = int(path.rpartition("/")[2])
    answer = call(editor, "POST", "", {"game": GAME, "from_version": version})
    assert answer.json()["text"].startswith("# kept\n")
    assert answer.json()["started_from"] == version
    draft, first = begun(editor, "# one\n")
    again = call(editor, "POST", "", {"game": GAME, "from_draft": first.json()["number"]}).json()
    assert again["text"] == "# one\n"
    assert call(editor, "POST", "", {"game": GAME}).json()["started_from"] == active(editor)["version"]
    assert draft


# Nobody overwrites what somebody else has written.


def test_a_change_has_to_name_what_it_changes(editor: Player) -> None:
    draft, answer = begun(editor)
    text = {"text": revised()}
    assert code_of(call(editor, "PUT", draft, text)) == "precondition_required"
    assert code_of(call(editor, "PUT", draft, text, If_Match="")) == "precondition_required"
    for stale in ('"0"', '"2"', 'W/"1"', '"7", W/"1"', '"*"'):
        assert code_of(call(editor, "PUT", draft, text, If_Match=stale)) == "precondition_failed"
        assert code_of(call(editor, "POST", f"{draft}/submit", NOTE, If_Match=stale)) == "precondition_failed"
    assert call(editor, "GET", draft).headers["ETag"] == answer.headers["ETag"] == '"1"'
    assert call(editor, "PUT", draft, text, If_Match='"9", "1"').headers["ETag"] == '"2"'
    assert call(editor, "PUT", draft, text, If_Match="*").headers["ETag"] == '"3"'


def test_of_many_who_save_at_once_one_is_not_told_that_it_failed(house: AppHouse, editor: Player) -> None:
    draft, _ = begun(editor)
    texts = [revised() for _ in range(6)]
    others = [Player(editor.base, editor.token) for _ in texts]
    calls = [
        lambda who=who, text=text: call(who, "PUT", draft, {"text": text}, If_Match='"1"')
        for who, text in zip(others, texts, strict=True)
    ]
    answers = together(calls)
    assert sorted(answer.status_code for answer in answers) == [200, *[412] * 5]
    won = next(text for text, answer in zip(texts, answers, strict=True) if answer.status_code == 200)
    assert call(editor, "GET", draft).json()["text"] == won


def test_what_was_submitted_changes_no_more(editor: Player) -> None:
    draft, _ = submitted(editor)
    for match in ("*", '"1"'):
        assert code_of(call(editor, "PUT", draft, {"text": "x"}, If_Match=match)) == "wrong_state"
        assert code_of(call(editor, "POST", f"{draft}/submit", NOTE, If_Match=match)) == "wrong_state"


# Nobody approves what that person had a part in, by whatever way.


def test_whoever_had_a_part_in_a_draft_does_not_approve_it(house: AppHouse, approver: Player) -> None:
    both, other = house.staff("editor", "approver"), house.staff("editor", "approver")
    draft, _ = begun(both)
    assert call(other, "PUT", draft, {"text": revised()}, If_Match="*").status_code == 200
    third = house.staff("editor", "approver")
    answer = call(third, "POST", f"{draft}/submit", NOTE, If_Match="*")
    body = {"digest": answer.json()["digest"]}
    for person in (both, other, third):
        assert code_of(call(person, "POST", f"{draft}/approve", body)) == "same_person"
    assert call(approver, "POST", f"{draft}/approve", body).status_code == 201


def test_an_editor_who_becomes_an_approver_still_does_not(house: AppHouse) -> None:
    person = house.staff("editor")
    draft, digest = submitted(person)
    assert code_of(call(person, "POST", f"{draft}/approve", {"digest": digest})) == "forbidden"
    with house.connect() as conn:
        set_roles(conn, person.name, [Role.APPROVER], Said(actor="system:tests"))
    assert code_of(call(person, "POST", f"{draft}/approve", {"digest": digest})) == "same_person"


def test_who_approved_a_version_does_not_put_it_in_force(house: AppHouse, editor: Player) -> None:
    both = house.staff("approver", "operations")
    path = approved(editor, both)
    assert code_of(call(both, "POST", f"{path}/activate", WHY)) == "same_person"
    later = WHY | {"at": (datetime.now(UTC) + timedelta(hours=1)).isoformat()}
    assert code_of(call(both, "POST", f"{path}/activate", later)) == "same_person"


def test_only_the_digest_that_was_submitted_is_approved(editor: Player, approver: Player) -> None:
    draft, _ = submitted(editor)
    wrong = call(approver, "POST", f"{draft}/approve", {"digest": "0" * 64})
    assert code_of(wrong) == "precondition_failed"
    assert "digest" in errors_of(call(approver, "POST", f"{draft}/approve", {"digest": "0" * 63}))


def test_of_two_who_approve_at_once_one_does(house: AppHouse, editor: Player) -> None:
    draft, digest = submitted(editor)
    several = [house.staff("approver") for _ in range(2)]
    calls = [lambda who=who: call(who, "POST", f"{draft}/approve", {"digest": digest}) for who in several]
    assert sorted(answer.status_code for answer in together(calls)) == [201, 409]


def test_who_submitted_takes_it_back_and_an_approver_rejects(editor: Player, approver: Player) -> None:
    for person in (editor, approver):
        draft, digest = submitted(editor)
        answer = call(person, "POST", f"{draft}/reject", WHY)
        told = answer.json()
        assert (answer.status_code, told["state"], told["decided_by"]) == (200, "rejected", person.name)
        assert told["decision_reason"] == "A test."
        assert code_of(call(approver, "POST", f"{draft}/approve", {"digest": digest})) == "wrong_state"
        assert code_of(call(approver, "POST", f"{draft}/reject", WHY)) == "wrong_state"


def test_an_editor_discards_a_draft_and_an_approver_does_not(editor: Player, approver: Player) -> None:
    path, _ = begun(editor)
    assert code_of(call(approver, "POST", f"{path}/reject", WHY)) == "forbidden"
    told = call(editor, "POST", f"{path}/reject", WHY).json()
    assert (told["state"], told["submitted_by"], told["decision_reason"]) == ("rejected", None, "A test.")


def test_an_editor_does_not_reject_what_somebody_else_submitted(house: AppHouse, editor: Player) -> None:
    draft, _ = submitted(editor)
    assert code_of(call(house.staff("editor"), "POST", f"{draft}/reject", WHY)) == "forbidden"


# What will not do is told at the field.


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        ("title", 'title = "3 Card Brag"', 'title = ""'),
        ("ranking.best_prial", 'best_prial = "3"', 'best_prial = "1"'),
        ("dealer.qualifies_with", 'qualifies_with = "Q"', 'qualifies_with = "2"'),
        ("dealer.not_qualified.ante", 'ante = "wins"', 'ante = "loses"'),
        ("play.multiple", "multiple = 1 ", "multiple = 11 "),
        ("play.pays.flush", "flush = 1, run = 1", 'flush = "x", run = 1'),
        ("tie.result", 'result = "push"', 'result = "house"'),
        ("limits.GBP.ante.max", "max = 300000", "max = 300001"),
        ("odd", "[dealer]\n", "[odd]\n[dealer]\n"),
    ],
)
def test_every_problem_of_a_text_comes_at_its_key(editor: Player, key: str, old: str, new: str) -> None:
    text = ORIGINAL.replace(old, new, 1)
    assert text != ORIGINAL
    draft, answer = begun(editor, text)
    assert list(answer.json()["problems"]) == [key]
    assert list(call(editor, "POST", f"{draft}/preview", {}).json()["problems"]) == [key]
    told = errors_of(call(editor, "POST", f"{draft}/submit", NOTE, If_Match="*"))
    assert told == answer.json()["problems"]


def test_every_guard_comes_at_its_key(editor: Player) -> None:
    generous = revised().replace("flush = 1, run = 1", "flush = 9, run = 9", 1)
    draft, _ = begun(editor, generous)
    told = errors_of(call(editor, "POST", f"{draft}/submit", NOTE | {"jurisdictions": ["gb"]}, If_Match="*"))
    assert told.keys() == {"play.pays", "certificate"}
    seen = call(editor, "POST", f"{draft}/preview", {"jurisdictions": ["gb"]}).json()["guards"]
    assert seen == told
    certain = {"jurisdictions": ["gb"], "certificate": "LAB-1"}
    assert call(editor, "POST", f"{draft}/preview", certain).json()["guards"].keys() == {"play.pays"}
    unknown = NOTE | {"jurisdictions": ["none", "atlantis"]}
    assert "jurisdictions" in errors_of(call(editor, "POST", f"{draft}/submit", unknown, If_Match="*"))
    assert (
        "jurisdictions"
        in call(editor, "POST", f"{draft}/preview", {"jurisdictions": ["atlantis"]}).json()["guards"]
    )


def test_a_content_that_is_a_version_already_is_not_submitted_again(editor: Player, approver: Player) -> None:
    text = revised()
    version = approved(editor, approver, text).rpartition("/")[2]
    draft, _ = begun(editor, "# anew\n" + text)
    told = errors_of(call(editor, "POST", f"{draft}/submit", NOTE, If_Match="*"))
    assert f"version {version}" in told["text"][0]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "game"),
        ({"game": "Brag"}, "game"),
        ({"game": "x" * 61}, "game"),
        ({"game": GAME, "text": ""}, "text"),
        ({"game": GAME, "text": " \n"}, "text"),
        ({"game": GAME, "text": "a\0b"}, "text"),
        ({"game": GAME, "text": "\ud800"}, "text"),
        ({"game": GAME, "text": "#" * 60_001}, "text"),
        ({"game": GAME, "text": 3}, "text"),
        ({"game": GAME, "text": "x", "from_version": 1}, "text"),
        ({"game": "brag-of-nobody"}, "text"),
        ({"game": GAME, "from_version": 0}, "from_version"),
        ({"game": GAME, "from_version": 2**31}, "from_version"),
        ({"game": GAME, "from_draft": True}, "from_draft"),
        ({"game": GAME, "title": "x"}, "title"),
    ],
)
def test_a_draft_that_cannot_be_begun_says_why_at_the_field(
    editor: Player, body: dict[str, Any], field: str
) -> None:
    assert list(errors_of(call(editor, "POST", "", body))) == [field]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"note": ""}, "note"),
        ({"note": "x" * 501}, "note"),
        ({"note": "two\nlines"}, "note"),
        ({"note": None}, "note"),
        ({"jurisdictions": []}, "jurisdictions"),
        ({"jurisdictions": "none"}, "jurisdictions"),
        ({"certificate": ""}, "certificate"),
        ({"certificate": "x" * 201}, "certificate"),
        ({"reason": "x"}, "reason"),
    ],
)
def test_a_submission_that_will_not_do_says_why_at_the_field(
    editor: Player, said: dict[str, Any], field: str
) -> None:
    draft, _ = begun(editor)
    answer = call(editor, "POST", f"{draft}/submit", NOTE | said, If_Match="*")
    assert list(errors_of(answer)) == [field]


def test_a_body_of_more_than_64_kib_is_not_read(editor: Player) -> None:
    assert code_of(call(editor, "POST", "", {"game": GAME, "text": "#" * 2**16})) == "body_too_large"


def test_what_there_is_not_is_not_found(editor: Player, approver: Player, operations: Player) -> None:
    nobodys, no_version = f"/{GAME}/drafts/999999", f"/{GAME}/versions/999999"
    asked = [
        *(
            (editor, "GET", path, None)
            for path in ("/nothing/drafts", "/nothing/versions", "/nothing/history")
        ),
        *((editor, "GET", path, None) for path in (nobodys, f"/{GAME}/drafts/0", f"/{GAME}/drafts/{2**40}")),
        *((editor, "GET", f"/{GAME}/versions/{number}", None) for number in (0, 2**31, 2**70, "one")),
        *((editor, "GET", no_version + what, None) for what in ("", "/par-sheet", "/file")),
        (editor, "GET", "/%00/versions/1", None),
        (editor, "POST", f"{nobodys}/preview", {}),
        (editor, "PUT", nobodys, {"text": "x"}),
        (editor, "POST", f"{nobodys}/submit", NOTE),
        (approver, "POST", f"{nobodys}/approve", {"digest": "0" * 64}),
        (approver, "POST", f"{nobodys}/reject", WHY),
        (operations, "POST", f"{no_version}/activate", WHY),
        (operations, "POST", f"{no_version}/retire", WHY),
        (operations, "POST", "/nothing/unschedule", WHY),
        (operations, "POST", "/%00/unschedule", WHY),
    ]
    for caller, method, path, body in asked:
        assert code_of(call(caller, method, path, body, If_Match="*")) == "not_found", (method, path)
    assert code_of(call(editor, "POST", "", {"game": GAME, "from_version": 999_999})) == "not_found"
    assert code_of(call(editor, "POST", "", {"game": GAME, "from_draft": 999_999})) == "not_found"


# In force, to come, and never again.


def test_a_version_is_scheduled_called_off_and_put_in_force_when_it_is_due(
    house: AppHouse, editor: Player, approver: Player, operations: Player
) -> None:
    path = approved(editor, approver)
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    later = WHY | {"at": at.isoformat()}
    told = call(operations, "POST", f"{path}/activate", later).json()
    assert (told["state"], told["scheduled_by"]) == ("scheduled", operations.name)
    assert datetime.fromisoformat(told["scheduled_at"]) == at
    announced = requests.get(f"{house.base}/v1/games/{GAME}", timeout=CALL_SECONDS).json()["change"]["next"]
    assert announced["version"] == told["version"]
    listed = {found["game"]: found for found in call(editor, "GET", "").json()["items"]}[GAME]
    assert listed["scheduled"] == {
        "version": told["version"],
        "digest": told["digest"],
        "at": told["scheduled_at"],
    }
    assert code_of(call(operations, "POST", f"{path}/activate", later)) == "wrong_state"
    assert code_of(call(operations, "POST", f"{path}/retire", WHY)) == "wrong_state"
    off = call(operations, "POST", f"/{GAME}/unschedule", WHY)
    assert (off.status_code, off.json()["scheduled"]) == (200, None)
    assert code_of(call(operations, "POST", f"/{GAME}/unschedule", WHY)) == "wrong_state"

    assert call(operations, "POST", f"{path}/activate", later).status_code == 200
    with house.connect() as conn:
        conn.execute("UPDATE paytable_schedule SET activates_at = now() WHERE game = %s", [GAME])
    assert attend(house.service.database.connection) == 1
    assert active(editor)["digest"] == told["digest"]


def test_an_older_version_is_put_in_force_again(editor: Player, approver: Player, operations: Player) -> None:
    older, newer = approved(editor, approver), approved(editor, approver)
    for path in (older, newer, older):
        assert call(operations, "POST", f"{path}/activate", WHY).status_code == 200
        assert active(editor)["version"] == int(path.rpartition("/")[2])
    assert code_of(call(operations, "POST", f"{older}/activate", WHY)) == "wrong_state"


def test_a_retired_version_never_comes_back(editor: Player, approver: Player, operations: Player) -> None:
    path = approved(editor, approver)
    told = call(operations, "POST", f"{path}/retire", WHY).json()
    assert told["state"] == "retired"
    assert told["retired_at"]
    assert code_of(call(operations, "POST", f"{path}/activate", WHY)) == "wrong_state"
    assert code_of(call(operations, "POST", f"{path}/retire", WHY)) == "wrong_state"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "reason"),
        ({"reason": " "}, "reason"),
        (WHY | {"at": "tomorrow"}, "at"),
        (WHY | {"at": "2026-11-30T12:00:00"}, "at"),
        (WHY | {"at": "2001-01-01T00:00:00Z"}, "at"),
        (WHY | {"at": "9000-01-01T00:00:00Z"}, "at"),
    ],
)
def test_an_activation_that_will_not_do_says_why_at_the_field(
    editor: Player, approver: Player, operations: Player, body: dict[str, Any], field: str
) -> None:
    path = approved(editor, approver)
    assert list(errors_of(call(operations, "POST", f"{path}/activate", body))) == [field]


# Looking at what a text would bring.


def test_a_preview_has_exact_figures_beside_those_in_force_and_leaves_no_trace(
    house: AppHouse, editor: Player
) -> None:
    draft, answer = begun(editor)
    text = answer.json()["text"].replace("prial = 5 }", "prial = 4 }", 1)
    before = len(recorded(house, editor))
    told = call(editor, "POST", f"{draft}/preview", {"text": text}).json()
    assert len(recorded(house, editor)) == before
    assert (told["problems"], told["guards"], told["compared_with"]) == ({}, {}, active(editor)["version"])
    paytable = Paytable.parse(text, game=GAME)
    assert told["digest"] == paytable.digest
    rtp = next(row for row in told["figures"] if (row["wager"], row["figure"]) == ("main", "rtp"))
    assert Fraction(rtp["exact"]) == main_game(paytable).rtp
    assert Fraction(rtp["active_exact"]) > Fraction(rtp["exact"])
    assert told["best_play"]["new"]["lowest"] == "Q-6-4"
    assert {"key": "ante_bonus.pays.prial", "old": 5, "new": 4} in told["rules"]
    assert call(editor, "GET", draft).json()["text"] == answer.json()["text"]


@pytest.mark.parametrize("text", ["", "x", "a\0b", "\ud800", '"' * 1_000, ORIGINAL.replace("3", "\ud800")])
def test_a_preview_refuses_no_text_for_its_content(editor: Player, text: str) -> None:
    draft, _ = begun(editor)
    told = call(editor, "POST", f"{draft}/preview", {"text": text}).json()
    assert told["problems"]
    assert (told["digest"], told["figures"], told["best_play"], told["rules"]) == (None, [], None, [])


def test_a_preview_of_a_game_with_nothing_in_force_compares_with_nothing(editor: Player) -> None:
    game = "brag-" + secrets.token_hex(3)
    draft, _ = begun(editor, ORIGINAL.replace(GAME, game), game)
    told = call(editor, "POST", f"{draft}/preview", {}).json()
    assert (told["compared_with"], told["rules"], told["best_play"]["active"]) == (None, [], None)
    assert {row["active_exact"] for row in told["figures"]} == {None}


# Lists and the record.


def test_drafts_are_listed_by_state_in_pages(editor: Player) -> None:
    waiting = [submitted(editor)[0] for _ in range(3)]
    numbers = [int(path.rpartition("/")[2]) for path in reversed(waiting)]
    first = call(editor, "GET", f"/{GAME}/drafts?state=submitted&limit=2").json()
    assert [draft["number"] for draft in first["items"]] == numbers[:2]
    rest = f"/{GAME}/drafts?state=submitted&limit=2&cursor={first['next_cursor']}"
    assert call(editor, "GET", rest).json()["items"][0]["number"] == numbers[2]
    assert not first["items"][0].keys() & {"text", "document", "problems"}


def test_history_is_listed_in_pages(editor: Player) -> None:
    whole = call(editor, "GET", f"/{GAME}/history?limit=5").json()["items"]
    first = call(editor, "GET", f"/{GAME}/history?limit=2").json()
    rest = call(editor, "GET", f"/{GAME}/history?limit=3&cursor={first['next_cursor']}").json()
    assert first["items"] + rest["items"] == whole


def test_a_text_is_on_record_by_its_digest_and_length(house: AppHouse, editor: Player) -> None:
    text = "# é\n" + revised()
    draft, _ = begun(editor, text)
    assert call(editor, "PUT", draft, {"text": text}, If_Match="*").status_code == 200
    said = {"text_sha256": sha256(text.encode()).hexdigest(), "text_bytes": len(text.encode())}
    bodies = [payload["body"] for payload in recorded(house, editor)]
    assert bodies[:2] == [said, {"game": GAME} | said]


def test_every_answer_names_people_and_no_identifiers_of_theirs(editor: Player) -> None:
    draft, _ = submitted(editor)
    told = call(editor, "GET", draft).json()
    assert told["editors"] == [told["created_by"]] == [editor.name]
    assert [name for name, value in told.items() if re.fullmatch(r"[0-9a-f-]{36}", str(value))] == [
        "draft_id"
    ]


def test_the_walk_of_the_document_is_walked(tmp_path: Path) -> None:
    part = Path("docs/http.md").read_text().split("### Changing a paytable", 1)[1]
    walk = part.split("```sh\n", 1)[1].split("```", 1)[0]
    with app_house_in(tmp_path) as house:
        ada, grace, joan = (house.staff(role) for role in ("editor", "approver", "operations"))
        known = {"BASE": house.base, "ADA": ada.token, "GRACE": grace.token, "JOAN": joan.token}
        done = subprocess.run(
            ["sh", "-eu", "-c", walk],
            cwd=tmp_path,
            env=os.environ | known,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stdout.count("201 CREATED") == 2
        assert active(ada)["version"] == 2
        limits = requests.get(f"{house.base}/v1/games/{GAME}", timeout=CALL_SECONDS).json()["limits"]
        assert limits["GBP"]["ante"]["max_minor"] == 250_000


# Of several things that are wrong, the one that stands first is told.


def test_the_ladder_of_an_approval(house: AppHouse, editor: Player, approver: Player) -> None:
    mine, digest = submitted(house.staff("editor"))
    waiting, other = submitted(both := house.staff("editor", "approver"))
    rejected, _ = submitted(editor)
    assert call(editor, "POST", f"{rejected}/reject", WHY).status_code == 200
    stale = {"digest": "0" * 64}
    nobody = Player(house.base, "cbs_" + "A" * 43)
    codes = [
        code_of(call(nobody, "POST", f"{mine}/approve", {"digest": 1})),
        code_of(call(nobody, "POST", f"{mine}/approve", stale)),
        code_of(call(editor, "POST", f"{mine}/approve", stale)),
        code_of(call(approver, "POST", f"{rejected}/approve", stale)),
        code_of(call(both, "POST", f"{waiting}/approve", stale)),
        code_of(call(approver, "POST", f"{waiting}/approve", stale)),
    ]
    assert codes == [
        *("invalid", "unauthenticated", "forbidden"),
        *("wrong_state", "same_person", "precondition_failed"),
    ]
    order = list(Code)
    assert [order.index(Code(code)) for code in codes] == sorted(order.index(Code(code)) for code in codes)
    assert call(approver, "POST", f"{waiting}/approve", {"digest": other}).status_code == 201
    assert call(approver, "POST", f"{mine}/approve", {"digest": digest}).status_code == 201
