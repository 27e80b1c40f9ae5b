"""Every supported Postgres that is found here plays a round and keeps the books."""

from __future__ import annotations

from pathlib import Path

import pytest

from casino_brag.db.binaries import OLDEST_MAJOR, Binaries, usual_places
from tests.books import broken_laws
from tests.running import RunningService

FOUND = {
    binaries.major: binaries
    for place in usual_places()
    if (binaries := Binaries.inspect(place)) is not None and binaries.major >= OLDEST_MAJOR
}


@pytest.mark.parametrize("major", sorted(FOUND))
def test_rounds_are_played_on_each_version_of_postgres(major: int, tmp_path: Path) -> None:
    with RunningService.start(tmp_path, workers=1, bindir=FOUND[major].bindir) as running:
        player = running.operator().player()
        for decision in ("play", "fold"):
            round_id = player.open(100, 50).json()["round_id"]
            assert player.decide(round_id, decision).json()["state"] == "settled"
        with running.connect() as conn:
            assert conn.info.server_version // 10000 == major
            assert broken_laws(conn) == {}
