"""Paytable files are imported as drafts, and exported with their comments; alone they change nothing any more."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from casino_brag.catalogue.activations import activate
from casino_brag.catalogue.drafts import read_draft, submit_draft
from casino_brag.catalogue.paytables import publish
from casino_brag.config import shipped
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.game.paytable import Paytable
from casino_brag.staff.people import Person, Role
from tests.catalogue.persons import GAME, GIVEN, ORIGINAL, approved, person, revised
from tests.inprocess import AppHouse, app_house_in
from tests.terminal import Finished, casino_brag, command

Run = Callable[..., Finished]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("files")) as house:
        yield house


@pytest.fixture
def run(house: AppHouse) -> Run:
    """Runs `paytables` with these words on the house's database."""
    env = {"DATABASE_URL": house.server.url(DatabaseRole.OWNER)}
    return lambda *words: command("paytables", *words, env=env)


@pytest.fixture
def editor(house: AppHouse) -> Person:
    with house.connect() as conn:
        return person(conn, Role.EDITOR)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / f"{GAME}.toml").write_text(revised())
    return tmp_path / f"{GAME}.toml"


def test_a_file_is_imported_as_a_draft_and_saved_into_it_again(
    house: AppHouse, run: Run, editor: Person, file: Path
) -> None:
    first = run("import", file, "--as", editor.name)
    assert (first.code, first.err) == (0, "")
    number = int(first.out.split()[2].strip(","))
    assert first.out == f"{GAME}: draft {number}, revision 1\n"
    text = revised()
    file.write_text(text)
    assert run("import", file, "--as", editor.name).out == f"{GAME}: draft {number}, revision 2\n"
    with house.connect() as conn:
        draft = read_draft(conn, GAME, number)
        assert (draft.text, draft.created_by, draft.state) == (text, editor.name, "draft")
        submit_draft(conn, editor, GAME, number, revision=2, **GIVEN)
    assert f"draft {number}," not in run("import", file, "--as", editor.name).out


def test_an_unfinished_file_is_kept_and_its_problems_are_told(run: Run, editor: Person, file: Path) -> None:
    file.write_text(ORIGINAL.replace('title = "3 Card Brag"', "title = 3"))
    told = run("import", file, "--as", editor.name)
    assert told.code == 0
    assert "title: 3 will not do" in told.err
    assert "can be submitted once this is mended" in told.err


@pytest.mark.parametrize("text", [b"", b"\xff", b"#" * 70_000, b"a\0b"])
def test_a_file_that_cannot_be_a_draft_is_refused(run: Run, editor: Person, file: Path, text: bytes) -> None:
    file.write_bytes(text)
    assert run("import", file, "--as", editor.name).sentence


def test_a_draft_is_an_editor_s(house: AppHouse, run: Run, file: Path) -> None:
    with house.connect() as conn:
        other = person(conn, Role.AUDITOR)
    assert "is no editor" in run("import", file, "--as", other.name).sentence
    assert "nobody called" in run("import", file, "--as", "nobody").sentence
    assert run("import", file.parent / "gone.toml", "--as", other.name).sentence


def test_what_is_exported_and_imported_has_the_same_digest(
    house: AppHouse, run: Run, editor: Person, tmp_path: Path
) -> None:
    assert run("export", GAME).out == ORIGINAL
    with house.connect() as conn:
        text = "# why it is so\n" + revised()
        version = approved(conn, editor, person(conn, Role.APPROVER), text)
    output = tmp_path / f"{GAME}.toml"
    assert run("export", GAME, f"--version={version}", "-o", output).code == 0
    assert output.read_text() == text
    number = run("import", output, "--as", editor.name).out.split()[2].strip(",")
    exported = run("export", GAME, f"--draft={number}").out
    assert Paytable.parse(exported, game=GAME).digest == Paytable.parse(text, game=GAME).digest
    for words in (
        ["a-game"],
        [GAME, "--version=999"],
        [GAME, "--draft=999"],
        [GAME, "--draft=1", "--version=1"],
    ):
        assert run("export", *words).sentence


def test_versions_and_open_drafts_are_listed(house: AppHouse, run: Run, editor: Person, file: Path) -> None:
    with house.connect() as conn:
        approver, operations = person(conn, Role.APPROVER), person(conn, Role.OPERATIONS)
        version = approved(conn, editor, approver)
        activate(conn, operations, GAME, version, reason="x")
        run("import", file, "--as", editor.name)
        listed = run("list").out
        activate(conn, operations, GAME, 1, reason="x")
    assert f"version {version:<5}active   approved by {approver.name}" in listed
    assert "version 1    approved   from a file" in listed
    assert f"draft   by {editor.name}   revision 1" in listed


def test_a_file_is_left_alone_once_there_is_an_approver(
    house: AppHouse, run: Run, file: Path, tmp_path: Path
) -> None:
    with house.connect() as conn:
        person(conn, Role.APPROVER)
    told = run("publish", f"--paytables={tmp_path}")
    assert told.code == 1
    assert f"{GAME} offers version 1 as before" in told.err
    assert f"casino-brag paytables import {file} --as NAME" in told.err
    file.write_text("broken")
    assert "broken" not in run("publish", f"--paytables={tmp_path}").out
    assert run("publish", f"--paytables={shipped('paytables')}").code == 0


def test_a_new_game_s_file_is_named_and_left_alone(tmp_path: Path) -> None:
    with app_house_in(tmp_path / "house") as house, house.connect() as conn:
        person(conn, Role.APPROVER)
        name = f"brag-{secrets.token_hex(3)}"
        file = tmp_path / f"{name}.toml"
        file.write_text(ORIGINAL.replace(f'"{GAME}"', f'"{name}"'))
        found = publish(conn, file, actor="system:serve")
        assert found.proposed == file
        env = {"DATABASE_URL": house.server.url(DatabaseRole.OWNER)}
        told = casino_brag("paytables", "publish", f"--paytables={tmp_path}", env=env)
        assert (told.code, told.out) == (1, "double-play-brag: version 1\nthree-card-brag: version 1\n")
        assert f"{name} is not open:" in told.err
        assert "paytables import" in told.err
