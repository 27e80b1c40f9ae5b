"""What an operator's wallet is asked, as it is kept: by whom it can be changed, and who works on it when."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg

from casino_brag.catalogue.operators import Funding, set_wallet, signing_operator
from casino_brag.db.embedded import Role
from casino_brag.errors import SetUpError
from casino_brag.rounds import paying
from casino_brag.wallet import transactions
from casino_brag.wallet.answers import Request
from casino_brag.wallet.builtin import Direction, move
from tests.books import broken_laws
from tests.inprocess import AppHouse
from tests.model_wallet import Course, Killed, ModelWallets, nothing, unanswered, wallet_in
from tests.running import Operator, Player, code_of


@pytest.fixture
def wallet() -> ModelWallets:
    return ModelWallets(funds_minor=1_000)


@pytest.fixture
def operator(app_house: AppHouse, wallet: ModelWallets) -> Iterator[Operator]:
    with wallet_in(app_house, wallet) as found:
        yield found
        wallet.before = wallet.after = nothing
        with app_house.connect() as conn:
            conn.execute("UPDATE wallet_transaction SET due_at = now() WHERE ended_at IS NULL")
        attend(app_house)
        with app_house.connect() as conn:
            assert broken_laws(conn) == {}
            left = conn.execute("SELECT count(*) FROM wallet_transaction WHERE ended_at IS NULL").fetchone()
            assert left == (0,)


def attend(app_house: AppHouse) -> int:
    return paying.attend(app_house.service.database.connection, app_house.service.house)


def real(operator: Operator, name: str = "") -> Player:
    return operator.player(mode="real", **({"player": name} if name else {}))


def kept(conn: psycopg.Connection[Any], operator: Operator) -> list[tuple[str, str, int]]:
    """An operator's transactions: wager, state, amount."""
    return conn.execute(
        "SELECT wager, t.state, amount_minor FROM wallet_transaction AS t JOIN operator USING (operator_id)"
        " WHERE name = %s ORDER BY begun_at, transaction_id",
        [operator.name],
    ).fetchall()


@pytest.fixture(params=["owner", "superuser", "superuser as a replica"])
def powerful(app_house: AppHouse, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """Somebody whom no missing privilege stops."""
    with app_house.connect(Role.OWNER if request.param == "owner" else Role.SUPERUSER) as conn:
        if request.param.endswith("replica"):
            conn.execute("SET session_replication_role = replica")
        yield conn


def test_nobody_changes_what_the_wallet_has_answered(
    app_house: AppHouse, operator: Operator, powerful: psycopg.Connection[Any]
) -> None:
    assert real(operator).played("play")["payout_state"] == "paid"
    for change in (
        "state = 'pending', ended_at = NULL, due_at = now()",
        "last_problem = 'none'",
        "attempts = 9",
    ):
        with pytest.raises(pg.RestrictViolation):
            powerful.execute(f"UPDATE wallet_transaction SET {change}")
    for statement in ("DELETE FROM wallet_transaction", "TRUNCATE wallet_transaction CASCADE"):
        with pytest.raises(pg.RestrictViolation):
            powerful.execute(statement)


def test_nobody_changes_what_the_wallet_was_asked(
    app_house: AppHouse, operator: Operator, wallet: ModelWallets, powerful: psycopg.Connection[Any]
) -> None:
    wallet.before = unanswered("credit", "cancel")
    player = real(operator)
    assert player.played("fold")["payout_state"] == "pending"
    wallet.after = unanswered("debit")
    assert code_of(real(operator).open(100)) == "wallet_unavailable"
    for column, value in {
        "transaction_id": "gen_random_uuid()",
        "operator_id": "gen_random_uuid()",
        "player_id": "gen_random_uuid()",
        "account_id": "gen_random_uuid()",
        "round_id": "gen_random_uuid()",
        "purpose": "'void'",
        "wager": "'play'",
        "amount_minor": "amount_minor + 1",
        "begun_at": "begun_at + interval '1 s'",
    }.items():
        with pytest.raises(pg.RestrictViolation):
            powerful.execute(f"UPDATE wallet_transaction SET {column} = {value} WHERE ended_at IS NULL")
    for state in ("pending", "done"):
        ended = "ended_at = now(), due_at = NULL" if state == "done" else "attempts = attempts"
        with pytest.raises(pg.RestrictViolation):
            powerful.execute(
                f"UPDATE wallet_transaction SET state = '{state}', {ended} WHERE state = 'cancelling'"
            )


def test_nobody_changes_a_void(
    app_house: AppHouse, operator: Operator, powerful: psycopg.Connection[Any]
) -> None:
    round_id = real(operator).open(100).json()["round_id"]
    said = {"reason": "A test.", "approver": "A tester"}
    path = f"/v1/operator/rounds/{round_id}/void"
    assert operator.send("POST", path, said, headers={"Idempotency-Key": "k"}).status_code == 200
    for statement in (
        "UPDATE voided_round SET refund_minor = 0",
        "DELETE FROM voided_round",
        "TRUNCATE voided_round",
        f"UPDATE round SET state = 'awaiting_decision' WHERE round_id = '{round_id}'",
    ):
        with pytest.raises(pg.RestrictViolation):
            powerful.execute(statement)


@pytest.mark.parametrize("funding", ["two_debits", "reserve"])
@pytest.mark.parametrize("held", [100, 150])
def test_a_void_is_credited_whole_at_the_wallet(app_house: AppHouse, funding: str, held: int) -> None:
    wallet = ModelWallets(funds_minor=1_000)
    with wallet_in(app_house, wallet, funding) as operator:
        player = real(operator, f"void-{funding}-{held}")
        round_id = player.open(100, held - 100).json()["round_id"]
        assert wallet.balances[f"void-{funding}-{held}"] == 1_000 - held - (
            100 if funding == "reserve" else 0
        )
        path = f"/v1/operator/rounds/{round_id}/void"
        body = {"reason": "A test.", "approver": "A tester"}
        voided = operator.send("POST", path, body, headers={"Idempotency-Key": "k"}).json()
        assert (voided["payout_state"], voided["refund_minor"]) == ("pending", held)
        assert code_of(player.open(100)) == "payout_pending"
        assert attend(app_house) == 1
        assert player.get(f"/v1/rounds/{round_id}").json()["payout_state"] == "paid"
        assert wallet.balances[f"void-{funding}-{held}"] == 1_000
        assert player.open(100).status_code == 201
        with app_house.connect() as conn:
            assert broken_laws(conn) == {}


def test_a_payout_that_is_not_confirmed_is_pursued_later_and_later(
    app_house: AppHouse, operator: Operator, wallet: ModelWallets
) -> None:
    wallet.before = unanswered("credit")
    player = real(operator)
    settled = player.played("play")
    assert (settled["payout_state"], settled["balance_minor"]) == ("pending", None)
    assert code_of(player.open(100)) == "payout_pending"
    waits = []
    with app_house.connect() as conn:
        for _ in range(9):
            conn.execute("UPDATE wallet_transaction SET due_at = now() WHERE ended_at IS NULL")
            assert attend(app_house) == 0
            row = conn.execute(
                "SELECT extract(epoch FROM due_at - now()) FROM wallet_transaction WHERE ended_at IS NULL"
            ).fetchone()
            assert row is not None
            waits.append(float(row[0]))
    assert waits[0] < waits[3] < waits[5]
    assert max(waits) <= 64 * 1.25
    # Not due, it is not tried; and when it is, it is paid, once.
    wallet.before = nothing
    with app_house.connect() as conn:
        conn.execute("UPDATE wallet_transaction SET due_at = now() + interval '1 h' WHERE ended_at IS NULL")
        assert attend(app_house) == 0
        conn.execute("UPDATE wallet_transaction SET due_at = now() WHERE ended_at IS NULL")
    assert attend(app_house) == 1
    paid = player.get(f"/v1/rounds/{settled['round_id']}").json()
    assert paid["payout_state"] == "paid"
    assert player.balance_minor() == 1_000 + paid["net_minor"]
    # The answer that was given is the answer, and stays so.
    assert player.decide(settled["round_id"], "play").json()["payout_state"] == "pending"


def test_when_a_wallet_answers_again_everything_is_taken_up_at_once(
    app_house: AppHouse, operator: Operator, wallet: ModelWallets
) -> None:
    wallet.before = unanswered("credit")
    for _ in range(4):
        assert real(operator).played("fold")["payout_state"] == "pending"
    wallet.before = nothing
    with app_house.connect() as conn:
        conn.execute("UPDATE wallet_transaction SET due_at = now() + interval '1 h' WHERE ended_at IS NULL")
        assert attend(app_house) == 0
        conn.execute(
            "UPDATE wallet_transaction SET due_at = now() WHERE transaction_id ="
            " (SELECT transaction_id FROM wallet_transaction WHERE ended_at IS NULL LIMIT 1)"
        )
    assert attend(app_house) == 4


def test_what_one_worker_has_taken_up_no_other_gets(
    app_house: AppHouse, operator: Operator, wallet: ModelWallets
) -> None:
    wallet.before = unanswered("credit")
    for _ in range(12):
        real(operator).played("fold")
    with app_house.connect() as conn:
        conn.execute("UPDATE wallet_transaction SET due_at = now() WHERE ended_at IS NULL")
        (operator_id,) = transactions.operators_due(conn)

    def claim(_: int) -> list[UUID]:
        with app_house.connect() as conn:
            return [one.transaction_id for one in transactions.claim(conn, operator_id, at_most=4)]

    with ThreadPoolExecutor(6) as pool:
        claimed = [one for part in pool.map(claim, range(6)) for one in part]
    assert len(claimed) == len(set(claimed)) == 12


def test_a_debit_that_nobody_waits_for_any_more_is_cancelled(
    app_house: AppHouse, operator: Operator, wallet: ModelWallets
) -> None:
    """As when the process died between asking the wallet and writing what it said."""

    wallet.courses = [Course.KILLED_AFTER]
    player = real(operator, "bereft")
    house = app_house.service
    with pytest.raises(Killed), house.database.connection():
        app_house.app.test_client().post(
            "/v1/rounds",
            json={"ante_minor": 100},
            headers=player.headers("k"),
            environ_overrides={"RAW_URI": "/"},
        )
    wallet.after = nothing
    assert wallet.balances["bereft"] == 900
    assert code_of(player.open(100, key="k")) == "request_in_progress"
    assert attend(app_house) == 0
    with app_house.connect() as conn:
        conn.execute("UPDATE wallet_transaction SET due_at = now() WHERE ended_at IS NULL")
        assert attend(app_house) == 1
        assert kept(conn, operator) == [("ante", "cancelled", 100)]
    assert wallet.balances["bereft"] == 1_000
    assert player.open(100, key="k").status_code == 201


def test_a_round_is_folded_while_the_debit_of_its_play_is_being_cancelled(
    app_house: AppHouse, operator: Operator, wallet: ModelWallets
) -> None:
    player = real(operator, "undecided")
    round_id = player.open(100).json()["round_id"]
    wallet.before, wallet.after = unanswered("cancel", "credit"), unanswered("debit")
    for key in ("one", "one", "two"):
        assert code_of(player.decide(round_id, "play", key=key)) == "wallet_unavailable"
    assert player.get(f"/v1/rounds/{round_id}").json()["state"] == "awaiting_decision"
    assert player.decide(round_id, "fold").json()["payout_state"] == "pending"
    wallet.before = wallet.after = nothing
    with app_house.connect() as conn:
        conn.execute("UPDATE wallet_transaction SET due_at = now() WHERE ended_at IS NULL")
        assert attend(app_house) == 2
        assert [state for wager, state, _ in kept(conn, operator) if wager == "play"] == ["cancelled"]
    assert wallet.balances["undecided"] == 900


def test_a_payout_that_the_wallet_cannot_do_stands_in_nobodys_way(
    app_house: AppHouse, operator: Operator, wallet: ModelWallets
) -> None:
    wallet.before = unanswered("credit")
    for _ in range(3):
        real(operator).played("fold")
    with app_house.connect() as conn:
        conn.execute("UPDATE wallet_transaction SET due_at = now(), attempts = 9 WHERE ended_at IS NULL")
        player = real(operator)
        latest = player.played("fold")["round_id"]
        conn.execute("UPDATE wallet_transaction SET due_at = now() WHERE ended_at IS NULL")
        wallet.before = unanswered("credit", after=1)
        assert attend(app_house) == 1
    assert player.get(f"/v1/rounds/{latest}").json()["payout_state"] == "paid"


def test_a_clock_that_was_set_back_puts_nothing_off_for_long(
    app_house: AppHouse, operator: Operator, wallet: ModelWallets
) -> None:
    wallet.before = unanswered("credit")
    player = real(operator)
    round_id = player.played("fold")["round_id"]
    wallet.before = nothing
    with app_house.connect() as conn:
        conn.execute(
            "UPDATE wallet_transaction SET due_at = now() + interval '10 minutes', last_problem = NULL"
            " WHERE ended_at IS NULL"
        )
    paying.begin(app_house.service.database.connection)
    assert attend(app_house) == 1
    assert player.get(f"/v1/rounds/{round_id}").json()["payout_state"] == "paid"


def test_an_operator_whose_players_have_money_here_gets_no_wallet_elsewhere(app_house: AppHouse) -> None:
    operator = app_house.new_operator()
    assert operator.deposit("bob", 5_000).status_code == 201
    with app_house.connect() as conn, pytest.raises(SetUpError, match="built-in wallet"):
        set_wallet(conn, operator.name, "https://wallet.example.com", actor="system:tests")
    assert operator.withdraw("bob", 5_000).status_code == 201


def test_no_deposit_slips_in_beside_the_operators_wallet(app_house: AppHouse, operator: Operator) -> None:
    """As by a process from before operators had wallets, which does not ask."""
    with app_house.connect() as conn:
        found = signing_operator(conn, operator.name, operator.key_id)
        assert found is not None
        with pytest.raises(pg.RestrictViolation, match="its own wallet"):
            move(
                conn,
                Request.of("k", "POST", "/", {}),
                direction=Direction.DEPOSIT,
                operator_id=found.operator_id,
                operator=found.name,
                player="bob",
                currency="GBP",
                amount_minor=100,
                now=found.read_at,
            )


def test_a_wallet_is_not_exchanged_while_it_has_still_to_answer(
    app_house: AppHouse, operator: Operator, wallet: ModelWallets
) -> None:
    wallet.before = unanswered("credit")
    real(operator).played("fold")
    with app_house.connect() as conn:
        with pytest.raises(SetUpError, match="wallet reconcile"):
            set_wallet(conn, operator.name, "https://elsewhere.example.com", actor="system:tests")
        wallet.before = nothing
        conn.execute("UPDATE wallet_transaction SET due_at = now() WHERE ended_at IS NULL")
        attend(app_house)
        set_wallet(
            conn, operator.name, "https://elsewhere.example.com", Funding.RESERVE, actor="system:tests"
        )
        # Said anew without it, the funding stays.
        again = set_wallet(conn, operator.name, "https://wallet.example.com", actor="system:tests")
        assert again is Funding.RESERVE


@pytest.mark.parametrize(
    "url",
    [
        *("", "wallet.example.com", "ftp://wallet.example.com", "http://wallet.example.com", "https:///brag"),
        *("https://a@b/", "https://h:99999/", "https://[x/", "https://wallet.example.com/brag?key=1"),
    ],
)
def test_an_address_that_is_no_wallets_is_refused(app_house: AppHouse, url: str) -> None:
    operator = app_house.new_operator()
    with app_house.connect() as conn, pytest.raises(SetUpError):
        set_wallet(conn, operator.name, url, actor="system:tests")


def test_a_wager_is_not_debited_twice_and_a_round_not_paid_twice(
    app_house: AppHouse, operator: Operator
) -> None:
    real(operator).played("play")
    with app_house.connect() as conn:
        for purpose, constraint in (
            ("stake", "wallet_transaction_stakes_a_wager_once"),
            ("settlement", "wallet_transaction_pays_once"),
        ):
            with pytest.raises(pg.UniqueViolation, match=constraint):
                conn.execute(
                    "INSERT INTO wallet_transaction (transaction_id, operator_id, player_id, account_id, round_id,"
                    " purpose, wager, amount_minor, state, begun_at, due_at) SELECT gen_random_uuid(), operator_id,"
                    " player_id, account_id, round_id, purpose, wager, amount_minor, 'pending', now(), now()"
                    " FROM wallet_transaction WHERE purpose = %s AND state = 'done' LIMIT 1",
                    [purpose],
                )
