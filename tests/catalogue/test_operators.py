"""Operators and their keys: what will do for a name and an origin, and how a key follows another."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from casino_brag.catalogue.operators import (
    add_operator,
    is_registered_origin,
    newest_credentials,
    rotate_key,
    signing_operator,
)
from casino_brag.errors import SetUpError
from casino_brag.sealing import SealBroken, Sealer
from tests.inprocess import AppHouse

ACTOR = "system:tests"


@pytest.fixture
def conn(app_house: AppHouse) -> Iterator[psycopg.Connection[Any]]:
    with app_house.connect() as conn:
        yield conn


def name() -> str:
    return "op-" + secrets.token_hex(5)


@pytest.mark.parametrize("fit", ["a", "0", "a-b", "casino-1", "a" * 63, "a--", "9-lives"])
def test_a_plain_name_will_do(conn: psycopg.Connection[Any], app_house: AppHouse, fit: str) -> None:
    with conn.transaction(force_rollback=True):
        assert add_operator(conn, app_house.sealer, fit, actor=ACTOR).operator == fit


@pytest.mark.parametrize(
    "unfit",
    [
        "",
        "A",
        "-a",
        "a b",
        "a_b",
        "a.b",
        "\u00e9",
        "a" * 64,
        "a\n",
        "a;",
        "\U0001f409",
        "a/b",
        "\x00",
        "\u0661",
    ],
)
def test_any_other_name_is_refused(conn: psycopg.Connection[Any], app_house: AppHouse, unfit: str) -> None:
    with pytest.raises(SetUpError, match="lower-case letters, digits and hyphens"):
        add_operator(conn, app_house.sealer, unfit, actor=ACTOR)


@pytest.mark.parametrize(
    "origin",
    [
        "https://play.example.com",
        "http://localhost:5173",
        "https://192.0.2.1:8443",
        "https://[2001:db8::1]:8443",
    ],
)
def test_an_origin_as_browsers_send_it_will_do(
    conn: psycopg.Connection[Any], app_house: AppHouse, origin: str
) -> None:
    with conn.transaction(force_rollback=True):
        add_operator(conn, app_house.sealer, name(), actor=ACTOR, origins=(origin,))
        assert is_registered_origin(conn, origin)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "*",
        "null",
        "play.example.com",
        "https://",
        "https://play.example.com/",
        "https://play.example.com/table",
        "https://play example.com",
        "ftp://play.example.com",
        "javascript:alert(1)",
        "https://a@play.example.com",
        "https://play.example.com?x",
        "https://play.example.com\n",
        "https://pl\u00e4y.example.com",
        "https://*.example.com",
        "https://" + "a" * 300,
    ],
)
def test_any_other_origin_is_refused(conn: psycopg.Connection[Any], app_house: AppHouse, origin: str) -> None:
    with pytest.raises(SetUpError, match="no web origin"):
        add_operator(conn, app_house.sealer, name(), actor=ACTOR, origins=("https://fit.example.com", origin))


@pytest.mark.parametrize(
    "origin", ["https://Play.Example.com", "HTTPS://play.example.com", "https://play.example.com:443"]
)
def test_an_origin_that_no_browser_ever_sends_is_refused(
    conn: psycopg.Connection[Any], app_house: AppHouse, origin: str
) -> None:
    """Browsers write hosts in lower case and leave a scheme's own port out: such a registration would never match."""
    with conn.transaction(force_rollback=True), pytest.raises(SetUpError, match="no web origin"):
        add_operator(conn, app_house.sealer, name(), actor=ACTOR, origins=(origin,))


@pytest.mark.parametrize(
    "url", ["", "play.example.com", "javascript:alert(1)", "https://", "https://a b", "https://\u00e9"]
)
def test_a_launch_url_is_the_address_of_a_page(
    conn: psycopg.Connection[Any], app_house: AppHouse, url: str
) -> None:
    with pytest.raises(SetUpError, match="no address of a page"):
        add_operator(conn, app_house.sealer, name(), actor=ACTOR, launch_url=url)


def test_a_session_s_launch_url_carries_its_token_where_no_server_sees_it(app_house: AppHouse) -> None:
    operator = app_house.new_operator(launch_url="https://play.example.com/table?lang=en")
    opened = operator.open_session().json()
    assert opened["launch_url"] == f"https://play.example.com/table?lang=en#token={opened['token']}"
    assert app_house.operator.open_session().json()["launch_url"] is None


def test_a_name_is_taken_once(conn: psycopg.Connection[Any], app_house: AppHouse) -> None:
    taken = name()
    first = add_operator(conn, app_house.sealer, taken, actor=ACTOR)
    with pytest.raises(SetUpError, match="already"):
        add_operator(conn, app_house.sealer, taken, actor=ACTOR)
    assert newest_credentials(conn, app_house.sealer, taken) == first


def test_a_refused_operator_leaves_no_trace(conn: psycopg.Connection[Any], app_house: AppHouse) -> None:
    def counted() -> Any:
        return conn.execute(
            "SELECT (SELECT count(*) FROM operator), (SELECT count(*) FROM operator_key),"
            " (SELECT count(*) FROM audit_entry)"
        ).fetchone()

    taken = name()
    add_operator(conn, app_house.sealer, taken, actor=ACTOR)
    before = counted()
    with pytest.raises(SetUpError):
        add_operator(conn, app_house.sealer, taken, actor=ACTOR)
    with pytest.raises(SetUpError):
        rotate_key(conn, app_house.sealer, name(), actor=ACTOR)
    assert counted() == before


def test_a_key_is_kept_sealed_and_opens_for_its_own_operator_only(
    conn: psycopg.Connection[Any], app_house: AppHouse
) -> None:
    made = [add_operator(conn, app_house.sealer, name(), actor=ACTOR) for _ in range(2)]
    found = [signing_operator(conn, one.operator, one.key_id) for one in made]
    first, second = (one for one in found if one is not None)
    assert [first.secret(app_house.sealer), second.secret(app_house.sealer)] == [one.secret for one in made]
    assert made[0].secret.encode() not in first.sealed_secret
    assert made[0].secret not in repr(made[0])
    with pytest.raises(SealBroken):
        app_house.sealer.open(
            first.sealed_secret, context=f"operator key {second.operator_id} {second.key_id}"
        )
    with pytest.raises(SealBroken):
        first.secret(Sealer({"k1": bytes(32)}))


def test_of_three_keys_the_two_newest_are_live(conn: psycopg.Connection[Any], app_house: AppHouse) -> None:
    first = add_operator(conn, app_house.sealer, name(), actor=ACTOR)
    keys = [first, *(rotate_key(conn, app_house.sealer, first.operator, actor=ACTOR) for _ in range(4))]
    assert len({key.secret for key in keys}) == len({key.key_id for key in keys}) == 5
    live = [signing_operator(conn, key.operator, key.key_id) is not None for key in keys]
    assert live == [False, False, False, True, True]
    assert newest_credentials(conn, app_house.sealer, first.operator) == keys[-1]


def test_nobody_signs_with_a_key_of_another_name(conn: psycopg.Connection[Any], app_house: AppHouse) -> None:
    one, other = (add_operator(conn, app_house.sealer, name(), actor=ACTOR) for _ in range(2))
    assert signing_operator(conn, one.operator, other.key_id) is None
    assert signing_operator(conn, name(), one.key_id) is None
    assert newest_credentials(conn, app_house.sealer, name()) is None


def test_an_unknown_operator_has_no_key_to_rotate(conn: psycopg.Connection[Any], app_house: AppHouse) -> None:
    with pytest.raises(SetUpError, match="operator add nobody"):
        rotate_key(conn, app_house.sealer, "nobody", actor=ACTOR)
