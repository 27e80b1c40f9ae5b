"""Staff: names, roles, tokens and what becomes of them, and who is kept out for how long."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import errors as pg

from casino_brag.audit import Entry, EntryType
from casino_brag.cli.staff import staff
from casino_brag.db.clock import clock
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.errors import SetUpError
from casino_brag.staff.invitations import invited
from casino_brag.staff.people import (
    FAILURES_MAX,
    LOCKED_OUT_SECONDS,
    IssuedToken,
    Role,
    Said,
    TokenState,
    add_staff,
    hash_of,
    issue_token,
    locked_out_seconds,
    presented,
    record_call,
    record_refusal,
    revoke,
    set_roles,
    users_and_rights,
)
from tests.colleagues import colleague
from tests.inprocess import AppHouse, app_house_in
from tests.running import together

SAID = Said(actor="system:tests", authoriser="the head of compliance", reason="A new colleague.")


@pytest.fixture
def name(conn: psycopg.Connection[Any]) -> str:
    """Somebody who audits."""
    name = "ada." + secrets.token_hex(4)
    add_staff(conn, name, [Role.AUDITOR], SAID)
    return name


def entries(conn: psycopg.Connection[Any], kind: EntryType, name: str) -> list[dict[str, Any]]:
    rows = conn.execute(
        "SELECT convert_from(bytes, 'UTF8') FROM audit_entry WHERE type = %s AND (after ->> 'name' = %s"
        " OR before ->> 'name' = %s OR payload ->> 'name' = %s) ORDER BY entry_id",
        [kind, name, name, name],
    )
    return [json.loads(text) for (text,) in rows]


def told(conn: psycopg.Connection[Any], name: str) -> dict[str, Any]:
    (person,) = (person for person in users_and_rights(conn) if person["name"] == name)
    return person


def address() -> str:
    return f"2001:db8::{secrets.token_hex(2)}:{secrets.token_hex(2)}"


@pytest.mark.parametrize("fit", ["a", "0", "ada", "ada-b.lovelace", "a" * 63])
def test_a_plain_name_will_do(conn: psycopg.Connection[Any], fit: str) -> None:
    with conn.transaction(force_rollback=True):
        add_staff(conn, fit, [Role.EDITOR], SAID)
        assert told(conn, fit)["roles"] == ["editor"]


@pytest.mark.parametrize(
    "unfit", ["", "Ada", "-a", ".a", "a b", "a_b", "t_0123456789ab", "a" * 64, "a\n", "é", "\x00"]
)
def test_another_name_will_not_do(conn: psycopg.Connection[Any], unfit: str) -> None:
    with pytest.raises(SetUpError, match="no name of staff"):
        add_staff(conn, unfit, [Role.EDITOR], SAID)


def test_a_person_is_added_with_roles_and_that_is_on_record(conn: psycopg.Connection[Any], name: str) -> None:
    person = told(conn, name)
    assert (person["roles"], person["retired_at"], person["tokens"]) == (["auditor"], None, [])
    (entry,) = entries(conn, EntryType.STAFF_ADDED, name)
    assert entry["after"] == {"name": name, "roles": ["auditor"]}
    assert (entry["actor"], entry["authoriser"], entry["reason"]) == (
        SAID.actor,
        SAID.authoriser,
        SAID.reason,
    )


def test_roles_are_a_set_in_one_order(conn: psycopg.Connection[Any], name: str) -> None:
    wanted = [Role.OPERATIONS, Role.EDITOR, Role.OPERATIONS]
    assert set_roles(conn, name, wanted, SAID)
    assert told(conn, name)["roles"] == ["editor", "operations"]
    assert not set_roles(conn, name, reversed(wanted), SAID)
    (entry,) = entries(conn, EntryType.STAFF_ROLES_CHANGED, name)
    assert (entry["before"]["roles"], entry["after"]["roles"]) == (["auditor"], ["editor", "operations"])


def test_nobody_is_without_a_role(conn: psycopg.Connection[Any], name: str) -> None:
    with pytest.raises(SetUpError, match="at least one role"):
        set_roles(conn, name, [], SAID)
    with pytest.raises(pg.CheckViolation, match="staff_roles_are_known"):
        conn.execute("SELECT staff_add(gen_random_uuid(), 'x', '{}', '{}')")
    with pytest.raises(pg.CheckViolation, match="staff_roles_are_known"):
        conn.execute("SELECT staff_add(gen_random_uuid(), 'x', '{auditor,root}', '{}')")


def test_a_token_is_its_persons_for_its_days(conn: psycopg.Connection[Any], name: str) -> None:
    issued = issue_token(conn, name, "the monthly check", SAID, days=7)
    assert issued.token.startswith("cbs_")
    assert issued.expires_at - clock(conn) <= timedelta(days=7)
    whose = presented(conn, issued.token)
    assert whose is not None
    assert (whose.actor, whose.roles, whose.state) == (f"staff:{name}", ["auditor"], TokenState.LIVE)
    (held,) = told(conn, name)["tokens"]
    assert (held["token_id"], held["label"], held["state"]) == (issued.token_id, "the monthly check", "live")
    for near in (
        issued.token[:-1],
        issued.token + "A",
        issued.token.swapcase(),
        issued.token[4:],
        issued.token_id,
    ):
        assert presented(conn, near) is None


def test_a_token_is_kept_as_its_hash_alone(conn: psycopg.Connection[Any], name: str) -> None:
    issued = issue_token(conn, name, "x", SAID)
    row = conn.execute(
        "SELECT t::text FROM staff_token AS t WHERE token_id = %s", [issued.token_id]
    ).fetchone()
    (entry,) = entries(conn, EntryType.STAFF_TOKEN_ISSUED, name)
    assert row is not None
    assert hash_of(issued.token).hex() in row[0]
    for shown in (row[0], json.dumps(entry), repr(issued), json.dumps(told(conn, name))):
        assert issued.token not in shown
        assert issued.token[4:] not in shown
    assert hash_of(issued.token).hex() not in json.dumps(entry)


@pytest.mark.parametrize("label", ["", " ", "a\nb", "x" * 101, "\x00"])
def test_a_label_says_what_the_token_is_for(conn: psycopg.Connection[Any], name: str, label: str) -> None:
    with pytest.raises(SetUpError, match="what the token is for"):
        issue_token(conn, name, label, SAID)


@pytest.mark.parametrize("days", [0, -1, 367])
def test_no_token_is_for_ever(conn: psycopg.Connection[Any], name: str, days: int) -> None:
    with pytest.raises(SetUpError, match="1 to 366 days"):
        issue_token(conn, name, "x", SAID, days=days)


def state_of(conn: psycopg.Connection[Any], issued: IssuedToken) -> str:
    whose = presented(conn, issued.token)
    assert whose is not None
    return whose.state


def test_a_token_that_is_revoked_ends_and_no_other_does(conn: psycopg.Connection[Any], name: str) -> None:
    first, second = (issue_token(conn, name, label, SAID) for label in "ab")
    assert revoke(conn, first.token_id, SAID)
    assert not revoke(conn, first.token_id, SAID)
    assert (state_of(conn, first), state_of(conn, second)) == ("revoked", "live")
    (entry,) = entries(conn, EntryType.STAFF_TOKEN_REVOKED, name)
    assert (entry["payload"]["token_id"], entry["reason"]) == (first.token_id, SAID.reason)


def test_who_retires_has_no_token_any_more_and_the_name_is_nobody_elses(
    conn: psycopg.Connection[Any], name: str
) -> None:
    issued = issue_token(conn, name, "x", SAID)
    assert revoke(conn, name, SAID)
    assert not revoke(conn, name, SAID)
    assert state_of(conn, issued) == "retired"
    assert len(entries(conn, EntryType.STAFF_RETIRED, name)) == 1
    for refused in (
        lambda: issue_token(conn, name, "x", SAID),
        lambda: set_roles(conn, name, [Role.EDITOR], SAID),
        lambda: add_staff(conn, name, [Role.EDITOR], SAID),
    ):
        with pytest.raises(SetUpError):
            refused()


def test_a_token_made_while_its_person_retires_is_not_made(conn: psycopg.Connection[Any], name: str) -> None:
    staff_id = conn.execute("SELECT staff_id FROM staff WHERE name = %s", [name]).fetchone()
    assert staff_id is not None
    revoke(conn, name, SAID)
    row = conn.execute(
        "SELECT staff_token_issue('t_000000000000', %s, sha256('x'), 'x', now() + interval '1 day', '{}')",
        staff_id,
    ).fetchone()
    assert row == (False,)


def test_a_token_expires(conn: psycopg.Connection[Any], app_house: AppHouse, name: str) -> None:
    token, token_id = "cbs_" + secrets.token_hex(20), "t_" + secrets.token_hex(6)
    with app_house.connect() as owner:
        owner.execute(
            "INSERT INTO staff_token (token_id, staff_id, token_hash, label, issued_at, expires_at)"
            " SELECT %s, staff_id, %s, 'old', now() - interval '2 days', now() FROM staff WHERE name = %s",
            [token_id, hash_of(token), name],
        )
    whose = presented(conn, token)
    assert whose is not None
    assert whose.state == TokenState.EXPIRED


@pytest.mark.parametrize("nobody", ["nobody", "t_ffffffffffff", "", "t_x"])
def test_what_is_nobodys_is_told_so(conn: psycopg.Connection[Any], nobody: str) -> None:
    with pytest.raises(SetUpError):
        revoke(conn, nobody, SAID)
    with pytest.raises(SetUpError, match="There is nobody"):
        issue_token(conn, nobody, "x", SAID)
    with pytest.raises(SetUpError, match="There is nobody"):
        set_roles(conn, nobody, [Role.EDITOR], SAID)


@pytest.mark.parametrize("role", [DatabaseRole.OWNER, DatabaseRole.SUPERUSER])
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM staff_token WHERE token_id = '{token_id}'",
        "DELETE FROM staff WHERE name = '{name}'",
        "TRUNCATE staff_token",
        "TRUNCATE staff CASCADE",
        "UPDATE staff SET name = 'x' WHERE name = '{name}'",
        "UPDATE staff SET added_at = now() WHERE name = '{name}'",
        "UPDATE staff_token SET expires_at = now() + interval '9 days' WHERE token_id = '{token_id}'",
        "UPDATE staff_token SET label = 'x' WHERE token_id = '{token_id}'",
        "UPDATE staff_token SET token_hash = sha256('x') WHERE token_id = '{token_id}'",
        "UPDATE staff_token SET revoked_at = NULL WHERE token_id = '{revoked}'",
        "UPDATE staff SET retired_at = NULL WHERE name = '{retired}'",
        "UPDATE staff SET roles = '{{editor}}' WHERE name = '{retired}'",
    ],
)
def test_nobody_changes_who_was_staff_or_brings_a_token_back(
    conn: psycopg.Connection[Any], app_house: AppHouse, name: str, role: DatabaseRole, change: str
) -> None:
    live, ended = issue_token(conn, name, "a", SAID), issue_token(conn, name, "b", SAID)
    revoke(conn, ended.token_id, SAID)
    retired = "gone." + secrets.token_hex(4)
    add_staff(conn, retired, [Role.AUDITOR], SAID)
    revoke(conn, retired, SAID)
    with app_house.connect(role) as powerful, pytest.raises(pg.RestrictViolation, match="is refused"):
        powerful.execute(
            change.format(name=name, token_id=live.token_id, revoked=ended.token_id, retired=retired)
        )


@pytest.mark.parametrize("call", ["staff_called(%s)", "staff_refused('::1', %s)"])
def test_nothing_else_is_written_as_a_call(conn: psycopg.Connection[Any], call: str) -> None:
    other = Entry(type=EntryType.ROUND_SETTLED, occurred_at=clock(conn), actor="staff:somebody")
    with pytest.raises(pg.CheckViolation):
        conn.execute(f"SELECT {call}", [other.text()])


def test_a_call_is_on_record_with_who_made_it(conn: psycopg.Connection[Any], name: str) -> None:
    whose = presented(conn, issue_token(conn, name, "x", SAID).token)
    assert whose is not None
    call = {"token_id": whose.token_id, "method": "GET", "path": "/v1/audit/entries", "granted": True}
    record_call(conn, whose.actor, whose.read_at, call)
    row = conn.execute(
        "SELECT payload FROM audit_entry WHERE type = 'staff.called' AND actor = %s", [whose.actor]
    ).fetchone()
    assert row == (call,)


def refusals(conn: psycopg.Connection[Any], caller: str) -> int:
    row = conn.execute(
        "SELECT count(*) FROM audit_entry WHERE type = 'staff.refused' AND payload ->> 'address' = %s",
        [caller],
    ).fetchone()
    assert row is not None
    return int(row[0])


def refuse(conn: psycopg.Connection[Any], caller: str) -> None:
    record_refusal(conn, caller, None, {"address": caller})


def test_three_wrong_tokens_within_a_minute_shut_an_address_out_and_no_other(
    conn: psycopg.Connection[Any],
) -> None:
    caller = address()
    for _ in range(FAILURES_MAX - 1):
        refuse(conn, caller)
        assert locked_out_seconds(conn, caller) == 0
    refuse(conn, caller)
    assert 0 < locked_out_seconds(conn, caller) <= LOCKED_OUT_SECONDS
    assert locked_out_seconds(conn, address()) == 0
    refuse(conn, caller)
    assert refusals(conn, caller) == FAILURES_MAX


def ago(conn: psycopg.Connection[Any], caller: str, seconds: int) -> None:
    """Puts an address's failures back by so many seconds."""
    conn.execute(
        "UPDATE staff_failure SET failed_at = ARRAY(SELECT t - make_interval(secs => %s) FROM unnest(failed_at) AS t)"
        " WHERE address = %s",
        [seconds, caller],
    )


def test_a_minute_later_an_address_may_try_again_and_is_counted_anew(
    conn: psycopg.Connection[Any], app_house: AppHouse
) -> None:
    caller = address()
    with app_house.connect() as owner:
        for _ in range(FAILURES_MAX):
            refuse(conn, caller)
        ago(owner, caller, LOCKED_OUT_SECONDS)
        assert locked_out_seconds(conn, caller) == 0
        for _ in range(FAILURES_MAX - 1):
            refuse(conn, caller)
            assert locked_out_seconds(conn, caller) == 0
        refuse(conn, caller)
        assert locked_out_seconds(conn, caller) > 0
    assert refusals(conn, caller) == 2 * FAILURES_MAX


def test_failures_further_apart_than_a_minute_shut_nobody_out(
    conn: psycopg.Connection[Any], app_house: AppHouse
) -> None:
    caller = address()
    with app_house.connect() as owner:
        for _ in range(5):
            refuse(conn, caller)
            assert locked_out_seconds(conn, caller) == 0
            ago(owner, caller, LOCKED_OUT_SECONDS // 2)


def test_tokens_tried_at_the_same_instant_are_counted_one_by_one(app_house: AppHouse) -> None:
    caller = address()

    def try_one() -> None:
        with app_house.service.database.connection() as conn:
            refuse(conn, caller)

    together([try_one] * 8)
    with app_house.service.database.connection() as conn:
        assert refusals(conn, caller) == FAILURES_MAX
        assert locked_out_seconds(conn, caller) > 0


def test_of_all_addresses_together_sixty_a_minute_are_on_record(
    conn: psycopg.Connection[Any], app_house: AppHouse
) -> None:
    callers = [address() for _ in range(22)]
    with app_house.connect() as owner:
        owner.execute("DELETE FROM staff_failure")
        together([partial(refuse_thrice, app_house, caller) for caller in callers])
        assert sum(refusals(conn, caller) for caller in callers) == 60
        late = address()
        refuse(conn, late)
        assert refusals(conn, late) == 0
        owner.execute("UPDATE staff_failure SET failed_at = ARRAY[now() - interval '1 minute']")
        refuse(conn, late)
        assert refusals(conn, late) == 1


def refuse_thrice(app_house: AppHouse, caller: str) -> None:
    with app_house.service.database.connection() as conn:
        for _ in range(3):
            refuse(conn, caller)


def test_what_means_nothing_any_more_is_forgotten(conn: psycopg.Connection[Any], app_house: AppHouse) -> None:
    before, other = address(), address()
    refuse(conn, before)
    with app_house.connect() as owner:
        ago(owner, before, 2 * LOCKED_OUT_SECONDS)
    refuse(conn, other)
    kept = {found for (found,) in conn.execute("SELECT address FROM staff_failure")}
    assert other in kept
    assert before not in kept


@pytest.fixture
def run(app_house: AppHouse) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        environment = {"DATABASE_URL": app_house.server.url(DatabaseRole.OWNER)}
        done = CliRunner().invoke(staff, arguments, env=environment, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def test_the_commands_add_give_change_and_end(run: Callable[..., str], conn: psycopg.Connection[Any]) -> None:
    name = "cli." + secrets.token_hex(4)
    assert name in run("add", name, "--role", "auditor", "--role", "editor", "--reason", "Hired.")
    made = json.loads(run("token", name, "--label", "scripts", "--days", "1", "--json"))
    assert presented(conn, made["token"]) is not None
    shown = run("token", name, "--label", "more")
    assert "cbs_" in shown
    assert "is not shown again" in shown
    assert run("roles", name, "--role", "operations") == "Done.\n"
    assert run("roles", name, "--role", "operations") == "It was so before.\n"
    assert run("revoke", made["token_id"], "--authoriser", "the head") == "Done.\n"
    listed = run("list")
    assert "cbs_" not in listed
    assert f"{made['token_id']}  revoked  scripts" in listed
    (person,) = (person for person in json.loads(run("list", "--json")) if person["name"] == name)
    assert person["roles"] == ["operations"]
    assert [token["state"] for token in person["tokens"]] == ["revoked", "live"]
    assert run("revoke", name) == "Done.\n"
    (entry,) = entries(conn, EntryType.STAFF_ADDED, name)
    assert (entry["actor"], entry["reason"]) == ("system:cli", "Hired.")
    (entry,) = entries(conn, EntryType.STAFF_TOKEN_REVOKED, name)
    assert entry["authoriser"] == "the head"


@pytest.mark.parametrize("leave", [("revoke", "anna"), ("roles", "anna", "--role", "auditor")])
def test_the_commands_tell_who_takes_the_last_approver_away(tmp_path: Path, leave: tuple[str, ...]) -> None:
    with app_house_in(tmp_path) as house, house.connect() as owner:
        add_staff(owner, "anna", [Role.APPROVER], SAID)
        add_staff(owner, "bert", [Role.APPROVER], SAID)

        def told(*arguments: str) -> str:
            environment = {"DATABASE_URL": house.server.url(DatabaseRole.OWNER)}
            return CliRunner().invoke(staff, arguments, env=environment, catch_exceptions=False).stderr

        assert told("revoke", "bert") == ""
        assert "files take effect again" in told(*leave)
        assert told(*leave) == ""


def test_the_commands_invite_reset_and_unlock(
    run: Callable[..., str], conn: psycopg.Connection[Any], app_house: AppHouse
) -> None:
    who = colleague(app_house, Role.EDITOR)
    assert run("unlock", who.name) == "The account is not locked.\n"
    with app_house.connect() as owner:
        owner.execute("UPDATE staff_access SET failures = 3 WHERE staff_id = %s", [who.staff_id])
    assert run("unlock", who.name, "--reason", "She called.") == "Done.\n"
    assert f"staff invite {who.name}" in run("reset", who.name)
    assert run("reset", who.name) == "The person has not joined.\n"
    shown = run("invite", who.name).splitlines()[-1]
    made = json.loads(run("invite", who.name, "--json", "--base-url=https://casino.example.com/"))
    assert shown.startswith("http://127.0.0.1:8080/console/join/")
    assert made["url"] == "https://casino.example.com" + made["path"]
    first, second = (text.rpartition("/console/join/")[2] for text in (shown, made["path"]))
    assert invited(conn, first) is None
    assert invited(conn, second) is not None
    (entry,) = entries(conn, EntryType.STAFF_UNLOCKED, who.name)
    assert (entry["actor"], entry["reason"]) == ("system:cli", "She called.")


@pytest.mark.parametrize(
    "address",
    ["casino.example.com", "ftp://casino.example.com", "http://casino.example.com", "https://a/b?c"],
)
def test_nobody_is_invited_to_an_address_that_is_none_of_the_service(address: str) -> None:
    done = CliRunner().invoke(staff, ["invite", "ada", "--base-url", address])
    assert done.exit_code == 2
    assert "write it as https://casino.example.com" in " ".join(done.output.replace("│", " ").split())


def test_a_person_is_added_with_at_least_one_role(app_house: AppHouse) -> None:
    done = CliRunner().invoke(staff, ["add", "ada"])
    assert done.exit_code == 2
    assert "--role" in done.output
