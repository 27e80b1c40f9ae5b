"""As whom the application works in its database, and what it may do there: read, and call the functions granted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

from casino_brag.config import shipped
from casino_brag.db.embedded import Role
from tests.inprocess import AppHouse

CHANGING = {
    "operator_nonce_take",
    "operator_add",
    "operator_key_rotate",
    "operator_client_seeds",
    "paytable_publish",
    "game_disable",
    "paytable_draft_create",
    "paytable_draft_save",
    "paytable_draft_submit",
    "paytable_draft_approve",
    "paytable_draft_reject",
    "paytable_activate",
    "paytable_activate_scheduled",
    "paytable_schedule_set",
    "paytable_schedule_end",
    "paytable_retire",
    "player_account",
    "wallet_move",
    "session_open",
    "session_close",
    "commitment_make",
    "round_open",
    "round_decide",
    "module_events_record",
    "operator_wallet",
    "operator_interruption",
    "wallet_reserve",
    "wallet_confirm",
    "wallet_give_up",
    "wallet_claim",
    "wallet_postpone",
    "wallet_resume",
    "closure_set",
    "answer_keep",
    "round_void",
    "webhook_endpoint_set",
    "webhook_secret_rotate",
    "webhook_endpoint_remove",
    "webhook_claim",
    "webhook_delivered",
    "webhook_postpone",
    "webhook_give_up",
    "rtp_take",
    "rtp_accumulate",
    "rtp_alert",
    "rtp_case_set",
    "rtp_check_add",
    "staff_add",
    "staff_roles_set",
    "staff_token_issue",
    "staff_token_revoke",
    "staff_retire",
    "staff_called",
    "staff_refused",
    "staff_invite",
    "staff_join",
    "staff_reset",
    "staff_unlock",
    "staff_try",
    "staff_try_failed",
    "staff_password_right",
    "staff_sign_in",
    "staff_prove",
    "staff_session_seen",
    "staff_session_end",
    "staff_password_change",
    "staff_factor_change",
    "staff_provider_link",
    "staff_provider_unlink",
    "staff_provider_sign_in",
    "proposal_make",
    "proposal_decide",
    "replay_record",
    "audit_parts_make",
    "audit_sealer_take",
    "audit_order",
    "audit_checkpoint_add",
    "audit_key_add",
    "program_failure_record",
    "clock_look_keep",
    "large_amounts_keep",
    "simulation_queue",
    "simulation_cancel",
    "simulation_take",
    "simulation_begin",
    "simulation_keep",
    "simulation_end",
}
"""Functions that act for the owner."""

READING = {
    "database_epoch",
    "latest_commitment",
    "closure_of",
    "rtp_pending",
    "rtp_dealt_next",
    "paytable_needs_approval",
    "simulation_player",
}
"""Functions that only read, and as the caller."""

LOCKING = {"paytable_lock"}
"""Functions that only let others wait, and as the caller."""

FUNCTIONS = """
    SELECT p.proname, p.prosecdef, p.proconfig, p.proowner::regrole::text, p.provolatile::text,
        has_function_privilege('casino_brag_app', p.oid, 'EXECUTE'),
        EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a WHERE a.grantee = 0)
    FROM pg_proc AS p WHERE p.pronamespace = 'public'::regnamespace ORDER BY p.proname
"""

AUTOMATIC_SUFFIX = {"f": "fkey", "u": "key", "x": "excl"}

NAMES = """
    SELECT c.conname, c.contype::text, t.relname,
        ARRAY(SELECT a.attname FROM unnest(c.conkey) WITH ORDINALITY AS k (attnum, place)
              JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = k.attnum ORDER BY k.place)::text[]
    FROM pg_constraint AS c JOIN pg_class AS t ON t.oid = c.conrelid
    WHERE c.connamespace = 'public'::regnamespace AND c.contype <> 'n'
"""


@pytest.fixture
def application(app_house: AppHouse) -> Iterator[psycopg.Connection[Any]]:
    """A connection as the application itself opens them."""
    with app_house.service.database.connection() as conn:
        yield conn


def tables(conn: psycopg.Connection[Any]) -> list[str]:
    found = conn.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
    )
    return sorted(name for (name,) in found)


def setting(conn: psycopg.Connection[Any], name: str) -> Any:
    row = conn.execute("SELECT current_setting(%s)", [name]).fetchone()
    assert row is not None
    return row[0]


def test_the_application_works_as_its_own_role_with_commits_that_last(
    application: psycopg.Connection[Any],
) -> None:
    assert application.autocommit
    row = application.execute("SELECT current_user").fetchone()
    assert row == ("casino_brag_app",)
    assert setting(application, "synchronous_commit") == "on"
    assert setting(application, "full_page_writes") == "on"
    assert setting(application, "timezone") == "UTC"
    for limit in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
        assert setting(application, limit) != "0"


def test_every_connection_of_the_running_service_is_the_applications(app_house: AppHouse) -> None:
    app_house.player().open()
    with app_house.connect(Role.SUPERUSER) as superuser:
        users = superuser.execute(
            "SELECT DISTINCT usename FROM pg_stat_activity WHERE application_name = 'casino-brag'"
        ).fetchall()
    assert users == [("casino_brag_app",)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {0} DEFAULT VALUES",
        "DELETE FROM {0} WHERE false",
        "TRUNCATE {0}",
        "DROP TABLE {0}",
        "ALTER TABLE {0} DISABLE TRIGGER ALL",
        "LOCK TABLE {0} IN ACCESS EXCLUSIVE MODE",
        "CREATE INDEX ON {0} ((1))",
        "SELECT FROM {0} FOR UPDATE",
    ],
)
def test_the_application_changes_no_table_itself(
    application: psycopg.Connection[Any], statement: str
) -> None:
    names = tables(application)
    assert len(names) >= 13
    for name in names:
        with pytest.raises(pg.InsufficientPrivilege), application.transaction():
            application.execute(statement.format(name))


def test_the_application_updates_no_column(application: psycopg.Connection[Any]) -> None:
    columns = application.execute(
        "SELECT c.relname, a.attname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0"
        " AND NOT a.attisdropped AND a.attgenerated = ''"
    ).fetchall()
    assert len(columns) > 100
    for table, column in columns:
        with pytest.raises(pg.InsufficientPrivilege):
            application.execute(f"UPDATE {table} SET {column} = {column} WHERE false")


def test_nonces_are_nobodys_to_read(application: psycopg.Connection[Any]) -> None:
    readable = []
    for name in tables(application):
        try:
            application.execute(f"SELECT FROM {name} LIMIT 0")
            readable.append(name)
        except pg.InsufficientPrivilege:
            continue
    assert readable == [name for name in tables(application) if name != "operator_nonce"]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (id integer)",
        "CREATE VIEW mine AS SELECT 1",
        "CREATE SCHEMA mine",
        "CREATE SEQUENCE mine",
        "CREATE FUNCTION mine() RETURNS integer LANGUAGE sql RETURN 1",
        "CREATE TEMP TABLE mine (id integer)",
        "CREATE ROLE mine",
        "CREATE DATABASE mine",
        "COPY round TO PROGRAM 'true'",
        "COPY round TO '/tmp/round'",
        "ALTER SYSTEM SET fsync = off",
        "SET session_replication_role = replica",
        "SET ROLE casino_brag_owner",
        "SET SESSION AUTHORIZATION postgres",
        "DO $$ BEGIN CREATE TABLE m (); END $$",
        "ALTER ROLE casino_brag_app SUPERUSER",
        "SELECT pg_read_file('/etc/hostname')",
        "CHECKPOINT",
        "COMMENT ON TABLE round IS 'mine'",
        "CREATE TRIGGER t BEFORE INSERT ON round EXECUTE FUNCTION refuse_change()",
    ],
)
def test_the_application_makes_nothing_and_becomes_nobody_else(
    application: psycopg.Connection[Any], statement: str
) -> None:
    with pytest.raises(pg.InsufficientPrivilege):
        application.execute(statement)


def test_functions_that_act_for_the_owner_look_nowhere_but_where_they_should(app_house: AppHouse) -> None:
    """Otherwise a caller could put a table of its own in the way of theirs."""
    with app_house.connect() as owner:
        functions = owner.execute(FUNCTIONS).fetchall()
    definers = {name: config for name, definer, config, *_ in functions if definer}
    assert definers.keys() >= CHANGING
    paths = {setting for config in definers.values() for setting in config or () if "search_path" in setting}
    assert paths == {"search_path=public, pg_temp"}
    assert all("search_path=public, pg_temp" in (config or ()) for config in definers.values())
    assert {owner for _, definer, _, owner, *_ in functions if definer} == {"casino_brag_owner"}


def test_functions_are_for_the_application_only_and_only_those_it_needs(app_house: AppHouse) -> None:
    with app_house.connect() as owner:
        functions = owner.execute(FUNCTIONS).fetchall()
    granted = {name: (definer, kind) for name, definer, _, _, kind, may, _ in functions if may}
    assert granted.keys() == CHANGING | READING | LOCKING
    assert {granted[name] for name in CHANGING} == {(True, "v")}
    assert {granted[name] for name in READING} == {(False, "s")}
    assert {granted[name] for name in LOCKING} == {(False, "v")}
    public = {name for name, *_, everybodys in functions if everybodys}
    assert public == set(), "EXECUTE is revoked from PUBLIC"


def test_nobody_else_has_any_right_in_the_schema(app_house: AppHouse) -> None:
    with app_house.connect() as owner:
        grantees = owner.execute(
            "SELECT DISTINCT grantee, privilege_type FROM information_schema.role_table_grants"
            " WHERE table_schema = 'public' AND grantee <> 'casino_brag_owner'"
        ).fetchall()
        assert set(grantees) == {("casino_brag_app", "SELECT")}
        rights = owner.execute(
            "SELECT has_schema_privilege('casino_brag_app', 'public', 'CREATE'),"
            " has_database_privilege('casino_brag_app', current_database(), 'CREATE, TEMP')"
        ).fetchone()
    assert rights == (False, False)


def test_every_constraint_has_a_name_that_somebody_chose(app_house: AppHouse) -> None:
    """A refusal names its constraint, so that it says which law was about to be broken."""
    with app_house.connect() as owner:
        constraints = owner.execute(NAMES).fetchall()
        indexes = owner.execute(
            "SELECT c.relname, i.indisprimary FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
            # (Those of the log's parts are made, and named, from those of the whole.)
            " WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition"
        ).fetchall()
    made = [
        name
        for name, kind, table, columns in constraints
        if kind not in "pt" and re.fullmatch(automatic(table, kind, columns), name)
    ]
    made += [name for name, primary in indexes if not primary and re.search(r"_(idx|key|excl)\d*$", name)]
    assert len(constraints) > 50
    assert made == []


def automatic(table: str, kind: str, columns: list[str]) -> str:
    """What Postgres calls a constraint that was given no name; a check's columns may be left out of it."""
    if kind == "c":
        return rf"{table}(_{'_'.join(columns)})?_check\d*"
    return rf"{table}_{'_'.join(columns)}_{AUTOMATIC_SUFFIX[kind]}\d*"


def test_every_key_is_named_where_it_is_written() -> None:
    """A primary key's own choice of name is Postgres's too, so only the text can tell."""
    text = "\n".join(file.read_text() for file in sorted(shipped("migrations").glob("*.sql")))
    text = re.sub(r"--.*", "", text)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    keys = re.findall(
        r"(CONSTRAINT\s+\w+\s+)?\b(PRIMARY KEY|UNIQUE(?! INDEX)|CHECK|REFERENCES|FOREIGN KEY)\b", text
    )
    unnamed = [kind for named, kind in keys if not named]
    foreign = sum(kind == "FOREIGN KEY" for _, kind in keys)
    assert len(keys) > 50
    assert unnamed == ["REFERENCES"] * foreign, (
        "a table's FOREIGN KEY … REFERENCES is named before its first word"
    )


def test_every_trigger_that_refuses_changes_fires_for_everybody(app_house: AppHouse) -> None:
    """Always, that is also for a session that replays a replica's changes."""
    with app_house.connect() as owner:
        found = owner.execute(
            "SELECT t.tgname, t.tgenabled::text FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid"
            " WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal"
        ).fetchall()
    assert len(found) >= 8
    assert {name for name, enabled in found if enabled != "A"} == set()
