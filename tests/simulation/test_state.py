from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag import statefile
from casino_brag.errors import SetUpError
from casino_brag.game.paytable import Paytable
from casino_brag.odds.strategies import MAX_EXPECTATION, MAX_RTP
from casino_brag.simulation.engines import local
from casino_brag.simulation.plan import CHUNK_ROUNDS, Plan, StakePattern
from casino_brag.simulation.state import Progress, differences
from casino_brag.simulation.tally import Tally
from casino_brag.statefile import StateFile, content_digest

BRAG = Paytable.load("paytables/three-card-brag.toml")
PLAN = Plan(BRAG, MAX_EXPECTATION, StakePattern.parse("100+100,200x2"), 4 * CHUNK_ROUNDS + 100_000, bytes(48))


def kept_in(path: Path) -> StateFile[Progress]:
    return StateFile(path, Progress.from_document)


@pytest.fixture(scope="module")
def tallies() -> dict[int, Tally]:
    """Every chunk of the plan."""
    return dict(local(PLAN, range(PLAN.chunks), 1))


@pytest.fixture
def begun(tallies: dict[int, Tally]) -> Progress:
    """A run interrupted after three of five chunks."""
    progress = Progress(PLAN)
    for chunk in (3, 0, 1):
        progress.add(chunk, tallies[chunk])
    return progress


@pytest.fixture
def kept(tmp_path: Path, begun: Progress) -> StateFile[Progress]:
    file = kept_in(tmp_path / "run.json")
    file.save(begun)
    return file


def test_a_run_gone_on_with_is_one_never_interrupted(
    kept: StateFile[Progress], tallies: dict[int, Tally]
) -> None:
    resumed = kept.load()
    assert resumed is not None
    assert resumed.plan == PLAN
    assert resumed.remaining() == [2, 4]
    for chunk, tally in local(resumed.plan, resumed.remaining(), 1):
        resumed.add(chunk, tally)
    assert resumed.remaining() == []
    assert resumed.tally == sum(tallies.values(), Tally.empty(3))


def test_no_file_is_a_run_not_begun(tmp_path: Path) -> None:
    assert kept_in(tmp_path / "none.json").load() is None


def test_a_run_that_is_done_stays_done(tmp_path: Path, tallies: dict[int, Tally]) -> None:
    progress = Progress(PLAN)
    for chunk, tally in tallies.items():
        progress.add(chunk, tally)
    assert progress.document()["done"] == [[0, 4]]
    file = kept_in(tmp_path / "run.json")
    file.save(progress)
    loaded = file.load()
    assert loaded is not None
    assert loaded.remaining() == []
    assert loaded.tally == progress.tally


def test_a_chunk_counts_once(begun: Progress, tallies: dict[int, Tally]) -> None:
    with pytest.raises(AssertionError, match="chunk 3 is added once"):
        begun.add(3, tallies[3])


@pytest.mark.parametrize(
    "other", [replace(PLAN, rounds=100_000), replace(PLAN, pattern=StakePattern.parse("1"))]
)
def test_another_plan_s_tally_is_not_added(begun: Progress, other: Plan) -> None:
    with pytest.raises(SetUpError, match="A worker gave another tally than chunk 2's"):
        begun.add(2, other.play(0))
    assert begun.remaining() == [2, 4]


@given(st.sets(st.integers(0, 199)))
def test_stretches_of_chunks_say_which_are_done(done: set[int]) -> None:
    plan = replace(PLAN, rounds=200 * CHUNK_ROUNDS)
    progress = Progress(plan)
    for chunk in done:
        progress._done[chunk] = True
    stretches = progress.document()["done"]
    assert {chunk for first, last in stretches for chunk in range(first, last + 1)} == done
    assert all(b[0] > a[1] + 1 for a, b in pairwise(stretches))


def test_the_file_is_replaced_in_one_step(
    kept: StateFile[Progress], monkeypatch: pytest.MonkeyPatch, begun: Progress
) -> None:
    before, inode = kept.path.read_bytes(), kept.path.stat().st_ino
    kept.save(begun)
    assert kept.path.stat().st_ino != inode

    def disk_full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(SetUpError, match=r"run\.json cannot be written: No space left on device"):
        kept.save(begun)
    assert kept.path.read_bytes() == before
    assert [file.name for file in kept.path.parent.iterdir()] == ["run.json"]


def test_saving_is_not_done_more_often_than_every_few_seconds(
    tmp_path: Path, begun: Progress, tallies: dict[int, Tally], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("casino_brag.statefile.time.monotonic", lambda: now)
    file = kept_in(tmp_path / "run.json")
    file.save_if_due(begun)
    first = file.path.read_bytes()
    begun.add(2, tallies[2])
    now += statefile.SAVE_SECONDS
    file.save_if_due(begun)
    assert file.path.read_bytes() == first
    now += 0.001
    file.save_if_due(begun)
    assert file.path.read_bytes() != first


def count_a_round_more(content: dict[str, Any]) -> None:
    content["tally"]["outcomes"][0][0][0] += 1


def claim_another_chunk(content: dict[str, Any]) -> None:
    content["done"] = [[0, 3]]


def change_the_seed(content: dict[str, Any]) -> None:
    content["plan"]["seed"] = "11" * 48


def drop_the_digest(content: dict[str, Any]) -> None:
    del content["sha256"]


@pytest.mark.parametrize(
    "tamper",
    [count_a_round_more, claim_another_chunk, change_the_seed, drop_the_digest],
    ids=lambda f: f.__name__,
)
def test_a_file_that_was_changed_is_refused(
    kept: StateFile[Progress], tamper: Callable[[dict[str, Any]], None]
) -> None:
    content = json.loads(kept.path.read_text())
    tamper(content)
    kept.path.write_text(json.dumps(content))
    with pytest.raises(SetUpError, match="its content and its digest do not belong together"):
        kept.load()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "cannot be gone on from"),
        (b"\xff\xfe", "cannot be gone on from"),
        (b"[" * 100_000, "cannot be gone on from"),
        (b"[]", "its content and its digest"),
        (b'{"sha256": 7}', "its content and its digest"),
        (b" " * (statefile.FILE_BYTES_MAX + 1), "it is too large"),
    ],
    ids=["empty", "no text", "deep", "a list", "no state", "large"],
)
def test_a_damaged_file_is_refused(kept: StateFile[Progress], content: bytes, told: str) -> None:
    kept.path.write_bytes(content)
    with pytest.raises(SetUpError, match=told) as refused:
        kept.load()
    assert "Name another --state" in str(refused.value)


def test_a_torn_file_is_refused(kept: StateFile[Progress]) -> None:
    content = kept.path.read_bytes()
    kept.path.write_bytes(content[: len(content) // 2])
    with pytest.raises(SetUpError, match="cannot be gone on from"):
        kept.load()


def sealed(content: dict[str, Any]) -> str:
    content["sha256"] = content_digest({key: value for key, value in content.items() if key != "sha256"})
    return json.dumps(content)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"done": [[0, 1], [3, 4]]}, "rounds were counted over 3 stakes where"),
        ({"done": [[0, 1], [1, 1], [3, 3]]}, "chunks 1 to 1 are not of this plan, or are named twice"),
        ({"done": [[0, 9]]}, "chunks 0 to 9 are not of this plan"),
        ({"done": [[-1, 1]]}, "chunks -1 to 1 are not of this plan"),
        ({"done": 5}, "no state of a simulation"),
        ({"tally": {}}, "no state of a simulation"),
        ({"plan": {}}, "no plan of a simulation"),
        ({"plan": PLAN.document() | {"casino_brag": "0.0.7"}}, "made by casino-brag 0.0.7"),
    ],
    ids=str,
)
def test_what_the_digest_does_not_show_is_checked_as_well(
    kept: StateFile[Progress], change: dict[str, Any], told: str
) -> None:
    kept.path.write_text(sealed(json.loads(kept.path.read_text()) | change))
    with pytest.raises(SetUpError, match=told):
        kept.load()


def test_a_place_that_cannot_be_written_is_told_of(tmp_path: Path, begun: Progress) -> None:
    with pytest.raises(SetUpError, match="cannot be written: No such file or directory"):
        kept_in(tmp_path / "nowhere" / "run.json").save(begun)
    with pytest.raises(SetUpError, match="cannot be gone on from: it is no ordinary file"):
        kept_in(tmp_path).load()


def test_plans_differ_by_the_names_of_their_parts() -> None:
    others = {
        "paytable": replace(PLAN, paytable=Paytable.load("paytables/double-play-brag.toml")),
        "strategy": replace(PLAN, strategy=MAX_RTP),
        "stakes": replace(PLAN, pattern=StakePattern.parse("5")),
        "rounds": replace(PLAN, rounds=100_000),
        "seed": replace(PLAN, seed=bytes(range(48))),
    }
    assert {name: differences(PLAN, other) for name, other in others.items()} == {
        name: [name] for name in others
    }
    assert differences(PLAN, PLAN) == []
