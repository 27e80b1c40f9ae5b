"""The environment: what is missing or wrong is named in one sentence, by every command alike."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.config import parse_seal_keys, read_config
from casino_brag.errors import SetUpError
from tests.terminal import command

KEY = base64.b64encode(bytes(range(32))).decode()
SHORT = base64.b64encode(bytes(31)).decode()
MALFORMED = [
    "k1",
    ":",
    "k1:",
    f":{KEY}",
    KEY,
    f"k1:{SHORT}",
    f"k1:{KEY}x",
    f"k1:{KEY[:-1]}",
    "k1:not base64",
    f"k1:{KEY},k1:{KEY}",
    f"k1:{KEY},",
    f"k1:{KEY};k2:{KEY}",
    "k1:\u00e9",
    f"k1:{KEY}\u00e9",
    f"k1:{KEY} {KEY}",
]


def test_keys_are_read_in_their_order() -> None:
    other = base64.b64encode(bytes(32)).decode()
    keys = parse_seal_keys(f"new:{other}, old:{KEY}")
    assert list(keys.items()) == [("new", bytes(32)), ("old", bytes(range(32)))]


@pytest.mark.parametrize("text", ["", *MALFORMED])
def test_keys_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(SetUpError, match="CASINO_BRAG_SEAL_KEYS"):
        parse_seal_keys(text)


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_is_keys_or_is_refused(text: str) -> None:
    with pytest.raises(SetUpError):
        parse_seal_keys(text)


def test_no_message_repeats_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetUpError) as refused:
        parse_seal_keys(f"k1:{KEY},k1:{KEY}")
    assert KEY not in str(refused.value)
    assert KEY not in repr(
        read_config(database_url="postgresql://secret@/x", seal_keys=parse_seal_keys(f"k1:{KEY}"))
    )
    assert "secret" not in repr(
        read_config(database_url="postgresql://secret@/x", seal_keys={"k": bytes(32)})
    )


@pytest.mark.parametrize("missing", ["DATABASE_URL", "CASINO_BRAG_SEAL_KEYS"])
def test_a_secret_has_no_default(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nowhere")
    monkeypatch.setenv("CASINO_BRAG_SEAL_KEYS", f"k1:{KEY}")
    assert read_config().seal_keys == {"k1": bytes(range(32))}
    monkeypatch.delenv(missing)
    with pytest.raises(SetUpError, match=missing):
        read_config()


WRONG = [
    ("CASINO_BRAG_LOG_FORMAT", "xml"),
    ("CASINO_BRAG_POOL_SIZE", "0"),
    ("CASINO_BRAG_POOL_SIZE", "many"),
    ("CASINO_BRAG_POOL_SIZE", "129"),
    ("CASINO_BRAG_RATE_PER_SECOND", "-1"),
    ("CASINO_BRAG_RATE_PER_SECOND", "1.5"),
    ("CASINO_BRAG_SEALING_LAG_SECONDS", "-1"),
]


@pytest.mark.parametrize(("variable", "value"), WRONG)
def test_a_variable_that_is_wrong_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SetUpError, match=variable):
        read_config(database_url="postgresql://nowhere", seal_keys={"k1": bytes(32)})


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("configuration") / "data"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *WRONG[:3],
        ("CASINO_BRAG_WORKERS", "many"),
        ("CASINO_BRAG_WORKERS", "0"),
        ("CASINO_BRAG_SEAL_KEYS", "k1:short"),
        ("CASINO_BRAG_LOG_KEYS", "PRIVATE+KEY+short"),
        ("CASINO_BRAG_CHECKPOINT_SECONDS", "0"),
        ("CASINO_BRAG_SEAL_KEYS", "k1:\u00e9"),
        ("DATABASE_URL", "nonsense"),
        ("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing"),
        ("CASINO_BRAG_PG_BINDIR", "/nowhere"),
    ],
)
def test_a_service_with_a_wrong_environment_does_not_start(data_dir: Path, variable: str, value: str) -> None:
    finished = command("serve", "--port=8081", "--data-dir", data_dir, env={variable: value})
    assert finished.code in (1, 2)
    assert "Traceback" not in finished.err
    said = finished.err.strip()
    assert variable.removeprefix("CASINO_BRAG_").split("_")[0].lower() in said.lower()
    assert "\u00e9" not in said or variable != "CASINO_BRAG_SEAL_KEYS"
    assert not (data_dir / "postgres" / "postmaster.pid").exists()


@pytest.mark.parametrize(
    ("variable", "value"), [("CASINO_BRAG_POOL_SIZE", "many"), ("CASINO_BRAG_WORKERS", "many")]
)
def test_a_wrong_environment_keeps_no_command_from_explaining_itself(variable: str, value: str) -> None:
    assert command("--help", env={variable: value}).code == 0


@pytest.mark.parametrize("place", ["/dev/null/data", "/proc/casino-brag/data"])
def test_a_place_where_nothing_can_be_kept_is_named(place: str) -> None:
    assert place in command("serve", "--port=8081", "--data-dir", place).sentence
    for words in (["migrate", "up"], ["operator", "add", "acme"]):
        assert place in command(*words, "--data-dir", place).sentence


def test_keys_that_cannot_be_kept_are_named_too(tmp_path: Path) -> None:
    env = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}
    sentence = command("serve", "--port=8081", "--data-dir", "/dev/null/data", env=env).sentence
    assert "/dev/null/data/seal.keys" in sentence


@pytest.mark.parametrize("content", ["", "k1:short\n", "\x00\xff"])
def test_a_damaged_file_of_keys_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "seal.keys").write_text(content, encoding="latin-1")
    env = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}
    assert str(tmp_path / "seal.keys") in command("serve", "--data-dir", tmp_path, env=env).sentence
