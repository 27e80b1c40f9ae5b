"""The wheel: what is in it, and that a round can be played from it where there is no checkout."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from zipfile import ZipFile

import pytest
import requests

from tests.running import free_port

Seen = TypeVar("Seen")

ROOT = Path(__file__).parents[2]
START_SECONDS = 120
STOP_SECONDS = 30

# An environment is filled from scratch here, on a first run over the network.
pytestmark = pytest.mark.timeout(900)


def run(*command: str | Path, cwd: Path) -> None:
    # What coverage or a shell tells this Python is not for the other one.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))
    }
    done = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel_names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``casino-brag`` in an environment that holds the wheel, what it needs, and no way to the checkout."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--python",
        folder,
        "--disable-pip-version-check",
        "--no-input",
        "install",
    )
    run(*pip, "--require-hashes", "-r", ROOT / "requirements" / "serve.lock", cwd=folder)
    run(*pip, "--no-deps", "--no-index", wheel, cwd=folder)
    return folder / "bin" / "casino-brag"


@pytest.mark.parametrize(
    ("kind", "suffix"), [("jurisdictions", "toml"), ("migrations", "sql"), ("paytables", "toml")]
)
def test_what_the_server_reads_at_run_time_is_in_the_wheel(
    wheel_names: set[str], kind: str, suffix: str
) -> None:
    needed = {f"casino_brag/{kind}/{path.name}" for path in (ROOT / kind).glob(f"*.{suffix}")}
    assert needed
    assert needed <= wheel_names


@pytest.mark.parametrize("folder", ["templates", "static"])
def test_what_pages_are_made_of_is_in_the_wheel(wheel_names: set[str], folder: str) -> None:
    web = ROOT / "casino_brag" / "web" / folder
    needed = {str(path.relative_to(ROOT)) for path in web.rglob("*") if path.is_file()}
    assert {Path(name).suffix for name in needed} >= {".j2" if folder == "templates" else ".css"}
    assert needed <= wheel_names


def test_the_wheel_holds_the_typed_package_and_nothing_beside_it(wheel_names: set[str]) -> None:
    assert "casino_brag/py.typed" in wheel_names
    assert {name.split("/")[0].split("-")[0] for name in wheel_names} == {"casino_brag"}


def test_the_wheel_holds_no_test_and_no_secret(wheel_names: set[str]) -> None:
    unwanted = re.compile(
        r"(^|/)(tests?|conftest\.py|test_\w*\.py|\.env[\w.]*|.*\.(pem|key|p12|kdbx|dump))(/|$)"
    )
    assert not list(filter(unwanted.search, wheel_names))


def test_a_paytable_is_figured_and_simulated_from_the_wheel_alone(command: Path, tmp_path: Path) -> None:
    """With no extra: the page's template is in the wheel, and NumPy plays where numba is not."""
    paytable = next((command.parents[1] / "lib").glob("python*/site-packages/casino_brag/paytables/*.toml"))
    told = [
        subprocess.run(
            [command, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
        ).stdout
        for words in (
            ("par-sheet", paytable, "--format", "html"),
            ("simulate", paytable, "--rounds", "1e6", "--seed", "00" * 48),
        )
    ]
    assert told[0].startswith("<!doctype html>")
    assert "agrees" in told[1]
    numba = subprocess.run(
        [command.with_name("python"), "-c", "import numba"], capture_output=True, check=False
    )
    assert numba.returncode != 0


@dataclass(slots=True)
class Server:
    """A running ``casino-brag serve``: its process, where it stands, what it prints, its address."""

    process: subprocess.Popen[bytes]
    folder: Path
    log: Path
    url: str

    def wait_for(self, look: Callable[[], Seen | None], what: str) -> Seen:
        deadline = time.monotonic() + START_SECONDS
        while (seen := look()) is None:
            assert self.process.poll() is None, f"serve ended before {what}:\n{self.log.read_text()}"
            assert time.monotonic() < deadline, f"no {what} in {START_SECONDS} s:\n{self.log.read_text()}"
            time.sleep(0.1)
        return seen

    def ready(self) -> bool | None:
        try:
            return requests.get(f"{self.url}/readyz", timeout=5).status_code == requests.codes.ok or None
        except requests.ConnectionError:
            return None

    def token(self) -> str | None:
        """The session token in the lines that ``serve`` prints to be pasted into a shell."""
        found = re.search(r"^\s*TOKEN=['\"]?([^\s'\"]+)['\"]?\s*$", self.log.read_text(), re.MULTILINE)
        return found and found[1]

    def post(self, path: str, token: str, body: dict[str, object]) -> requests.Response:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": str(uuid.uuid4())}
        return requests.post(f"{self.url}{path}", json=body, headers=headers, timeout=30)


def processes_in(*folders: Path) -> dict[int, str]:
    """Processes started from, pointed at or standing in one of these folders, by id."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = str((process / "cwd").readlink())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has ended meanwhile, or is another user's
        if any(str(folder) in f"{words} {place}" for folder in folders):
            found[int(process.name)] = words
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the account which root lends PostgreSQL can enter too, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="casino-brag-wheel-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def server(command: Path, folder: Path) -> Iterator[Server]:
    port = free_port()
    log = folder / "serve.log"
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "DATABASE_URL" and not name.startswith(("PYTHON", "COV", "PG", "CASINO_BRAG"))
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [command, "serve", "--host", "127.0.0.1", "--port", str(port), "--data-dir", folder / "data"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Server(process, folder, log, f"http://127.0.0.1:{port}")
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(STOP_SECONDS)


def test_a_round_is_played_from_the_wheel_alone(command: Path, server: Server) -> None:
    server.wait_for(server.ready, "readiness")
    token = server.wait_for(server.token, "token")
    assert "verify_round.py" not in server.log.read_text(), "which is not in the wheel"

    opened = server.post("/v1/rounds", token, {"ante_minor": 100})
    assert opened.status_code == requests.codes.created, opened.text
    assert opened.json()["state"] == "awaiting_decision"
    assert len(opened.json()["player_cards"]) == 3
    assert "dealer_cards" not in opened.json()

    settled = server.post(f"/v1/rounds/{opened.json()['round_id']}/decision", token, {"decision": "play"})
    assert settled.status_code == requests.codes.ok, settled.text
    assert settled.json()["state"] == "settled"
    assert settled.json()["total_staked_minor"] == 200
    assert len({*opened.json()["player_cards"], *settled.json()["dealer_cards"]}) == 6

    # Ctrl-C at a terminal reaches the whole process group.
    os.killpg(server.process.pid, signal.SIGINT)
    assert server.process.wait(STOP_SECONDS) == 0, server.log.read_text()
    assert not processes_in(server.folder, command.parents[1])
