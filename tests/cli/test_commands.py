"""Commands beside a running service: set-up, operators, and the way to the database."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import click
import psycopg
import pytest
from click.testing import CliRunner
from psycopg import errors as pg

from casino_brag.cli import commands
from casino_brag.config import shipped
from casino_brag.db.binaries import find_binaries
from casino_brag.db.embedded import Role
from tests.commands import COMMANDS
from tests.inprocess import AppHouse
from tests.running import Operator, RunningService, code_of
from tests.terminal import casino_brag, command


@pytest.fixture
def data_dir(service: RunningService) -> str:
    return f"--data-dir={service.data_dir}"


@pytest.fixture(autouse=True)
def help_is_made_anew() -> None:
    """click keeps the first help option that it made, which is another where a test called a command by itself."""
    for named in COMMANDS.values():
        named._help_option = None


def test_these_are_the_commands() -> None:
    assert {" ".join(words) for words in COMMANDS} == {
        "",
        "serve",
        "worker",
        "migrate",
        "migrate up",
        "migrate status",
        "migrate verify",
        "paytables",
        "paytables publish",
        "paytables import",
        "paytables export",
        "paytables list",
        "par-sheet",
        "outcomes",
        "rank",
        "claims",
        "diff",
        "simulate",
        "operator",
        "operator add",
        "operator rotate-key",
        "operator client-seeds",
        "operator wallet",
        "operator interruption",
        "operator webhook",
        "games",
        "games list",
        "games disable",
        "games drain",
        "games enable",
        "rounds",
        "rounds void",
        "wallet",
        "wallet check",
        "wallet reconcile",
        "sandbox-wallet",
        "seals",
        "seals status",
        "seals renew",
        "db",
        "db url",
        "rng",
        "rng raw",
        "rng deals",
        "rng kat",
        "rng health",
        "rng battery",
        "rng evidence",
        "staff",
        "staff add",
        "staff roles",
        "staff token",
        "staff revoke",
        "staff invite",
        "staff unlock",
        "staff reset",
        "staff list",
        "audit",
        "audit verify",
        "audit prove",
        "audit consistency",
        "audit export",
        "audit keys",
        "audit replay",
        "audit rotate-key",
        "rtp",
        "rtp status",
        "rtp check",
        "rtp cases",
        "rtp case",
        "report",
        "integrity",
        "integrity verify",
    }


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(words: tuple[str, ...]) -> None:
    long, short = (CliRunner().invoke(commands, [*words, option]) for option in ("--help", "-h"))
    assert (long.exit_code, long.stderr) == (0, "")
    assert long.stdout == short.stdout
    assert long.stdout.startswith("Usage: ")
    summary = long.stdout.split("\n\n")[1].strip()
    assert summary.endswith("."), summary


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_option_explains_itself(words: tuple[str, ...]) -> None:
    silent = [
        parameter.name
        for parameter in COMMANDS[words].params
        if isinstance(parameter, click.Option)
        and not parameter.help
        and parameter.name not in ("port", "workers", "role")
    ]
    assert silent == []


def test_the_program_tells_its_version_and_its_commands() -> None:
    assert version("casino-brag") in casino_brag("--version").out
    told = casino_brag("--help").out
    assert all(f"\n  {words[0]} " in told for words in COMMANDS if len(words) == 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["dance"],
        ["operator"],
        ["operator", "add"],
        ["operator", "client-seeds", "acme", "perhaps"],
        ["seals"],
        ["integrity"],
        ["serve", "--port", "0"],
        ["serve", "--port", "http"],
        ["serve", "--workers", "0"],
        ["db", "url", "--role", "god"],
        ["serve", "--data-dir", __file__],
    ],
    ids=" ".join,
)
def test_what_is_no_command_is_wrong_usage(arguments: list[str]) -> None:
    finished = command(*arguments)
    assert (finished.code, finished.out) == (2, "")
    assert finished.err.startswith("Usage: ")


def test_a_migrated_database_is_up_to_date_and_verified(data_dir: str) -> None:
    files = sorted(file.name for file in shipped("migrations").glob("*.sql"))
    listed = json.loads(command("migrate", "status", "--json", data_dir).out)
    assert [row["file"] for row in listed] == files
    assert all(re.match(r"\d{4}-\d\d-\d\dT", row["applied_at"]) for row in listed)
    told = command("migrate", "status", data_dir).out.splitlines()
    assert [line.split()[-1] for line in told] == files
    assert [line.split()[0] for line in told] == [row["applied_at"] for row in listed]
    assert command("migrate", "up", data_dir).out == "The schema is up to date.\n"
    assert command("migrate", "verify", data_dir).out == "The schema is what this version expects.\n"


@pytest.mark.parametrize(
    ("role", "user"), [("app", "casino_brag_app"), ("owner", "casino_brag_owner"), ("superuser", "postgres")]
)
def test_the_database_s_address_serves_other_people_s_tools(data_dir: str, role: str, user: str) -> None:
    printed = command("db", "url", "--role", role, data_dir)
    assert printed.code == 0, printed.err
    url = printed.out.strip()
    assert urlsplit(url).scheme == "postgresql"
    with psycopg.connect(url, autocommit=True) as conn:
        assert conn.execute("SELECT current_user").fetchone() == (user,)
        assert conn.execute("SELECT count(*) > 0 FROM game").fetchone() == (True,)
        if role == "app":
            with pytest.raises(pg.InsufficientPrivilege):
                conn.execute("DELETE FROM game")
    psql = find_binaries().bindir / "psql"
    asked = subprocess.run(
        [psql, "--no-psqlrc", "-Atc", "SELECT current_user", url],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert asked.stdout == f"{user}\n"


def test_the_address_is_the_applications_unless_another_is_asked_for(data_dir: str) -> None:
    assert command("db", "url", data_dir) == command("db", "url", "--role=app", data_dir)


def test_a_database_of_one_s_own_has_the_address_it_was_given() -> None:
    env = {"DATABASE_URL": "postgresql://casino_owner@db.example.com/casino"}
    for role in ("app", "owner"):
        assert command("db", "url", "--role", role, env=env).out == env["DATABASE_URL"] + "\n"
    assert "superuser" in command("db", "url", "--role", "superuser", env=env).sentence


def name() -> str:
    return "op-" + secrets.token_hex(5)


def balance(operator: Operator) -> int:
    return operator.send("GET", "/v1/operator/players/p/balance?currency=GBP").status_code


def test_an_operator_is_added_and_its_key_works_at_once(service: RunningService, data_dir: str) -> None:
    wanted = name()
    made = json.loads(casino_brag("operator", "add", wanted, "--json", data_dir).out)
    assert set(made) == {"operator", "key_id", "secret"}
    assert made["operator"] == wanted
    assert balance(Operator(service.base, name=made.pop("operator"), **made)) == 200


def test_what_a_person_is_shown_is_the_same(service: RunningService, data_dir: str) -> None:
    told = command("operator", "add", name(), data_dir).out
    assert told.endswith("The secret is not shown again.\n")
    shown = dict(line.split() for line in told.splitlines()[:-1])
    assert balance(Operator(service.base, shown["operator"], shown["key_id"], shown["secret"])) == 200


def test_an_operator_is_added_once(data_dir: str) -> None:
    wanted = name()
    assert command("operator", "add", wanted, data_dir).code == 0
    sentence = casino_brag("operator", "add", wanted, data_dir).sentence
    assert sentence == f"There is an operator '{wanted}' already. To replace its key: operator rotate-key."


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["Casino"], "lower-case letters"),
        (["\u00e9"], "lower-case letters"),
        (["acme", "--origin", "play.example.com"], "no web origin"),
        (["acme", "--origin", "https://play.example.com/"], "no web origin"),
        (["acme", "--launch-url", "javascript:alert(1)"], "no address of a page"),
    ],
    ids=str,
)
def test_an_operator_that_will_not_do_is_refused_with_a_sentence(
    data_dir: str, arguments: list[str], told: str
) -> None:
    assert told in command("operator", "add", *arguments, data_dir).sentence


def test_a_key_is_followed_by_another_without_a_gap(service: RunningService, data_dir: str) -> None:
    old = service.operator()
    made = json.loads(command("operator", "rotate-key", old.name, "--json", data_dir).out)
    new = Operator(service.base, old.name, made["key_id"], made["secret"])
    assert (balance(old), balance(new)) == (200, 200)
    command("operator", "rotate-key", old.name, data_dir)
    assert (balance(old), balance(new)) == (401, 200)


@pytest.mark.parametrize(
    "arguments", [["rotate-key", "nobody"], ["client-seeds", "nobody", "off"]], ids=" ".join
)
def test_an_operator_that_is_not_there_has_to_be_added(data_dir: str, arguments: list[str]) -> None:
    assert "operator add nobody" in command("operator", *arguments, data_dir).sentence


def test_paytables_are_published_again_without_effect(data_dir: str) -> None:
    published = command("paytables", "publish", data_dir)
    assert (published.code, published.err) == (0, "")
    assert published.out == "double-play-brag: version 1\nthree-card-brag: version 1\n"


UNMIGRATED = [
    ["operator", "add", "acme"],
    ["operator", "rotate-key", "acme"],
    ["operator", "client-seeds", "acme", "off"],
    ["operator", "wallet", "acme", "https://wallet.example.com"],
    ["operator", "interruption", "acme", "24", "fold"],
    ["operator", "webhook", "acme", "https://hooks.example.com"],
    ["games", "list"],
    ["wallet", "reconcile", "acme"],
    [
        "rounds",
        "void",
        str(UUID(int=1)),
        "--operator",
        "acme",
        "--reason",
        "A test.",
        "--approver",
        "A tester",
    ],
    ["worker", "--once"],
    ["seals", "status"],
    ["seals", "renew"],
    ["integrity", "verify"],
    ["paytables", "publish"],
    ["migrate", "verify"],
    ["audit", "verify"],
    ["audit", "prove", "01890000-0000-7000-8000-000000000000"],
    ["rtp", "status"],
    ["report", "voids"],
    ["staff", "list"],
    ["worker", "--once"],
]


@pytest.fixture(scope="module")
def empty(app_house: AppHouse) -> str:
    """A database without a schema."""
    wanted = "empty_" + secrets.token_hex(4)
    with app_house.connect(Role.SUPERUSER) as superuser:
        superuser.execute(f"CREATE DATABASE {wanted} OWNER casino_brag_owner")
    return app_house.server.url(Role.OWNER).replace("/casino_brag?", f"/{wanted}?")


@pytest.mark.parametrize("arguments", UNMIGRATED, ids=" ".join)
def test_a_database_without_a_schema_is_told_what_it_lacks(
    empty: str, tmp_path: Path, arguments: list[str]
) -> None:
    finished = command(*arguments, "--data-dir", tmp_path / "data", env={"DATABASE_URL": empty})
    assert "casino-brag migrate up" in finished.sentence


def test_a_database_without_a_schema_lists_what_is_pending(empty: str) -> None:
    listed = json.loads(command("migrate", "status", "--json", env={"DATABASE_URL": empty}).out)
    assert {row["applied_at"] for row in listed} == {None}
    told = command("migrate", "status", env={"DATABASE_URL": empty}).out
    assert [line.split()[0] for line in told.splitlines()] == ["pending"] * len(listed)


def test_a_wrong_signature_is_no_signature(service: RunningService) -> None:
    operator = service.operator()
    other = Operator(service.base, operator.name, operator.key_id, operator.secret + "x")
    assert code_of(other.send("GET", "/v1/operator/players/p/balance?currency=GBP")) == "signature_invalid"
