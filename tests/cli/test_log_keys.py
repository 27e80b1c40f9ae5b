"""The log's keys: made on first use, rotated without a moment in which neither signs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from casino_brag.audit.notes import SigningKey
from casino_brag.audit.sealer import signing_keys
from casino_brag.cli.installation import log_keys, sealing
from casino_brag.cli.log_keys import rotate_key
from casino_brag.errors import SetUpError

KEY = SigningKey("log.example/brag", bytes(range(32)))


def rotated(*arguments: str | Path) -> list[str]:
    done = CliRunner().invoke(rotate_key, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOG_KEYS", "CHECKPOINTS_DIR", "CHECKPOINT_SECONDS", "DATA_DIR"):
        monkeypatch.delenv(f"CASINO_BRAG_{name}", raising=False)


def test_a_key_is_made_on_first_use_and_kept(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    (key,) = log_keys(data_dir)
    assert key.name.startswith("casino-brag/")
    assert log_keys(data_dir) == (key,)
    assert (data_dir / "log.keys").read_text() == f"{key.text()}\n"
    assert stat.S_IMODE((data_dir / "log.keys").stat().st_mode) == 0o600
    assert [path.name for path in data_dir.iterdir()] == ["log.keys"]
    other = log_keys(tmp_path / "another")
    assert other[0].name != key.name


def test_the_environment_s_keys_stand_in_for_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASINO_BRAG_LOG_KEYS", KEY.text())
    monkeypatch.setenv("CASINO_BRAG_CHECKPOINTS_DIR", str(tmp_path / "worm"))
    monkeypatch.setenv("CASINO_BRAG_CHECKPOINT_SECONDS", "5")
    found = sealing(tmp_path)
    assert found.keys == (KEY,)
    assert (found.publication.directory, found.publication.every_seconds) == (tmp_path / "worm", 5)
    assert list(tmp_path.iterdir()) == []
    assert KEY.text().rpartition("+")[2] not in repr(found)


def test_checkpoints_are_published_in_the_data_directory_unless_it_is_said(tmp_path: Path) -> None:
    publication = sealing(tmp_path).publication
    assert (publication.directory, publication.every_seconds) == (tmp_path / "checkpoints", 60)


@pytest.mark.parametrize("content", ["", "nonsense", "\u00e9", KEY.verifier.text()])
def test_a_damaged_file_is_named_and_not_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / "log.keys").write_text(content)
    with pytest.raises(SetUpError, match=r"log\.keys is damaged"):
        log_keys(tmp_path)
    assert (tmp_path / "log.keys").read_text() == content


@pytest.mark.parametrize("value", ["0", "86401", "soon"])
def test_a_pace_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CASINO_BRAG_CHECKPOINT_SECONDS", value)
    with pytest.raises(SetUpError, match="CASINO_BRAG_CHECKPOINT_SECONDS"):
        sealing(tmp_path)


def test_a_new_key_comes_before_the_old_one_and_the_old_one_goes_later(tmp_path: Path) -> None:
    (old,) = log_keys(tmp_path)
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
