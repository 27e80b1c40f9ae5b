"""Processes never draw the same, however they came about and whatever their parent was in the middle of."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest

import casino_brag.rng

ROOT = Path(casino_brag.rng.__file__).parents[2]
CHILD_SECONDS = 30
GUNICORN_SECONDS = 60
WORKERS = 8
FORKS = ["os.fork", "the C library's fork"]

PRELUDE = """
import ctypes, os, signal, sys, threading
from casino_brag.rng import Drawn, Generator, RngUnavailable, State

# The second is a fork that Python does not hear of, and so runs no hooks for.
fork = os.fork if sys.argv[1] == "os.fork" else ctypes.PyDLL(None).fork

def children(number, work):
    '''Runs this in so many children, each of which has thirty seconds, and prints what they say.'''
    sys.stdout.flush()
    for _ in range(number):
        if fork() == 0:
            signal.alarm(30)
            os.write(1, (work() + chr(10)).encode())
            os._exit(0)
    for _ in range(number):
        assert os.wait()[1] == 0, "a child hung or failed"

def line(generator, times=20):
    drawn = [generator.generate(16, "a test") for _ in range(times)]
    return " ".join([drawn[0].instance, *(answer.output.hex() for answer in drawn)])
"""


def run(script: str, *arguments: str) -> list[list[str]]:
    """The words of each line that a program prints."""
    finished = subprocess.run(
        [sys.executable, "-c", PRELUDE + script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * CHILD_SECONDS,
        check=True,
    )
    return [line.split() for line in finished.stdout.splitlines()]


def assert_all_distinct(lines: list[list[str]], number: int) -> None:
    """So many lines, each of an instance and of twenty answers of its own."""
    assert len(lines) == len({line[0] for line in lines}) == number
    answers = [answer for line in lines for answer in line[1:]]
    assert len(answers) == len(set(answers)) == 20 * number


@pytest.mark.parametrize("fork", FORKS)
def test_children_draw_otherwise_than_each_other_and_than_their_parent(fork: str) -> None:
    script = """
generator = Generator()
print(line(generator))
children(6, lambda: line(generator))
print(line(Generator()))
"""
    assert_all_distinct(run(script, fork), 8)


@pytest.mark.parametrize("fork", FORKS)
def test_grandchildren_draw_otherwise_too_whether_or_not_their_parent_drew(fork: str) -> None:
    script = """
generator = Generator()
print(line(generator))

def parent():
    children(3, lambda: line(generator))
    return line(generator)

children(3, parent)
children(1, lambda: children(2, lambda: line(generator)) or line(generator))
"""
    assert_all_distinct(run(script, fork), 1 + 3 * 4 + 3)


@pytest.mark.parametrize("fork", FORKS)
def test_a_parent_goes_on_with_its_own_instance(fork: str) -> None:
    script = """
generator = Generator()
before = generator.generate(16, "a test")
children(2, lambda: line(generator))
after = generator.generate(16, "a test")
print(before.instance == after.instance, after.request, [event.kind.value for event in generator.take_events()])
"""
    *_, said = run(script, fork)
    assert " ".join(said) == "True 2 ['self_tested', 'instantiated']"


@pytest.mark.parametrize("fork", FORKS)
def test_a_child_says_that_it_threw_its_parents_instance_away(fork: str) -> None:
    """And not what its parent had left to say, which the parent says itself."""
    script = """
generator = Generator()
parent = generator.generate(16, "a test")

def told():
    state = generator.state
    drawn = generator.generate(16, "a test")
    events = generator.take_events()
    assert events[0].detail.keys() == {"module", "process", "instance", "parent", "inherited"}
    assert state is State.UNINSTANTIATED
    assert (drawn.reseeds, drawn.request) == (1, 1)
    assert events[0].detail["parent"] == os.getppid()
    assert events[0].detail["process"] == os.getpid()
    assert events[0].detail["inherited"] == parent.instance != drawn.instance
    return " ".join(event.kind.value for event in events)

children(2, told)
"""
    assert run(script, fork) == [["forked", "self_tested", "instantiated"]] * 2


def test_the_hook_tells_children_apart_that_process_numbers_do_not() -> None:
    """As where each is number 1 of a container of its own."""
    script = """
os.getpid = lambda: 1
generator = Generator()
print(line(generator))
children(4, lambda: line(generator))
"""
    assert_all_distinct(run(script, "os.fork"), 5)


@pytest.mark.parametrize("fork", FORKS)
def test_a_child_of_a_parent_that_drew_nothing_has_nothing_to_say(fork: str) -> None:
    script = """
generator = Generator()
children(2, lambda: generator.state.value + str(generator.take_events()))
"""
    assert run(script, fork) == [["uninstantiated[]"]] * 2


@pytest.mark.parametrize("fork", FORKS)
def test_a_child_of_a_parent_in_error_is_in_error(fork: str) -> None:
    """A fork is no way out of the error state; a new process is."""
    script = """
generator = Generator()
generator.start()
generator.fail("found-outside")

def refused():
    for ask in (generator.start, generator.check, lambda: generator.generate(16, "a test")):
        try:
            ask()
            return "answered"
        except RngUnavailable as failed:
            assert str(failed) == generator.failure
    return generator.state.value + " " + generator.failure

children(2, lambda: children(2, refused) or refused())
"""
    assert run(script, fork) == [["error", "found-outside"]] * 6
    assert run("print(line(Generator(), 1))", fork) != []


@pytest.mark.parametrize("fork", FORKS)
def test_a_child_does_not_wait_for_a_thread_that_does_not_exist_in_it(fork: str) -> None:
    """The parent's other thread holds the lock, in the middle of a request, when the fork happens."""
    script = """
generator = Generator()
print(line(generator))
held, done = threading.Event(), threading.Event()

def hold():
    own = generator._instance
    with own.lock:
        own.state = State.RESEEDING
        held.set()
        done.wait(60)
        own.state = State.READY

thread = threading.Thread(target=hold)
thread.start()
held.wait(30)
children(4, lambda: line(generator))
done.set()
thread.join(30)
print(line(generator))
"""
    lines = run(script, fork)
    assert lines[0][0] == lines[-1][0]
    assert_all_distinct(lines[:-1], 5)
    assert not set(lines[0][1:]) & set(lines[-1][1:])


@pytest.mark.parametrize("fork", FORKS)
def test_without_its_guards_children_would_draw_the_same(fork: str) -> None:
    """Three mutants, four children each.  The core alone repeats itself in all of them.  With fresh entropy for each
    request but no guard they take themselves for the same instance, and with guards they do not."""
    script = """
class Unguarded(Generator):
    def _own(self):
        return self._instance

    def _throw_away_inherited(self):
        pass

class Bare(Unguarded):
    def generate(self, size, purpose, subject=b""):
        self.start()
        return Drawn(self._instance.drbg.generate(size), self._instance.name, 0, 0)

generator = {"bare": Bare, "unguarded": Unguarded, "real": Generator}[sys.argv[2]]()
generator.start()
children(4, lambda: line(generator))
"""

    def distinct(which: str) -> tuple[int, int]:
        lines = run(script, fork, which)
        return len({line[0] for line in lines}), len({line[1] for line in lines})

    assert distinct("bare") == (1, 1)
    assert distinct("unguarded") == (1, 4)
    assert distinct("real") == (4, 4)


POOL = """
import multiprocessing, sys
from casino_brag.rng import Generator

generator = Generator()

def line(_):
    drawn = [generator.generate(16, "a test") for _ in range(20)]
    return " ".join([f"{drawn[0].instance}-{drawn[0].request}", *(answer.output.hex() for answer in drawn)])

if __name__ == "__main__":
    print(line(0))
    with multiprocessing.get_context(sys.argv[1]).Pool(4) as pool:
        for printed in pool.map(line, range(8), chunksize=1):
            print(printed)
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_a_pool_of_processes_draws_nothing_twice(how: str, tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    finished = subprocess.run(
        [sys.executable, str(tmp_path / "pool.py"), how],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=2 * CHILD_SECONDS,
        check=True,
    )
    assert_all_distinct([line.split() for line in finished.stdout.splitlines()], 9)


APP = """
import os, time
from casino_brag.rng import Generator

generator = Generator()
generator.start()  # with preload_app, in the parent of all workers

def app(environ, start_response):
    time.sleep(0.01)  # so that no worker answers all
    drawn = generator.generate(32, "an answer")
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {drawn.instance} {drawn.request} {drawn.output.hex()}".encode()]
"""


class Unix(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=CHILD_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(CHILD_SECONDS)
        self.sock.connect(str(self._path))


def answer_of(path: Path) -> tuple[str, str, int, str]:
    """Process, instance, number of the request, and output that the service answers with."""
    connection = Unix(path)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.status == 200
        process, instance, request, output = answer.read().decode().split()
        return process, instance, int(request), output
    finally:
        connection.close()


@pytest.mark.parametrize("preload", [False, True], ids=["each worker for itself", "preload_app"])
def test_the_workers_of_a_server_draw_nothing_twice(preload: bool, tmp_path: Path) -> None:
    """Workers of one parent with one seed have dealt the same cards elsewhere."""
    (tmp_path / "drawing.py").write_text(APP)
    path = tmp_path / "s"
    (tmp_path / "conf.py").write_text(f"preload_app = {preload}; control_socket_disable = True")
    command = [sys.executable, "-m", "gunicorn", "--config", str(tmp_path / "conf.py")]
    command += ["--workers", str(WORKERS), "--bind", f"unix:{path}", "--pythonpath", str(tmp_path)]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen([*command, "drawing:app"], cwd=ROOT, stderr=log, env=os.environ)
    answers: list[tuple[str, str, int, str]] = []
    try:
        until = time.monotonic() + GUNICORN_SECONDS
        while not path.exists():
            assert server.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)
        with ThreadPoolExecutor(2 * WORKERS) as clients:
            while len({process for process, *_ in answers}) < WORKERS or len(answers) < 400:
                assert time.monotonic() < until, (tmp_path / "log").read_text()
                answers += clients.map(answer_of, [path] * 80)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(GUNICORN_SECONDS)
    assert len({output for *_, output in answers}) == len(answers)
    of_process = {(process, instance) for process, instance, *_ in answers}
    assert len(of_process) == len({instance for _, instance in of_process}) == WORKERS
    # Each instance counted its own requests, without a gap and from the first.
    counts = Counter(instance for _, instance, *_ in answers)
    assert {(instance, request) for _, instance, request, _ in answers} == {
        (instance, request) for instance, count in counts.items() for request in range(1, count + 1)
    }
    assert str(server.pid) not in {process for process, *_ in answers}
    assert not re.search("error|exception", (tmp_path / "log").read_text(), re.IGNORECASE)
