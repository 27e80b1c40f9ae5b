"""The log's keys: made on first use, rotated without a moment in which neither signs."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from casino_brag.audit.notes import SigningKey
from casino_brag.audit.sealer import seal, signing_keys
from casino_brag.cli.installation import Addresses, log_keys, sealing, write_secret
from casino_brag.cli.log_keys import rotate_key
from casino_brag.cli.worker import worker
from casino_brag.db.embedded import Role
from casino_brag.errors import SetUpError
from tests.inprocess import AppHouse, app_house_in

KEY = SigningKey("log.example/brag", bytes(range(32)))


def rotated(*arguments: str | Path) -> list[str]:
    done = CliRunner().invoke(rotate_key, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOG_KEYS", "CHECKPOINTS_DIR", "CHECKPOINT_SECONDS", "DATA_DIR"):
        monkeypatch.delenv(f"CASINO_BRAG_{name}", raising=False)


def at(url: str) -> Addresses:
    return Addresses(app=url, owner=url, superuser=None)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("log_keys")) as made:
        yield made


@pytest.fixture(scope="module")
def unsigned(house: AppHouse) -> Addresses:
    """A database before its first migration."""
    return at(house.server.url(Role.SUPERUSER).replace("/casino_brag?", "/postgres?"))


@pytest.fixture(scope="module")
def signed(house: AppHouse) -> Addresses:
    """A database whose log was signed; until then it counts as not signed."""
    addresses = at(house.server.url(Role.APP))
    seal(house.service.database.connection, [KEY])
    return addresses


def test_a_migrated_database_whose_log_nobody_has_signed_gets_a_key(tmp_path: Path, house: AppHouse) -> None:
    made = sealing(tmp_path, at(house.server.url(Role.APP))).keys
    assert made == log_keys(tmp_path)


def test_a_signed_log_whose_keys_are_missing_gets_no_other(
    tmp_path: Path, signed: Addresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SetUpError, match=r"log\.keys is missing: restore .* rotate-key --name NAME"):
        sealing(tmp_path, signed)
    monkeypatch.setenv("DATABASE_URL", signed.app)
    told = CliRunner().invoke(worker, ["--data-dir", str(tmp_path)])
    assert isinstance(told.exception, SetUpError)
    assert not (tmp_path / "log.keys").exists()
    monkeypatch.setenv("CASINO_BRAG_LOG_KEYS", KEY.text())
    assert sealing(tmp_path, signed).keys == (KEY,)


def test_keys_that_are_missing_are_not_rotated(tmp_path: Path) -> None:
    told = CliRunner().invoke(rotate_key, ["--data-dir", str(tmp_path)])
    assert isinstance(told.exception, SetUpError)
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_made_on_first_use_and_kept(tmp_path: Path, unsigned: Addresses) -> None:
    data_dir = tmp_path / "data"
    (key,) = sealing(data_dir, unsigned).keys
    assert key.name.startswith("casino-brag/")
    assert log_keys(data_dir) == (key,)
    assert (data_dir / "log.keys").read_text() == f"{key.text()}\n"
    assert stat.S_IMODE((data_dir / "log.keys").stat().st_mode) == 0o600
    assert [path.name for path in data_dir.iterdir()] == ["log.keys"]
    (other,) = sealing(tmp_path / "another", unsigned).keys
    assert other.name != key.name


def test_the_environment_s_keys_stand_in_for_those_of_the_file(
    tmp_path: Path, unsigned: Addresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASINO_BRAG_LOG_KEYS", KEY.text())
    monkeypatch.setenv("CASINO_BRAG_CHECKPOINTS_DIR", str(tmp_path / "worm"))
    monkeypatch.setenv("CASINO_BRAG_CHECKPOINT_SECONDS", "5")
    found = sealing(tmp_path, unsigned)
    assert found.keys == (KEY,)
    assert (found.publication.directory, found.publication.every_seconds) == (tmp_path / "worm", 5)
    assert list(tmp_path.iterdir()) == []
    assert KEY.text().rpartition("+")[2] not in repr(found)


def test_checkpoints_are_published_in_the_data_directory_unless_it_is_said(
    tmp_path: Path, unsigned: Addresses
) -> None:
    publication = sealing(tmp_path, unsigned).publication
    assert (publication.directory, publication.every_seconds) == (tmp_path / "checkpoints", 60)


@pytest.mark.parametrize("content", ["", "nonsense", "\u00e9", KEY.verifier.text()])
def test_a_damaged_file_is_named_and_not_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / "log.keys").write_text(content)
    with pytest.raises(SetUpError, match=r"log\.keys is damaged"):
        log_keys(tmp_path)
    assert (tmp_path / "log.keys").read_text() == content


@pytest.mark.parametrize("value", ["0", "86401", "soon"])
def test_a_pace_that_is_none_is_named(
    tmp_path: Path, unsigned: Addresses, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CASINO_BRAG_CHECKPOINT_SECONDS", value)
    with pytest.raises(SetUpError, match="CASINO_BRAG_CHECKPOINT_SECONDS"):
        sealing(tmp_path, unsigned)


def test_a_new_key_comes_before_the_old_one_and_the_old_one_goes_later(
    tmp_path: Path, unsigned: Addresses
) -> None:
    (old,) = sealing(tmp_path, unsigned).keys
    said = rotated("--data-dir", tmp_path)
    new, still = log_keys(tmp_path)
    assert still == old
    assert (new.name, new != old) == (old.name, True)
    assert said[:2] == [f"checked by {key.verifier.text()}" for key in (new, old)]
    assert "Restart" in said[2]
    assert old.text() not in "".join(said)
    assert rotated("--drop-old", "--data-dir", tmp_path)[0] == f"checked by {new.verifier.text()}"
    assert log_keys(tmp_path) == (new,)
    assert stat.S_IMODE((tmp_path / "log.keys").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["log.keys"]


def test_a_key_that_cannot_be_put_in_its_place_leaves_no_copy(tmp_path: Path) -> None:
    in_the_way = tmp_path / "log.keys"
    in_the_way.mkdir()
    with pytest.raises(IsADirectoryError):
        write_secret(in_the_way, KEY.text(), anew=True)
    assert list(tmp_path.iterdir()) == [in_the_way]


def test_keys_of_the_environment_are_printed_anew_and_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASINO_BRAG_LOG_KEYS", KEY.text())
    said = rotated("--data-dir", tmp_path)
    name, _, value = said[0].partition("=")
    new, old = signing_keys(value)
    assert (name, old, new.name) == ("CASINO_BRAG_LOG_KEYS", KEY, KEY.name)
    assert said[1:] == [f"checked by {key.verifier.text()}" for key in (new, old)]
    monkeypatch.setenv("CASINO_BRAG_LOG_KEYS", value)
    assert rotated("--drop-old", "--data-dir", tmp_path)[0] == f"CASINO_BRAG_LOG_KEYS={new.text()}"
    assert list(tmp_path.iterdir()) == []


def test_a_first_key_is_printed_for_a_log_of_any_name(tmp_path: Path) -> None:
    said = rotated("--name", "casino.example/brag", "--data-dir", tmp_path)
    (key,) = signing_keys(said[0].removeprefix("CASINO_BRAG_LOG_KEYS="))
    assert key.name == "casino.example/brag"
    assert said[1] == f"checked by {key.verifier.text()}"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SetUpError, match="is no name of a log"):
        rotated("--name", "two words", "--data-dir", tmp_path)
