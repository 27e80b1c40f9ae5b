"""What a command says when it was given other keys than those that the database was sealed with."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from casino_brag.cli.installation import database, seal_keys
from casino_brag.errors import SetUpError
from casino_brag.sealing import Sealer

KEY, OTHER = secrets.token_bytes(32), secrets.token_bytes(32)


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"k1": OTHER}, "A sealed value was altered, or belongs elsewhere"),
        ({"k2": KEY}, "The key of a sealed value is not among CASINO_BRAG_SEAL_KEYS"),
    ],
)
def test_what_does_not_open_is_said_with_what_to_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, keys: dict[str, bytes], found: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://none.example.com/none")
    sealed = Sealer({"k1": KEY}).seal(b"secret", context="here")
    with pytest.raises(SetUpError) as told, database(tmp_path):
        Sealer(keys).open(sealed, context="here")
    assert str(told.value) == (
        f"{found}. Check that CASINO_BRAG_SEAL_KEYS, or the data directory, is this database's own."
    )


def test_keys_are_kept_for_the_next_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CASINO_BRAG_SEAL_KEYS", raising=False)
    sealed = Sealer(seal_keys(tmp_path)).seal(b"secret", context="here")
    assert Sealer(seal_keys(tmp_path)).open(sealed, context="here") == b"secret"
