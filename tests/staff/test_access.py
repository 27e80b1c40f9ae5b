"""Signing in: what it takes, what it tells, who is locked out for how long, and when a session ends."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from argon2 import PasswordHasher, extract_parameters
from psycopg import errors as pg

from casino_brag.audit import EntryType
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.errors import Code, ServiceError
from casino_brag.sealing import Sealer
from casino_brag.staff import access, passwords
from casino_brag.staff.access import (
    CODE_MINUTES,
    FRESH_MINUTES,
    IDLE_MINUTES,
    LOCKED_MINUTES,
    NOT_RIGHT,
    SESSION_HOURS,
    TRIES_MAX,
    SignedIn,
    awaiting_code,
    end_session,
    give_code,
    give_password,
    prove,
    require_fresh,
    sessions,
    sign_out,
    signed_in,
)
from casino_brag.staff.credentials import change_factor, change_password, offer_anew, renew_recovery_codes
from casino_brag.staff.factors import Enrolment, matching_step
from casino_brag.staff.invitations import reset, unlock
from casino_brag.staff.people import Role, record_call, revoke, set_roles
from tests.colleagues import PASSWORD, SAID, Colleague, code_of, colleague
from tests.inprocess import AppHouse
from tests.running import together


@pytest.fixture
def ada(app_house: AppHouse) -> Colleague:
    return colleague(app_house, Role.AUDITOR)


@pytest.fixture(autouse=True)
def nobody_is_shut_out(app_house: AppHouse) -> None:
    """Failures of other tests are forgotten: of more than sixty a minute none is counted."""
    with app_house.connect() as owner:
        owner.execute("DELETE FROM staff_failure")


@pytest.fixture
def room_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many can hash at once as tests let, so that it is not the places that keep guesses from being judged."""
    monkeypatch.setattr(passwords, "_PLACES", passwords._Places(20, 0))


def address() -> str:
    """Some address that nothing came from before."""
    return f"2001:db8::{secrets.token_hex(2)}:{secrets.token_hex(2)}"


def password(house: AppHouse, name: str, given: str = PASSWORD) -> str:
    return give_password(house.service.database.connection, name, given, address())


def enter(conn: psycopg.Connection[Any], who: Colleague) -> str:
    """The secret of a new session of a person's."""
    awaiting = password(who.house, who.name)
    return give_code(conn, who.house.sealer, awaiting, who.code(), address())


def give_apart(who: Colleague, secret: str, code: str) -> Any:
    """Gives a code over a connection of its own; the secret, or the code of the refusal."""
    with who.house.service.database.connection() as own:
        return outcome(lambda: give_code(own, who.house.sealer, secret, code, address()))


def here(conn: psycopg.Connection[Any], secret: str) -> SignedIn:
    who = signed_in(conn, secret)
    assert who is not None
    return who


def refused(code: Code, call: Callable[[], Any]) -> ServiceError:
    with pytest.raises(ServiceError) as raised:
        call()
    assert raised.value.code is code
    return raised.value


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the code of its refusal."""
    try:
        return call()
    except ServiceError as refusal:
        return refusal.code


def entries(conn: psycopg.Connection[Any], name: str, *kinds: EntryType) -> list[dict[str, Any]]:
    rows = conn.execute(
        "SELECT convert_from(bytes, 'UTF8') FROM audit_entry"
        " WHERE type = ANY (%s) AND coalesce(payload, before) ->> 'name' = %s ORDER BY entry_id",
        [list(kinds), name],
    )
    return [json.loads(text) for (text,) in rows]


def later(who: Colleague, **ago: float) -> None:
    """Puts a person's last try back by so much, as if that time had passed."""
    with who.house.connect() as owner:
        owner.execute(
            "UPDATE staff_access SET tried_at = tried_at - %s WHERE staff_id = %s",
            [timedelta(**ago), who.staff_id],
        )


def age(who: Colleague, column: str, **ago: float) -> None:
    """Puts a time of all of a person's sessions back."""
    with who.house.connect() as owner, owner.transaction():
        owner.execute("ALTER TABLE staff_session DISABLE TRIGGER staff_session_ended_is_final")
        owner.execute(
            f"UPDATE staff_session SET {column} = {column} - %s WHERE staff_id = %s",
            [timedelta(**ago), who.staff_id],
        )
        owner.execute("ALTER TABLE staff_session ENABLE ALWAYS TRIGGER staff_session_ended_is_final")


def wrong_password(who: Colleague) -> None:
    refused(Code.UNAUTHENTICATED, lambda: password(who.house, who.name, "a wrong password"))


def test_a_password_and_then_a_code_sign_a_person_in(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    who = here(conn, enter(conn, ada))
    assert who.person == ada.person
    assert who.is_fresh
    (entry,) = entries(conn, ada.name, EntryType.STAFF_SIGNED_IN)
    assert entry["actor"] == f"staff:{ada.name}"
    assert entry["payload"]["by"] == "authenticator"


def test_a_password_alone_is_good_for_nothing_but_giving_a_code(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    secret = password(ada.house, ada.name)
    assert signed_in(conn, secret) is None
    waiting = awaiting_code(conn, secret)
    assert waiting is not None
    assert waiting.person.name == ada.name
    age(ada, "expires_at", minutes=CODE_MINUTES)
    assert awaiting_code(conn, secret) is None
    refused(Code.UNAUTHENTICATED, lambda: give_code(conn, ada.house.sealer, secret, ada.code(), address()))


def test_the_secret_is_another_after_the_code_and_the_one_before_is_nobodys(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    before = password(ada.house, ada.name)
    after = give_code(conn, ada.house.sealer, before, ada.code(), address())
    assert after != before
    assert signed_in(conn, after) is not None
    assert signed_in(conn, before) is None
    assert awaiting_code(conn, before) is None
    assert here(conn, after).csrf not in (before, after)


def test_a_password_that_was_kept_under_other_parameters_is_kept_anew(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    with ada.house.connect() as owner:
        older = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
        owner.execute("UPDATE staff_access SET password_hash = %s WHERE staff_id = %s", [older, ada.staff_id])
        for _ in range(2):
            assert signed_in(conn, enter(conn, ada)) is not None
            row = owner.execute(
                "SELECT password_hash FROM staff_access WHERE staff_id = %s", [ada.staff_id]
            ).fetchone()
            assert row is not None
            assert extract_parameters(row[0]) == extract_parameters(passwords.STAND_IN)


@pytest.mark.parametrize("name", ["nobody", "Ada", "", " ", "\x00", "a" * 300, "é", "system:cli"])
def test_an_unknown_name_is_answered_as_a_wrong_password_is(
    conn: psycopg.Connection[Any], app_house: AppHouse, ada: Colleague, name: str
) -> None:
    unknown = refused(Code.UNAUTHENTICATED, lambda: password(app_house, name))
    wrong = refused(Code.UNAUTHENTICATED, lambda: password(app_house, ada.name, "wrong"))
    assert (unknown.detail, unknown.errors) == (wrong.detail, wrong.errors) == (NOT_RIGHT, None)


def test_every_try_at_a_password_costs_one_verification_of_the_same_kind(
    monkeypatch: pytest.MonkeyPatch, app_house: AppHouse, ada: Colleague
) -> None:
    verified: list[str] = []
    real = passwords._HASHER.verify

    class Counting:
        check_needs_rehash = passwords._HASHER.check_needs_rehash

        def verify(self, kept: str, given: str) -> bool:
            verified.append(kept.rpartition("$")[0].rpartition("$")[0])
            return real(kept, given)

    monkeypatch.setattr(passwords, "_HASHER", Counting())
    for name in ("nobody", ada.name):
        refused(Code.UNAUTHENTICATED, lambda name=name: password(app_house, name, "wrong"))
    password(app_house, ada.name)
    for _ in range(TRIES_MAX):
        wrong_password(ada)
    verified.clear()
    wrong_password(ada)
    refused(Code.UNAUTHENTICATED, lambda: password(app_house, "nobody", "wrong"))
    assert len(verified) == 2
    assert len(set(verified)) == 1


def test_three_wrong_passwords_lock_the_account_and_that_is_on_record(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    for _ in range(TRIES_MAX):
        wrong_password(ada)
    refused(Code.UNAUTHENTICATED, lambda: password(ada.house, ada.name))
    assert len(entries(conn, ada.name, EntryType.STAFF_LOCKED_OUT)) == 1
    assert [e["reason"] for e in entries(conn, ada.name, EntryType.STAFF_SIGN_IN_FAILED)] == [
        *["password"] * TRIES_MAX,
        "not_tried",
    ]


def test_the_lock_ends_after_its_time_and_a_further_failure_is_the_first(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    for _ in range(TRIES_MAX):
        wrong_password(ada)
    later(ada, minutes=LOCKED_MINUTES, seconds=-5)
    refused(Code.UNAUTHENTICATED, lambda: password(ada.house, ada.name))
    later(ada, seconds=5)
    wrong_password(ada)
    assert signed_in(conn, enter(conn, ada)) is not None
    for _ in range(TRIES_MAX):
        wrong_password(ada)
    refused(Code.UNAUTHENTICATED, lambda: password(ada.house, ada.name))
    assert len(entries(conn, ada.name, EntryType.STAFF_LOCKED_OUT)) == 2


def test_somebody_unlocks_an_account_and_that_is_on_record(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    assert not unlock(conn, ada.name, SAID)
    for _ in range(TRIES_MAX):
        wrong_password(ada)
    assert unlock(conn, ada.name, SAID)
    assert signed_in(conn, enter(conn, ada)) is not None
    (entry,) = entries(conn, ada.name, EntryType.STAFF_UNLOCKED)
    assert (entry["actor"], entry["reason"]) == (SAID.actor, SAID.reason)


def test_a_right_password_gives_no_new_tries_at_codes(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    for _ in range(TRIES_MAX):
        secret = password(ada.house, ada.name)
        refused(
            Code.UNAUTHENTICATED,
            lambda secret=secret: give_code(conn, ada.house.sealer, secret, "000", address()),
        )
    refused(Code.UNAUTHENTICATED, lambda: password(ada.house, ada.name))
    assert [e["reason"] for e in entries(conn, ada.name, EntryType.STAFF_SIGN_IN_FAILED)][:3] == ["code"] * 3
    assert len(entries(conn, ada.name, EntryType.STAFF_LOCKED_OUT)) == 1


def test_a_right_code_does_not_help_once_the_account_is_locked(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    secret = password(ada.house, ada.name)
    for _ in range(TRIES_MAX):
        wrong_password(ada)
    refused(Code.UNAUTHENTICATED, lambda: give_code(conn, ada.house.sealer, secret, ada.code(), address()))
    assert unlock(conn, ada.name, SAID)
    assert give_code(conn, ada.house.sealer, secret, ada.code(), address())


def test_passwords_guessed_at_the_same_time_are_no_more_than_three(
    monkeypatch: pytest.MonkeyPatch,
    room_for_all: None,
    conn: psycopg.Connection[Any],
    ada: Colleague,
) -> None:
    judged: list[bool] = []
    real = access.is_right

    def judging(given: str, kept: str | None) -> bool:
        judged.append(kept is not None)
        return real(given, kept)

    monkeypatch.setattr(access, "is_right", judging)
    together([lambda: wrong_password(ada)] * 8)
    assert judged.count(True) == TRIES_MAX
    assert len(judged) == 8
    assert len(entries(conn, ada.name, EntryType.STAFF_LOCKED_OUT)) == 1


def test_codes_guessed_at_the_same_time_are_no_more_than_three(
    monkeypatch: pytest.MonkeyPatch, conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    looked_at: list[str] = []
    real = access.match

    def matching(sealer: Any, code: str, *more: Any) -> Any:
        looked_at.append(code)
        return real(sealer, code, *more)

    monkeypatch.setattr(access, "match", matching)
    secret = password(ada.house, ada.name)

    together([partial(give_apart, ada, secret, "0")] * 8)
    assert len(looked_at) == TRIES_MAX
    assert len(entries(conn, ada.name, EntryType.STAFF_LOCKED_OUT)) == 1


def test_three_failures_from_an_address_shut_it_out_whatever_the_name(
    app_house: AppHouse, ada: Colleague
) -> None:
    one = address()
    connect = app_house.service.database.connection
    for name in ("nobody", ada.name, "somebody"):
        refused(Code.UNAUTHENTICATED, lambda name=name: give_password(connect, name, "wrong", one))
    shut_out = refused(Code.RATE_LIMITED, lambda: give_password(connect, ada.name, PASSWORD, one))
    assert shut_out.retry_after_seconds is not None
    assert password(app_house, ada.name)


def test_what_was_typed_is_in_no_entry(conn: psycopg.Connection[Any], app_house: AppHouse) -> None:
    name, typed, one = "typo." + secrets.token_hex(8), secrets.token_hex(16), address()
    refused(
        Code.UNAUTHENTICATED,
        lambda: give_password(app_house.service.database.connection, name, typed, one),
    )
    (entry,) = conn.execute(
        "SELECT convert_from(bytes, 'UTF8') FROM audit_entry WHERE type = 'staff.sign_in_failed'"
        " AND payload ->> 'address' = %s",
        [one],
    ).fetchall()
    assert name not in entry[0]
    assert typed not in entry[0]


def test_a_code_is_good_once(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    code = code_of(ada.secret)
    sealer = ada.house.sealer
    assert give_code(conn, sealer, password(ada.house, ada.name), code, address())
    again = password(ada.house, ada.name)
    refused(Code.UNAUTHENTICATED, lambda: give_code(conn, sealer, again, code, address()))
    refused(
        Code.UNAUTHENTICATED,
        lambda: give_code(conn, sealer, again, code_of(ada.secret, steps_ahead=-1), address()),
    )


def test_a_code_is_good_once_when_it_comes_many_times_at_once(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    waiting = [password(ada.house, ada.name) for _ in range(3)]
    code = code_of(ada.secret)
    outcomes = together([partial(give_apart, ada, secret, code) for secret in waiting])
    assert outcomes.count(Code.UNAUTHENTICATED) == 2


@pytest.mark.parametrize(("steps", "good"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_clocks_may_differ_by_one_time_step(
    monkeypatch: pytest.MonkeyPatch, conn: psycopg.Connection[Any], ada: Colleague, steps: int, good: bool
) -> None:
    moment = access.clock(conn)
    monkeypatch.setattr(access, "clock", lambda _: moment)
    monkeypatch.setattr("tests.colleagues.time.time", moment.timestamp)
    secret = password(ada.house, ada.name)
    code = code_of(ada.secret, steps_ahead=steps)
    if good:
        assert give_code(conn, ada.house.sealer, secret, code, address())
    else:
        refused(Code.UNAUTHENTICATED, lambda: give_code(conn, ada.house.sealer, secret, code, address()))


@pytest.mark.parametrize(
    ("seconds", "code"),
    [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")],
)
def test_codes_are_those_of_rfc_6238(seconds: int, code: str) -> None:
    """Appendix B of the RFC, of whose eight digits the last six are these."""
    moment = datetime.fromtimestamp(seconds, UTC)
    assert matching_step(b"12345678901234567890", code, moment) == seconds // 30
    assert matching_step(b"12345678901234567891", code, moment) is None


def test_a_recovery_code_is_good_once_also_in_parallel(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    codes = renew_recovery_codes(conn, here(conn, enter(conn, ada)))
    assert len(set(codes)) == 10
    waiting = [password(ada.house, ada.name) for _ in range(3)]
    codes_given = [partial(give_apart, ada, secret, codes[0].upper()) for secret in waiting]
    outcomes = together(codes_given)
    assert outcomes.count(Code.UNAUTHENTICATED) == 2
    entry = entries(conn, ada.name, EntryType.STAFF_SIGNED_IN)[-1]
    assert entry["payload"]["by"] == "recovery_code"
    assert codes[0] not in json.dumps(entry)
    assert give_code(conn, ada.house.sealer, password(ada.house, ada.name), codes[1], address())


def test_new_recovery_codes_end_the_ones_before(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    who = here(conn, enter(conn, ada))
    before, after = renew_recovery_codes(conn, who), renew_recovery_codes(conn, who)
    secret = password(ada.house, ada.name)
    refused(Code.UNAUTHENTICATED, lambda: give_code(conn, ada.house.sealer, secret, before[0], address()))
    assert give_code(conn, ada.house.sealer, secret, after[0], address())


def test_a_session_ends_at_sign_out(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    secret = enter(conn, ada)
    sign_out(conn, here(conn, secret))
    assert signed_in(conn, secret) is None
    (entry,) = entries(conn, ada.name, EntryType.STAFF_SIGNED_OUT)
    assert entry["actor"] == f"staff:{ada.name}"


@pytest.mark.parametrize(
    ("column", "ago"), [("expires_at", {"hours": SESSION_HOURS}), ("seen_at", {"minutes": IDLE_MINUTES})]
)
def test_a_session_ends_with_its_time_and_when_nothing_is_done(
    conn: psycopg.Connection[Any], ada: Colleague, column: str, ago: dict[str, float]
) -> None:
    secret = enter(conn, ada)
    age(ada, column, **ago | {"seconds": -5})
    who = signed_in(conn, secret, active=False)
    assert who is not None
    age(ada, column, seconds=5)
    assert signed_in(conn, secret) is None
    refused(Code.INVALID, lambda: prove(conn, ada.house.sealer, who, ada.code(), address()))


def test_a_session_in_use_does_not_end_and_one_that_is_only_polled_does(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    secret = enter(conn, ada)
    for active, kept in ((True, True), (False, False)):
        age(ada, "seen_at", minutes=20)
        who = signed_in(conn, secret, active=active)
        assert who is not None
        assert who.expires_at - who.read_at <= timedelta(minutes=IDLE_MINUTES if active else 10)
        age(ada, "seen_at", minutes=20)
        assert (signed_in(conn, secret) is not None) is kept


def ways_to_end(
    who: Colleague, conn: psycopg.Connection[Any], mine: SignedIn
) -> dict[str, Callable[[], Any]]:
    sealer = who.house.sealer

    def another_factor() -> None:
        offer = offer_anew(sealer, mine)
        change_factor(conn, sealer, mine, offer.sealed, code_of(offer.secret))

    def another_password() -> None:
        change_password(
            who.house.service.database.connection, mine, PASSWORD, "another one of mine", address()
        )

    return {
        "roles_changed": lambda: set_roles(conn, who.name, [Role.EDITOR], SAID),
        "retired": lambda: revoke(conn, who.name, SAID),
        "reset": lambda: reset(conn, who.name, SAID),
        "password_changed": another_password,
        "factor_changed": another_factor,
    }


@pytest.mark.parametrize("why", ["roles_changed", "retired", "reset", "password_changed", "factor_changed"])
def test_sessions_end_with_what_they_rest_on(conn: psycopg.Connection[Any], ada: Colleague, why: str) -> None:
    mine, other = enter(conn, ada), enter(conn, ada)
    ways_to_end(ada, conn, here(conn, mine))[why]()
    assert signed_in(conn, other) is None
    assert (signed_in(conn, mine) is not None) is (why in ("password_changed", "factor_changed"))
    assert why in {row.ended_why for row in sessions(conn, staff_id=ada.staff_id)}


def test_a_code_cannot_be_given_after_the_person_has_retired(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    secret = password(ada.house, ada.name)
    revoke(conn, ada.name, SAID)
    refused(Code.UNAUTHENTICATED, lambda: give_code(conn, ada.house.sealer, secret, ada.code(), address()))
    refused(Code.UNAUTHENTICATED, lambda: password(ada.house, ada.name))


def test_roles_are_those_held_now(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    set_roles(conn, ada.name, [Role.EDITOR, Role.OPERATIONS], SAID)
    assert here(conn, enter(conn, ada)).person.roles == {Role.EDITOR, Role.OPERATIONS}


def test_a_person_ends_own_sessions_and_nobody_elses(
    conn: psycopg.Connection[Any], app_house: AppHouse, ada: Colleague
) -> None:
    eve = colleague(app_house, Role.OPERATIONS)
    mine, hers = enter(conn, ada), here(conn, enter(conn, eve))
    session_id = here(conn, mine).session_id
    assert not end_session(conn, hers.person, session_id)
    assert signed_in(conn, mine) is not None
    assert end_session(conn, ada.person, session_id)
    assert not end_session(conn, ada.person, session_id)
    assert signed_in(conn, mine) is None
    row = sessions(conn, staff_id=ada.staff_id)[0]
    assert (row.name, row.state, row.ended_why) == (ada.name, "ended", "ended")


def test_a_proof_grows_old_and_another_code_renews_it(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    secret = enter(conn, ada)
    require_fresh(conn, ada.house.sealer, here(conn, secret), None, address())
    age(ada, "proved_at", minutes=FRESH_MINUTES, seconds=1)
    who = here(conn, secret)
    assert not who.is_fresh
    for code in (None, "", "000", code_of(ada.secret, steps_ahead=-10)):
        refusal = refused(
            Code.INVALID, lambda code=code: require_fresh(conn, ada.house.sealer, who, code, address())
        )
        assert list(refusal.errors or {}) == ["code"]
    require_fresh(conn, ada.house.sealer, who, ada.code(), address())
    assert here(conn, secret).is_fresh
    assert len(entries(conn, ada.name, EntryType.STAFF_PROVED)) == 1


def test_codes_guessed_to_prove_anew_lock_the_account(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    who = here(conn, enter(conn, ada))
    for _ in range(TRIES_MAX):
        refused(Code.INVALID, lambda: prove(conn, ada.house.sealer, who, "000000x", address()))
    refused(Code.INVALID, lambda: prove(conn, ada.house.sealer, who, ada.code(), address()))
    assert len(entries(conn, ada.name, EntryType.STAFF_LOCKED_OUT)) == 1


def test_nothing_is_counted_within_a_transaction_that_could_take_it_back(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    who = here(conn, enter(conn, ada))
    with conn.transaction(), pytest.raises(AssertionError):
        prove(conn, ada.house.sealer, who, "000000", address())


def test_a_password_is_changed_by_who_knows_it(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    who, connect = here(conn, enter(conn, ada)), ada.house.service.database.connection
    wrong = refused(
        Code.INVALID, lambda: change_password(connect, who, "wrong", "another one of mine", address())
    )
    assert list(wrong.errors or {}) == ["current"]
    poor = refused(Code.INVALID, lambda: change_password(connect, who, PASSWORD, "short", address()))
    assert list(poor.errors or {}) == ["password"]
    change_password(connect, who, PASSWORD, "another one of mine", address())
    refused(Code.UNAUTHENTICATED, lambda: password(ada.house, ada.name, PASSWORD))
    assert password(ada.house, ada.name, "another one of mine")
    assert len(entries(conn, ada.name, EntryType.STAFF_PASSWORD_CHANGED)) == 1


def test_another_authenticator_is_taken_by_a_code_of_it(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    sealer, who = ada.house.sealer, here(conn, enter(conn, ada))
    offer: Enrolment = offer_anew(sealer, who)
    for sealed, code in ((offer.sealed, "000000x"), ("00", code_of(offer.secret)), ("x", "")):
        refusal = refused(
            Code.INVALID, lambda sealed=sealed, code=code: change_factor(conn, sealer, who, sealed, code)
        )
        assert list(refusal.errors or {}) == ["new_code"]
    other = here(conn, enter(conn, ada))
    refused(Code.INVALID, lambda: change_factor(conn, sealer, other, offer.sealed, code_of(offer.secret)))
    used = code_of(offer.secret)
    codes = change_factor(conn, sealer, who, offer.sealed, used)
    secret = password(ada.house, ada.name)
    refused(Code.UNAUTHENTICATED, lambda: give_code(conn, sealer, secret, code_of(ada.secret), address()))
    refused(Code.UNAUTHENTICATED, lambda: give_code(conn, sealer, secret, used, address()))
    assert give_code(conn, sealer, secret, codes[0], address())


def test_a_secret_sealed_under_an_older_key_is_sealed_anew_when_a_code_is_given(
    conn: psycopg.Connection[Any], ada: Colleague
) -> None:
    keys = {"k2": secrets.token_bytes(32), **ada.house.config.seal_keys}
    rotated = Sealer(keys)
    assert give_code(conn, rotated, password(ada.house, ada.name), ada.code(), address())
    row = conn.execute(
        "SELECT sealed_secret FROM staff_access WHERE staff_id = %s", [ada.staff_id]
    ).fetchone()
    assert row is not None
    assert rotated.is_current(row[0])
    assert give_code(conn, rotated, password(ada.house, ada.name), ada.code(), address())


def test_a_visit_is_on_record_with_its_session(conn: psycopg.Connection[Any], ada: Colleague) -> None:
    who = here(conn, enter(conn, ada))
    session = {"staff_session_id": str(who.session_id)}
    record_call(
        conn,
        who.person.actor,
        who.read_at,
        session | {"method": "GET", "path": "/console/audit", "granted": True},
    )
    row = conn.execute(
        "SELECT payload ->> 'staff_session_id' FROM audit_entry WHERE type = 'staff.called' AND actor = %s",
        [who.person.actor],
    ).fetchone()
    assert row is not None
    assert UUID(row[0]) == who.session_id


def test_the_application_cannot_read_passwords_past_the_count(conn: psycopg.Connection[Any]) -> None:
    with pytest.raises(pg.InsufficientPrivilege):
        conn.execute("SELECT password_hash FROM staff_access")
    with pytest.raises(pg.InsufficientPrivilege):
        conn.execute("UPDATE staff_access SET failures = 0")


@pytest.mark.parametrize("role", [DatabaseRole.OWNER, DatabaseRole.SUPERUSER])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE staff_session SET ended_at = NULL, ended_why = NULL WHERE staff_id = '{staff_id}'",
        "UPDATE staff_session SET expires_at = now() + interval '9 days' WHERE staff_id = '{staff_id}'",
        "UPDATE staff_session SET secret_hash = sha256('x') WHERE staff_id = '{staff_id}'",
    ],
)
def test_nobody_brings_a_session_back(
    conn: psycopg.Connection[Any], ada: Colleague, role: DatabaseRole, change: str
) -> None:
    sign_out(conn, here(conn, enter(conn, ada)))
    with ada.house.connect(role) as powerful, pytest.raises(pg.RestrictViolation, match="is refused"):
        powerful.execute(change.format(staff_id=ada.staff_id))
