"""``simulate`` as a person runs it: a process, its exit code, its report, and what Ctrl-C does to it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster

from casino_brag.game.paytable import Paytable
from casino_brag.odds.returns import main_game
from casino_brag.simulation import engines, verdict
from casino_brag.simulation.plan import CHUNK_ROUNDS
from tests.terminal import Finished, casino_brag, command, environment

BRAG = "paytables/three-card-brag.toml"
SEED = "5a" * 48
SECONDS = 60


def simulate(*arguments: str | Path) -> Finished:
    """In this process, with one worker: as a process of its own it says the same."""
    return command("simulate", BRAG, "--workers", "1", "--seed", SEED, *arguments)


def test_a_simulation_agrees_and_its_report_is_for_reading() -> None:
    finished = casino_brag("simulate", BRAG, "--rounds", "2_000_000", "--workers", "1", "--seed", SEED)
    assert (finished.code, finished.err) == (0, f"Seed {SEED}\n")
    lines = finished.out.splitlines()
    assert lines[1] == "max_expectation, stakes 1+1, 2,000,000 rounds"
    assert any(line.startswith("main rtp ") and " 97.996138% " in line for line in lines)
    assert any(line.startswith("main house edge ") and " 3.354881% " in line for line in lines)
    assert any(line.startswith("pair bonus rtp ") and " 97.864253% " in line for line in lines)
    assert lines[-1] == "agrees: The simulation agrees with the exact figures."
    assert max(map(len, lines)) <= 120


def test_the_report_for_machines_has_stable_keys() -> None:
    finished = simulate("--rounds", "1e6", "--stakes", "100+50,200", "--json")
    assert (finished.code, finished.err) == (0, f"Seed {SEED}\n")
    report = json.loads(finished.out)
    assert set(report) == {
        "plan",
        "plan_digest",
        "paytable_digest",
        "confidence",
        "staked_minor",
        "returned_minor",
        "figures",
        "fits",
        "impossible",
        "discards",
        "conclusion",
    }
    assert set(report["plan"]) == {
        "casino_brag",
        "paytable",
        "strategy",
        "stakes",
        "rounds",
        "chunk_rounds",
        "seed",
    }
    assert list(report["figures"]) == ["main_rtp", "main_house_edge", "pair_bonus_rtp", "total_rtp"]
    for figure in report["figures"].values():
        assert set(figure) == {
            "simulated",
            "simulated_exact",
            "low",
            "high",
            "expected",
            "expected_exact",
            "z",
            "p",
            "p_adjusted",
        }
    assert list(report["fits"]) == ["player_categories", "dealer_categories", "results", "endings"]
    for fit in report["fits"].values():
        assert set(fit) == {"cells", "chi_square", "degrees", "p", "p_adjusted"}
        assert sum(cell["counted"] for cell in fit["cells"].values()) == 10**6
    assert report["figures"]["main_rtp"]["expected_exact"] == str(main_game(Paytable.load(BRAG)).rtp)
    assert (report["plan"]["seed"], report["plan"]["stakes"]) == (SEED, "100+50,200")


def test_the_same_seed_gives_the_same_report_whatever_plays_it(tmp_path: Path) -> None:
    common = ("--rounds", str(2 * CHUNK_ROUNDS + 100_000), "--json")
    alone = simulate(*common)
    two = casino_brag("simulate", BRAG, "--workers", "2", "--seed", SEED.upper(), *common)
    assert (two.code, two.out) == (0, alone.out)
    assert simulate(*common, "--state", tmp_path / "run.json").out == alone.out
    # Done already: what is asked again is read from the file, its seed too.
    again = command("simulate", BRAG, *common, "--state", tmp_path / "run.json")
    assert again == alone
    with LocalCluster(
        n_workers=1, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as cluster:
        engine = str(cluster.scheduler_address).replace("tcp://", "dask://")
        assert command("simulate", BRAG, "--engine", engine, "--seed", SEED, *common) == alone


def test_a_seed_is_fresh_unless_given_and_repeats_the_run() -> None:
    first, second = (command("simulate", BRAG, "--rounds=100000", "--workers=1", "--json") for _ in range(2))
    seeds = [json.loads(finished.out)["plan"]["seed"] for finished in (first, second)]
    assert seeds[0] != seeds[1]
    assert first.err == f"Seed {seeds[0]}\n"
    assert command("simulate", BRAG, "--rounds=100000", "--json", "--seed", seeds[0]).out == first.out


@pytest.mark.parametrize("state", ["/dev/zero", f"{BRAG}/x", "/tmp/" + "x" * 250])
def test_a_state_that_cannot_be_kept_is_told_of(state: str) -> None:
    finished = simulate("--rounds", "1e6", "--state", state)
    assert (finished.code, finished.out) == (2, "")
    assert f"casino-brag: {state} cannot be " in finished.err
    assert "Traceback" not in finished.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--rounds", "99999"], "is no number of rounds: write 10_000_000 or 1e9, 100,000 to"),
        (["--rounds", "many"], "is no number of rounds"),
        (["--rounds", "1e400000000000000000000"], "is no number of rounds"),
        (["--rounds", "nan"], "is no number of rounds"),
        (["--rounds", "100000.5"], "is no number of rounds"),
        (["--rounds", "1e6", "--strategy", "bluff"], "'bluff' is no strategy"),
        (["--rounds", "1e6", "--stakes", "1,zwei"], "'zwei' is no stake"),
        (["--rounds", "1e6", "--stakes", "9" * 16], "could pay more than"),
        (["--rounds", "1e6", "--seed", "abc"], "a seed has 96 hexadecimal digits"),
        (["--rounds", "1e6", "--engine", "spark"], "'spark' is no engine: write local or dask://host:port"),
        (["--rounds", "1e6", "--engine", "dask://x"], "is no engine"),
        (
            ["--rounds", "1e6", "--engine", "dask://x:1", "--workers", "2"],
            "--workers belongs to the local engine",
        ),
        (["--rounds", "1e6", "--workers", "0"], "--workers"),
        (["--rounds", "1e6", "--confidence", "1"], "--confidence"),
        (["--rounds", "1e6", "--confidence", "nan"], "is no confidence"),
        (["--rounds", "1e6", "--engine", "dask://a:b:1"], "is no engine"),
        (["--rounds", "1e6", "--engine", "dask://127.0.0.1:65536"], "is no engine"),
        ([], "--rounds"),
    ],
    ids=str,
)
def test_wrong_use_is_told_of(arguments: list[str], told: str) -> None:
    finished = command("simulate", BRAG, *arguments)
    assert (finished.code, finished.out) == (2, "")
    assert finished.err.startswith("Usage: ")
    assert told in finished.err


def test_a_file_that_will_not_do_is_told_of_line_by_line(tmp_path: Path) -> None:
    text = Path(BRAG).read_text(encoding="utf-8")
    file = tmp_path / "three-card-brag.toml"
    file.write_text(
        text.replace("multiple = 1", "multiple = 0").replace('result = "push"', 'result = "bank"')
    )
    finished = command("simulate", file, "--rounds", "1e6")
    assert (finished.code, finished.out) == (2, "")
    assert [line.split(": ")[1] for line in finished.err.splitlines()] == ["play.multiple", "tie.result"]
    assert command("simulate", tmp_path / "none.toml", "--rounds", "1e6").code == 2


def test_what_stops_it_is_told_in_a_sentence_and_is_no_verdict(tmp_path: Path) -> None:
    state = tmp_path / "run.json"
    simulate("--rounds", "100000", "--state", state)
    other = simulate("--rounds", "200000", "--state", state, "--strategy", "max_rtp")
    assert (other.code, other.out) == (2, "")
    assert other.err == (
        f"casino-brag: {state} belongs to another run, of another strategy, rounds: name another --state.\n"
    )
    state.write_text("{}")
    assert "cannot be gone on from" in simulate("--rounds", "100000", "--state", state).err
    nobody = command("simulate", BRAG, "--rounds", "1e6", "--state", tmp_path / "no" / "where.json")
    assert (nobody.code, "cannot be written" in nobody.err) == (2, True)


def test_a_cluster_that_is_not_there_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        engine = f"dask://127.0.0.1:{free.getsockname()[1]}"
        finished = command("simulate", BRAG, "--rounds", "1e6", "--engine", engine, "--seed", SEED)
    assert (finished.code, finished.out) == (2, "")
    assert finished.err.startswith(f"Seed {SEED}\ncasino-brag: No Dask scheduler answers at 127.0.0.1:")


def test_a_simulation_that_disagrees_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    always = verdict.count_endings

    def mistaken(*arguments: Any) -> Any:
        """Theory that has forgotten ties."""
        endings = always(*arguments).copy()
        endings[:, 2] += endings[:, 3]
        endings[:, 3] = 0
        return endings

    monkeypatch.setattr(verdict, "count_endings", mistaken)
    finished = simulate("--rounds", "1e6")
    assert finished.code == 1
    assert "Impossible, and yet counted: high_card.tie.\n" in finished.out
    assert finished.out.splitlines()[-1].startswith("disagrees: ")


@contextmanager
def running(
    *arguments: str | Path, rounds: int, stderr: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """A command with two workers, in a process group of its own as a shell starts it; nothing is left of it."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "casino_brag", "simulate", BRAG, f"--rounds={rounds}", "--workers=2"),
            *(f"--seed={SEED}", "--json", *map(str, arguments)),
        ],
        stdout=subprocess.PIPE,
        stderr=stderr,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment({"TERM": "xterm", "COLUMNS": "120"}),
        start_new_session=True,
    )
    try:
        yield process
        until(lambda: not group(process.pid))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=SECONDS)


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def group(leader: int) -> list[str]:
    """The processes of a group, dead ones whose parent has not asked for them left out."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(of) == leader and state != "Z":
                found.append(stat.parent.name)
    return found


@contextmanager
def terminal() -> Iterator[tuple[int, Callable[[], str]]]:
    """A terminal: its end for a process, and a way to read what it shows, which is empty when nobody writes."""
    ours, theirs = pty.openpty()

    def shown() -> str:
        ready, _, _ = select.select([ours], [], [], 0.2)
        return os.read(ours, 65536).decode() if ready else ""

    try:
        yield theirs, shown
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_terminal_is_shown_how_far_it_is_and_after_ctrl_c_the_same_command_goes_on(tmp_path: Path) -> None:
    rounds, state = 48 * CHUNK_ROUNDS, tmp_path / "run.json"
    with terminal() as (stderr, shown), running("--state", state, rounds=rounds, stderr=stderr) as process:
        screen = ""

        def has_begun() -> bool:
            nonlocal screen
            screen += shown()
            return re.search(rf"[1-9][0-9]*/{rounds}", screen) is not None

        until(has_begun)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=SECONDS)
        while rest := shown():
            screen += rest
    assert (process.returncode, out) == (130, "")
    assert screen.startswith(f"Seed {SEED}\r\n")
    assert screen.endswith(f"\r\nInterrupted: the same command goes on from {state}.\r\n")
    played = sum(last - first + 1 for first, last in json.loads(state.read_text())["done"])
    assert 0 < played < 48
    resumed = casino_brag("simulate", BRAG, f"--rounds={rounds}", "--state", state, "--json")
    assert (resumed.code, resumed.err) == (0, f"Seed {SEED}\n")
    assert json.loads(state.read_text())["done"] == [[0, 47]]
    report = json.loads(resumed.out)
    assert sum(cell["counted"] for cell in report["fits"]["endings"]["cells"].values()) == rounds


@pytest.mark.parametrize("after", [0.0, 0.1, 0.2, 0.3, 1.0])
def test_ctrl_c_at_any_time_is_quiet_and_leaves_nothing_running(after: float) -> None:
    with running(rounds=10**12) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"Seed {SEED}\n"
        time.sleep(after)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (130, "")
    assert err == "Interrupted: with --state FILE it could have been gone on.\n"


def test_workers_do_not_outlive_a_command_that_is_killed() -> None:
    with running(rounds=10**12) as process:
        # The command, its two workers, and the helper that multiprocessing keeps.
        until(lambda: len(group(process.pid)) >= 4)
        process.kill()
