"""`serve` from an empty directory to a played round, and what keeps it from starting."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest
import requests

from casino_brag.config import shipped
from casino_brag.db.embedded import EmbeddedServer, Role
from tests.postgres import forget, quick_programs
from tests.running import CALL_SECONDS, Player, free_port
from tests.terminal import SECONDS, Serving, casino_brag, command, environment, serving

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data"
    forget(tmp_path / "data")


def is_running(data_dir: Path) -> bool:
    """Whether the embedded server runs."""
    return (data_dir / "postgres" / "postmaster.pid").exists()


def serve(
    data_dir: Path, *arguments: str, env: dict[str, str] | None = None
) -> AbstractContextManager[Serving]:
    port = free_port()
    words = ["casino_brag", "serve", "--workers=1", f"--port={port}", f"--data-dir={data_dir}", *arguments]
    return serving(data_dir.parent, port, *words, env=env)


def printed_token(running: Serving) -> str:
    token = re.search(r"^TOKEN=(\S+)$", running.printed(), re.MULTILINE)
    assert token is not None
    return token[1]


def printed_session(running: Serving) -> str:
    """The lines to copy into another terminal."""
    lines = running.printed().split("A round, to copy and paste into another terminal:\n\n", 1)[1]
    return lines.split("\n\n", 1)[0]


def play(running: Serving, session: str, directory: Path) -> list[str]:
    """Does what the printed lines say, and returns what that prints: without curl, request by request."""
    (directory / "verification").symlink_to(ROOT / "verification")
    if shutil.which("curl"):
        return shell(session, directory)
    player = Player(running.base, printed_token(running))
    if player.next_commitment() is None:
        assert player.open(100, commitment="0" * 64).json()["code"] == "commitment_stale"
    seen = player.next_commitment()["value"]
    opened = player.open(100, 50, client_seed="my-own-words")
    settled = player.decide(opened.json()["round_id"], "play")
    (directory / "proof.json").write_bytes(player.proof(opened.json()["round_id"]).content)
    checked = shell(f"SEEN={seen}\n{session.splitlines()[-1]}", directory)
    return [f"committed to {seen}", opened.text, settled.text, *checked]


def shell(lines: str, directory: Path) -> list[str]:
    done = subprocess.run(
        ["/bin/bash", "-c", lines],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
        env=environment(),
        cwd=directory,
    )
    return [line for line in done.stdout.splitlines() if line]


def test_a_first_run_prints_a_round_that_can_be_played_as_it_is_printed(
    data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with serve(data_dir) as running:
        running.wait_for()
        session = printed_session(running)
        assert session.splitlines()[0] == f"TOKEN={printed_token(running)}"
        for number in (1, 2):
            committed, dealt, decided, *checked = play(running, session, tmp_path_factory.mktemp("terminal"))
            opened, settled = json.loads(dealt), json.loads(decided)
            assert (opened["state"], settled["state"]) == ("awaiting_decision", "settled")
            assert opened["round_id"] == settled["round_id"]
            assert (settled["decision"], settled["total_staked_minor"]) == (
                "play",
                250 + (100 if is_double(settled) else 0),
            )
            assert opened["commitment"]["number"] == number
            assert committed == f"committed to {opened['commitment']['value']}"
            assert opened["client_seed"] == "my-own-words"
            assert checked[-1] == "The round is as it was committed."
        told = running.printed()
        for address in ("/docs", "/openapi.json", "/v1/games", "/readyz"):
            assert f"{running.base}{address}" in told
            assert requests.get(running.base + address, timeout=CALL_SECONDS).status_code == 200
        assert "Ctrl-C stops everything." in told
        assert is_running(data_dir)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(SECONDS) == 0
        assert running.printed().count("Stopping: ") == 1
    assert not is_running(data_dir)
    kept = {path.name for path in data_dir.iterdir()}
    assert {"seal.keys", "postgres.log"} <= kept
    assert stat.S_IMODE((data_dir / "seal.keys").stat().st_mode) == 0o600


def test_the_printed_round_is_played_as_well_after_a_change_of_the_paytable(
    data_dir: Path, tmp_path: Path
) -> None:
    paytables = Path(shutil.copytree(shipped("paytables"), tmp_path / "paytables"))
    file = paytables / "three-card-brag.toml"
    file.write_text(file.read_text().replace("prial = 40 }", "prial = 39 }"))
    with serve(data_dir) as running:
        running.wait_for()
        published = command("paytables", "publish", f"--paytables={paytables}", f"--data-dir={data_dir}")
        assert "three-card-brag: version 2, in force from now on" in published.out
        committed, dealt, decided, *checked = play(running, printed_session(running), tmp_path)
        commitment = json.loads(dealt)["commitment"]
        assert committed == f"committed to {commitment['value']}"
        assert commitment["number"] == 2, "the first was of the version before"
        assert json.loads(decided)["state"] == "settled"
        assert checked[-1] == "The round is as it was committed."


def is_double(settled: dict[str, object]) -> bool:
    return settled["game"] == "double-play-brag"


def test_a_second_service_on_the_same_data_serves_the_same_table(data_dir: Path) -> None:
    with serve(data_dir) as first:
        first.wait_for()
        with serve(data_dir) as second:
            second.wait_for()
            token = printed_token(first)
            opened = Player(first.base, token).open(100).json()
            settled = Player(second.base, token).decide(opened["round_id"], "fold")
            assert settled.status_code == 200
            assert key_printed(first) == key_printed(second)
            assert first.stop() == 0
            assert is_running(data_dir)
            assert (
                Player(second.base, token).get(f"/v1/rounds/{opened['round_id']}").json()["state"]
                == "settled"
            )
            assert second.stop() == 0
    assert not is_running(data_dir)


def key_printed(running: Serving) -> list[str]:
    operator = re.search(r"Operator +(\S+) +key (\S+) +secret (\S+)", running.printed())
    assert operator is not None
    return list(operator.groups())


def test_a_port_that_is_taken_is_named_and_nothing_runs_on(data_dir: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        finished = casino_brag("serve", f"--port={port}", f"--data-dir={data_dir}")
    assert finished.code == 1
    assert "Traceback" not in finished.err
    assert str(port) in finished.err
    assert re.search("in use|already", finished.err)
    assert "serves http" not in finished.out
    assert not is_running(data_dir)


def test_without_a_fit_paytable_the_service_lives_and_says_what_to_mend(
    data_dir: Path, tmp_path: Path
) -> None:
    paytables = tmp_path / "paytables"
    paytables.mkdir()
    (paytables / "three-card-brag.toml").write_text("game = 'three-card-brag'\n")
    with serve(data_dir, f"--paytables={paytables}") as running:
        running.wait_for("/healthz")
        assert requests.get(running.base + "/readyz", timeout=CALL_SECONDS).status_code == 503
        assert requests.get(running.base + "/v1/games", timeout=CALL_SECONDS).json()["items"] == []
        told = running.printed()
        assert "three-card-brag is not open:" in told
        assert str(paytables / "three-card-brag.toml") in told
        assert "No game is open" in told
        assert "TOKEN=" not in told
        shutil.copytree(shipped("paytables"), paytables, dirs_exist_ok=True)
        published = command("paytables", "publish", f"--paytables={paytables}", f"--data-dir={data_dir}")
        assert published.code == 0
        running.wait_for("/readyz")


def test_one_unfit_paytable_leaves_the_other_game_open(data_dir: Path, tmp_path: Path) -> None:
    paytables = Path(shutil.copytree(shipped("paytables"), tmp_path / "paytables"))
    (paytables / "double-play-brag.toml").write_text("")
    with serve(data_dir, f"--paytables={paytables}") as running:
        running.wait_for()
        assert "double-play-brag is not open:" in running.printed()
        assert Player(running.base, printed_token(running)).open(100).status_code == 201
    published = command("paytables", "publish", f"--paytables={paytables}", f"--data-dir={data_dir}")
    assert (published.code, published.out) == (1, "three-card-brag: version 1\n")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A server that is somebody's own, with nothing of ours in it but what a test puts there."""
    data_dir = tmp_path_factory.mktemp("other") / "data"
    with EmbeddedServer.attach(data_dir, bindir=quick_programs()) as server:
        with psycopg.connect(
            server.url(Role.SUPERUSER).replace("/casino_brag?", "/postgres?"), autocommit=True
        ) as conn:
            conn.execute("DROP DATABASE casino_brag")
            conn.execute("DROP ROLE casino_brag_app, casino_brag_owner")
        yield server
    forget(data_dir)


@pytest.fixture
def administrator(other: EmbeddedServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(address(other, "postgres", "postgres"), autocommit=True) as conn:
        yield conn
        for name in ("casino", "brag"):
            conn.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        conn.execute("DROP ROLE IF EXISTS casino_service, casino_owner, casino_brag_app")


def address(server: EmbeddedServer, user: str, database: str) -> str:
    return server.url(Role.SUPERUSER).replace("postgres@/casino_brag?", f"{user}@/{database}?")


def serves_rounds(data_dir: Path, url: str, *, starts: int = 1) -> None:
    """`serve` works on a database of one's own, from nothing, and again."""
    for _ in range(starts):
        with serve(data_dir, env={"DATABASE_URL": url}) as running:
            running.wait_for()
            player = Player(running.base, printed_token(running))
            opened = player.open(100).json()
            assert player.decide(opened["round_id"], "play").status_code == 200
            assert requests.get(running.base + "/readyz", timeout=CALL_SECONDS).json() == {"status": "ok"}
    kept = {path.name for path in data_dir.iterdir()}
    assert kept - {"checkpoints"} == {"seal.keys", "log.keys"}


def test_a_server_of_one_s_own_serves_by_its_superuser_s_address(
    other: EmbeddedServer, administrator: psycopg.Connection, data_dir: Path
) -> None:
    administrator.execute("CREATE DATABASE brag")
    serves_rounds(data_dir, address(other, "postgres", "brag"), starts=2)


def test_a_server_of_one_s_own_serves_by_the_address_of_an_owner_who_may_make_roles(
    other: EmbeddedServer, administrator: psycopg.Connection, data_dir: Path
) -> None:
    administrator.execute("CREATE ROLE casino_owner LOGIN CREATEROLE")
    administrator.execute("CREATE DATABASE brag OWNER casino_owner")
    serves_rounds(data_dir, address(other, "casino_owner", "brag"))


def test_a_server_of_one_s_own_serves_by_the_address_of_an_owner_who_is_a_member(
    other: EmbeddedServer, administrator: psycopg.Connection, data_dir: Path
) -> None:
    administrator.execute("CREATE ROLE casino_owner LOGIN")
    administrator.execute("CREATE ROLE casino_brag_app NOLOGIN")
    administrator.execute("GRANT casino_brag_app TO casino_owner")
    administrator.execute("CREATE DATABASE brag OWNER casino_owner")
    serves_rounds(data_dir, address(other, "casino_owner", "brag"))


@pytest.mark.parametrize("role", ["CREATE ROLE casino_brag_app NOLOGIN", ""], ids=["no member", "no role"])
def test_an_owner_who_cannot_work_as_the_application_is_told_so(
    other: EmbeddedServer, administrator: psycopg.Connection, data_dir: Path, role: str
) -> None:
    administrator.execute("CREATE ROLE casino_owner LOGIN")
    if role:
        administrator.execute(role)
    administrator.execute("CREATE DATABASE brag OWNER casino_owner")
    url = address(other, "casino_owner", "brag")
    finished = command("serve", f"--port={free_port()}", f"--data-dir={data_dir}", env={"DATABASE_URL": url})
    assert "casino_brag_app" in finished.sentence


def test_production_is_set_up_as_it_is_described(
    other: EmbeddedServer, administrator: psycopg.Connection, tmp_path: Path
) -> None:
    """The statements and the commands of the document, on a server that knows nothing of us."""
    text = (ROOT / "docs" / "operating.md").read_text()
    (statements,) = re.findall(r"^```sql\n(CREATE ROLE.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for statement in statements.split(";\n"):
        if statement.strip():
            administrator.execute(statement)
    keys = {"CASINO_BRAG_SEAL_KEYS": "k1:" + "A" * 43 + "="}
    owner = keys | {"DATABASE_URL": address(other, "casino_owner", "casino")}
    service = keys | {"DATABASE_URL": address(other, "casino_service", "casino")}
    assert "migrate up" in command("migrate", "verify", env=owner).sentence
    assert command("migrate", "up", env=owner).code == 0
    assert command("migrate", "verify", env=owner).code == 0
    assert command("paytables", "publish", env=owner).code == 0
    assert command("operator", "add", "acme", "--origin", "https://play.example.com", env=owner).code == 0
    port = free_port()
    (served,) = re.findall(r"^gunicorn --config (\S+) '([^']+)'$", text, re.MULTILINE)
    bound = service | {"CASINO_BRAG_BIND": f"127.0.0.1:{port}", "CASINO_BRAG_WORKERS": "1"}
    with serving(tmp_path, port, "gunicorn", "--config", *served, env=bound) as running:
        running.wait_for()
        games = requests.get(running.base + "/v1/games", timeout=CALL_SECONDS).json()
        assert [game["game"] for game in games["items"]] == ["double-play-brag", "three-card-brag"]
        assert running.stop() == 0
