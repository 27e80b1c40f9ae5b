"""Records that are held too long: a bounded wait, a clear answer, no trace, and no harm to anybody else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from casino_brag.db.pool import LOCK_MS
from tests.running import RunningService, code_of


def test_a_player_whose_records_are_held_is_told_to_come_back_and_others_play_on(
    service: RunningService,
) -> None:
    operator = service.operator()
    held, other = operator.player(), operator.player()
    find = (
        "SELECT FROM player JOIN session USING (player_id) WHERE token_hash = sha256(%s) FOR UPDATE OF player"
    )
    with ThreadPoolExecutor(1) as pool:
        with service.connect() as holder, holder.transaction():
            holder.execute(find, [held.token.encode()])
            waiting = pool.submit(held.open, 100, key="k")
            assert other.open(100).status_code == 201
            refused = waiting.result(timeout=LOCK_MS / 1000 + 10)
        assert (refused.status_code, code_of(refused)) == (409, "request_in_progress")
        assert refused.json()["retryable"] is True
        assert held.get("/v1/rounds").json()["items"] == []
        assert held.open(100, key="k").status_code == 201
    assert service.broken_laws() == {}
